"""What a run keeps while it goes: the KV cache, and everything else that later views are drawn from.

Rows are written once, at their position, and never change; events hand out views of them. Default capture is
linear in the number of positions: queries, keys, values and residuals, from which any attention map can be
computed again. Full capture adds what would otherwise need the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .catalogue import tr
from .checkpoint.config import ModelConfig
from .errors import ModelError

Floats = NDArray[np.float32]
Capture = Literal["default", "all"]

_FIRST_CAPACITY = 1024
"""Positions reserved at once: small enough to be free, large enough that most runs never move their rows."""


_FIELDS = ("embedding", "residual", "query", "key", "value", "hidden", "normalized", "logits")


@dataclass(eq=False)
class Rows:
    """The arrays behind one or several caches, positions along the last axis but one.

    T positions, L layers, H query heads, K key/value heads, d head size, D width, F MLP width, V vocabulary.
    """

    embedding: Floats
    """What enters block 0 [T, D]."""
    residual: Floats
    """After each block [L, T, D]."""
    query: Floats
    """Unscaled [L, H, T, d]."""
    key: Floats
    """[L, K, T, d]"""
    value: Floats
    """[L, K, T, d]"""
    hidden: Floats
    """Input of each MLP's last matrix [L, T, F]; no rows unless everything is captured."""
    normalized: Floats
    """After the last norm [T, D]; likewise, and no rows where the family has none."""
    logits: Floats
    """At every position [T, V]; likewise."""
    filled: int = 0
    """Positions written by any cache that shares these rows: the next one to write must stand here."""
    lock: Lock = field(default_factory=Lock, repr=False)
    """Held while somebody finds out whether the next positions are theirs: branches run on threads of their own."""

    @classmethod
    def allocate(cls, config: ModelConfig, capacity: int, capture: Capture) -> Rows:
        """Room for *capacity* positions; memory is taken as they are written."""
        c, L = config, config.layers
        full = capacity if capture == "all" else 0

        def rows(*shape: int) -> Floats:
            return np.empty(shape, np.float32)

        return cls(
            embedding=rows(capacity, c.width),
            residual=rows(L, capacity, c.width),
            query=rows(L, c.heads, capacity, c.head_size),
            key=rows(L, c.kv_heads, capacity, c.head_size),
            value=rows(L, c.kv_heads, capacity, c.head_size),
            hidden=rows(L, full, c.mlp_width),
            normalized=rows(full if c.final_norm else 0, c.width),
            logits=rows(full, c.vocabulary),
        )

    @property
    def capacity(self) -> int:
        """Positions there is room for."""
        return len(self.embedding)

    def copy_from(self, other: Rows, length: int) -> None:
        """Take over the first *length* positions of *other*."""
        for name in _FIELDS:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine.shape[-2]:
                mine[..., :length, :] = theirs[..., :length, :]
        self.filled = length


class ActivationCache:
    """The positions one run has been through.

    Two runs that begin alike share their rows: `fork` costs nothing, and whichever of the two writes first past
    the other's rows takes a copy of the part it shares.
    """

    def __init__(self, config: ModelConfig, expected: int, capture: Capture = "default") -> None:
        self.config = config
        self.capture: Capture = capture
        self.length = 0
        """Positions that have been through the whole model."""
        self._reserved = 0
        """Positions up to which the rows were last reserved for this cache to write."""
        self.patterns: list[list[Floats]] = [[] for _ in range(config.layers)]
        """With full capture, per layer one array [H, n, T] for each step, in order; else empty lists."""
        self._rows = Rows.allocate(config, min(expected, _FIRST_CAPACITY), capture)

    @property
    def rows(self) -> Rows:
        """The arrays; positions from `length` on hold nothing yet."""
        return self._rows

    @classmethod
    def of(
        cls, config: ModelConfig, rows: Rows, length: int, patterns: list[list[Floats]], capture: Capture
    ) -> ActivationCache:
        """A cache over *rows* that already hold *length* positions, as a recording brings them."""
        cache = object.__new__(cls)
        cache.config, cache.capture, cache.length, cache.patterns, cache._rows = (
            config,
            capture,
            length,
            patterns,
            rows,
        )
        cache._reserved = length
        rows.filled = max(rows.filled, length)
        return cache

    def fork(self, length: int) -> ActivationCache:
        """A cache that continues after the first *length* positions of this one, sharing them."""
        patterns = [_first_positions(blocks, length) for blocks in self.patterns]
        return ActivationCache.of(self.config, self._rows, length, patterns, self.capture)

    def reserve(self, count: int) -> Rows:
        """The arrays, with room for *count* more positions that are this cache's alone to write."""
        needed = self.length + count
        with self._rows.lock:
            mine = needed <= self._rows.capacity and self._rows.filled <= self.length
            if mine:
                self._rows.filled = needed
        if not mine:
            capacity = max(self._rows.capacity, needed)
            if needed > self._rows.capacity:
                capacity = min(max(needed, 2 * self._rows.capacity), max(needed, self.config.positions))
            self._rows = self._moved(capacity)
            self._rows.filled = needed
        self._reserved = needed
        return self._rows

    def give_back(self) -> None:
        """Forget positions that were reserved by a step that did not come to its end."""
        if self._reserved > self.length:  # else the rows past `length` are another cache's
            self._rows.filled = self._reserved = self.length
        self.patterns = [_first_positions(blocks, self.length) for blocks in self.patterns]

    def _moved(self, capacity: int) -> Rows:
        try:
            rows = Rows.allocate(self.config, capacity, self.capture)
        except MemoryError as error:
            raise ModelError(
                tr("there is no memory for {count} positions", count=capacity),
                hint=tr("ask for fewer tokens, or use the default capture"),
            ) from error
        rows.copy_from(self._rows, self.length)
        return rows


def _first_positions(blocks: list[Floats], length: int) -> list[Floats]:
    """The leading blocks [H, n, T] that together cover *length* queries, the last one cut if need be."""
    kept: list[Floats] = []
    for block in blocks:
        start = block.shape[2] - block.shape[1]
        if start >= length:
            break
        kept.append(block[:, : length - start, : min(block.shape[2], length)])
    return kept
