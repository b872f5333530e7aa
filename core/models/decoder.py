"""A decoder: embedding, blocks of attention and MLP, norm, head. One forward pass as a generator of events.

A family says which parts it is made of and where their weights are (`gpt2.py`, `llama.py`); everything that happens
while the model runs — the cache, the capture, edits, the events — happens here, once for every family.

Shapes: n positions in this step, T positions so far, D width, H query heads, K key/value heads, d head size,
F MLP width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..cache import ActivationCache
from ..editing import Edits
from ..events import AttentionDone, BlockDone, Embedded, Event, LogitsReady, MlpDone, Normalized, read_only
from .attention import attention_mixed
from .block import Block
from .parts import Embedding, Floats, Norm


@dataclass(frozen=True, slots=True)
class Decoder:
    """The whole model: what `forward` runs through."""

    embedding: Embedding
    blocks: tuple[Block, ...]
    final_norm: Norm | None
    """None where the last block has normalised already."""
    head: Floats
    """One row for every token [V, D]: a logit is the final vector's dot product with it."""

    def forward(self, ids: Sequence[int], cache: ActivationCache, edits: Edits) -> Iterator[Event]:
        """Run *ids* through the model after what the cache already holds, saying what each stage computed.

        Yields ``Embedded (AttentionDone MlpDone BlockDone){L} Normalized? LogitsReady``. The cache's length grows
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
            middle = block.after_attention(residual, attended)  # [n, D]
            worked = yield from self._work(layer, block, middle, cache, edits)
            residual = block.after_mlp(middle, worked)  # [n, D]
            edits.change_residual(layer, residual, start)
            rows.residual[layer, start:stop] = residual
            yield BlockDone(layer, read_only(residual))
        yield from self._score(residual, cache)
        cache.length = stop

    def logits(self, residual: Floats) -> Floats:
        """What a residual stream would say next: final norm, then the head. [n, D] -> [n, V]."""
        return (residual if self.final_norm is None else self.final_norm(residual)) @ self.head.T

    def _attend(
        self, layer: int, block: Block, residual: Floats, cache: ActivationCache, edits: Edits
    ) -> Generator[Event, None, Floats]:
        start, stop = cache.length, cache.length + len(residual)
        rows, attention = cache.rows, block.attention
        query, key, value = attention.project(block.attention_input(residual), start)  # [H, n, d], [K, n, d] twice
        rows.query[layer][:, start:stop] = query
        rows.key[layer][:, start:stop] = key
        rows.value[layer][:, start:stop] = value
        pattern = attention.pattern(query, rows.key[layer][:, :stop], start)  # [H, n, T]
        mixed = attention_mixed(pattern, rows.value[layer][:, :stop])  # [H, n, d]
        edits.change_heads(layer, mixed, start)
        output = attention.join(mixed)  # [n, D]
        pattern = read_only(pattern)
        if cache.capture == "all":
            cache.patterns[layer].append(pattern)
        yield AttentionDone(layer, read_only(query), read_only(key), read_only(value), pattern, read_only(output))
        return output

    def _work(
        self, layer: int, block: Block, middle: Floats, cache: ActivationCache, edits: Edits
    ) -> Generator[Event, None, Floats]:
        hidden = block.mlp.hidden(block.mlp_input(middle))  # [n, F]
        output = block.mlp.down(hidden)  # [n, D]
        edits.change_mlp(layer, output, cache.length)
        if cache.capture == "all":
            cache.rows.hidden[layer, cache.length : cache.length + len(middle)] = hidden
        yield MlpDone(layer, read_only(hidden), read_only(output))
        return output

    def _score(self, residual: Floats, cache: ActivationCache) -> Iterator[Event]:
        span = slice(cache.length, cache.length + len(residual))
        final = residual
        if self.final_norm is not None:
            final = self.final_norm(residual)  # [n, D]
            yield Normalized(read_only(final))
            if cache.capture == "all":
                cache.rows.normalized[span] = final
        if cache.capture == "all":
            logits = final @ self.head.T  # [n, V]
            cache.rows.logits[span] = logits
        else:
            logits = final[-1:] @ self.head.T  # [1, V]: nobody looks at the prompt's logits
        yield LogitsReady(read_only(logits))
