"""What each sampling stage did, in shares: the same as the sampling chain laid out, live and from a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, SamplingConfig, Trace
from cutaway.core.models.model import Model
from cutaway.core.sampling import STAGES, Chain, Stage
from cutaway.core.scores import Candidates, candidates
from cutaway.core.shares import probabilities_at, stage_shares, stretches

Rng = np.random.Generator

PREVIOUS = (3, 3, 17, 40)

SETTINGS = [
    SamplingConfig(),
    SamplingConfig(temperature=0.7, top_k=12, top_p=0.9),
    SamplingConfig(temperature=1.8, min_p=0.03, repetition_penalty=1.3),
    SamplingConfig(repetition_penalty=0.6, top_p=0.5),
    SamplingConfig(top_k=5, min_p=0.4),
    SamplingConfig(top_p=0.0),
    SamplingConfig(top_k=1000, top_p=0.999),
    SamplingConfig(greedy=True, top_k=3, temperature=0.5),
    SamplingConfig(temperature=0.0, repetition_penalty=2.0),
]


def softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(values - values.max())
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def laid_out(stage: Stage) -> NDArray[np.float64]:
    """The probabilities [V] after *stage*."""
    return stage.values if stage.name == "final" else softmax(stage.values)


def some_settings(rng: Rng) -> SamplingConfig:
    return SamplingConfig(
        temperature=float(rng.choice([0.0, 0.2, 0.9, 1.0, 3.0])),
        top_k=int(rng.choice([0, 1, 7, 50, 400])),
        top_p=float(rng.choice([1.0, 0.99, 0.6, 0.1])),
        min_p=float(rng.choice([0.0, 0.02, 0.3])),
        repetition_penalty=float(rng.choice([1.0, 1.2, 0.8])),
        greedy=bool(rng.random() < 0.1),
    )


def some_scores(rng: Rng, size: int) -> NDArray[np.float32]:
    """Scores of which some are tied, and some −inf."""
    scores: NDArray[np.float32] = (rng.normal(size=size) * rng.choice([0.3, 3.0, 20.0])).astype(np.float32)
    scores[rng.random(size) < 0.2] = np.float32(rng.normal())
    scores[rng.random(size) < 0.1] = -np.inf
    scores[int(rng.integers(size))] = 1.5
    return scores


def a_table(scores: NDArray[np.float32], settings: SamplingConfig, drawn: int | None = None) -> Candidates:
    chain = Chain(settings, scores, PREVIOUS)
    return candidates(chain, chain.draw(0.3) if drawn is None else drawn)


def check_probabilities(table: Candidates, settings: SamplingConfig, stages: tuple[Stage, ...]) -> None:
    for index, stage in enumerate(stages):
        shares = probabilities_at(table, index, settings, PREVIOUS)
        np.testing.assert_allclose(shares, laid_out(stage)[table.ids], rtol=1e-5, atol=1e-12)
        np.testing.assert_array_equal(shares[~stage.kept[table.ids]], 0.0)


def check_stages(table: Candidates, settings: SamplingConfig, stages: tuple[Stage, ...]) -> None:
    before = np.ones(table.vocabulary, bool)
    mass = softmax(stages[0].values)
    for share, stage in zip(stage_shares(table, settings, PREVIOUS), stages, strict=True):
        probabilities = laid_out(stage)
        assert (share.name, share.active) == (stage.name, stage.active)
        assert share.left == np.count_nonzero(stage.kept)
        assert share.removed == np.count_nonzero(before & ~stage.kept)
        if stage.name != "final":
            assert share.removed_mass == pytest.approx(float(mass[~stage.kept].sum()), abs=1e-9)
        assert share.best_share == pytest.approx(float(probabilities.max()), rel=1e-5)
        assert probabilities[share.best] == pytest.approx(float(probabilities.max()), rel=1e-5)
        before, mass = stage.kept, probabilities


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("size", [60, 2000])
def test_shares_are_those_of_the_chain(settings: SamplingConfig, size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(5):
        scores = some_scores(rng, size)
        table, stages = a_table(scores, settings), settings.stages(scores, PREVIOUS)
        check_probabilities(table, settings, stages)
        check_stages(table, settings, stages)


def test_any_settings_and_scores() -> None:
    rng = np.random.default_rng(1)
    for _ in range(400):
        scores, settings = some_scores(rng, int(rng.choice([45, 256, 900]))), some_settings(rng)
        table, stages = a_table(scores, settings), settings.stages(scores, PREVIOUS)
        check_probabilities(table, settings, stages)
        check_stages(table, settings, stages)


def test_a_drawn_token_that_is_not_among_the_best_has_its_shares_too() -> None:
    rng = np.random.default_rng(2)
    settings = SamplingConfig(temperature=1.4, repetition_penalty=1.2)
    scores = rng.normal(size=3000).astype(np.float32)
    for drawn in (int(scores.argmin()), 3):
        table = a_table(scores, settings, drawn)
        assert drawn in table.ids.tolist()
        check_probabilities(table, settings, settings.stages(scores, PREVIOUS))


def test_the_last_stages_take_out_no_mass_of_their_own() -> None:
    """Greedy leaves one token of all: that is its choice, and not a filter's."""
    scores = np.arange(50, dtype=np.float32)
    shares = stage_shares(a_table(scores, SamplingConfig(greedy=True)), SamplingConfig(greedy=True), PREVIOUS)
    assert [share.left for share in shares] == [50] * 6 + [1]
    assert shares[-1].removed == 49 and shares[-1].best_share == 1.0
    assert [share.removed_mass for share in shares] == [0.0] * 7


