"""The trace at the cursor, as the widgets want it: arrays and drawable texts.

This is the only place that knows both. It reads a trace up to a given number of steps, so that what the
engine's thread is just adding is never half seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..core.catalogue import tr
from ..core.lens import attention_rows
from ..core.sampling import SamplingConfig
from ..core.trace import Trace
from ..widgets.attention_map import AttentionView
from ..widgets.candidate_bars import CandidateRow, CandidatesView
from ..widgets.drawable import draw_token
from ..widgets.token_stream import Kind, TokenCell, TokenStreamView
from .cursor import Cursor

REMOVED_BY = {
    "raw": tr("impossible"),
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
    "final": tr("greedy"),
}
"""Stages that remove candidates, as the screen names them."""


@dataclass
class Moment:
    """A trace as far as the screen has followed it."""

    trace: Trace
    steps: int = 0
    """Generated tokens that have been heard of."""
    prompt_surprisal: Mapping[int, float] = field(default_factory=dict)
    """Bits by prompt position, once they are known."""

    @property
    def prompt_length(self) -> int:
        """P."""
        return len(self.trace.prompt_ids)

    def label(self, position: int) -> str:
        """Drawable text of the token at *position*."""
        trace = self.trace
        prompt = self.prompt_length
        id = trace.prompt_ids[position] if position < prompt else trace.steps[position - prompt].id
        return draw_token(trace.model.vocabulary.token_bytes(id), id=id)


def text_view(moment: Moment, cursor: Cursor) -> TokenStreamView:
    """The whole text, and the token of the moment looked at."""
    step = cursor.at_step(moment.steps)
    current = moment.prompt_length + step if step >= 0 else None
    length = moment.prompt_length + moment.steps
    return TokenStreamView(tuple(_token_cell(moment, position, current) for position in range(length)), current)


def _token_cell(moment: Moment, position: int, current: int | None) -> TokenCell:
    trace, generated = moment.trace, position - moment.prompt_length
    kind: Kind
    if generated < 0:
        kind = "added" if position in trace.added else "prompt"
        surprisal = moment.prompt_surprisal.get(position)
    else:
        kind = "later" if current is not None and position > current else "written"
        surprisal = -trace.steps[generated].raw_logprob / float(np.log(2))
    return TokenCell(moment.label(position), kind, surprisal, trace.token_bytes(position).endswith(b"\n"))


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
    labels = tuple(moment.label(position) for position in range(T))
    return AttentionView(cursor.layer, cursor.head, weights, first, labels, query, key)


def candidates_view(moment: Moment, cursor: Cursor, visible: int) -> CandidatesView | None:
    """The draw of the moment looked at, its *visible* likeliest candidates."""
    step = cursor.at_step(moment.steps)
    if step < 0:
        return None
    trace = moment.trace
    table = trace.candidates(step, visible)
    drawn = trace.steps[step].id
    rows = [
        CandidateRow(
            rank=int(table.ranks[row]),
            text=draw_token(trace.model.vocabulary.token_bytes(int(table.ids[row])), id=int(table.ids[row])),
            raw=float(table.raw[row]),
            final=float(table.final[row]),
            removed_by=REMOVED_BY.get(table.removal(row) or ""),
        )
        for row in range(len(table.ids))
    ]
    settings = trace.settings_at(step)
    return CandidatesView(
        rows=tuple(rows),
        drawn=int(np.flatnonzero(table.ids == drawn)[0]),
        how=_how(trace, step, settings),
        others=table.vocabulary - len(rows),
        others_raw=max(1.0 - float(table.raw.sum()), 0.0),
        settings=describe(settings),
    )


def draw_sentence(moment: Moment, cursor: Cursor) -> str:
    """What happened at the moment looked at, in one sentence with its numbers."""
    step = cursor.at_step(moment.steps)
    if step < 0:
        return ""
    trace, done = moment.trace, moment.trace.steps[step]
    values: dict[str, object] = {
        "step": step,
        "token": moment.label(moment.prompt_length + step),
        "share": f"{done.probability:.1%}".replace("%", " %"),
        "uniform": f"{done.uniform:.4f}",
        "bits": f"{-done.raw_logprob / float(np.log(2)):.1f}",
    }
    if done.forced:
        return tr("token {step}: {token} was chosen by hand; it was a surprise of {bits} bits", **values)
    if trace.settings_at(step).is_greedy:
        return tr("token {step}: {token} is the likeliest; it was a surprise of {bits} bits", **values)
    return tr(
        "token {step}: u = {uniform} fell on {token}, {share} after all stages; a surprise of {bits} bits", **values
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
