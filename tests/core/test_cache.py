"""The rows a run keeps: they grow, two runs share what they have in common, and nobody writes over another's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from cutaway.core import Generation, ModelError, SamplingConfig
from cutaway.core.attention_stages import attention_maps
from cutaway.core.cache import ActivationCache, Rows
from cutaway.core.edits import ForceToken
from cutaway.core.events import LogitsReady, TokenChosen
from cutaway.core.models.model import Model

GREEDY = SamplingConfig(greedy=True)
LIVELY = SamplingConfig(temperature=0.9, seed=4)
PROMPT = [5, 83, 92, 83, 15, 11]
FIELDS = ("embedding", "residual", "query", "key", "value")


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reserve few positions at once, so that rows have to grow."""
    monkeypatch.setattr("cutaway.core.cache._FIRST_CAPACITY", 256)


def until(run: Generation, count: int) -> Generation:
    """Pull events until *count* tokens are there."""
    while len(run.trace.steps) < count:
        next(run)
    return run


def assert_same_rows(found: Generation, truth: Generation) -> None:
    """Both runs have been through the same text, and keep the same of it."""
    assert found.trace.token_ids == truth.trace.token_ids
    T = truth.trace.positions
    names = FIELDS + (("hidden", "normalized", "logits") if truth.trace.capture == "all" else ())
    for name in names:
        one, other = (getattr(run.trace.cache.rows, name)[..., :T, :] for run in (found, truth))
        np.testing.assert_allclose(one, other, atol=1e-5, err_msg=name)


def afresh(run: Generation) -> Generation:
    """The same text, forced onto a run that shares nothing."""
    trace = run.trace
    edits = [ForceToken(step, each.id) for step, each in enumerate(trace.steps)]
    fresh = Generation(
        run.model,
        trace.prompt_ids,
        GREEDY,
        max_new_tokens=len(trace.steps),
        ignore_eos=True,
        capture=trace.cache.capture,
        edits=edits,
    )
    list(fresh)
    return fresh


def test_nothing_is_reserved_for_tokens_that_cannot_come(fable: Model) -> None:
    assert ActivationCache(fable.config, 10).rows.capacity == 10
    assert ActivationCache(fable.config, 10**9).rows.capacity == 256


@pytest.mark.parametrize("capture", ["default", "all"])
def test_a_run_beyond_the_first_rows_equals_an_uncached_one(capture: Any, fable: Model, story: list[int]) -> None:
    prompt = (story * 30)[:250]
    run = Generation(fable, prompt, GREEDY, max_new_tokens=14, ignore_eos=True, capture=capture)
    rows = run.trace.cache.rows
    events = list(run)
    assert run.trace.cache.length == run.trace.positions == 263
    assert run.trace.cache.rows is not rows and run.trace.cache.rows.capacity == 512
    fresh = Generation(fable, run.trace.token_ids[:-1], GREEDY, max_new_tokens=1, ignore_eos=True, capture="all")
    logits = next(event.logits for event in fresh if isinstance(event, LogitsReady))
    cached = [event.logits[-1] for event in events if isinstance(event, LogitsReady)]
    np.testing.assert_allclose(np.stack(cached), logits[-14:], rtol=1e-3, atol=1e-3)
    for layer in range(4):
        np.testing.assert_allclose(attention_maps(run.trace, layer), attention_maps(fresh.trace, layer), atol=1e-4)
        np.testing.assert_allclose(run.trace.residual(layer), fresh.trace.residual(layer), rtol=1e-3, atol=1e-3)


def test_a_prompt_longer_than_the_first_rows(fable: Model, story: list[int]) -> None:
    run = Generation(fable, (story * 30)[:300], GREEDY, max_new_tokens=2, ignore_eos=True)
    list(run)
    assert run.trace.cache.rows.capacity == 512  # no more than the model has positions


def test_growing_moves_every_row(tiny: Model) -> None:
    cache = ActivationCache(tiny.config, 4, "all")
    rows = cache.reserve(4)
    for number, name in enumerate((*FIELDS, "hidden", "normalized", "logits")):
        getattr(rows, name)[...] = number + 1
    cache.length = 4
    grown = cache.reserve(1)
    assert grown is not rows and grown is cache.rows and grown.capacity == 8
    for number, name in enumerate((*FIELDS, "hidden", "normalized", "logits")):
        assert (getattr(grown, name)[..., :4, :] == number + 1).all()


def test_rows_grow_to_as_many_as_the_model_has_positions(tiny: Model) -> None:
    cache = ActivationCache(tiny.config, 40)
    cache.length = 40
    assert cache.reserve(1).capacity == 64


