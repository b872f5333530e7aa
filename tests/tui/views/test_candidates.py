"""The candidates of a draw, stage by stage: the numbers are the engine's own, at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import SamplingConfig
from cutaway.core.edits import ForceToken
from cutaway.core.sampling import STAGES
from cutaway.tui.cursor import Cursor
from cutaway.tui.moment import Moment
from cutaway.tui.stage_names import short_name
from cutaway.tui.stages import Place
from cutaway.tui.views.candidates import REMOVED_BY, candidates_view, describe
from cutaway.widgets.candidate_bars import CandidatesView

if TYPE_CHECKING:
    from tests.tui.views.conftest import MakeRun, Run, Step

STEPS = 9


def view_of(
    moment: Moment, place: Place, visible: int, settings: SamplingConfig | None = None, cursor: Cursor | None = None
) -> CandidatesView:
    view = candidates_view(moment, cursor or Cursor(), place, visible, settings)
    assert view is not None
    return view


def softmax(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    weights = np.exp(scores.astype(np.float64) - scores.max())
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


@pytest.fixture
def texts(moment: Moment) -> dict[str, int]:
    """Every token's id, by what is shown of it."""
    texts = {moment.name(id): id for id in range(4096)}
    assert len(texts) == 4096
    return texts


def test_candidates_are_what_was_drawn_from(settings: SamplingConfig, settings_run: Run, texts: dict[str, int]) -> None:
    trace, moment = settings_run.trace, Moment(settings_run.trace, STEPS)
    for step, visible in [*product(range(STEPS), (1, 2, 20)), (5, 256)]:
        view = view_of(moment, settings_run.end(step), visible)
        logits = settings_run.logits[step]
        raw = softmax(logits)
        final = settings.distribution(logits, trace.previous_ids(step))
        order = np.argsort(-logits, kind="stable")
        assert len(view.rows) == visible and view.stage == "final"
        for row in view.rows:
            id = texts[row.text]
            assert order[row.rank] == id
            assert row.raw == pytest.approx(raw[id], rel=1e-6)
            assert row.share == pytest.approx(final[id], rel=1e-9)
            assert (row.removed_by is None) == (final[id] > 0)
        assert view.drawn is not None and texts[view.rows[view.drawn].text] == trace.steps[step].id
        assert [row.rank for row in view.rows[:-1]] == list(range(len(view.rows) - 1))
        assert view.others == 4096 - len(view.rows)
        assert view.others_raw == pytest.approx(1 - sum(row.raw for row in view.rows), abs=1e-9)
        assert view.others_share == pytest.approx(1 - sum(row.share for row in view.rows), abs=1e-9)
        assert view.settings == describe(trace.settings_at(step))


def test_every_stage_shows_the_shares_it_left(
    settings: SamplingConfig, settings_run: Run, texts: dict[str, int]
) -> None:
    moment = Moment(settings_run.trace, STEPS)
    for step, (at, name) in product((0, 4), enumerate(STAGES)):
        stages = settings.stages(settings_run.logits[step], settings_run.trace.previous_ids(step))
        values = stages[at].values
        shares = values if name == "final" else softmax(values)
        view = view_of(moment, settings_run.place(step, name), 60)
        assert view.stage == (short_name(name) if name != "raw" else "share") and view.drawn is None
        for row in view.rows:
            id = texts[row.text]
            assert row.share == pytest.approx(shares[id], rel=1e-6, abs=1e-12)
            assert (row.removed_by is None) == bool(stages[at].kept[id])
            if row.removed_by is not None:
                [first] = [stage.name for stage in stages if not stage.kept[id]][:1]
                assert row.removed_by == REMOVED_BY.get(first, short_name(first))
        assert view.others_share == pytest.approx(1 - sum(row.share for row in view.rows), abs=1e-9)


def test_scores_alone_show_the_raw_shares(run: Run, moment: Moment) -> None:
    at_logits, at_raw = (view_of(moment, run.place(4, name), 20) for name in ("logits", "raw"))
    assert at_logits == at_raw
    assert all(row.share == row.raw and row.removed_by is None for row in at_logits.rows)


def test_what_removed_a_candidate_is_named(a_run: MakeRun) -> None:
    def reasons(settings: SamplingConfig) -> set[str | None]:
        run = a_run(settings)
        return {row.removed_by for row in view_of(Moment(run.trace, STEPS), run.end(0), 250).rows}

    assert reasons(SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, seed=3)) == {None, "top-k", "top-p"}
    assert reasons(SamplingConfig(temperature=1.3, min_p=0.02, repetition_penalty=1.3, seed=4)) == {None, "min-p"}
    assert reasons(SamplingConfig(top_k=3, seed=5)) == {None, "top-k"}
    assert reasons(SamplingConfig(greedy=True)) == {None, "greedy"}


def test_a_share_below_every_number_was_not_taken_out(a_run: MakeRun) -> None:
    """So cold that the others' probabilities are nothing any more: no stage did it, and none is blamed."""
    run = a_run(SamplingConfig(temperature=0.001, seed=3), steps=1)
    view = view_of(Moment(run.trace, 1), run.end(0), 250)
    assert {row.removed_by for row in view.rows} == {None, "≈ 0"}
    assert all(row.share == 0 for row in view.rows if row.removed_by)


