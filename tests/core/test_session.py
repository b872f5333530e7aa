"""Branches: runs that share a text up to the step where they part."""

from __future__ import annotations

import gc
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest

from cutaway.core import Generation, ModelError, SamplingConfig, Session
from cutaway.core.edits import AblateHead, AblateMlp, ForceToken
from cutaway.core.events import Event, SamplingStage, TokenChosen
from cutaway.core.models.model import Model

PROMPT = [5, 83, 92, 83, 15, 11]
LIVELY = SamplingConfig(temperature=0.9, top_k=30, seed=4)
OTHER = SamplingConfig(temperature=1.5, min_p=0.01, seed=9)


@pytest.fixture
def parent(tiny: Model) -> Generation:
    run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=10, ignore_eos=True)
    list(run)
    return run


def steps(run: Generation) -> list[tuple[int, float, float, float]]:
    """What is remembered of each token, but for who chose it and how long it took."""
    return [(step.id, step.probability, step.raw_logprob, step.uniform) for step in run.trace.steps]


def test_the_tree(parent: Generation) -> None:
    session = Session(parent)
    root = session.current
    assert session.root is root and root.parent is None and root.trace is parent.trace
    first = session.branch(3, token=7)
    second = session.branch(1)
    assert second.parent is first and session.current is second
    session.current = root
    third = session.branch(0)
    assert [branch.step for branch in (first, second, third)] == [3, 1, 0]
    assert third.parent is root and third.generation.trace is third.trace


def test_a_path_that_nobody_goes_back_to_is_let_go(parent: Generation) -> None:
    session = Session(parent)
    left = ref(session.branch(3).generation)
    session.current = session.root
    kept = ref(session.branch(2).generation)
    session.branch(1)
    gc.collect()
    assert left() is None and session.current.parent is not None
    assert kept() is session.current.parent.generation


@pytest.mark.parametrize("step", [0, 1, 5, 9])
def test_the_same_token_and_seed_give_the_same_continuation(step: int, parent: Generation) -> None:
    child = parent.branch(step, token=parent.trace.steps[step].id)
    list(child)
    assert steps(child) == steps(parent)
    assert [each.forced for each in child.trace.steps] == [each == step for each in range(10)]
    assert child.trace.finish_reason == "length"


@pytest.mark.parametrize("step", [0, 1, 5, 9])
def test_drawing_again_draws_the_same(step: int, parent: Generation) -> None:
    child = parent.branch(step)
    list(child)
    assert steps(child) == steps(parent)
    assert not any(each.forced for each in child.trace.steps)


def test_another_token(parent: Generation) -> None:
    id = (parent.trace.steps[4].id + 1) % 97
    child = parent.branch(4, token=id)
    list(child)
    assert child.trace.token_ids[: 6 + 4] == parent.trace.token_ids[: 6 + 4]
    assert child.trace.steps[4].id == id and child.trace.steps[4].forced
    assert [step.uniform for step in child.trace.steps] == [step.uniform for step in parent.trace.steps]
    assert child.trace.steps[:4] == parent.trace.steps[:4]
    assert child.trace.edits == (ForceToken(4, id),)
    assert parent.trace.edits == ()


def test_a_branch_begins_with_the_stages_of_its_step(parent: Generation) -> None:
    child = parent.branch(4, token=7)
    events: list[Event] = [next(child) for _ in range(8)]
    stages = [event for event in events if isinstance(event, SamplingStage)]
    assert len(stages) == 7 and isinstance(events[7], TokenChosen)
    before = parent.trace.chain(4)
    assert before is not None
    for event, stage in zip(stages, before.stages, strict=True):
        np.testing.assert_array_equal(event.values, stage.values)


def test_another_way_of_sampling(parent: Generation) -> None:
    child = parent.branch(4, sampling=OTHER)
    list(child)
    trace = child.trace
    assert trace.sampling == [(0, LIVELY), (4, OTHER)]
    assert [trace.settings_at(step) for step in range(10)] == [LIVELY] * 4 + [OTHER] * 6
    uniforms = np.random.Generator(np.random.PCG64(9)).random(10)
    assert [step.uniform for step in trace.steps[4:]] == uniforms[4:].tolist()
    for step in range(4, 10):
        chain = trace.chain(step)
        assert chain is not None and chain.config == OTHER
        assert trace.steps[step].id == chain.draw(trace.steps[step].uniform)
    assert parent.trace.sampling == [(0, LIVELY)]


