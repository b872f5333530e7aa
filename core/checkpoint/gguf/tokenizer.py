"""The tokenizer inside a GGUF file, written as the tokenizer.json that it was converted from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from ...catalogue import tr
from ...tokenizer import Tokenizer, Vocabulary
from ...tokenizer.description import build_tokenizer, unsupported
from ...tokenizer.patterns import QWEN2
from ...tokenizer.pretokenizers import words_then_bytes
from ...tokenizer.problems import Malformed, member
from ...tokenizer.reading import broken
from ...tokenizer.settings import Settings
from .checkpoint import GgufCheckpoint

T = TypeVar("T")

LLAMA3: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""That of Llama 3, from its tokenizer.json."""

TEKKEN: Final = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""That of Mistral's Tekken, from the tokenizer.json of Mistral Nemo."""

_UNTOLD: Final = "default"
_WORDS: Final[dict[str, Any]] = {"type": "ByteLevel", "add_prefix_space": False}
_DIGITS_AND_WORDS: Final[dict[str, Any]] = {
    "type": "Sequence",
    "pretokenizers": [{"type": "Digits", "individual_digits": True}, _WORDS],
}
_CUTS: Final[dict[str, dict[str, Any]]] = {
    **dict.fromkeys((_UNTOLD, "gpt-2", "phi-2", "mpt", "olmo"), _WORDS),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell"), _DIGITS_AND_WORDS),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "dbrx", "smaug-bpe"), words_then_bytes(LLAMA3)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez", "stablelm2"), words_then_bytes(QWEN2)),
    "tekken": words_then_bytes(TEKKEN),
}
"""How text is cut, by the names in ``tokenizer.ggml.pre`` (``src/llama-vocab.cpp`` of llama.cpp)."""

_WHOLE_WORDS: Final = ("llama-bpe", "llama3", "llama-v3", "falcon3", "tekken")
"""Those that look a word up before they merge, and put the beginning token before a prompt unless told not to."""

_KINDS: Final = {"llama": "SentencePiece BPE", "t5": "SentencePiece Unigram", "bert": "WordPiece"}
"""Other values of ``tokenizer.ggml.model``."""

_CONTROL, _USER_DEFINED = 3, 4
"""The types of tokens that are found by their names; the others are merged."""


def load_tokenizer(stored: GgufCheckpoint, vocab_size: int) -> Tokenizer:
    """Load the tokenizer in *stored* for a model with *vocab_size* token ids.

    One of another kind than byte-level BPE knows no token, and its notice names the kind. `ModelError` for one
    that contradicts itself.
    """
    header = _Header(stored.header)
    try:
        kind = header.get("model", str, "none")
        if kind == "none":
            notice = tr("this model has no tokenizer: tokens show as their ids, and a prompt is a list of ids")
            return Tokenizer(Vocabulary.empty(vocab_size), notice=notice)
        if kind != "gpt2":
            return unsupported(_KINDS.get(kind, kind), vocab_size)
        return _build(header, vocab_size)
    except (Malformed, RecursionError) as problem:
        raise broken(stored.path, problem) from problem


class _Header:
    """The part of a header that is about the tokenizer."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = fields

    def get(self, name: str, kind: type[T], default: T | None = None) -> T:
        """Return field *name*, which is *default* where there is none. `Malformed` if it is of another type."""
        key = "tokenizer." + name if name == "chat_template" else "tokenizer.ggml." + name
        return member({key: self.fields.get(key)}, key, kind, default)

    def items(self, name: str, kind: type[T]) -> list[T]:
        """Return the list *name*, empty where there is none."""
        values: list[T] = self.get(name, list, [])
        if not all(isinstance(value, kind) for value in values):
            raise Malformed(tr('"{name}" is missing or has the wrong type', name=name))
        return values


def _build(header: _Header, vocab_size: int) -> Tokenizer:
    tokens, types = header.items("tokens", str), header.items("token_type", int)
    begin, end = (_name(header.get(name, int, -1), tokens) for name in ("bos_token_id", "eos_token_id"))
    settings = Settings(
        bos_token=begin,
        eos_token=end,
        chat_template=header.get("chat_template", str, "") or None,
        special_names=tuple(name for name in (begin, end) if name is not None),
    )
    tokenizer = build_tokenizer(_describe(header, tokens, types, (begin, end)), vocab_size, settings)
    if header.get("pre", str, _UNTOLD) == _UNTOLD and tokenizer.notice is None:
        tokenizer.notice = tr(
            "the file does not say how its tokenizer cuts text into words: as GPT-2 does, it is taken"
        )
    return tokenizer


def _describe(
    header: _Header, tokens: list[str], types: list[int], ends: tuple[str | None, str | None]
) -> dict[str, Any]:
    """Write what the header says as the tokenizer.json that it was made from."""
    cut = header.get("pre", str, _UNTOLD)
    vocab = {text: id for id, text in reversed([*enumerate(tokens)])}  # of two of one name the first
    return {
        "added_tokens": [
            {"id": id, "content": text, "special": kind == _CONTROL}
            for id, (text, kind) in enumerate(zip(tokens, types, strict=False))
            if kind in (_CONTROL, _USER_DEFINED)
        ],
        "normalizer": {"type": "NFC"} if _CUTS.get(cut) == _CUTS["qwen2"] else None,
        "pre_tokenizer": _CUTS.get(cut, {"type": re.sub(r"\W|^(?=\d|$)", "_", cut)}),
        "decoder": {"type": "ByteLevel"},
        "post_processor": _around(header, cut, vocab, ends),
        "model": {
            "type": "BPE",
            "vocab": vocab,
            "merges": header.items("merges", str),
            "ignore_merges": cut in _WHOLE_WORDS,
        },
    }


def _around(
    header: _Header, cut: str, vocab: Mapping[str, int], ends: tuple[str | None, str | None]
) -> dict[str, Any] | None:
    """Describe what is put around a prompt: the beginning token, the end token, or nothing."""
    wanted = header.get("add_bos_token", bool, cut in _WHOLE_WORDS), header.get("add_eos_token", bool, False)
    begin, end = (name if asked else None for name, asked in zip(ends, wanted, strict=True))
    text: dict[str, object] = {"Sequence": {"id": "A"}}
    pieces = [_piece(begin), text, _piece(end)]
    names = [name for name in (begin, end) if name is not None]
    return {
        "type": "TemplateProcessing",
        "single": [piece for piece in pieces if piece is not None],
        "special_tokens": {name: {"ids": [vocab[name]]} for name in names},
    }


def _piece(name: str | None) -> dict[str, object] | None:
    return None if name is None else {"SpecialToken": {"id": name}}


def _name(id: int, tokens: list[str]) -> str | None:
    """Return the name of token *id*, None for an id that there is not."""
    return tokens[id] if 0 <= id < len(tokens) else None