@pytest.mark.parametrize("visible", [1, 4, 20])
def test_how_it_came_about(a_run: MakeRun, visible: int) -> None:
    def how(settings: SamplingConfig) -> str:
        run = a_run(settings)
        return view_of(Moment(run.trace, STEPS), run.end(2), visible).how

    assert how(SamplingConfig(seed=6)) == "drawn"
    assert how(SamplingConfig(greedy=True)) == how(SamplingConfig(temperature=0.0)) == "best"


def test_a_token_that_somebody_chose(a_run: MakeRun) -> None:
    run = a_run(SamplingConfig(top_k=3, seed=5), (ForceToken(1, 77),), 3)
    moment = Moment(run.trace, 3)
    view = view_of(moment, run.end(1), 6)
    assert view.how == "yours" and len(view.rows) == 6 and view.drawn == 5
    last = view.rows[5]
    assert last.rank > 5 and last.removed_by == "top-k" and last.share == 0
    assert last.text == moment.name(77)


def test_before_its_scores_a_pass_has_no_candidates_and_before_the_draw_none_is_taken(under_way: Step) -> None:
    run, moment = under_way.run, under_way.moment
    for step in range(2):
        for name, layer in (("embedding", None), ("scores", 0), ("residual", 3), ("norm", None)):
            assert candidates_view(moment, Cursor(), under_way.to(name, layer, step), 9) is None
        for name in ("logits", *STAGES):
            view = view_of(moment, under_way.to(name, step=step), 9)
            assert view.drawn is None
            assert view.rows[0].text == moment.name(int(run.logits[step].argmax()))
        view = view_of(moment, under_way.to("draw", step=step), 9)
        assert view.drawn is not None
        assert view.rows[view.drawn].text == moment.name(run.trace.steps[step].id)


def test_the_stages_before_the_scores_of_an_older_pass_have_no_candidates(run: Run, moment: Moment) -> None:
    assert candidates_view(moment, Cursor(), run.place(3, "norm"), 9) is None


def test_other_settings_show_what_would_have_been_drawn(run: Run, moment: Moment, texts: dict[str, int]) -> None:
    tried = SamplingConfig(temperature=1.5, top_k=9, seed=11)
    for step in range(STEPS):
        branch = run.generation.branch(step, sampling=tried)
        while len(branch.trace.steps) == step:
            next(branch)
        stages = tried.stages(run.logits[step], run.trace.previous_ids(step))
        for name, shares in (
            ("logits", stages[-1].values),
            ("temperature", softmax(stages[2].values)),
            ("top_k", softmax(stages[3].values)),
            ("draw", stages[-1].values),
        ):
            view = view_of(moment, run.place(step, name), 12, tried)
            assert (
                view.stage == (short_name(name) if name in STAGES else "final") and view.settings == "T 1.5 · top-k 9"
            )
            for row in view.rows:
                assert row.share == pytest.approx(shares[texts[row.text]], rel=1e-6)
            assert view.drawn is not None and texts[view.rows[view.drawn].text] == branch.trace.steps[step].id
        branch.close()


def test_other_settings_before_the_draw_take_nothing_yet(under_way: Step) -> None:
    place = under_way.to("raw")
    assert view_of(under_way.moment, place, 9, SamplingConfig(top_k=2)).drawn is None


def test_a_recording_shows_the_same_and_tries_nothing(
    run: Run, moment: Moment, recorded: Callable[[bool], Moment]
) -> None:
    for step, name in product((0, 6), (*STAGES, "draw")):
        one, other = (view_of(each, run.place(step, name), 40) for each in (moment, recorded(False)))
        assert [row.text for row in one.rows] == [row.text for row in other.rows]
        for row, kept in zip(one.rows, other.rows, strict=True):
            assert kept.share == pytest.approx(row.share, rel=1e-6, abs=1e-12)
            assert kept.removed_by == row.removed_by
        assert (one.drawn, one.how, one.others) == (other.drawn, other.how, other.others)
    assert candidates_view(recorded(True), Cursor(), run.end(2), 9, SamplingConfig()) is None


def test_every_row_names_its_token_and_the_view_its_step(run: Run, moment: Moment, texts: dict[str, int]) -> None:
    for settings in (None, SamplingConfig(temperature=1.5, top_k=9, seed=11)):
        for step, name, row in product((0, 5), ("logits", "draw"), (0, 3, 7)):
            view = view_of(moment, run.place(step, name), 8, settings, Cursor(candidate=row))
            assert (view.step, view.pointed) == (step, row)
            assert [texts[each.text] for each in view.rows] == [each.id for each in view.rows]
    assert view_of(moment, run.end(0), 5, None, Cursor(candidate=99)).pointed == 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (SamplingConfig(temperature=0.8, top_k=40, top_p=0.95), "T 0.8 · top-k 40 · top-p 0.95"),
        (SamplingConfig(), "T 1"),
        (SamplingConfig(min_p=0.05, repetition_penalty=1.2), "penalty 1.2 · T 1 · min-p 0.05"),
        (SamplingConfig(greedy=True, top_k=4), "greedy"),
        (SamplingConfig(temperature=0.0, repetition_penalty=1.5), "penalty 1.5 · greedy"),
    ],
)
def test_settings_in_words(settings: SamplingConfig, words: str) -> None:
    assert describe(settings) == words
    assert describe(replace(settings, seed=4)) == words
