"""Small maps: exact block maxima, however one got there."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from cutaway.core import Generation, SamplingConfig, Trace
from cutaway.core.attention_stages import attention_rows
from cutaway.core.cache import ActivationCache, Floats, Rows
from cutaway.core.events import BlockDone
from cutaway.core.models.model import Model
from cutaway.core.overview import MOST_BLOCKS, Overview, block_size

LENGTH = 150
LAYERS = 2


def trace_of(model: Model, kv_heads: int) -> Trace:
    """A trace whose queries and keys are dice: sharp attention, and longer than the model's context."""
    dice = np.random.default_rng(kv_heads)
    config = replace(model.config, layers=LAYERS, kv_heads=kv_heads)
    rows = Rows.allocate(config, LENGTH, "default")
    rows.query[...] = dice.standard_normal(rows.query.shape) * 3
    rows.key[...] = dice.standard_normal(rows.key.shape)
    trace = Generation(model, [1, 2]).trace
    cache = ActivationCache.of(config, rows, LENGTH, [], "default")
    return replace(trace, model=replace(trace.model, config=config), cache=cache)


@pytest.fixture(scope="module", params=[4, 2, 1], ids="{} key heads".format)
def trace(request: pytest.FixtureRequest, tiny: Model) -> Trace:
    return trace_of(tiny, request.param)


def truth(trace: Trace, layer: int, T: int) -> Floats:
    """Every weight, then the largest of each block, one entry at a time."""
    H, block = trace.model.config.heads, block_size(T)
    N = -(-T // block)
    maxima = np.zeros((H, N, N), np.float32)
    for head in range(H):
        weights = attention_rows(trace, layer, head, 0, T)
        for row in range(N):
            for column in range(row + 1):
                queries, keys = (slice(each * block, (each + 1) * block) for each in (row, column))
                maxima[head, row, column] = weights[queries, keys].max()
    return maxima


@pytest.fixture(scope="module")
def truths(trace: Trace) -> dict[tuple[int, int], Floats]:
    return {(layer, T): truth(trace, layer, T) for layer in range(LAYERS) for T in range(1, 81)}


def test_blocks() -> None:
    assert [block_size(T) for T in (1, 32, 33, 64, 65, 128, 129, 1024)] == [1, 1, 2, 2, 4, 4, 8, 32]
    assert all(-(-T // block_size(T)) <= MOST_BLOCKS for T in range(1, 5000))


@pytest.mark.parametrize("order", ["up", "down", 0, 1, 2, 3])
def test_every_length_in_any_order(order: str | int, trace: Trace, truths: dict[tuple[int, int], Floats]) -> None:
    overview = Overview(trace)
    lengths = [*range(1, 81)] * 2
    if order == "down":
        lengths.reverse()
    elif order != "up":
        random.Random(order).shuffle(lengths)
    for T in lengths:
        maps = overview.maps(LAYERS, T)
        for layer in range(LAYERS):
            assert maps[layer].shape == truths[layer, T].shape and maps.dtype == np.float32
            np.testing.assert_allclose(maps[layer], truths[layer, T], atol=1e-6, err_msg=f"{T}")
            assert not np.triu(maps[layer], 1).any()


def test_a_long_way_at_once(trace: Trace) -> None:
    overview = Overview(trace)
    for T in (LENGTH, 20, 60, 131, 128, 129, 1, LENGTH):
        np.testing.assert_allclose(overview.maps(2, T)[1], truth(trace, 1, T), atol=1e-6)


def test_nothing_at_all(trace: Trace) -> None:
    overview = Overview(trace)
    assert overview.maps(0, 5).shape == (0, 4, 5, 5)
    assert overview.maps(LAYERS, 0).shape == (LAYERS, 4, 0, 0)
    overview.maps(LAYERS, 7)
    assert overview.maps(LAYERS, 0).shape == (LAYERS, 4, 0, 0)
    np.testing.assert_allclose(overview.maps(1, 7)[0], truth(trace, 0, 7), atol=1e-6)


def test_what_was_given_out_stays(trace: Trace) -> None:
    overview = Overview(trace)
    given = overview.maps(1, 40)[0]
    given[...] = 7
    overview.maps(LAYERS, 41)
    assert (given == 7).all()
    np.testing.assert_allclose(overview.maps(1, 40)[0], truth(trace, 0, 40), atol=1e-6)


def test_a_token_more_or_less_is_not_computed_from_the_start(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    overview = Overview(trace)
    overview.maps(LAYERS, 100)
    asked: list[int] = []
    whole = Overview._block_maxima

    def counted(self: Overview, layer: int, start: int, stop: int, block: int) -> Floats:
        asked.append(stop - start)
        return whole(self, layer, start, stop, block)

    monkeypatch.setattr(Overview, "_block_maxima", counted)
    overview.maps(LAYERS, 101)
    overview.maps(LAYERS, 102)
    assert asked == [1] * 4
    overview.maps(LAYERS, 101)
    assert asked == [1] * 4
    overview.maps(LAYERS, 128)
    asked.clear()
    overview.maps(LAYERS, 129)  # blocks twice as large
    assert asked == [1] * LAYERS


def test_a_pass_under_way(tiny: Model) -> None:
    """The layers that are through are drawn at the new length, the others where they are."""
    run = Generation(tiny, [5, 83, 92], SamplingConfig(seed=1), ignore_eos=True)
    overview = Overview(run.trace)
    for event in run:
        if not isinstance(event, BlockDone):
            continue
        T = 3 + len(run.trace.steps)
        maps = overview.maps(event.layer + 1, T)
        for layer in range(event.layer + 1):
            np.testing.assert_allclose(maps[layer], truth(run.trace, layer, T), atol=1e-6)
        if T > 35:
            break


def test_as_far_as_there_is_time(trace: Trace) -> None:
    """Without time nothing is computed; going on gives the same as all at once."""
    overview = Overview(trace)
    assert overview.advance(LAYERS, LENGTH, 0.0) < LAYERS
    while overview.advance(LAYERS, LENGTH, 0.001) < LAYERS:
        pass
    np.testing.assert_array_equal(overview.maps(LAYERS, LENGTH), Overview(trace).maps(LAYERS, LENGTH))


@pytest.mark.parametrize("length", [1, 31, 32, 33, 100, LENGTH])
def test_a_fork_knows_what_both_texts_share(trace: Trace, length: int) -> None:
    overview = Overview(trace)
    overview.maps(LAYERS, LENGTH)
    fork = overview.fork(replace(trace, cache=trace.cache.fork(length)))
    for T in (length, max(length - 1, 1)):
        np.testing.assert_allclose(fork.maps(LAYERS, T)[1], truth(trace, 1, T), atol=1e-6)
    np.testing.assert_allclose(overview.maps(LAYERS, LENGTH)[0], truth(trace, 0, LENGTH), atol=1e-6)