def test_another_way_of_sampling_keeps_the_seed_unless_it_has_one(parent: Generation) -> None:
    child = parent.branch(4, sampling=replace(OTHER, seed=None))
    assert child.trace.settings_at(4).seed == LIVELY.seed
    list(child)
    assert [step.uniform for step in child.trace.steps] == [step.uniform for step in parent.trace.steps]


def test_another_way_of_sampling_from_the_first_token(parent: Generation) -> None:
    assert parent.branch(0, sampling=OTHER).trace.sampling == [(0, OTHER)]


@pytest.mark.parametrize(("step", "kept"), [(6, True), (4, True), (3, False), (0, False)])
def test_a_branch_of_a_branch_goes_on_under_its_settings(step: int, kept: bool, parent: Generation) -> None:
    child = parent.branch(4, sampling=OTHER)
    list(child)
    grandchild = child.branch(step)
    assert grandchild.trace.sampling == ([(0, LIVELY), (4, OTHER)] if kept else [(0, LIVELY)])
    list(grandchild)
    assert steps(grandchild) == steps(child if kept else parent)


def test_a_branch_of_a_branch_under_yet_other_settings(parent: Generation) -> None:
    greedy = SamplingConfig(greedy=True, seed=1)
    child = parent.branch(4, sampling=OTHER)
    list(child)
    assert child.branch(4, sampling=greedy).trace.sampling == [(0, LIVELY), (4, greedy)]
    assert child.branch(6, sampling=greedy).trace.sampling == [(0, LIVELY), (4, OTHER), (6, greedy)]
    assert child.branch(2, sampling=greedy).trace.sampling == [(0, LIVELY), (2, greedy)]


def test_forced_tokens_that_a_branch_leaves_behind(parent: Generation) -> None:
    child = parent.branch(4, token=7)
    list(child)
    assert child.branch(6, token=8).trace.edits == (ForceToken(4, 7), ForceToken(6, 8))
    assert child.branch(4, token=8).trace.edits == (ForceToken(4, 8),)
    again = child.branch(2)
    assert again.trace.edits == ()
    list(again)
    assert steps(again) == steps(parent)


def test_further_edits_hold_from_the_branch_on(parent: Generation) -> None:
    edits = (AblateHead(1, 2), AblateMlp(0))
    child = parent.branch(4, edits=edits)
    list(child)
    assert child.trace.edits == tuple(replace(edit, since=5) for edit in edits)
    shared = 6 + 4
    np.testing.assert_array_equal(child.trace.residual(2)[:shared], parent.trace.residual(2)[:shared])
    # the same tokens through the silenced model, on the rows of the model that was not
    assert not np.allclose(child.trace.residual(2)[shared], parent.trace.residual(2)[shared], atol=1e-3)


def test_a_branch_of_a_running_parent(tiny: Model) -> None:
    parent = Generation(tiny, PROMPT, LIVELY, max_new_tokens=8, ignore_eos=True)
    while len(parent.trace.steps) < 3:
        next(parent)
    child = parent.branch(2)
    list(child)
    list(parent)
    assert steps(child) == steps(parent)


def test_a_branch_that_is_left_alone_keeps_its_shared_part(parent: Generation) -> None:
    child = parent.branch(4, token=7)
    child.close()
    assert child.trace.finish_reason == "stopped"
    assert child.trace.token_ids == parent.trace.token_ids[: 6 + 4]
    assert child.trace.positions == 6 + 3 <= child.trace.cache.length


@pytest.mark.parametrize("step", [-1, 10, 99])
def test_steps_that_are_not_there(step: int, parent: Generation) -> None:
    with pytest.raises(ModelError, match=f"no generated token {step} to branch from; this run has 10"):
        parent.branch(step)


def test_tokens_that_are_not_there(parent: Generation) -> None:
    with pytest.raises(ModelError, match="no token id 97"):
        parent.branch(2, token=97)


def test_a_branch_can_be_longer_than_a_run_that_ended_its_text(tiny: Model) -> None:
    ended = Generation(tiny, PROMPT, LIVELY, max_new_tokens=6, edits=[ForceToken(0, 7), ForceToken(1, 0)])
    list(ended)
    assert ended.trace.finish_reason == "eos" and len(ended.trace.steps) == 2
    child = ended.branch(1, token=7)
    next(child)
    child.close()
    assert child.trace.finish_reason == "stopped"
    child = ended.branch(1, token=7, edits=[ForceToken(step, 8) for step in range(2, 6)])
    list(child)
    assert child.trace.finish_reason == "length" and len(child.trace.steps) == 6
