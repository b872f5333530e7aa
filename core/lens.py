"""What can be computed from a trace when somebody looks: attention maps, surprisal, the logit lens.

Nothing here is stored; see docs/architecture.md for which rows feed which view, and which need the weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cache import Floats
from .models.decoder import Decoder, attention_pattern
from .trace import Trace


def attention_rows(trace: Trace, layer: int, head: int, start: int, stop: int) -> Floats:
    """Weights [stop − start, stop] of one head, for the queries from *start* to *stop*, on all keys up to *stop*.

    Computed again from the queries and keys in the trace; needs no weights.
    """
    rows, config = trace.cache.rows, trace.model.config
    shared = config.heads // config.kv_heads
    query = rows.query[layer, head : head + 1, start:stop]  # [1, n, d]
    key = rows.key[layer, head // shared : head // shared + 1, :stop]  # [1, T, d]
    weights: Floats = attention_pattern(query, key, config.attention_scale(layer), start)[0]
    return weights


def attention_maps(trace: Trace, layer: int) -> Floats:
    """Weights [H, T, T] of every head of *layer*; T² numbers a head, so ask for it only to save or to check."""
    rows, T = trace.cache.rows, trace.positions
    query, key = rows.query[layer, :, :T], rows.key[layer, :, :T]  # [H, T, d], [K, T, d]
    return attention_pattern(query, key, trace.model.config.attention_scale(layer), 0)


def surprisal(trace: Trace, decoder: Decoder, start: int, stop: int) -> NDArray[np.float64]:
    """−log₂ of the probability [stop − start] the model gave the tokens at positions *start* to *stop*, in bits.

    Position 0 follows nothing and is NaN. Needs the weights: prompt logits are computed from the residuals, one
    [stop − start, V] product, so ask for a few dozen positions at a time.
    """
    bits = np.full(stop - start, np.nan)
    first = max(start, 1)
    if first < stop:
        ids = np.array(trace.token_ids[first:stop])
        logits = decoder.logits(trace.cache.rows.residual[-1, first - 1 : stop - 1]).astype(np.float64)  # [n, V]
        best = logits.max(axis=1)
        logsumexp = best + np.log(np.exp(logits - best[:, None]).sum(axis=1))
        bits[first - start :] = (logsumexp - logits[np.arange(ids.size), ids]) / np.log(2)
    return bits


def logit_lens(trace: Trace, decoder: Decoder, position: int) -> Floats:
    """What every layer would say next at *position*: logits [L, V], the last row the model's own.

    nostalgebraist 2020, "interpreting GPT: the logit lens". Needs the weights.
    """
    return decoder.logits(trace.cache.rows.residual[:, position])
