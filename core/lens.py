"""What every layer would say next: the logit lens, and how surprising each token was.

What else can be computed from a trace is in `attention_stages.py`, `attribution.py`, `embedding.py` and
`overview.py`. Nothing of it is stored while a run goes on; see docs/architecture.md for which rows feed which view,
and which need the weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cache import Floats
from .models.decoder import Decoder
from .scores import best_ids
from .tables import LENS_BEST, Ids, LensTable
from .trace import Trace

_SCORES_AT_ONCE = 2**22
"""Numbers that one product with the head may make: 16 MB, and still rows enough to keep the processors busy."""


def surprisal(trace: Trace, decoder: Decoder | None, start: int, stop: int) -> NDArray[np.float64]:
    """−log₂ of the probability [stop − start] the model gave the tokens at positions *start* to *stop*, in bits.

    Position 0 follows nothing and is NaN. With a *decoder*, one [stop − start, V] product of the residuals, so ask
    for a few dozen positions at a time; without, what was recorded. Raises `ModelError` where there is neither.
    """
    if decoder is None:
        return _recorded_surprisal(trace, start, stop)
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


def lens_table(trace: Trace, start: int, stop: int, layers: int | None = None) -> LensTable:
    """The logit lens [L, n, …] at the positions from *start* to *stop*.

    *layers* is how many there are, where the pass over these positions is still under way. From the weights, or
    from the recorded tables; raises `ModelError` where there are neither.
    """
    if not trace.has_weights:
        return trace.recorded.lens.window(start, stop, layers)
    residual = trace.cache.rows.residual[:layers, start:stop]  # [L, n, D]
    L, n, D = residual.shape
    following = np.tile(trace.following_ids(start, stop), L)  # [L·n]
    table = _read_off(trace.decoder, residual.reshape(L * n, D), following)
    k = table.ids.shape[1]
    return LensTable(
        table.ids.reshape(L, n, k),
        table.probabilities.reshape(L, n, k),
        table.entropy.reshape(L, n),
        table.rank.reshape(L, n),
        table.probability.reshape(L, n),
    )


def residual_norms(trace: Trace, start: int, stop: int, layers: int | None = None) -> Floats:
    """Length of the residual stream [L + 1, n]: what entered block 0, then after each of *layers* blocks."""
    rows = trace.cache.rows
    stream = [rows.embedding[None, start:stop], rows.residual[:layers, start:stop]]
    norms: Floats = np.concatenate([np.linalg.norm(part, axis=-1) for part in stream])
    return norms


def _read_off(decoder: Decoder, residual: Floats, following: Ids) -> LensTable:
    """The lens at m rows [m, D] that *following* ids [m] come after, a few rows at a time."""
    V, m = len(decoder.head), len(residual)
    k = min(LENS_BEST, V)
    table = LensTable(
        ids=np.zeros((m, k), np.int64),
        probabilities=np.full((m, k), np.nan, np.float32),
        entropy=np.full(m, np.nan, np.float32),
        rank=np.full(m, -1, np.int64),
        probability=np.full(m, np.nan, np.float32),
    )
    few = max(_SCORES_AT_ONCE // V, 1)
    for begin in range(0, m, few):
        rows = slice(begin, begin + few)
        _fill(table, begin, decoder.logits(residual[rows]), following[rows])
    return table


@np.errstate(invalid="ignore")
def _fill(table: LensTable, begin: int, logits: Floats, following: Ids) -> None:
    """Write what *logits* [m, V] say into the rows of *table* from *begin* on; rows that are not finite stay NaN."""
    logits -= logits.max(axis=1, keepdims=True)
    weights = np.exp(logits)  # [m, V]
    total = weights.sum(axis=1)
    mean = np.vecdot(weights, logits) / total  # of the score, under the distribution
    table.entropy[begin : begin + len(logits)] = np.maximum((np.log(total) - mean) / np.log(2), 0)
    for row in np.flatnonzero(np.isfinite(total)):
        scores, id, at = logits[row], following[row], begin + row
        table.ids[at] = best_ids(scores, table.ids.shape[1])
        table.probabilities[at] = weights[row, table.ids[at]] / total[row]
        if id >= 0:
            table.rank[at] = np.count_nonzero(scores > scores[id]) + np.count_nonzero(scores[:id] == scores[id])
            table.probability[at] = weights[row, id] / total[row]


def _recorded_surprisal(trace: Trace, start: int, stop: int) -> NDArray[np.float64]:
    """The prompt's from the tables, the rest from the steps themselves."""
    P = len(trace.prompt_ids)
    prompt = trace.recorded.prompt_surprisal[start:stop].astype(np.float64)
    generated = [-step.raw_logprob / np.log(2) for step in trace.steps[max(start - P, 0) : max(stop - P, 0)]]
    return np.concatenate([prompt, generated])
