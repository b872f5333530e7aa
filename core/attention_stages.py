"""One head's attention, stage by stage, and what a layer adds: computed from the rows of a trace.

Positions are those the caller names, not those of whole steps: rows that a pass under way has already written
count as well. n queries from *start* to *stop*, d head size, D width.
"""

from __future__ import annotations

import numpy as np

from .cache import Floats
from .edits import AblateHead, AblateMlp
from .models.attention import attention_pattern
from .trace import Trace


def head_vectors(trace: Trace, layer: int, head: int, start: int, stop: int) -> tuple[Floats, Floats, Floats]:
    """Query, key and value [n, d] of query head *head*; key and value are those of the key head that serves it."""
    rows, shared = trace.cache.rows, _key_head(trace, head)
    query = rows.query[layer, head, start:stop]
    return query, rows.key[layer, shared, start:stop], rows.value[layer, shared, start:stop]


def attention_scores(trace: Trace, layer: int, head: int, start: int, stop: int, keys: int) -> Floats:
    """q·kᵀ·scale [n, keys] before the mask, the future included where *keys* reaches past the query."""
    rows = trace.cache.rows
    query = rows.query[layer, head, start:stop]  # [n, d]
    key = rows.key[layer, _key_head(trace, head), :keys]  # [keys, d]
    scores: Floats = query @ key.T * np.float32(trace.model.config.attention_scale(layer))
    return scores


def attention_rows(trace: Trace, layer: int, head: int, start: int, stop: int) -> Floats:
    """Weights [n, stop] of one head on all keys up to *stop*; needs no weights of the model."""
    rows, shared = trace.cache.rows, _key_head(trace, head)
    query = rows.query[layer, head : head + 1, start:stop]  # [1, n, d]
    key = rows.key[layer, shared : shared + 1, :stop]  # [1, T, d]
    weights: Floats = attention_pattern(query, key, trace.model.config.attention_scale(layer), start)[0]
    return weights


def attention_maps(trace: Trace, layer: int) -> Floats:
    """Weights [H, T, T] of every head of *layer*; T² numbers a head, so ask for it only to save or to check."""
    rows, T = trace.cache.rows, trace.positions
    query, key = rows.query[layer, :, :T], rows.key[layer, :, :T]  # [H, T, d], [K, T, d]
    return attention_pattern(query, key, trace.model.config.attention_scale(layer), 0)


def attention_mix(trace: Trace, layer: int, head: int, start: int, stop: int) -> Floats:
    """Weights times values [n, d]: what one head has gathered, before the output projection."""
    value = trace.cache.rows.value[layer, _key_head(trace, head), :stop]  # [T, d]
    return attention_rows(trace, layer, head, start, stop) @ value


def attention_output(trace: Trace, layer: int, start: int, stop: int) -> Floats:
    """What attention added to the residual stream [n, D], silenced heads left out.

    From the weights, or from the recorded tables. Raises `ModelError` where there are neither.
    """
    if not trace.has_weights:
        return trace.recorded.attention_output[layer, start:stop]
    rows, attention = trace.cache.rows, trace.decoder.blocks[layer].attention
    query, key, value = rows.query[layer, :, start:stop], rows.key[layer, :, :stop], rows.value[layer, :, :stop]
    mixed = attention.mix(attention.pattern(query, key, start), value)  # [H, n, d]
    for edit in trace.edits:
        if isinstance(edit, AblateHead) and edit.layer == layer:
            mixed[edit.head, max(trace.first_position(edit.since) - start, 0) :] = 0.0
    return attention.join(mixed)


def mlp_output(trace: Trace, layer: int, start: int, stop: int) -> Floats:
    """What the MLP added to the residual stream [n, D]. Raises as `attention_output`, and see `layer_outputs`."""
    return layer_outputs(trace, layer, start, stop)[1]


def knows_mlp_output(trace: Trace) -> bool:
    """Whether `mlp_output` can be told: without the weights only from the tables, and under no norm after the sum."""
    return trace.has_weights or (trace.tables is not None and not trace.model.config.post_norm)


def layer_outputs(trace: Trace, layer: int, start: int, stop: int) -> tuple[Floats, Floats]:
    """What attention and what the MLP added to the residual stream [n, D] of *layer*.

    The MLP's part is all that attention's is not; where a norm comes after the sum, the MLP is computed again
    from the weights, without which this raises `ModelError`.
    """
    rows = trace.cache.rows
    before = rows.residual[layer - 1, start:stop] if layer else rows.embedding[start:stop]
    attended = attention_output(trace, layer, start, stop)
    if trace.model.config.post_norm:
        return attended, _recomputed_mlp(trace, layer, start, before, attended)
    return attended, rows.residual[layer, start:stop] - before - attended


def _recomputed_mlp(trace: Trace, layer: int, start: int, before: Floats, attended: Floats) -> Floats:
    """What the MLP of a layer adds at the positions from *start* on, 0 where it is silenced."""
    block = trace.decoder.blocks[layer]
    worked = block.mlp.down(block.mlp.hidden(block.mlp_input(block.after_attention(before, attended))))
    for edit in trace.edits:
        if isinstance(edit, AblateMlp) and edit.layer == layer:
            worked[max(trace.first_position(edit.since) - start, 0) :] = 0.0
    return worked


def _key_head(trace: Trace, head: int) -> int:
    """The key/value head that serves query head *head*."""
    config = trace.model.config
    return head // (config.heads // config.kv_heads)
