"""The trace at the cursor, as the widgets want it: arrays and drawable texts.

This is the only place that knows both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ..core.catalogue import mark, tr
from ..core.lens import attention_rows
from ..core.sampling import SamplingConfig
from ..core.scores import Candidates
from ..core.trace import Trace
from ..widgets.attention_map import AttentionView
from ..widgets.candidate_bars import CandidateRow, CandidatesView
from ..widgets.notice_line import NoticeView
from ..widgets.token_stream import TokenStreamView
from .cursor import Cursor
from .moment import Moment

REMOVED_BY = {
    "raw": mark("impossible"),
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
    "final": mark("greedy"),
}
"""Stages that remove candidates, as the screen names them."""


def text_view(moment: Moment, cursor: Cursor) -> TokenStreamView:
    """The whole text, and the token of the moment looked at."""
    step = cursor.at_step(moment.steps)
    return TokenStreamView(tuple(moment.cells), moment.prompt_length + step if step >= 0 else None)


def attention_view(moment: Moment, cursor: Cursor, visible_of: Callable[[int], int]) -> AttentionView | None:
    """One head as it stood when the token of the moment was drawn; the newest queries, or those around the
    one that is looked at; *visible_of* says how many fit for so many keys."""
    step = cursor.at_step(moment.steps)
    if step < 0:
        return None
    T = moment.prompt_length + step
    visible = visible_of(T)
    query, key = cursor.cell or (T - 1, -1)
    query = min(query, T - 1)
    first = max(min(T - visible, query), 0)
    stop = min(first + visible, T)
    weights = np.zeros((stop - first, T), np.float32)
    weights[:, :stop] = attention_rows(moment.trace, cursor.layer, cursor.head, first, stop)
    if not 0 <= key <= query:
        key = int(np.argmax(weights[query - first]))
    labels = tuple(cell.text for cell in moment.cells[:T])
    return AttentionView(cursor.layer, cursor.head, weights, first, labels, query, key)


def candidates_view(moment: Moment, cursor: Cursor, visible: int) -> CandidatesView | None:
    """The draw of the moment looked at, its *visible* likeliest candidates."""
    step = cursor.at_step(moment.steps)
    if step < 0:
        return None
    trace = moment.trace
    table = _table(trace, step, visible)
    drawn, settings = trace.steps[step].id, trace.settings_at(step)
    rows = [
        CandidateRow(
            rank=int(table.ranks[row]),
            text=moment.name(int(table.ids[row])),
            raw=float(table.raw[row]),
            final=float(table.final[row]),
            removed_by=_removed_by(table.removal(row), settings),
        )
        for row in range(len(table.ids))
    ]
    return CandidatesView(
        rows=tuple(rows),
        drawn=int(np.flatnonzero(table.ids == drawn)[0]),
        how=_how(trace, step, settings),
        others=table.vocabulary - len(rows),
        others_raw=max(1.0 - float(table.raw.sum()), 0.0),
        settings=describe(settings),
    )


def _removed_by(stage: str | None, settings: SamplingConfig) -> str | None:
    if stage == "final" and not settings.is_greedy:
        return "≈ 0"  # nothing took it out, but its probability is below any number
    name = REMOVED_BY.get(stage or "")
    return name and tr(name)


@lru_cache(maxsize=1)
def _table(trace: Trace, step: int, visible: int) -> Candidates:
    """The last table of candidates that was asked for: looking at another head changes none of it."""
    return trace.candidates(step, visible)


def draw_notice(moment: Moment, cursor: Cursor) -> NoticeView:
    """What happened at the moment looked at, in one sentence with its numbers."""
    step = cursor.at_step(moment.steps)
    if step < 0:
        return NoticeView("")
    trace, done = moment.trace, moment.trace.steps[step]
    values: dict[str, object] = {
        "step": step,
        "token": moment.label(moment.prompt_length + step),
        "share": f"{done.probability:.1%}".replace("%", " %"),
        "uniform": f"{done.uniform:.4f}",
        "bits": f"{-done.raw_logprob / float(np.log(2)):.1f}",
    }
    if done.forced:
        return NoticeView(
            tr("token {step}: {token} was chosen by hand; to the model itself a surprise of {bits} bits", **values),
            short=tr("token {step}: {token} was chosen by hand", **values),
        )
    if trace.settings_at(step).is_greedy:
        return NoticeView(
            tr("token {step}: {token} is the likeliest; to the model itself a surprise of {bits} bits", **values),
            short=tr("token {step}: {token} is the likeliest", **values),
        )
    return NoticeView(
        tr(
            "token {step}: u = {uniform} fell on {token}, {share} after all stages; raw, a surprise of {bits} bits",
            **values,
        ),
        short=tr("token {step}: u = {uniform} fell on {token}, {share} after all stages", **values),
    )


def _how(trace: Trace, step: int, settings: SamplingConfig) -> str:
    if trace.steps[step].forced:
        return tr("chosen")
    return tr("best") if settings.is_greedy else tr("u = {uniform:.2f}", uniform=trace.steps[step].uniform)


def describe(settings: SamplingConfig) -> str:
    """Sampling settings in words, those that are off left out."""
    penalty = f"{tr('penalty')} {settings.repetition_penalty:g}" if settings.repetition_penalty != 1 else ""
    if settings.is_greedy:
        parts = [penalty, tr("greedy")]
    else:
        parts = [
            penalty,
            f"T {settings.temperature:g}",
            f"top-k {settings.top_k}" if settings.top_k else "",
            f"top-p {settings.top_p:g}" if settings.top_p < 1 else "",
            f"min-p {settings.min_p:g}" if settings.min_p else "",
        ]
    return " · ".join(part for part in parts if part)
