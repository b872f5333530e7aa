"""Every head's attention map at a glance: block maxima, so that a single strong weight is not lost.

T positions are cut into at most 32 blocks of b positions, b a power of two; an entry is the largest weight that
any query of one block has on any key of another. The weights of a query never change, so a token more costs its
own row, a token fewer hardly anything, and blocks twice as large are a pooling of what is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import perf_counter

import numpy as np

from .cache import Floats
from .trace import Trace

MOST_BLOCKS = 32
"""Blocks along each side of a map."""

_QUERIES_AT_ONCE = 64
"""Few enough that the keys after them are hardly computed, many enough for one product each."""


def block_size(T: int) -> int:
    """Positions in a block of a map of *T*: the smallest power of two that makes at most 32 blocks."""
    size = 1
    while size * MOST_BLOCKS < T:
        size *= 2
    return size


@dataclass(eq=False)
class _Level:
    """One layer's maps at one block size."""

    maps: Floats
    """Block maxima [H, 32, 32] over the queries so far, 0 above the diagonal."""
    last: Floats
    """What each query of one block has on every block of keys [H, b, 32]: so that a token fewer costs nothing."""
    held: int = -1
    """The block that *last* is of."""
    queries: int = 0
    """How many queries are in the maps."""


class Overview:
    """The small maps of a trace, kept from one look to the next. One thread at a time may ask."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._levels: list[dict[int, _Level]] = [{} for _ in range(trace.model.config.layers)]
        """For each layer, by block size: coarser ones are pooled, finer ones are there to go back to."""

    def maps(self, layer_count: int, T: int) -> Floats:
        """Block maxima [layer_count, H, N, N] at *T* positions, which the first *layer_count* layers have reached.

        N = ⌈T / `block_size(T)`⌉. Exact, from queries and keys; needs no weights of the model.
        """
        H, N = self.trace.model.config.heads, -(-T // block_size(T))
        maps = np.empty((layer_count, H, N, N), np.float32)
        for layer in range(layer_count):
            maps[layer] = self._at(layer, T)
        return maps

    def advance(self, layer_count: int, T: int, seconds: float) -> int:
        """Bring layer after layer to *T* positions for about so many *seconds*; return how many are there.

        A long text costs seconds in all, in which others may want the thread. Call it again to go on.
        """
        deadline = perf_counter() + seconds
        for layer in range(layer_count):
            if not self._bring(layer, T, deadline):
                return layer
        return layer_count

    def fork(self, trace: Trace) -> Overview:
        """An overview of *trace*, which begins as this one's does, with what is known of the text they share."""
        fork, length = Overview(trace), trace.cache.length
        for mine, theirs in zip(self._levels, fork._levels, strict=True):
            for block, level in mine.items():
                theirs[block] = copy = _Level(level.maps.copy(), level.last.copy(), level.held, level.queries)
                if copy.queries > length > 0:
                    _shorten(copy, length, block)
        return fork

    def _at(self, layer: int, T: int) -> Floats:
        """A view of the maps of *layer* [H, N, N], brought to *T* positions."""
        self._bring(layer, T, inf)
        block = block_size(T)
        N = -(-T // block)
        return self._levels[layer][block].maps[:, :N, :N]

    def _bring(self, layer: int, T: int, deadline: float) -> bool:
        """Bring the maps of *layer* to *T* positions; False where the *deadline* came first."""
        block = block_size(T)
        level = self._level(layer, block)
        if level.queries > T > 0:
            _shorten(level, T, block)
        return level.queries >= T or self._extend(level, layer, T, block, deadline)

    def _level(self, layer: int, block: int) -> _Level:
        """The maps at this block size: those kept, or the next finer ones pooled, or none yet."""
        levels, H = self._levels[layer], self.trace.model.config.heads
        if block not in levels:
            maps, last = (np.zeros((H, side, MOST_BLOCKS), np.float32) for side in (MOST_BLOCKS, block))
            levels[block] = _Level(maps, last)
        level, finer = levels[block], levels.get(block // 2)
        if finer is not None and finer.queries // block > level.queries // block:
            half = MOST_BLOCKS // 2
            level.maps[:, :half, :half] = finer.maps.reshape(H, half, 2, half, 2).max(axis=(2, 4))
            level.queries = finer.queries // block * block
            level.held = -1
        return level

    def _extend(self, level: _Level, layer: int, T: int, block: int, deadline: float) -> bool:
        """Take the queries up to *T* into the maps, a few at a time; False where the *deadline* came first."""
        while level.queries < T:
            if perf_counter() > deadline:
                return False
            start = level.queries
            stop = min(T, start - start % block + max(_QUERIES_AT_ONCE, block))
            maxima = self._block_maxima(layer, start, stop, block)  # [H, n, N]
            for begin in range(start - start % block, stop, block):
                level.held = begin // block
                done, end = max(begin, start), min(begin + block, stop)
                level.last[:, done - begin : end - begin] = maxima[:, done - start : end - start]
                level.maps[:, level.held] = level.last[:, : end - begin].max(axis=1)
            level.queries = stop
        return True

    def _block_maxima(self, layer: int, start: int, stop: int, block: int) -> Floats:
        """The largest weight [H, n, 32] of each query from *start* to *stop* on each block of keys.

        Keys come before queries inside, so that softmax and maxima run along whole rows of memory.
        """
        rows, config = self.trace.cache.rows, self.trace.model.config
        n, N, K = stop - start, -(-stop // block), config.kv_heads
        query = rows.query[layer, :, start:stop] * np.float32(config.attention_scale(layer))  # [H, n, d]
        columns = query.reshape(K, -1, config.head_size).transpose(0, 2, 1)  # [K, d, H/K·n]
        weights = np.zeros((K, N * block, columns.shape[2]), np.float32)  # the last block may be cut short
        seen = weights[:, :stop]
        np.matmul(rows.key[layer, :, :stop], columns, out=seen)  # [K, stop, H/K·n]
        if n > 1:
            future = np.arange(start, stop)[:, None] > np.arange(start, stop)  # [n, n]
            np.copyto(seen[:, start:].reshape(K, n, -1, n), np.float32(-np.inf), where=future[:, None])
        seen -= seen.max(axis=1, keepdims=True)
        np.exp(seen, out=seen)
        maxima = weights.reshape(K, N, block, -1).max(axis=2) / seen.sum(axis=1)[:, None]  # [K, N, H/K·n]
        by_query = np.zeros((config.heads, n, MOST_BLOCKS), np.float32)
        by_query[:, :, :N] = maxima.reshape(K, N, -1, n).transpose(0, 2, 3, 1).reshape(config.heads, n, N)
        return by_query


def _shorten(level: _Level, T: int, block: int) -> None:
    """Leave the queries from *T* on out of the maps; those of a block that is not held are computed again."""
    begin = (T - 1) // block * block
    level.maps[:, -(-T // block) :] = 0
    if level.held * block == begin:
        level.maps[:, level.held] = level.last[:, : T - begin].max(axis=1)
        level.queries = T
    else:
        level.queries = T - T % block
