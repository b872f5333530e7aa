"""The stages between scores and a draw: the numbers are those of the sampling chain itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import SamplingConfig
from cutaway.core.edits import ForceToken
from cutaway.core.sampling import STAGES
from cutaway.tui.moment import Moment
from cutaway.tui.settings_draft import SETTINGS, Draft
from cutaway.tui.stage_names import stage_name
from cutaway.tui.stages import Place
from cutaway.tui.views.sampling import SHARES, sampling_view
from cutaway.widgets.sampling_stages import SamplingView

if TYPE_CHECKING:
    from tests.tui.views.conftest import MakeRun, Run, Step

STEPS = 9


def view_of(moment: Moment, place: Place, settings: SamplingConfig | None = None, selected: int = 0) -> SamplingView:
    draft = Draft(moment.trace, place.step, settings) if settings else None
    view = sampling_view(moment, place, draft, selected)
    assert view is not None
    return view


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(scores - scores.max())
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def test_every_stage_says_what_it_left_and_took_out(settings: SamplingConfig, settings_run: Run) -> None:
    moment = Moment(settings_run.trace, STEPS)
    for step in range(STEPS):
        view = view_of(moment, settings_run.end(step))
        stages = settings.stages(settings_run.logits[step], settings_run.trace.previous_ids(step))
        before: NDArray[np.float64] | None = None
        for row, stage in zip(view.stages, stages, strict=True):
            shares = stage.values if stage.name == "final" else softmax(stage.values)
            assert (row.name, row.active, row.left) == (stage_name(stage.name), stage.active, int(stage.kept.sum()))
            assert row.best == moment.name(int(shares.argmax()))
            assert row.best_share == pytest.approx(float(shares.max()), rel=1e-6)
            if before is not None and stage.name != "final":
                assert row.removed == int(np.count_nonzero((before > 0) & ~stage.kept))
                assert row.removed_mass == pytest.approx(float(before[~stage.kept].sum()), abs=1e-9)
            before = shares


def test_the_ruler_is_cut_where_the_draw_is_cut(settings: SamplingConfig, settings_run: Run) -> None:
    """By ascending id, each stretch as wide as its token's share, the drawn one under the random number."""
    moment = Moment(settings_run.trace, STEPS)
    for step, done in enumerate(settings_run.trace.steps):
        view = view_of(moment, settings_run.end(step))
        final = settings.distribution(settings_run.logits[step], settings_run.trace.previous_ids(step))
        if np.count_nonzero(final) > 256:
            assert view.shares == ()  # nobody knows what lies between the candidates that are kept
            continue
        ends = np.cumsum(final)
        known = {moment.name(int(id)): (ends[id] - final[id], ends[id]) for id in np.flatnonzero(final)}
        for share in view.shares:
            assert (share.low, share.high) == pytest.approx(known[share.text], abs=1e-9)
        widest = np.sort(final[final > 0])[::-1]
        assert min(SHARES, len(widest)) <= len(view.shares) <= SHARES + 1
        assert sum(share.high - share.low for share in view.shares) >= widest[:SHARES].sum() - 1e-9
        assert list(view.shares) == sorted(view.shares, key=lambda share: share.low)
        [drawn] = [share for share in view.shares if share.drawn]
        assert drawn.text == moment.name(done.id)
        if not settings.is_greedy:
            assert drawn.low <= done.uniform < drawn.high
        assert view.uniform == (None if settings.is_greedy else done.uniform)


def test_the_outcome_is_told_in_words(a_run: MakeRun, run: Run, moment: Moment) -> None:
    for step, done in enumerate(run.trace.steps):
        outcome = view_of(moment, run.end(step)).outcome
        assert f"u = {done.uniform:.4f}" in outcome and f"‹{moment.name(done.id)}›" in outcome
    greedy = a_run(SamplingConfig(greedy=True))
    outcome = view_of(Moment(greedy.trace, STEPS), greedy.end(0)).outcome
    assert "likeliest" in outcome and f"‹{moment.name(greedy.trace.steps[0].id)}›" in outcome
    chosen = a_run(edits=(ForceToken(1, 77),), steps=2)
    outcome = view_of(Moment(chosen.trace, 2), chosen.end(1)).outcome
    assert outcome == f"‹{moment.name(77)}› was put by hand"


def test_settings_stand_as_they_are(run: Run, moment: Moment) -> None:
    settings = view_of(moment, run.end(0), selected=3)
    assert settings.selected == 3 and not settings.changed and settings.note == ""
    assert [row.action for row in settings.settings] == list(SETTINGS)
    shown = {row.action: row.value for row in settings.settings}
    assert shown == {
        "temperature": "0.8", "repetition_penalty": "off", "top_k": "40", "top_p": "0.95", "min_p": "off",
        "seed": "3", "greedy": "off",
    }  # fmt: skip
    assert {row.action for row in settings.settings if row.off} == {"repetition_penalty", "min_p", "greedy"}
    greedy = view_of(moment, run.end(0), SamplingConfig(greedy=True, top_k=4))
    off = {row.action for row in greedy.settings if row.off}
    assert off == {"temperature", "repetition_penalty", "top_k", "top_p", "min_p"}


def test_a_draft_shows_what_would_come_of_it(run: Run, moment: Moment) -> None:
    tried = SamplingConfig(temperature=1.5, top_k=9, seed=11)
    for step in range(STEPS):
        view = view_of(moment, run.end(step), tried)
        branch = run.generation.branch(step, sampling=tried)
        while len(branch.trace.steps) == step:
            next(branch)
        done = branch.trace.steps[step]
        branch.close()
        assert view.changed and view.uniform == done.uniform
        assert f"‹{moment.name(done.id)}›" in view.outcome
        assert [share.text for share in view.shares if share.drawn] == [moment.name(done.id)]
        assert [row.left for row in view.stages] == [4096] * 3 + [9] * 4


def test_before_its_scores_a_pass_has_no_stages_and_before_the_draw_no_number(under_way: Step) -> None:
    for step in range(2):
        for name in ("embedding", "norm"):
            assert sampling_view(under_way.moment, under_way.to(name, step=step), None, 0) is None
        for name in ("logits", *STAGES):
            view = view_of(under_way.moment, under_way.to(name, step=step))
            assert view.uniform is None and "not been drawn" in view.outcome
        assert view_of(under_way.moment, under_way.to("draw", step=step)).uniform is not None


def test_a_recording_shows_the_same_and_says_that_nothing_can_be_tried(
    run: Run, moment: Moment, recorded: Callable[[bool], Moment]
) -> None:
    for step in range(STEPS):
        one, other = (view_of(each, run.end(step)) for each in (moment, recorded(False)))
        assert [(row.name, row.active, row.left, row.removed, row.best) for row in one.stages] == [
            (row.name, row.active, row.left, row.removed, row.best) for row in other.stages
        ]
        assert [row.best_share for row in other.stages] == pytest.approx(
            [row.best_share for row in one.stages], rel=1e-6
        )
        assert [share.text for share in one.shares] == [share.text for share in other.shares]
        assert one.outcome == other.outcome and one.settings == other.settings
        assert one.editable and not other.editable and "nothing can be tried" in other.note
    draft = Draft(run.trace, 2, SamplingConfig(top_k=2))
    assert sampling_view(recorded(True), run.end(2), draft, 0) is None
