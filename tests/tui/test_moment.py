"""A trace as far as it was heard: never further, and every draw in it is the one the engine makes."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cutaway.core import Generation, SamplingConfig, Trace, load_model
from cutaway.core.cache import Floats
from cutaway.core.edits import ForceToken
from cutaway.core.events import Event, Finished, LogitsReady, TokenChosen
from cutaway.core.models.model import Model
from cutaway.core.overview import Overview
from cutaway.core.sampling import SamplingError
from cutaway.core.scores import Candidates
from cutaway.tui.moment import Draw, Moment
from cutaway.tui.stages import Place

PROMPT = [610, 573, 258, 440, 11]
STEPS = 7

MADE = SamplingConfig(temperature=0.9, top_k=60, seed=3)
SETTINGS = [
    MADE,
    SamplingConfig(temperature=0.9, top_k=60, seed=12),
    SamplingConfig(temperature=0.9, top_k=60),
    SamplingConfig(temperature=1.6, top_p=0.9, seed=3),
    SamplingConfig(temperature=0.3, min_p=0.05, repetition_penalty=1.4, seed=4),
    SamplingConfig(seed=0),
    SamplingConfig(greedy=True, seed=3),
    SamplingConfig(temperature=0.0),
]


def a_generation(model: Model, sampling: SamplingConfig = MADE) -> Generation:
    return Generation(model, PROMPT, sampling, max_new_tokens=STEPS, ignore_eos=True)


@cache
def a_run() -> Generation:
    run = a_generation(load_model("fable"))
    assert list(run)
    return run


def draw_of(moment: Moment, step: int, settings: SamplingConfig | None = None) -> Draw:
    draw = moment.draw(step, settings)
    assert draw is not None
    return draw


def test_hearing_every_event_of_a_run(fable: Model) -> None:
    """What can be looked at is what was heard of, and all of that can be."""
    run = a_generation(fable)
    moment = Moment(run.trace)
    assert moment.newest is None and moment.last_token is None and moment.steps == 0
    for event in run:
        steps = moment.steps
        moment.hear(event)
        if isinstance(event, Finished):
            break
        reached = moment.stages.after(event)
        if isinstance(event, TokenChosen):
            assert moment.steps == steps + 1
            assert moment.newest == moment.last_token == Place(steps, moment.stages.last)
            assert moment.label(len(PROMPT) + steps) == moment.name(event.id)
        else:
            assert moment.steps == steps and moment.newest == Place(steps, reached)
            assert moment.last_token == (Place(steps - 1, moment.stages.last) if steps else None)
        newest = moment.newest
        assert newest is not None and moment.has(newest)
        assert not moment.has(moment.stages.next_stage(newest))
        assert moment.positions(newest) == len(PROMPT) + newest.step
        previous = moment.stages.previous_stage(newest)
        assert previous is None or moment.has(previous)
    assert moment.steps == STEPS


def test_nothing_is_seen_of_what_was_not_heard() -> None:
    trace = a_run().trace
    for steps in range(STEPS + 1):
        moment = Moment(trace, steps)
        assert moment.steps == steps and len(moment.cells) == len(PROMPT) + steps
        assert moment.has(Place(steps - 1, moment.stages.last)) == (steps > 0)
        assert not moment.has(Place(steps, 0))
        assert moment.draw(steps) is None


def test_how_many_queries_have_their_weights() -> None:
    moment = Moment(a_run().trace, STEPS)
    for step, stage, layer in product((0, 1, 4), range(len(moment.stages.all)), range(4)):
        done = stage >= moment.stages.index("softmax", layer)
        expected = len(PROMPT) + step - (0 if done else 1)
        assert moment.attended(Place(step, stage), layer) == (expected if done or step else 0)


def test_before_the_scores_there_is_no_draw_and_then_the_likeliest(fable: Model) -> None:
    """Whoever asks too early is answered as soon as the scores are there."""
    run = a_generation(fable)
    moment = Moment(run.trace)
    scores: Floats | None = None
    for event in run:
        moment.hear(event)
        if isinstance(event, LogitsReady):
            scores = event.logits[-1]
        if isinstance(event, TokenChosen):
            scores = None
        if moment.steps == 3:
            break
        for settings in (None, SETTINGS[3]):
            draw = moment.draw(moment.steps, settings)
            assert (draw is None) == (scores is None)
            if draw is not None and scores is not None:
                assert draw.id == int(scores.argmax()) == draw.table.ids[0]
                assert draw.uniform is None and not draw.forced
                assert draw.settings == (settings or MADE) and list(draw.previous) == run.trace.token_ids


def test_a_draw_is_the_one_that_was_made() -> None:
    trace = a_run().trace
    moment = Moment(trace, STEPS)
    for step, done in enumerate(trace.steps):
        draw = draw_of(moment, step)
        assert (draw.id, draw.uniform, draw.forced, draw.settings) == (done.id, done.uniform, False, MADE)
        assert list(draw.previous) == trace.token_ids[: len(PROMPT) + step]
        [row] = np.flatnonzero(draw.table.ids == done.id)
        assert draw.table.final[row] == pytest.approx(done.probability)
        assert np.log(draw.table.raw[row]) == pytest.approx(done.raw_logprob, abs=1e-5)


@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
def test_what_would_be_drawn_is_what_a_branch_draws(settings: SamplingConfig) -> None:
    run = a_run()
    moment = Moment(run.trace, STEPS)
    for step in range(STEPS):
        draw = draw_of(moment, step, settings)
        check_branch(draw, run, step, settings)


def check_branch(draw: Draw, run: Generation, step: int, settings: SamplingConfig) -> None:
    """Fail unless *draw* is what *run* draws at *step* under other *settings*."""
    branch = run.branch(step, sampling=settings)
    while len(branch.trace.steps) == step:
        next(branch)
    done = branch.trace.steps[step]
    assert (draw.id, draw.uniform, draw.forced) == (done.id, done.uniform, False)
    [row] = np.flatnonzero(draw.table.ids == done.id)
    assert draw.table.final[row] == pytest.approx(done.probability)
    branch.close()


def test_what_would_be_drawn_in_a_branch_of_a_branch(fable: Model) -> None:
    """Where settings, seeds and a chosen token have come from several ancestors."""
    first = a_run().branch(2, sampling=SETTINGS[4])
    assert list(first)
    second = first.branch(4, token=77)
    assert list(second)
    moment = Moment(second.trace, STEPS)
    assert draw_of(moment, 4).forced and draw_of(moment, 4).id == 77
    assert [draw_of(moment, step).settings for step in range(STEPS)] == [MADE] * 2 + [SETTINGS[4]] * 5
    for step, settings in product(range(STEPS), SETTINGS):
        check_branch(draw_of(moment, step, settings), second, step, settings)


def test_a_branch_begins_with_the_scores_it_shares(fable: Model) -> None:
    """Its first token is drawn from them again; nothing computes them anew."""
    run = a_run()
    branch = run.branch(3, sampling=SETTINGS[3])
    moment = Moment(run.trace, STEPS).fork(branch.trace, Overview(branch.trace))
    assert moment.steps == 3 and moment.draw(3) is None
    moment.hear(next(branch))
    draw = draw_of(moment, 3)
    assert moment.newest == Place(3, moment.stages.index("raw"))
    scores = run.trace.scores(3)
    assert scores is not None and draw.id == int(scores.argmax()) and draw.settings == SETTINGS[3]
    while moment.steps == 3:
        moment.hear(next(branch))
    done = branch.trace.steps[3]
    assert (draw_of(moment, 3).id, draw_of(moment, 3).uniform) == (done.id, done.uniform)


def test_a_branch_knows_what_was_learnt_of_the_prompt(fable: Model) -> None:
    run = a_run()
    moment = Moment(run.trace, STEPS)
    moment.learn_surprisal(0, [float("nan"), 1.0, 2.0, 3.0, 4.0])
    trace = run.branch(2).trace
    fork = moment.fork(trace, Overview(trace))
    assert [cell.surprisal for cell in fork.cells[: len(PROMPT)]] == [None, 1.0, 2.0, 3.0, 4.0]
    assert len(fork.cells) == len(PROMPT) + 2
    fork.learn_surprisal(1, [9.0])
    assert moment.cells[1].surprisal == 1.0


def test_a_chosen_token_is_not_drawn(fable: Model) -> None:
    run = Generation(fable, PROMPT, MADE, max_new_tokens=2, edits=[ForceToken(1, 77)])
    assert list(run)
    moment = Moment(run.trace, 2)
    assert draw_of(moment, 1).id == 77 and draw_of(moment, 1).forced
    tried = draw_of(moment, 1, SETTINGS[3])
    assert not tried.forced and tried.uniform == run.trace.steps[1].uniform


def test_settings_that_make_no_sense_for_these_scores_say_so() -> None:
    moment = Moment(a_run().trace, STEPS)
    with pytest.raises(SamplingError, match="penalty"):
        moment.draw(1, SamplingConfig(repetition_penalty=1e-308))


def test_a_recording_tells_its_own_draws_and_no_others(tmp_path: Path) -> None:
    run = a_run()
    run.trace.save(tmp_path / "run.cutaway")
    trace = Trace.load(tmp_path / "run.cutaway")
    live, moment = Moment(run.trace, STEPS), Moment(trace, STEPS)
    for step in range(STEPS):
        draw, expected = draw_of(moment, step), draw_of(live, step)
        assert isinstance(trace.steps[step].scores, Candidates)
        assert (draw.id, draw.uniform, draw.settings) == (expected.id, expected.uniform, expected.settings)
        np.testing.assert_array_equal(draw.table.ids[:256], expected.table.ids[:256])
        np.testing.assert_allclose(draw.table.final[:256], expected.table.final[:256], rtol=1e-6)
        assert all(moment.draw(step, settings) is None for settings in SETTINGS)
    assert moment.knows_outputs and not trace.has_weights


def test_what_is_known_without_weights(tmp_path: Path) -> None:
    run = a_run()
    assert Moment(run.trace).knows_outputs
    run.trace.save(tmp_path / "run.cutaway")
    trace = Trace.load(tmp_path / "run.cutaway")
    trace.tables = None
    assert not Moment(trace).knows_outputs


def test_surprisal_of_the_prompt_comes_in_pieces() -> None:
    moment = Moment(a_run().trace, 1)
    written = moment.cells[-1]
    assert written.surprisal == pytest.approx(-moment.trace.steps[0].raw_logprob / np.log(2))
    moment.learn_surprisal(3, [7.0, 8.0])
    assert [cell.surprisal for cell in moment.cells[:-1]] == [None, None, None, 7.0, 8.0]
    assert moment.cells[-1] == written
    moment.learn_surprisal(0, [float("nan"), 5.0])
    assert [cell.surprisal for cell in moment.cells[:-1]] == [None, 5.0, None, 7.0, 8.0]


def test_hearing_a_run_from_its_middle_is_hearing_all_of_it(fable: Model) -> None:
    """A moment that begins with some steps goes on as one that heard them."""
    run = a_generation(fable)
    early, events = Moment(run.trace), list[Event]()
    while len(run.trace.steps) < 3:
        events.append(next(run))
        early.hear(events[-1])
    late = Moment(run.trace, 3)
    for event in run:
        for moment in (early, late):
            moment.hear(event)
        assert early.cells == late.cells
        assert early.newest == late.newest
