"""Byte-level BPE as a tokenizer.json describes it; other JSON formats are written in its terms first."""

from collections.abc import Mapping
from typing import Any

from ..catalogue import tr
from .added import AddedToken
from .assembly import Source, assemble
from .bpe import BytePairEncoder
from .byte_level import to_bytes
from .merges import Merge, possible_merges
from .normalizers import build_normalizer
from .pipeline import Steps
from .pretokenizers import build_splitters
from .problems import Malformed, Unsupported, kind_of, member
from .settings import Settings
from .templates import build_template
from .tokenizer import Tokenizer
from .vocabulary import Vocabulary

Json = dict[str, Any]


def build_tokenizer(description: Json, vocab_size: int, settings: Settings | None = None) -> Tokenizer:
    """Return the tokenizer that *description*, the content of a tokenizer.json, stands for.

    One of a kind that is not implemented knows no token, and its notice names the kind; `Malformed` says what
    is wrong with a description.
    """
    model = member(description, "model", dict)
    kind = _unsupported_kind(description, model)
    if kind is not None:
        return unsupported(kind, vocab_size)
    vocab = _read_vocab(model)
    byte_tokens = {text: data for text in vocab if (data := to_bytes(text)) is not None}
    source = Source(
        # A name that is not written in the alphabet of bytes stands for itself.
        tokens={id: byte_tokens.get(text, text.encode("utf-8", "replace")) for text, id in vocab.items()},
        find=vocab.get,
        steps=lambda: _steps(description, model, vocab, byte_tokens),
        added=[AddedToken.from_json(spec) for spec in member(description, "added_tokens", list, [])],
    )
    return assemble(source, settings or Settings(), vocab_size)


def unsupported(kind: str, vocab_size: int) -> Tokenizer:
    """Return what stands in for a tokenizer of a *kind* that is not implemented."""
    notice = tr(
        "the tokenizer is of a kind that is not supported ({kind}): tokens show as their ids, "
        "and a prompt is a list of ids",
        kind=kind,
    )
    return Tokenizer(Vocabulary.empty(vocab_size), notice=notice)


def _unsupported_kind(description: Json, model: Json) -> str | None:
    """Name the kind of a tokenizer whose tokens are not bytes, None if it is byte-level BPE."""
    kind = kind_of(model, "BPE" if "merges" in model else "WordPiece")
    if kind == "Unigram":
        return "SentencePiece Unigram"
    if kind != "BPE":
        return kind
    if any(_is_byte_level(description.get(part)) for part in ("pre_tokenizer", "decoder")):
        return None
    return "SentencePiece BPE" if model.get("byte_fallback") else "BPE without ByteLevel"


def _is_byte_level(spec: object) -> bool:
    if not isinstance(spec, dict):
        return False
    parts = spec.get("pretokenizers") or spec.get("decoders")
    return spec.get("type") == "ByteLevel" or (isinstance(parts, list) and any(_is_byte_level(part) for part in parts))


def _read_vocab(model: Json) -> dict[str, int]:
    vocab = member(model, "vocab", dict)
    for text, id in vocab.items():
        if type(id) is not int:
            raise Malformed(tr("the token {text!r} has the id {id!r}, which is no number", text=text, id=id))
    if len(set(vocab.values())) < len(vocab):
        raise Malformed(tr("two tokens have the same id"))
    return vocab


def _steps(description: Json, model: Json, vocab: Mapping[str, int], byte_tokens: Mapping[str, bytes]) -> Steps:
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise Unsupported(f"BPE with {name}")
    if model.get("byte_fallback") and "<0x00>" in vocab:
        raise Unsupported("BPE with byte_fallback")
    return Steps(
        build_normalizer(description.get("normalizer")),
        build_splitters(description.get("pre_tokenizer")),
        _byte_pair_encoder(model, vocab, byte_tokens),
        build_template(description.get("post_processor")),
    )


def _byte_pair_encoder(model: Json, vocab: Mapping[str, int], byte_tokens: Mapping[str, bytes]) -> BytePairEncoder:
    bytes_of = {vocab[text]: data for text, data in byte_tokens.items()}
    symbols = [id for id, data in bytes_of.items() if len(data) == 1]
    if not symbols:
        raise Unsupported("BPE without bytes")
    merges = [_read_merge(line, vocab) for line in member(model, "merges", list)]
    # Token ids need not be in the order of the merges, ranks have to be: single bytes, then merge by merge.
    ids = [*symbols, *(joined for _, _, joined in merges)]
    ranks = {bytes_of[id]: rank for rank, id in enumerate(symbols)}
    ranks |= {bytes_of[id]: len(symbols) + place for id, place in possible_merges(merges, symbols).items()}
    return BytePairEncoder(
        ranks,
        ids,
        whole={data: id for id, data in bytes_of.items()} if member(model, "ignore_merges", bool, False) else None,
        unknown=vocab.get(member(model, "unk_token", str, "")),
        fuse_unknown=member(model, "fuse_unk", bool, False),
    )


def _read_merge(line: Any, vocab: Mapping[str, int]) -> Merge:
    """Read a merge, written as "a b" or as [a, b]."""
    try:
        left, right = line.split(" ") if isinstance(line, str) else line
        return vocab[left], vocab[right], vocab[left + right]
    except KeyError:
        raise Malformed(tr("the merge {merge!r} needs a token that there is not", merge=line)) from None
    except (TypeError, ValueError):
        raise Malformed(tr("{merge!r} is no merge", merge=line)) from None
