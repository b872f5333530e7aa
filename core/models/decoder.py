"""A decoder: embedding, blocks of attention and MLP, norm, head. One forward pass as a generator of events.

A family says which parts it is made of and where their weights are (`gpt2.py`); everything that happens while
the model runs — the cache, the capture, ablation, the events — happens here, once for every family.

Shapes: n positions in this step, T positions so far, D width, H query heads, K key/value heads, d head size,
F MLP width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import ops
from ..cache import ActivationCache
from ..edits import Edits
from ..events import AttentionDone, BlockDone, Embedded, Event, LogitsReady, MlpDone, Normalized, read_only

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Linear:
    """x·W + b. The weight is [in, out] in whatever order the file keeps it: products read either as fast."""

    weight: Floats
    bias: Floats | None

    def __call__(self, x: Floats) -> Floats:  # [n, in] -> [n, out]
        y: Floats = x @ self.weight
        if self.bias is not None:
            y += self.bias
        return y


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """`ops.layer_norm` with its weights."""

    weight: Floats
    bias: Floats
    epsilon: float

    def __call__(self, x: Floats) -> Floats:  # [n, D] -> [n, D]
        return ops.layer_norm(x, self.weight, self.bias, self.epsilon)

    def pull_back(self, x: Floats, readout: Floats) -> Floats:  # [n, D], [n, D] -> [n, D]
        """What to multiply parts of *x* with to see what each adds to norm(x)·readout, the scale held at that of x.

        Whatever the parts, their products sum to all of it but bias·readout.
        """
        scale = np.sqrt(x.var(axis=-1, keepdims=True) + np.float32(self.epsilon))  # [n, 1]
        weighted = readout * self.weight
        direction: Floats = (weighted - weighted.mean(axis=-1, keepdims=True)) / scale
        return direction


@dataclass(frozen=True, eq=False)
class Embedding:
    """A row for every token and, in families with learned positions, a row for every position."""

    token: Floats  # [V, D]
    position: Floats | None  # [positions, D]

    def __call__(self, ids: Sequence[int], positions: NDArray[np.int64]) -> tuple[Floats, Floats | None, Floats]:
        """Token vectors, position vectors and their sum, each [n, D]."""
        token = self.token[np.asarray(ids)]  # [n, D]
        if self.position is None:
            return token, None, token
        position = self.position[positions]  # [n, D]
        return token, position, token + position

    @cached_property
    def norms(self) -> Floats:
        """Length of every token's vector [V]; reads the whole table, so it is computed when first asked for."""
        norms: Floats = np.sqrt(np.vecdot(self.token, self.token))
        return norms


