"""Byte-pair encoding of one piece of text, by tiktoken.

tiktoken wants every single byte to have a token: on a byte without one it panics, with a BaseException and a
Rust trace across the screen. So those bytes are taken out first, as the reference does, which makes their
neighbours adjacent. What is left may not be UTF-8 and cannot be handed over as a string then: such a piece
is merged here.
"""

import re
from collections.abc import Mapping, Sequence

from .merges import merge_tokens


class BytePairEncoder:
    """The merges of one tokenizer."""

    def __init__(
        self,
        ranks: dict[bytes, int],
        ids: Sequence[int],
        *,
        whole: Mapping[bytes, int] | None = None,
        unknown: int | None = None,
        fuse_unknown: bool = False,
    ) -> None:
        """Merge by *ranks*: single bytes and what merging can make of them, lowest first.

        *ids* [highest rank + 1] gives each rank its token id. A piece that is in *whole* becomes that token,
        whatever merging would make of it. A byte without a token is dropped, or becomes *unknown* if that is
        given (with *fuse_unknown* a run of such bytes becomes a single one).
        """
        import tiktoken

        self._ranks = ranks
        self._ids = ids
        self._whole = whole or {}
        self._unknown = unknown
        self._fuse_unknown = fuse_unknown
        self._missing = bytes(byte for byte in range(256) if bytes([byte]) not in ranks)
        self._gap = re.compile(b"([%b]+)" % re.escape(self._missing)) if self._missing else None
        # A piece is taken as it is. This pattern needs no backtracking, so no length of piece is too much.
        self._encoding = tiktoken.Encoding("cutaway", pat_str="(?s:.+)", mergeable_ranks=ranks, special_tokens={})

    def encode(self, piece: str) -> list[int]:
        """Return the ids of *piece*, a string without surrogates."""
        data = piece.encode()
        if data in self._whole:
            return [self._whole[data]]
        if self._gap is None or self._unknown is None:
            return self._merge(data.translate(None, self._missing))
        ids: list[int] = []
        for place, part in enumerate(self._gap.split(data)):
            is_gap = place % 2 == 1
            ids += [self._unknown] * (1 if self._fuse_unknown else len(part)) if is_gap else self._merge(part)
        return ids

    def _merge(self, data: bytes) -> list[int]:
        try:
            ranks = self._encoding.encode_ordinary(data.decode())
        except UnicodeDecodeError:
            ranks = self._merge_bytes(data)
        return [self._ids[rank] for rank in ranks]

    def _merge_bytes(self, data: bytes) -> list[int]:
        if data in self._ranks:
            return [self._ranks[data]]
        symbols = [data[place : place + 1] for place in range(len(data))]
        return [self._ranks[token] for token in merge_tokens(symbols, self._join)]

    def _join(self, left: bytes, right: bytes) -> tuple[int, bytes] | None:
        rank = self._ranks.get(left + right)
        return None if rank is None else (rank, left + right)
