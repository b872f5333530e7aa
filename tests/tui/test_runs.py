"""Runs that are kept and runs that are let go: what can be walked to, and what its memory goes back to."""

from __future__ import annotations

import gc
from weakref import ref

import pytest

from cutaway.core import Generation, SamplingConfig
from cutaway.core.models.model import Model
from cutaway.tui.runner import Ready, Runner
from cutaway.tui.runs import MOST_RUNS, Run, Runs
from tests.patience import PATIENCE


def a_run(model: Model) -> Generation:
    generation = Generation(model, [610, 573], SamplingConfig(seed=1), max_new_tokens=4, ignore_eos=True)
    assert list(generation)
    return generation


def opened(runs: Runs, generation: Generation) -> Run:
    return runs.open(Ready(generation, 4), Runner(lambda: generation, running=False, speed=8.0), None)


def forked(runs: Runs, parent: Run, token: int) -> Run:
    """Walk to *parent* and leave it."""
    while runs.shown is not parent:
        runs.walk(1)
    assert isinstance(parent.source, Generation)
    generation = parent.source.branch(2, token=token)
    assert list(generation)
    return runs.fork(parent, generation, 2, parent.moment.overview.fork(generation.trace), 8.0)


@pytest.fixture
def runs(fable: Model) -> Runs:
    first = a_run(fable)
    runs = Runs(Runner(lambda: first, running=False, speed=8.0))
    opened(runs, first)
    return runs


@pytest.mark.parametrize("way", ["each from the last", "all from the first", "other prompts"])
def test_what_is_let_go_is_gone(way: str, runs: Runs, fable: Model) -> None:
    """However long somebody goes on: no run that is kept holds one that is not."""
    sources, threads = [ref(runs.all[0].source)], []
    first = runs.all[0]
    for token in range(100, 100 + 2 * MOST_RUNS):
        if way == "other prompts":
            run = opened(runs, a_run(fable))
        else:
            run = forked(runs, first if way == "all from the first" else runs.all[-1], token)
        sources.append(ref(run.source))
        threads += [run.runner._thread] if run.runner._thread.ident else []
    runs.cancel()
    for thread in threads:  # those of the runs that were let go are on their way out as well
        thread.join(PATIENCE)
        assert not thread.is_alive()
    del run, first
    gc.collect()
    alive = [source() for source in sources if source() is not None]
    assert alive == [run.source for run in runs.all] and len(alive) == MOST_RUNS


def test_one_can_walk_round_all_that_are_kept(runs: Runs) -> None:
    for token in range(100, 100 + MOST_RUNS + 3):
        forked(runs, runs.all[-1], token)
    kept = list(runs.all)
    assert len(kept) == MOST_RUNS and runs.shown is kept[-1]
    assert [runs.walk(1) for _ in kept] == kept
    assert [runs.walk(-1) for _ in kept] == [*reversed(kept[:-1]), kept[-1]]
    assert all(run.left_at == 2 for run in kept)
    runs.cancel()


def test_the_text_that_was_just_left_can_be_walked_back_to(runs: Runs) -> None:
    """Though it is the oldest of all."""
    oldest = runs.all[0]
    for token in range(100, 100 + MOST_RUNS - 1):
        forked(runs, oldest, token)
    second = runs.all[1]
    assert runs.walk(1) is oldest
    newest = forked(runs, oldest, 99)
    assert newest.left_at == 2 and oldest.left_at is None
    assert oldest in runs.all and second not in runs.all and second.runner.gate.cancelled
    assert runs.walk(1) is oldest
    runs.cancel()