@dataclass(frozen=True, slots=True)
class FusedProjection:
    """Query, key and value of all heads from one matrix [D, 3D], as GPT-2 keeps them."""

    linear: Linear
    heads: int

    def __call__(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Each [H, n, d]."""
        fused = self.linear(x).reshape(len(x), 3, self.heads, -1)  # [n, 3, H, d]
        query, key, value = fused.transpose(1, 2, 0, 3)  # [3, H, n, d]
        return query, key, value


@dataclass(frozen=True, slots=True)
class Attention:
    """Scaled dot-product attention over the cache (Vaswani et al. 2017, arXiv:1706.03762, section 3.2)."""

    project: Callable[[Floats], tuple[Floats, Floats, Floats]]
    output: Linear
    scale: float

    def pattern(self, query: Floats, key: Floats, start: int) -> Floats:
        """Weights [H, n, T] of queries [H, n, d] that stand at *start* on keys [K, T, d]."""
        return attention_pattern(query, key, self.scale, start)

    def mix(self, pattern: Floats, value: Floats) -> Floats:
        """Each head's weighted values [H, n, d] from patterns [H, n, T] and values [K, T, d]."""
        H, n, T = pattern.shape
        K, _, d = value.shape
        return (pattern.reshape(K, H // K * n, T) @ value).reshape(H, n, d)

    def join(self, mixed: Floats) -> Floats:
        """Heads side by side through the output projection: [H, n, d] -> [n, D]."""
        H, n, d = mixed.shape
        joined = mixed.transpose(1, 0, 2).reshape(n, H * d)
        return self.output(joined)


def attention_pattern(query: Floats, key: Floats, scale: float, start: int) -> Floats:
    """softmax(q·kᵀ·scale + causal mask): [H, n, d], [K, T, d] -> [H, n, T].

    Row i of the queries stands at position *start* + i. Where there are fewer key heads than query heads,
    each key head serves H/K neighbouring query heads (Ainslie et al. 2023, arXiv:2305.13245).
    """
    H, n, d = query.shape
    K, T, _ = key.shape
    scores = (query.reshape(K, H // K * n, d) @ key.transpose(0, 2, 1)).reshape(H, n, T)
    scores *= np.float32(scale)
    return ops.softmax_in_place(ops.mask_future_in_place(scores, start))


@dataclass(frozen=True, slots=True)
class Mlp:
    """A position by itself: activation(x·W_in + b)·W_out + b."""

    up: Linear
    activation: Callable[[Floats], Floats]
    down: Linear

    def hidden(self, x: Floats) -> Floats:
        """Input of the last matrix: [n, D] -> [n, F]."""
        return self.activation(self.up(x))


@dataclass(frozen=True, slots=True)
class Block:
    """One layer, norms first: residual += attention(norm(residual)); residual += mlp(norm(residual))."""

    attention_norm: LayerNorm
    attention: Attention
    mlp_norm: LayerNorm
    mlp: Mlp


@dataclass(frozen=True, slots=True)
class Decoder:
    """The whole model: what `forward` runs through."""

    embedding: Embedding
    blocks: tuple[Block, ...]
    final_norm: LayerNorm
    head: Floats
    """One row for every token [V, D]: a logit is the final vector's dot product with it."""

    def forward(self, ids: Sequence[int], cache: ActivationCache, edits: Edits) -> Iterator[Event]:
        """Run *ids* through the model after what the cache already holds, saying what each stage computed.

        Yields ``Embedded (AttentionDone MlpDone BlockDone){L} Normalized LogitsReady``. The cache's length grows
        when the last event is out.
        """
        start, stop = cache.length, cache.length + len(ids)
        rows = cache.reserve(len(ids))
        positions = np.arange(start, stop)
        token, position, residual = self.embedding(ids, positions)
        rows.embedding[start:stop] = residual
        yield Embedded(
            read_only(positions),
            read_only(token),
            None if position is None else read_only(position),
            read_only(residual),
        )
        for layer, block in enumerate(self.blocks):
            attended = yield from self._attend(layer, block, residual, cache, edits)
            middle = residual + attended  # [n, D]
            worked = yield from self._work(layer, block, middle, cache, edits)
            residual = middle + worked  # [n, D]
            rows.residual[layer, start:stop] = residual
            yield BlockDone(layer, read_only(residual))
        yield from self._score(residual, cache)
        cache.length = stop

    def logits(self, residual: Floats) -> Floats:
        """What a residual stream would say next: final norm, then the head. [n, D] -> [n, V]."""
        return self.final_norm(residual) @ self.head.T

    def _attend(
        self, layer: int, block: Block, residual: Floats, cache: ActivationCache, edits: Edits
    ) -> Generator[Event, None, Floats]:
        start, stop = cache.length, cache.length + len(residual)
        rows, attention = cache.rows, block.attention
        query, key, value = attention.project(block.attention_norm(residual))  # [H, n, d], [K, n, d] twice
        rows.query[layer][:, start:stop] = query
        rows.key[layer][:, start:stop] = key
        rows.value[layer][:, start:stop] = value
        pattern = attention.pattern(query, rows.key[layer][:, :stop], start)  # [H, n, T]
        mixed = attention.mix(pattern, rows.value[layer][:, :stop])  # [H, n, d]
        if silent := edits.silent_heads(layer):
            mixed[silent] = 0.0
        output = attention.join(mixed)  # [n, D]
        pattern = read_only(pattern)
        if cache.capture == "all":
            cache.patterns[layer].append(pattern)
        yield AttentionDone(layer, read_only(query), read_only(key), read_only(value), pattern, read_only(output))
        return output

    def _work(
        self, layer: int, block: Block, middle: Floats, cache: ActivationCache, edits: Edits
    ) -> Generator[Event, None, Floats]:
        hidden = block.mlp.hidden(block.mlp_norm(middle))  # [n, F]
        output = np.zeros_like(middle) if edits.mlp_is_silent(layer) else block.mlp.down(hidden)  # [n, D]
        if cache.capture == "all":
            cache.rows.hidden[layer, cache.length : cache.length + len(middle)] = hidden
        yield MlpDone(layer, read_only(hidden), read_only(output))
        return output

    def _score(self, residual: Floats, cache: ActivationCache) -> Iterator[Event]:
        normalized = self.final_norm(residual)  # [n, D]
        yield Normalized(read_only(normalized))
        if cache.capture == "all":
            span = slice(cache.length, cache.length + len(residual))
            cache.rows.normalized[span] = normalized
            logits = normalized @ self.head.T  # [n, V]
            cache.rows.logits[span] = logits
        else:
            logits = normalized[-1:] @ self.head.T  # [1, V]: nobody looks at the prompt's logits
        yield LogitsReady(read_only(logits))