def test_the_best_may_change_from_stage_to_stage() -> None:
    """A penalty on the likeliest token lets another one lead."""
    scores = np.zeros(50, np.float32)
    scores[[3, 8]] = 2.0, 1.5
    settings = SamplingConfig(repetition_penalty=2.0)
    best = [share.best for share in stage_shares(a_table(scores, settings), settings, PREVIOUS)]
    assert best == [3, *[8] * 6]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_random_number_draws_the_first_stretch_that_ends_above_it(settings: SamplingConfig) -> None:
    rng = np.random.default_rng(4)
    for size in (60, 250):
        scores = some_scores(rng, size)
        chain = Chain(settings, scores, PREVIOUS)
        known = stretches(candidates(chain, chain.draw(0.5)))
        assert known is not None
        ids, ends = known
        assert ids.tolist() == sorted(set(ids.tolist())) and np.all(np.diff(ends) > 0)
        assert ends[-1] == pytest.approx(1.0)
        np.testing.assert_array_equal(ids, np.flatnonzero(chain.stages[-1].values))
        for uniform in [0.0, *rng.random(500).tolist(), np.nextafter(1.0, 0.0)]:
            row = min(int(np.searchsorted(ends, uniform, side="right")), len(ids) - 1)
            assert settings.is_greedy or ids[row] == chain.draw(uniform)


def test_stretches_of_a_vocabulary_larger_than_the_table() -> None:
    """Known where the filters leave no more than the table holds, and not where they do."""
    rng = np.random.default_rng(5)
    scores = rng.normal(size=3000).astype(np.float32)
    for top_k, known in ((200, True), (256, True), (257, False), (0, False)):
        settings = SamplingConfig(top_k=top_k)
        chain = Chain(settings, scores)
        found = stretches(candidates(chain, int(scores.argmax())))
        assert (found is not None) == known
        if found is None:
            continue
        ids, ends = found
        for uniform in rng.random(300):
            assert ids[np.searchsorted(ends, uniform, side="right")] == chain.draw(float(uniform))


@pytest.mark.parametrize("settings", [SETTINGS[1], SETTINGS[2], SETTINGS[7]])
def test_a_recording_tells_the_same(tiny: Model, tmp_path: Path, settings: SamplingConfig) -> None:
    """From the compact candidates it keeps, a token drawn from beyond the best among them."""
    run = Generation(tiny, [5, 83, 92], settings, max_new_tokens=6, ignore_eos=True)
    assert list(run)
    run.trace.save(tmp_path / "run.cutaway")
    trace = Trace.load(tmp_path / "run.cutaway")
    for step, done in enumerate(trace.steps):
        assert isinstance(done.scores, Candidates)
        chosen, previous = trace.settings_at(step), trace.previous_ids(step)
        chain = run.trace.chain(step)
        assert chain is not None
        for index, stage in enumerate(chain.stages):
            shares = probabilities_at(done.scores, index, chosen, previous)
            np.testing.assert_allclose(shares, laid_out(stage)[done.scores.ids], rtol=1e-5, atol=1e-12)
        live = candidates(chain, done.id)
        for one, other in zip(
            stage_shares(done.scores, chosen, previous), stage_shares(live, chosen, previous), strict=True
        ):
            assert (one.name, one.active, one.left, one.removed, one.best) == (
                other.name, other.active, other.left, other.removed, other.best
            )  # fmt: skip
            assert (one.removed_mass, one.best_share) == pytest.approx((other.removed_mass, other.best_share))
        known = stretches(done.scores)
        assert known is not None
        ids, ends = known
        if not chosen.is_greedy:
            assert ids[np.searchsorted(ends, done.uniform, side="right")] == done.id


def test_every_stage_has_its_share() -> None:
    shares = stage_shares(a_table(np.arange(50, dtype=np.float32), SamplingConfig()), SamplingConfig(), PREVIOUS)
    assert tuple(share.name for share in shares) == STAGES
