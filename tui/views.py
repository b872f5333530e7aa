"""The trace at the cursor, as the widgets want it: arrays and drawable texts.

This is the only place that knows both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ..core.catalogue import mark, tr
from ..core.edits import AblateHead, Edit
from ..core.lens import attention_rows
from ..core.sampling import SamplingConfig
from ..core.scores import Candidates
from ..core.trace import Trace
from ..widgets.attention_map import AttentionView
from ..widgets.candidate_bars import CandidateRow, CandidatesView, percent
from ..widgets.notice_line import NoticeView
from ..widgets.token_stream import TokenStreamView
from .cursor import Cursor
from .moment import Moment

REMOVED_BY = {
    "raw": mark("no score"),
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
    "final": mark("greedy"),
}
"""Stages that remove candidates, as the screen names them."""


def text_view(moment: Moment, cursor: Cursor, attention: AttentionView | None = None) -> TokenStreamView:
    """The whole text, the token of the moment looked at, and the two tokens of the cell in *attention*."""
    step = cursor.at_step(moment.steps)
    current = moment.prompt_length + step if step >= 0 else None
    marked = frozenset() if attention is None else frozenset({attention.query, attention.key})
    return TokenStreamView(tuple(moment.cells), current, marked)


def attention_view(
    moment: Moment, cursor: Cursor, visible_of: Callable[[int], int], shown: AttentionView | None = None
) -> AttentionView | None:
    """One head as it stood when the token of the moment was drawn; the newest queries, or those around the
    one that is looked at; *visible_of* says how many fit for so many keys.

    What is *shown* of the same text stays where it is while the one that is looked at is in sight.
    """
    step = cursor.at_step(moment.steps)
    if step < 0:
        return None
    T = moment.prompt_length + step
    visible = visible_of(T)
    query, key = cursor.cell or (T - 1, -1)
    query = min(query, T - 1)
    first = newest = max(T - visible, 0)
    if cursor.cell is not None:
        if shown is not None and len(shown.labels) == T:
            first = max(shown.first, query - visible + 1)
        first = min(first, query, newest)
    stop = min(first + visible, T)
    weights = np.zeros((stop - first, T), np.float32)
    weights[:, :stop] = attention_rows(moment.trace, cursor.layer, cursor.head, first, stop)
    if not 0 <= key <= query:
        key = int(np.argmax(weights[query - first]))
    labels = tuple(cell.text for cell in moment.cells[:T])
    silent = any(is_silenced(edit, cursor, step) for edit in moment.trace.edits)
    return AttentionView(cursor.layer, cursor.head, weights, first, labels, query, key, silent)


def is_silenced(edit: Edit, cursor: Cursor, step: int) -> bool:
    """Whether *edit* silences the head looked at, when the scores of *step* were computed."""
    place = (cursor.layer, cursor.head)
    return isinstance(edit, AblateHead) and (edit.layer, edit.head) == place and edit.since <= step


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
        others_final=max(1.0 - float(table.final.sum()), 0.0),
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
        "share": percent(done.probability),
        "uniform": f"{done.uniform:.4f}",
        "bits": f"{-done.raw_logprob / float(np.log(2)):.1f}",
    }
    if done.forced:
        return NoticeView(
            tr("token {step}: ‹{token}› was put by hand; to the model a surprise of {bits} bits", **values),
            short=tr("token {step}: ‹{token}› was put by hand", **values),
        )
    if trace.settings_at(step).is_greedy:
        return NoticeView(
            tr("token {step}: ‹{token}› is the likeliest; a surprise of {bits} bits", **values),
            short=tr("token {step}: ‹{token}› is the likeliest", **values),
        )
    return NoticeView(
        tr(
            "token {step}: ‹{token}› drawn, {share} after all stages (u = {uniform}, counted by token id); "
            "a surprise of {bits} bits",
            **values,
        ),
        short=tr("token {step}: ‹{token}› drawn, {share} after all stages; u = {uniform}", **values),
    )


def _how(trace: Trace, step: int, settings: SamplingConfig) -> str:
    if trace.steps[step].forced:
        return tr("yours")
    return tr("best") if settings.is_greedy else tr("drawn")


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
