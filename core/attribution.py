"""Direct logit attribution: what each part of the model adds to the score of the token that follows.

The residual stream is a sum, so with the scale of the norms it goes through held where it is, a logit is a sum as
well (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits").
"""

from __future__ import annotations

import numpy as np

from .attention_stages import layer_outputs, stream_is_patched
from .cache import Floats
from .models.parts import Norm
from .trace import Trace


def attribution(trace: Trace, start: int, stop: int) -> Floats:
    """What each part adds [2L + 2, n] to the raw score of the token after each position; the rows sum to it.

    The embedding, then attention and MLP of every layer, then the biases of the norms. NaN where nothing follows yet.
    A stream that was patched counts with the MLP of its layer, and what came before it adds nothing.
    From the weights, or from the recorded tables; raises `ModelError` where there are neither.
    """
    if not trace.has_weights:
        return trace.recorded.attribution[:, start:stop]
    rows, decoder, L = trace.cache.rows, trace.decoder, trace.model.config.layers
    following = trace.following_ids(start, stop)  # [n]
    readout = decoder.head[following]  # [n, D]: what the head looks for, a copy
    added = np.zeros((2 * L + 2, stop - start), np.float32)
    readout = _before(decoder.final_norm, rows.residual[-1, start:stop], readout, added[-1])
    for layer in reversed(range(L)):  # from the head down: norms after the sums change what is looked for above them
        block = decoder.blocks[layer]
        attention_norm, mlp_norm = block.sum_norms
        before = rows.residual[layer - 1, start:stop] if layer else rows.embedding[start:stop]
        attended, worked = layer_outputs(trace, layer, start, stop)
        patched = stream_is_patched(trace, layer, start, stop)
        added[2 * layer + 2, patched] = np.vecdot(rows.residual[layer, start:stop], readout)[patched]
        readout[patched] = 0.0
        if mlp_norm is not None:
            readout = _before(mlp_norm, block.after_attention(before, attended) + worked, readout, added[-1])
        added[2 * layer + 2] += np.vecdot(worked, readout)
        readout = _before(attention_norm, before + attended, readout, added[-1])
        added[2 * layer + 1] = np.vecdot(attended, readout)
    added[0] = np.vecdot(rows.embedding[start:stop], readout)
    added[:, following < 0] = np.nan
    return added


def _before(norm: Norm | None, x: Floats, readout: Floats, offset: Floats) -> Floats:
    """What is looked for before *norm* of *x* [n, D], where *readout* [n, D] is after it; its bias adds to *offset*."""
    if norm is None:
        return readout
    offset += norm.offset(readout)
    return norm.pull_back(x, readout)
