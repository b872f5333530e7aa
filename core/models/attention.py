"""Attention and the projections that feed it.

Shapes: n positions in this step, T positions so far, D width, H query heads, K key/value heads, d head size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .. import ops
from .parts import Floats, Linear, RmsNorm
from .rotary import Rotary


class Projection(Protocol):
    """From the stream to query [H, n, d], key and value [K, n, d] of the positions from *start* on."""

    def __call__(self, x: Floats, start: int, /) -> tuple[Floats, Floats, Floats]: ...


@dataclass(frozen=True, slots=True)
class FusedProjection:
    """Query, key and value of all heads from one matrix [D, 3D], as GPT-2 keeps them."""

    linear: Linear
    heads: int

    def __call__(self, x: Floats, start: int, /) -> tuple[Floats, Floats, Floats]:
        fused = self.linear(x).reshape(len(x), 3, self.heads, -1)  # [n, 3, H, d]
        query, key, value = fused.transpose(1, 2, 0, 3)  # [3, H, n, d]
        return query, key, value


@dataclass(frozen=True, slots=True)
class SeparateProjection:
    """Query, key and value each from a matrix of their own; queries and keys may be normalised, then turned."""

    query: Linear
    key: Linear
    value: Linear
    head_size: int
    query_norm: RmsNorm | None = None
    key_norm: RmsNorm | None = None
    rotary: Rotary | None = None

    def __call__(self, x: Floats, start: int, /) -> tuple[Floats, Floats, Floats]:
        query, key, value = self._heads(self.query(x)), self._heads(self.key(x)), self._heads(self.value(x))
        if self.query_norm is not None:
            query = self.query_norm(query)
        if self.key_norm is not None:
            key = self.key_norm(key)
        if self.rotary is not None:
            turned = self.rotary(np.concatenate((query, key)), start)  # [H + K, n, d]
            query, key = turned[: len(query)], turned[len(query) :]
        return query, key, value

    def _heads(self, joined: Floats) -> Floats:
        """Heads side by side become heads one after the other: [n, H·d] -> [H, n, d]."""
        return joined.reshape(len(joined), -1, self.head_size).transpose(1, 0, 2)


@dataclass(frozen=True, slots=True)
class Attention:
    """Scaled dot-product attention over the cache (Vaswani et al. 2017, arXiv:1706.03762, section 3.2)."""

    project: Projection
    output: Linear
    scale: float

    def pattern(self, query: Floats, key: Floats, start: int) -> Floats:
        """Weights [H, n, T] of queries [H, n, d] that stand at *start* on keys [K, T, d]."""
        return attention_pattern(query, key, self.scale, start)

    def join(self, mixed: Floats) -> Floats:
        """Heads side by side through the output projection: [H, n, d] -> [n, D]."""
        H, n, d = mixed.shape
        joined = mixed.transpose(1, 0, 2).reshape(n, H * d)
        return self.output(joined)


_QUERIES = 32
"""Queries whose weights are computed at a time: no more of their future than this is computed, to be masked."""


def attention_pattern(query: Floats, key: Floats, scale: float, start: int) -> Floats:
    """softmax(q·kᵀ·scale + causal mask): [H, n, d], [K, T, d] -> [H, n, T].

    Row i of the queries stands at position *start* + i. Where there are fewer key heads than query heads,
    each key head serves H/K neighbouring query heads (Ainslie et al. 2023, arXiv:2305.13245).
    """
    H, n, d = query.shape
    K, T, _ = key.shape
    if n <= _QUERIES:
        scores = (query.reshape(K, H // K * n, d) @ key.transpose(0, 2, 1)).reshape(H, n, T)
        return _weights_in_place(scores, scale, start)
    weights = np.zeros((K, H // K, n, T), np.float32)
    grouped = query.reshape(K, H // K, n, d)
    for first in range(0, n, _QUERIES):
        seen = min(start + first + _QUERIES, T)  # keys that these queries may look at
        scores = weights[:, :, first : first + _QUERIES, :seen]
        np.matmul(grouped[:, :, first : first + _QUERIES], key[:, None, :seen].swapaxes(2, 3), out=scores)
        _weights_in_place(scores, scale, start + first)
    return weights.reshape(H, n, T)


def _weights_in_place(scores: Floats, scale: float, start: int) -> Floats:
    """Turn products of queries and keys [..., n, T] into weights."""
    scores *= np.float32(scale)
    return ops.softmax_in_place(ops.mask_future_in_place(scores, start))


def attention_mixed(pattern: Floats, value: Floats) -> Floats:
    """Each head's weighted values [H, n, d] from patterns [H, n, T] and values [K, T, d]."""
    H, n, T = pattern.shape
    K, _, d = value.shape
    return (pattern.reshape(K, H // K * n, T) @ value).reshape(H, n, d)
