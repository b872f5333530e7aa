"""The stages between scores and a draw: what the settings are, what each took out, where the number fell."""

from __future__ import annotations

import numpy as np

from ...core.catalogue import tr
from ...core.sampling import STAGES
from ...core.shares import stage_shares, stretches
from ...widgets.sampling_stages import SamplingView, SettingRow, Share, StageRow
from ..moment import Draw, Moment
from ..settings_draft import SETTINGS, Draft
from ..stage_names import stage_name
from ..stages import Place

SHARES = 24
"""Stretches of the ruler that are told apart at most."""


def sampling_view(moment: Moment, place: Place, draft: Draft | None, selected: int) -> SamplingView | None:
    """The draw of *place*, as it was or as it would be under *draft*; None before its scores are there."""
    if place.stage < moment.stages.index("logits"):
        return None
    draw = moment.draw(place.step, draft.settings if draft else None)
    if draw is None:
        return None
    shares = stretches(draw.table)
    return SamplingView(
        settings=tuple(_setting(draw, name) for name in SETTINGS),
        selected=selected,
        stages=tuple(
            StageRow(
                name=stage_name(each.name),
                active=each.active,
                left=each.left,
                removed=each.removed,
                removed_mass=each.removed_mass,
                best=moment.name(each.best),
                best_share=each.best_share,
            )
            for each in stage_shares(draw.table, draw.settings, draw.previous)
        ),
        shares=_shares(moment, draw, *shares) if shares else (),
        uniform=None if draw.settings.is_greedy or draw.forced else draw.uniform,
        outcome=_outcome(moment, draw),
        changed=draft is not None,
        editable=moment.can_try(place.step),
        note="" if moment.can_try(place.step) else tr("this recording kept the best scores only: nothing can be tried"),
    )


def _setting(draw: Draw, name: str) -> SettingRow:
    label, written = SETTINGS[name].label, SETTINGS[name].written(getattr(draw.settings, name))
    idle = name in draw.settings.idle_stages() if name in STAGES else name == "greedy" and not draw.settings.is_greedy
    return SettingRow(tr(label), written, name, off=idle)


def _shares(moment: Moment, draw: Draw, ids: np.ndarray, ends: np.ndarray) -> tuple[Share, ...]:
    """The widest stretches, and the drawn token's, by ascending id."""
    begins = np.concatenate([[0.0], ends[:-1]])
    shown = set(np.argsort(begins - ends, kind="stable")[:SHARES].tolist())
    shown |= set(np.flatnonzero(ids == draw.id).tolist())
    return tuple(
        Share(moment.name(int(ids[each])), float(begins[each]), float(ends[each]), int(ids[each]) == draw.id)
        for each in sorted(shown)
    )


def _outcome(moment: Moment, draw: Draw) -> str:
    token = moment.name(draw.id)
    if draw.forced:
        return tr("‹{token}› was put by hand", token=token)
    if draw.settings.is_greedy:
        return tr("greedy takes the likeliest, ‹{token}›, and looks at no number", token=token)
    if draw.uniform is None:
        return tr("the number that decides has not been drawn yet")
    values = {"uniform": f"{draw.uniform:.4f}", "token": token}
    return tr("u = {uniform} falls on ‹{token}›: shares lie side by side, by token id", **values)
