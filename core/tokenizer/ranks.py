"""Tiktoken's rank files: a line for each token, its bytes in base64 and its rank, which is its id too."""

import binascii
from base64 import b64decode
from pathlib import Path

from ..catalogue import tr
from .assembly import Source, assemble
from .bpe import BytePairEncoder
from .patterns import CL100K, GPT2
from .pipeline import Steps
from .pretokenizers import build_splitters, words_then_bytes
from .problems import Malformed
from .reading import read_text
from .settings import Settings
from .templates import Template
from .tokenizer import Tokenizer


def build_from_ranks(path: Path, vocab_size: int, settings: Settings) -> Tokenizer:
    """Return the tokenizer of the rank file *path*; `Malformed` says what is wrong with it.

    The file has no pattern and no special tokens: those come from *settings*.
    """
    ranks = _read_ranks(read_text(path))
    pattern = settings.pattern or (CL100K if path.stem == "cl100k_base" else GPT2)
    source = Source(
        tokens={rank: token for token, rank in ranks.items()},
        find=lambda name: ranks.get(name.encode("utf-8", "replace")),
        steps=lambda: Steps(
            normalizer=str,
            splitters=build_splitters(words_then_bytes(pattern)),
            bpe=BytePairEncoder(ranks, range(max(ranks.values()) + 1)),
            template=Template(),
        ),
    )
    return assemble(source, settings, vocab_size)


def _read_ranks(text: str) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            token, rank = line.split()
            ranks[b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error):
            raise Malformed(tr("line {number} is no token and its rank", number=number)) from None
    if not ranks or len(set(ranks.values())) < len(ranks):
        raise Malformed(tr("it holds no tokens, or two with the same rank"))
    return ranks
