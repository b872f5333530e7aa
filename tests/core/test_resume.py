"""A recording with its model at hand: nothing follows, but any step can be left for another way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutaway.core import Generation, ModelError, SamplingConfig, Session, Trace
from cutaway.core.attention_stages import attention_output
from cutaway.core.edits import AblateHead, AblateMlp, ForceToken
from cutaway.core.lens import lens_table
from cutaway.core.models.model import Model
from cutaway.core.sampling import STAGES
from cutaway.core.scores import Candidates

PROMPT = [5, 83, 92, 83, 15, 11]
LIVELY = SamplingConfig(temperature=0.9, top_k=30, repetition_penalty=1.1, seed=4)
OTHER = SamplingConfig(temperature=1.5, min_p=0.01, seed=9)
EDITS = (AblateHead(1, 2), AblateMlp(0, since=3), ForceToken(2, 7))
G = 10


def start(model: Model, capture: Any = "default") -> Generation:
    run = Generation(model, PROMPT, LIVELY, max_new_tokens=G, ignore_eos=True, capture=capture, edits=EDITS)
    list(run)
    return run


@pytest.fixture(scope="module", params=["default", "all"])
def live(request: pytest.FixtureRequest, tiny: Model) -> Generation:
    return start(tiny, request.param)


@pytest.fixture(scope="module")
def loaded(live: Generation, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("recordings") / "x.cutaway"
    live.trace.save(path)
    return Trace.load(path)


@pytest.fixture
def resumed(loaded: Trace, tiny: Model) -> Generation:
    return Generation.resume(tiny, loaded, max_new_tokens=G, ignore_eos=True)


def steps(run: Generation) -> list[tuple[int, float, float, float, bool]]:
    return [(step.id, step.probability, step.raw_logprob, step.uniform, step.forced) for step in run.trace.steps]


def test_nothing_follows_and_everything_is_there(live: Generation, resumed: Generation) -> None:
    with pytest.raises(StopIteration):
        next(resumed)
    resumed.close()
    trace = resumed.trace
    assert trace.token_ids == live.trace.token_ids and trace.finish_reason == "length"
    assert trace.has_weights and trace.tables is None
    assert (trace.edits, trace.sampling, trace.capture) == (EDITS, [(0, LIVELY)], live.trace.capture)
    np.testing.assert_array_equal(trace.residual(2), live.trace.residual(2))


@pytest.mark.parametrize("step", range(G))
def test_a_branch_is_the_branch_of_the_live_run(step: int, live: Generation, resumed: Generation) -> None:
    ways: list[dict[str, Any]] = [
        {},
        {"token": (live.trace.steps[step].id + 1) % 97},
        {"sampling": OTHER},
        {"edits": [AblateHead(0, 1)]},
    ]
    for way in ways:
        one, other = live.branch(step, **way), resumed.branch(step, **way)
        list(one)
        list(other)
        assert len(other.trace.steps) == G
        assert steps(other)[step:] == steps(one)[step:]
        assert other.trace.token_ids == one.trace.token_ids
        assert other.trace.edits == one.trace.edits and other.trace.sampling == one.trace.sampling
        np.testing.assert_array_equal(other.trace.residual(2), one.trace.residual(2))


def test_branching_leaves_what_was_loaded_alone(loaded: Trace, resumed: Generation) -> None:
    before = loaded.residual(1).copy()
    for step in (9, 3, 9):
        list(resumed.branch(step, token=1))
    np.testing.assert_array_equal(loaded.residual(1), before)
    assert len(loaded.steps) == G and not loaded.has_weights and loaded.tables is not None


def test_a_session_grows_from_it(live: Generation, resumed: Generation) -> None:
    session = Session(resumed)
    branch = session.branch(4, token=7)
    list(branch.generation)
    deeper = session.branch(6)
    list(deeper.generation)
    truth = live.branch(4, token=7)
    list(truth)
    assert branch.trace.token_ids == deeper.trace.token_ids == truth.trace.token_ids


def test_whole_scores_come_back_from_the_residual(live: Generation, loaded: Trace, resumed: Generation) -> None:
    compact = live.trace.capture == "default"
    for step in range(G):
        assert isinstance(loaded.steps[step].scores, Candidates) == compact
        assert (loaded.scores(step) is None) == (loaded.chain(step) is None) == compact
        np.testing.assert_array_equal(resumed.trace.scores(step), live.trace.scores(step))
        chain = resumed.trace.chain(step)
        assert chain is not None and tuple(stage.name for stage in chain.stages) == STAGES
        assert chain.probability(resumed.trace.steps[step].id) == live.trace.steps[step].probability


def test_a_branch_of_it_is_saved_as_any_other(live: Generation, resumed: Generation, tmp_path: Path) -> None:
    one, other = live.branch(5, token=3), resumed.branch(5, token=3)
    for name, run in (("one", one), ("other", other)):
        list(run)
        run.trace.save(tmp_path / name)
    first, second = Trace.load(tmp_path / "one"), Trace.load(tmp_path / "other")
    assert first.token_ids == second.token_ids
    np.testing.assert_array_equal(lens_table(first, 0, 15).ids, lens_table(second, 0, 15).ids)
    np.testing.assert_allclose(attention_output(first, 1, 0, 15), attention_output(second, 1, 0, 15), atol=1e-6)
    for step in range(G):
        np.testing.assert_array_equal(first.candidates(step, 50).ids, second.candidates(step, 50).ids)


@pytest.mark.parametrize("step", [-1, G])
def test_steps_that_are_not_there(step: int, resumed: Generation) -> None:
    with pytest.raises(ModelError, match="no generated token"):
        resumed.branch(step)


def test_another_model_is_refused(loaded: Trace, short: Model, tiny: Model) -> None:
    with pytest.raises(ModelError, match="not made with these weights of gpt2_ctx16.*open it with gpt2_base"):
        Generation.resume(short, loaded)
    retrained = replace(tiny, compute_digest=lambda: "0" * 64)
    with pytest.raises(ModelError, match="not made with these weights of gpt2_base"):
        Generation.resume(retrained, loaded)
    reshaped = replace(loaded, model=replace(loaded.model, config=replace(tiny.config, norm_epsilon=1e-12)))
    with pytest.raises(ModelError, match="not made with these weights of gpt2_base"):
        Generation.resume(tiny, reshaped)


def test_a_branch_can_reach_the_end_of_the_context(short: Model, tmp_path: Path) -> None:
    run = Generation(short, [5] * 12, LIVELY, ignore_eos=True)
    list(run)
    assert run.trace.finish_reason == "context" and len(run.trace.steps) == 5
    run.trace.save(tmp_path / "x.cutaway")
    resumed = Generation.resume(short, Trace.load(tmp_path / "x.cutaway"), ignore_eos=True)
    for step in range(5):
        one, other = run.branch(step, token=9), resumed.branch(step, token=9)
        list(one)
        list(other)
        assert other.trace.token_ids == one.trace.token_ids and other.trace.finish_reason == "context"
