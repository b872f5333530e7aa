"""Finding a model's tokenizer among the files of its folder."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ..catalogue import tr
from .description import build_tokenizer, unsupported
from .patterns import QWEN2
from .pretokenizers import words_then_bytes
from .problems import Malformed
from .ranks import build_from_ranks
from .reading import broken, read_object, read_text
from .settings import Settings, read_settings
from .tokenizer import Tokenizer
from .vocabulary import Vocabulary

_VOCABULARY_AND_MERGES: Final = (["vocab.json", "merges.txt"], ["encoder.json", "vocab.bpe"])
_OTHER_KINDS: Final = {
    "tokenizer.model": "SentencePiece",
    "spiece.model": "SentencePiece",
    "vocab.txt": "WordPiece",
}
_END: Final = "<|endoftext|>"
"""GPT-2's only special token, which its own vocabulary files do not mark as one."""


def load_tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    """Load the tokenizer in *folder* for a model with *vocab_size* token ids.

    Reads ``tokenizer.json``, or else ``vocab.json`` and ``merges.txt`` (``encoder.json`` and ``vocab.bpe``),
    or else a ``.tiktoken`` rank file. Where there is none, or one of another kind, tokens are their ids and
    the tokenizer's notice says why. `ModelError` names a file that is broken.
    """
    paths = _find(folder)
    if not paths:
        return _without_file(folder, vocab_size)
    settings = read_settings(folder)
    try:
        return _read(paths, vocab_size, settings)
    except (Malformed, RecursionError) as problem:
        raise broken(paths[0], problem, *paths[1:]) from problem


def _find(folder: Path) -> list[Path]:
    for names in (["tokenizer.json"], *_VOCABULARY_AND_MERGES):
        paths = [folder / name for name in names]
        if all(path.is_file() for path in paths):
            return paths
    return sorted(folder.glob("*.tiktoken"))[:1]


def _read(paths: list[Path], vocab_size: int, settings: Settings) -> Tokenizer:
    if paths[0].name == "tokenizer.json":
        return build_tokenizer(read_object(paths[0]), vocab_size, settings)
    if settings.eos_token is None:
        names = (*settings.special_names, _END)
        settings = replace(settings, bos_token=settings.bos_token or _END, eos_token=_END, special_names=names)
    if paths[0].suffix == ".tiktoken":
        return build_from_ranks(paths[0], vocab_size, settings)
    return build_tokenizer(_describe(paths, settings), vocab_size, settings)


def _without_file(folder: Path, vocab_size: int) -> Tokenizer:
    for name, kind in _OTHER_KINDS.items():
        if (folder / name).is_file():
            return unsupported(kind, vocab_size)
    notice = tr("this model has no tokenizer: tokens show as their ids, and a prompt is a list of ids")
    return Tokenizer(Vocabulary.empty(vocab_size), notice=notice)


def _describe(paths: list[Path], settings: Settings) -> dict[str, Any]:
    """Write a vocabulary and its merges as the tokenizer.json that they would have become."""
    vocab = read_object(paths[0])
    lines = map(str.rstrip, read_text(paths[1]).split("\n"))
    is_qwen = settings.tokenizer_class.startswith("Qwen2")
    byte_level = {"type": "ByteLevel", "add_prefix_space": settings.add_prefix_space}
    return {
        "added_tokens": [{"id": vocab[_END], "content": _END, "special": True}] if _END in vocab else [],
        "normalizer": {"type": "NFC"} if is_qwen else None,
        "pre_tokenizer": words_then_bytes(QWEN2) if is_qwen else byte_level,
        "post_processor": _beginning(vocab, settings),
        "model": {
            "type": "BPE",
            "vocab": vocab,
            "merges": [line for line in lines if line and not line.startswith("#version")],
            "end_of_word_suffix": "</w>" if "e</w>" in vocab else None,
        },
    }


def _beginning(vocab: dict[str, Any], settings: Settings) -> dict[str, Any] | None:
    """Describe what puts the beginning token before a prompt, if the settings ask for that."""
    name = settings.bos_token or _END
    if not settings.add_bos_token or name not in vocab:
        return None
    return {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": name}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {name: {"ids": [vocab[name]]}},
    }
