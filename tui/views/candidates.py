"""What could come next: the candidates of one draw, after the stage that is looked at."""

from __future__ import annotations

import numpy as np

from ...core.catalogue import mark, tr
from ...core.sampling import STAGES, SamplingConfig
from ...core.shares import probabilities_at
from ...widgets.candidate_bars import CandidateRow, CandidatesView
from ..cursor import Cursor
from ..moment import Draw, Moment
from ..stage_names import short_name
from ..stages import Place

REMOVED_BY = {"raw": mark("no score"), "final": mark("greedy")}
"""What takes candidates out that is not called after its stage."""


def candidates_view(
    moment: Moment, cursor: Cursor, place: Place, visible: int, settings: SamplingConfig | None = None
) -> CandidatesView | None:
    """The draw of *place*, or how it would be under other *settings*: its *visible* likeliest candidates.

    None before the pass has come to its scores.
    """
    draw = moment.draw(place.step, settings) if place.stage >= moment.stages.index("logits") else None
    if draw is None:
        return None
    stage = moment.stages.all[place.stage].name
    over = stage == "draw" or settings is not None
    at = STAGES.index(stage) if stage in STAGES else len(STAGES) - 1 if over else 0
    table = draw.table.best(visible, draw.id)
    shares = probabilities_at(table, at, draw.settings, draw.previous)
    rows = [
        CandidateRow(
            id=int(table.ids[row]),
            rank=int(table.ranks[row]),
            text=moment.name(int(table.ids[row])),
            raw=float(table.raw[row]),
            share=float(shares[row]),
            removed_by=_removed_by(table.removal(row), at, draw.settings),
        )
        for row in range(len(table.ids))
    ]
    return CandidatesView(
        step=place.step,
        rows=tuple(rows),
        stage=short_name(STAGES[at]) if at else tr("share"),
        drawn=int(np.flatnonzero(table.ids == draw.id)[0]) if over and draw.uniform is not None else None,
        how=_how(draw),
        others=table.vocabulary - len(rows),
        others_raw=max(1.0 - float(table.raw.sum()), 0.0),
        others_share=max(1.0 - float(shares.sum()), 0.0) if table.stage_kept[at] > np.count_nonzero(shares) else 0.0,
        settings=describe(draw.settings),
        changed=settings is not None,
        pointed=min(cursor.candidate, len(rows) - 1),
    )


def _removed_by(stage: str | None, at: int, settings: SamplingConfig) -> str | None:
    if stage is None or STAGES.index(stage) > at:
        return None
    if stage == "final" and not settings.is_greedy:
        return "≈ 0"  # nothing took it out, but its probability is below any number
    return tr(REMOVED_BY[stage]) if stage in REMOVED_BY else short_name(stage)


def _how(draw: Draw) -> str:
    if draw.forced:
        return tr("yours")
    return tr("best") if draw.settings.is_greedy else tr("drawn")


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
