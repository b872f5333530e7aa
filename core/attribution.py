"""Direct logit attribution: what each part of the model adds to the score of the token that follows.

The residual stream is a sum, so with the final norm's scale held where it is, a logit is a sum as well
(Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits").
"""

from __future__ import annotations

import numpy as np

from .attention_stages import attention_output
from .cache import Floats
from .trace import Trace


def attribution(trace: Trace, start: int, stop: int) -> Floats:
    """What each part adds [2L + 2, n] to the raw score of the token after each position; the rows sum to it.

    The embedding, then attention and MLP of every layer, then the final norm's bias. NaN where nothing follows yet.
    From the weights, or from the recorded tables; raises `ModelError` where there are neither.
    """
    if not trace.has_weights:
        return trace.recorded.attribution[:, start:stop]
    rows, decoder, L = trace.cache.rows, trace.decoder, trace.model.config.layers
    following = trace.following_ids(start, stop)  # [n]
    readout = decoder.head[following]  # [n, D]: what the head looks for
    direction = decoder.final_norm.pull_back(rows.residual[-1, start:stop], readout)  # [n, D]
    added = np.empty((2 * L + 2, stop - start), np.float32)
    before = rows.embedding[start:stop]
    added[0] = np.vecdot(before, direction)
    for layer in range(L):
        after = rows.residual[layer, start:stop]
        attended = attention_output(trace, layer, start, stop)
        added[2 * layer + 1] = np.vecdot(attended, direction)
        added[2 * layer + 2] = np.vecdot(after - before - attended, direction)
        before = after
    added[-1] = np.vecdot(decoder.final_norm.bias, readout)
    added[:, following < 0] = np.nan
    return added
