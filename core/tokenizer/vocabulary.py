"""The exact bytes of every token, kept as two arrays: one run of bytes and where each token begins in it.

These are a recording's ``vocab_bytes`` and ``vocab_offsets``, so a replay can name any token without the
tokenizer, and without the model.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class Vocabulary:
    """What each of a model's V token ids stands for."""

    data: NDArray[np.uint8]
    """All tokens, one after the other, read-only [n]."""

    offsets: NDArray[np.int64]
    """Token i is ``data[offsets[i]:offsets[i + 1]]``, read-only [V + 1]."""

    special: frozenset[int]
    """Ids of the tokens that are no text (an end token, say); their bytes are their names in UTF-8."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64], special: Iterable[int] = ()) -> None:
        """Take *data* [n] and *offsets* [V + 1]; ValueError unless the offsets rise from 0 to n."""
        self.data = np.array(data, dtype=np.uint8)
        self.offsets = np.array(offsets, dtype=np.int64)
        self.special = frozenset(special)
        if self.data.ndim != 1 or self.offsets.ndim != 1 or not len(self.offsets):
            raise ValueError("a vocabulary is two rows of numbers, the second not empty")
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.data) or (np.diff(self.offsets) < 0).any():
            raise ValueError("a vocabulary's offsets rise from 0 to the number of its bytes")
        self.data.flags.writeable = False
        self.offsets.flags.writeable = False
        self._bytes = self.data.tobytes()

    @classmethod
    def empty(cls, size: int) -> "Vocabulary":
        """Return the vocabulary of *size* ids of which nothing is known."""
        return cls(np.zeros(0, np.uint8), np.zeros(size + 1, np.int64))

    @classmethod
    def from_tokens(cls, tokens: Iterable[bytes], special: Iterable[int] = ()) -> "Vocabulary":
        """Return the vocabulary in which id i stands for the i-th of *tokens*."""
        tokens = list(tokens)
        offsets = np.zeros(len(tokens) + 1, np.int64)
        np.cumsum([len(token) for token in tokens], out=offsets[1:])
        return cls(np.frombuffer(b"".join(tokens), np.uint8), offsets, special)

    def padded(self, size: int) -> "Vocabulary":
        """Return this vocabulary with exactly *size* ids: new ids have no bytes, ids past *size* are gone."""
        offsets = self.offsets[: size + 1]
        offsets = np.concatenate([offsets, np.full(size + 1 - len(offsets), offsets[-1])])
        return Vocabulary(self.data[: offsets[-1]], offsets, (id for id in self.special if id < size))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def token_bytes(self, id: int) -> bytes:
        """Return the bytes of token *id*; none for an id that is unknown or out of range."""
        if not 0 <= id < len(self):
            return b""
        return self._bytes[self.offsets[id] : self.offsets[id + 1]]
