"""The candidates a token was drawn from, in the compact form that recordings keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import SamplingConfig
from cutaway.core.sampling import STAGES, Chain
from cutaway.core.scores import BEST, KEPT, Candidates, best_ids, candidates

FILTERED = SamplingConfig(temperature=0.8, top_k=30, top_p=0.9, min_p=0.02, repetition_penalty=1.3)
SETTINGS = [FILTERED, SamplingConfig(), SamplingConfig(greedy=True), SamplingConfig(top_p=0.0)]
PREVIOUS = [3, 3, 7, 100]


def scores(size: int = 600, seed: int = 1) -> NDArray[np.float32]:
    """Scores with many ties and some −inf."""
    values = np.round(np.random.default_rng(seed).standard_normal(size) * 3, 1).astype(np.float32)
    values[::37] = -np.inf
    return values


def sorted_ids(values: NDArray[Any]) -> list[int]:
    """All ids by descending score, then lowest id."""
    return sorted(range(len(values)), key=lambda id: (-values[id], id))


def table(config: SamplingConfig, drawn: int, count: int = BEST) -> tuple[Chain, Candidates]:
    chain = Chain(config, scores(), PREVIOUS)
    return chain, candidates(chain, drawn, count)


@pytest.mark.parametrize("count", [1, 2, 10, 255, 600, 1000])
def test_best_ids(count: int) -> None:
    for seed in range(5):
        values = scores(600, seed).astype(np.float64)
        assert best_ids(values, count).tolist() == sorted_ids(values)[:count]


@pytest.mark.parametrize("size", [63, 64, 65, 640, 5000])
def test_best_ids_of_large_vocabularies_with_ties(size: int) -> None:
    dice = np.random.default_rng(size)
    for values in (
        dice.integers(0, 40, size),
        dice.standard_normal(size),
        np.where(dice.random(size) < 0.9, -np.inf, 1),
    ):
        scores = values.astype(np.float64)
        for count in (1, 2, 10, 64, 257, 10_000):
            assert best_ids(scores, count).tolist() == sorted_ids(scores)[:count]
            assert best_ids(scores.astype(np.float32), count).tolist() == sorted_ids(scores.astype(np.float32))[:count]


def test_best_ids_of_equal_scores() -> None:
    assert best_ids(np.zeros(9), 4).tolist() == [0, 1, 2, 3]
    assert best_ids(np.array([1.0, 2.0, 1.0, 2.0, 1.0]), 3).tolist() == [1, 3, 0]


@pytest.mark.parametrize("config", SETTINGS)
@pytest.mark.parametrize("place", [0, 5, 255, 256, 300, 599])
def test_the_drawn_token_is_always_there(place: int, config: SamplingConfig) -> None:
    order = sorted_ids(scores())
    drawn = order[place]
    _, found = table(config, drawn)
    assert found.ids.tolist() == (order[:256] if place < 256 else [*order[:256], drawn])
    assert found.ranks.tolist() == (list(range(256)) if place < 256 else [*range(256), place])
    for count in (1, 3, 10, 256, 500):
        best = found.best(count, drawn)
        assert drawn in best.ids
        rows = min(count, len(found.ids))
        assert len(best.ids) == rows
        if place < rows:
            assert best.ids.tolist() == found.ids.tolist()[:rows]
        else:
            assert best.ids.tolist() == [*order[: rows - 1], drawn]
            assert best.ranks[-1] == place
        assert len({*best.ids.tolist()}) == rows


def test_a_table_that_repeats_the_drawn_token() -> None:
    """As recordings keep it, so that the tables of all steps are of one size."""
    chain, found = table(FILTERED, 0, 10)
    drawn = int(found.ids[4])
    rows = np.append(np.arange(10), 4)
    repeated = Candidates(
        **{name: getattr(found, name)[rows] for name in ("ids", "logits", "ranks", "removed_by", "final")},
        stage_logsumexp=found.stage_logsumexp,
        stage_kept=found.stage_kept,
        vocabulary=chain.vocabulary,
    )
    for count in (1, 4, 5, 10, 11, 99):
        one, other = repeated.best(count, drawn), candidates(chain, drawn, 10).best(count, drawn)
        assert one.ids.tolist() == other.ids.tolist()


def test_no_rows_at_all() -> None:
    _, found = table(FILTERED, 0)
    assert found.best(0, 0).ids.size == 0


@pytest.mark.parametrize("config", SETTINGS)
def test_every_value_equals_the_whole_chains(config: SamplingConfig) -> None:
    drawn = sorted_ids(scores())[-1]
    chain, found = table(config, drawn)
    stages = dict(zip(STAGES, chain.stages, strict=True))
    np.testing.assert_array_equal(found.logits, scores()[found.ids])
    np.testing.assert_array_equal(found.final, stages["final"].values[found.ids])
    raw = SamplingConfig().distribution(scores())
    np.testing.assert_allclose(found.raw, raw[found.ids], rtol=1e-12)
    assert found.vocabulary == 600
    for code, name in enumerate(STAGES):
        assert found.stage_kept[code] == np.count_nonzero(stages[name].kept)
        if name != "final":
            values = stages[name].values
            assert found.stage_logsumexp[code] == pytest.approx(float(np.log(np.exp(values).sum())), abs=1e-12)
    assert found.stage_logsumexp[-1] == 0
    assert found.stage_logsumexp.dtype == found.final.dtype == np.float64
    assert found.ids.dtype == np.int64
    assert found.logits.dtype == np.float32
    assert found.removed_by.dtype == np.uint8


@pytest.mark.parametrize("config", SETTINGS)
def test_which_stage_removed_a_token(config: SamplingConfig) -> None:
    chain, found = table(config, 0, 600)
    assert KEPT == len(STAGES) == 7
    for row, id in enumerate(found.ids):
        out = [name for name, stage in zip(STAGES, chain.stages, strict=True) if not stage.kept[id]]
        assert found.removal(row) == (out[0] if out else None)
        assert found.removed_by[row] == (STAGES.index(out[0]) if out else KEPT)
        assert (found.final[row] > 0) == (found.removal(row) is None)


def test_each_filter_is_named() -> None:
    config = SamplingConfig(top_k=4, top_p=0.9, min_p=0.3)
    logits = np.log([0.5, 0.25, 0.125, 0.0625, 0.0625 / 2, 0.0625 / 2])
    found = candidates(Chain(config, logits), 0)
    assert [found.removal(row) for row in range(6)] == [None, None, "min_p", "top_p", "top_k", "top_k"]
    greedy = candidates(Chain(SamplingConfig(greedy=True), logits), 0)
    assert [greedy.removal(row) for row in range(3)] == [None, "final", "final"]


def test_tokens_that_were_out_from_the_start() -> None:
    found = candidates(Chain(SamplingConfig(), [0.0, -np.inf]), 0)
    assert [found.removal(row) for row in range(2)] == [None, "raw"]
    assert found.raw.tolist() == [1, 0] and found.stage_kept.tolist() == [1] * 7


def test_a_small_vocabulary() -> None:
    found = candidates(Chain(SamplingConfig(), [1.0, 3.0, 2.0]), 2)
    assert found.ids.tolist() == [1, 2, 0] and found.best(2, 0).ids.tolist() == [1, 0]
