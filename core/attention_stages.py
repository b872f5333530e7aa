"""One head's attention, stage by stage, and what a layer adds: computed from the rows of a trace.

Positions are those the caller names, not those of whole steps: rows that a pass under way has already written
count as well. n queries from *start* to *stop*, d head size, D width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cache import Floats
from .edits import PatchResidual
from .models.attention import attention_mixed, attention_pattern
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


def edited_mix(trace: Trace, layer: int, start: int, stop: int) -> Floats:
    """What every head of *layer* handed to the output projection [H, n, d], after all edits."""
    rows, scale = trace.cache.rows, trace.model.config.attention_scale(layer)
    query, key, value = rows.query[layer, :, start:stop], rows.key[layer, :, :stop], rows.value[layer, :, :stop]
    mixed = attention_mixed(attention_pattern(query, key, scale, start), value)  # [H, n, d]
    trace.edits_at_work.change_heads(layer, mixed, start)
    return mixed


def attention_output(trace: Trace, layer: int, start: int, stop: int) -> Floats:
    """What attention added to the residual stream [n, D], after all edits.

    From the weights, or from the recorded tables. Raises `ModelError` where there are neither.
    """
    if not trace.has_weights:
        return trace.recorded.attention_output[layer, start:stop]
    return trace.decoder.blocks[layer].attention.join(edited_mix(trace, layer, start, stop))


def mlp_output(trace: Trace, layer: int, start: int, stop: int) -> Floats:
    """What the MLP added to the residual stream [n, D]. Raises as `attention_output`, and see `layer_outputs`."""
    return layer_outputs(trace, layer, start, stop)[1]


def knows_mlp_output(trace: Trace) -> bool:
    """Whether `mlp_output` can be told at every position.

    Without the weights only from the tables: not under a norm after the sum, nor where a stream was patched.
    """
    patched = any(isinstance(edit, PatchResidual) for edit in trace.edits)
    return trace.has_weights or (trace.tables is not None and not (patched or trace.model.config.post_norm))


def stream_is_patched(trace: Trace, layer: int, start: int, stop: int) -> NDArray[np.bool_]:
    """At which positions [n] the residual stream after *layer* was replaced."""
    patched = np.zeros(stop - start, np.bool_)
    for edit in trace.edits:
        if isinstance(edit, PatchResidual) and edit.layer == layer and start <= edit.position < stop:
            patched[edit.position - start] = True
    return patched


def layer_outputs(trace: Trace, layer: int, start: int, stop: int) -> tuple[Floats, Floats]:
    """What attention and what the MLP added to the residual stream [n, D] of *layer*.

    The MLP's part is all that attention's is not; where a norm comes after the sum, the MLP is computed again
    from the weights, without which this raises `ModelError`; so it is where the stream was patched.
    """
    rows = trace.cache.rows
    before = rows.residual[layer - 1, start:stop] if layer else rows.embedding[start:stop]
    attended = attention_output(trace, layer, start, stop)
    if trace.model.config.post_norm or stream_is_patched(trace, layer, start, stop).any():
        return attended, _recomputed_mlp(trace, layer, start, before, attended)
    return attended, rows.residual[layer, start:stop] - before - attended


def _recomputed_mlp(trace: Trace, layer: int, start: int, before: Floats, attended: Floats) -> Floats:
    """What the MLP of a layer adds at the positions from *start* on, after all edits."""
    block = trace.decoder.blocks[layer]
    worked = block.mlp.down(block.mlp.hidden(block.mlp_input(block.after_attention(before, attended))))
    trace.edits_at_work.change_mlp(layer, worked, start)
    return worked


def _key_head(trace: Trace, head: int) -> int:
    """The key/value head that serves query head *head*."""
    config = trace.model.config
    return head // (config.heads // config.kv_heads)