def test_no_memory_left(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ActivationCache(tiny.config, 4)

    def allocate(*_: object) -> Rows:
        raise MemoryError

    monkeypatch.setattr(Rows, "allocate", allocate)
    with pytest.raises(ModelError, match="no memory for 8 positions; ask for fewer tokens"):
        cache.reserve(5)


@pytest.mark.parametrize("capture", ["default", "all"])
@pytest.mark.parametrize("first", ["parent", "child"])
def test_two_runs_share_rows_until_both_have_written(first: str, capture: Any, tiny: Model) -> None:
    parent = Generation(tiny, PROMPT, LIVELY, max_new_tokens=10, ignore_eos=True, capture=capture)
    until(parent, 4)
    child = parent.branch(3, token=(parent.trace.steps[3].id + 1) % 97)
    shared = parent.trace.cache.rows
    assert child.trace.cache.rows is shared
    assert np.shares_memory(parent.trace.residual(0), child.trace.residual(0))

    order = (parent, child) if first == "parent" else (child, parent)
    until(order[0], 5)
    assert child.trace.cache.rows is parent.trace.cache.rows  # only one has written past the fork
    until(order[1], 5)
    assert not np.shares_memory(parent.trace.cache.rows.key, child.trace.cache.rows.key)
    assert order[0].trace.cache.rows is shared
    for run in order:
        list(run)
        assert_same_rows(run, afresh(run))
    assert parent.trace.token_ids[:9] == child.trace.token_ids[:9]
    assert parent.trace.token_ids[9] != child.trace.token_ids[9]


def test_two_runs_that_take_turns(tiny: Model) -> None:
    parent = Generation(tiny, PROMPT, LIVELY, max_new_tokens=12, ignore_eos=True, capture="all")
    until(parent, 4)
    child = parent.branch(1, token=50)
    grandchild = child.branch(0, token=51)
    for _ in itertools.zip_longest(parent, child, grandchild):
        pass
    for run in (parent, child, grandchild):
        assert len(run.trace.steps) == 12
        assert_same_rows(run, afresh(run))


def test_a_branch_of_a_finished_run_writes_on_in_place(tiny: Model) -> None:
    parent = Generation(tiny, PROMPT, LIVELY, max_new_tokens=5, ignore_eos=True)
    list(parent)
    parent.max_new_tokens = 8
    child = parent.branch(4)
    list(child)
    assert child.trace.cache.rows.filled == 6 + 7
    assert_same_rows(parent, afresh(parent))
    assert_same_rows(child, afresh(child))


def test_a_branch_from_inside_a_step(tiny: Model) -> None:
    """The step has rows reserved, though they are not whole yet: the branch must not write there."""
    parent = until(Generation(tiny, PROMPT, LIVELY, max_new_tokens=9, ignore_eos=True, capture="all"), 3)
    for _ in range(4):
        next(parent)
    child = parent.branch(2, token=40)
    list(child)
    list(parent)
    for run in (parent, child):
        assert_same_rows(run, afresh(run))


@pytest.mark.parametrize("pulled", [0, 4])
def test_closing_takes_no_rows_from_a_branch(pulled: int, tiny: Model) -> None:
    parent = until(Generation(tiny, PROMPT, LIVELY, max_new_tokens=9, ignore_eos=True), 3)
    child = parent.branch(2, token=40)
    for _ in range(pulled):
        next(parent)
    list(child)
    parent.close()
    second = parent.branch(2, token=41)
    list(second)
    for run in (parent, child, second):
        assert_same_rows(run, afresh(run))


def test_a_step_that_was_given_up_is_written_again(tiny: Model) -> None:
    run = until(Generation(tiny, PROMPT, LIVELY, max_new_tokens=9, ignore_eos=True, capture="all"), 3)
    for _ in range(5):
        next(run)
    assert run.trace.cache.rows.filled == run.trace.cache.length + 1
    run.close()
    assert run.trace.cache.rows.filled == run.trace.cache.length == 8
    again = run.branch(2, token=run.trace.steps[2].id)
    rows = again.trace.cache.rows
    list(again)
    assert again.trace.cache.rows is rows
    assert_same_rows(again, afresh(again))


def test_a_fork_keeps_the_patterns_of_what_it_shares(tiny: Model) -> None:
    run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=5, ignore_eos=True, capture="all")
    list(run)
    for length in (1, 4, 6, 7, 10):
        cache = run.trace.cache.fork(length)
        for layer, blocks in enumerate(cache.patterns):
            truth = attention_maps(run.trace, layer)[:, :length, :length]
            row = 0
            for block in blocks:
                np.testing.assert_allclose(block, truth[:, row : row + block.shape[1], : block.shape[2]], atol=1e-5)
                row += block.shape[1]
            assert row == length


def test_tokens_are_counted_once(tiny: Model) -> None:
    run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=4, ignore_eos=True)
    lengths = [run.trace.cache.length for event in run if isinstance(event, TokenChosen)]
    assert lengths == [6, 7, 8, 9]
