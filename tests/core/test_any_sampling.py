"""Whatever the scores and the settings: what each sampling stage leaves, and what is drawn from the last."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cutaway.core import SamplingConfig
from cutaway.core.sampling import STAGES, Chain, SamplingError, Stage
from tests.core.strategies import sampling_settings, scores

Scores = NDArray[np.float64]

pytestmark = pytest.mark.filterwarnings("error")


class Draw(NamedTuple):
    """A draw to be made."""

    scores: Scores
    settings: SamplingConfig
    previous: list[int]

    def stages(self) -> dict[str, Stage]:
        return {stage.name: stage for stage in self.settings.stages(self.scores, self.previous)}


@st.composite
def draws(draw: st.DrawFn) -> Draw:
    values = draw(scores())
    return Draw(values, draw(sampling_settings()), draw(st.lists(st.integers(0, len(values) - 1), max_size=5)))


def a_draw(values: list[float], previous: tuple[int, ...] = (), **settings: float) -> Draw:
    return Draw(np.array(values), SamplingConfig(**settings), list(previous))  # type: ignore[arg-type]


def shares(values: Scores) -> Scores:
    """The softmax, where differences may be larger than any number."""
    with np.errstate(over="ignore"):
        weights: Scores = np.exp(values - values.max())
    normalised: Scores = weights / weights.sum()
    return normalised


@given(draws())
def test_every_stage_leaves_something_and_brings_nothing_back(drawn: Draw) -> None:
    stages = drawn.settings.stages(drawn.scores, drawn.previous)
    assert tuple(stage.name for stage in stages) == STAGES
    for stage in stages:
        assert stage.values.shape == stage.kept.shape == drawn.scores.shape
        assert stage.values.dtype == np.float64 and stage.kept.dtype == np.bool_
        assert stage.count == np.count_nonzero(stage.kept) > 0
        nothing = 0.0 if stage.name == "final" else -np.inf
        np.testing.assert_array_equal(stage.kept, stage.values > nothing)
    for before, after in pairwise(stages):
        assert not (after.kept & ~before.kept).any()
        if not after.active:
            np.testing.assert_array_equal(after.values, before.values)
        elif after.name in ("top_k", "top_p", "min_p"):
            np.testing.assert_array_equal(after.values[after.kept], before.values[after.kept])


@given(draws())
def test_the_distribution_sums_to_one_over_what_is_left(drawn: Draw) -> None:
    distribution = drawn.settings.distribution(drawn.scores, drawn.previous)
    stages = drawn.stages()
    assert distribution.dtype == np.float64 and distribution.sum() == pytest.approx(1, abs=1e-12)
    assert (distribution >= 0).all() and not distribution[~stages["min_p"].kept].any()
    if not drawn.settings.is_greedy:
        np.testing.assert_allclose(distribution, shares(stages["min_p"].values), rtol=1e-9, atol=0)


@given(draws())
def test_the_raw_stage_is_the_scores_and_the_penalty_counts_each_token_once(drawn: Draw) -> None:
    stages, penalty = drawn.stages(), drawn.settings.repetition_penalty
    np.testing.assert_array_equal(stages["raw"].values, drawn.scores)
    expected = drawn.scores.copy()
    with np.errstate(over="ignore"):
        for id in set(drawn.previous):
            expected[id] = expected[id] / penalty if expected[id] > 0 else expected[id] * penalty
    np.testing.assert_array_equal(stages["repetition_penalty"].values, expected)


@given(draws())
@example(a_draw([-2.0, -1.0, -1.0], temperature=1e-308))
def test_temperature_divides_what_the_penalty_left(drawn: Draw) -> None:
    """Up to one number that is added to all scores: it changes nothing, and lets none be beyond all numbers."""
    stages, temperature = drawn.stages(), drawn.settings.temperature
    if drawn.settings.is_greedy:
        return
    before, after = stages["repetition_penalty"].values, stages["temperature"].values
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(shares(after), shares((before - before.max()) / temperature), atol=1e-9)
    np.testing.assert_array_equal(after == after.max(), before == before.max())


@given(draws())
def test_top_k_keeps_the_best_and_all_ties_with_the_last(drawn: Draw) -> None:
    stages, k = drawn.stages(), drawn.settings.top_k
    if not stages["top_k"].active:
        return
    values = stages["temperature"].values
    ranked = sorted(values, reverse=True)
    expected = (values >= ranked[min(k, len(ranked)) - 1]) & (values > -np.inf)
    np.testing.assert_array_equal(stages["top_k"].kept, expected)


@given(draws())
@example(a_draw([0.0, 0.0, 0.0, 0.0], top_p=0.5))
@example(a_draw([0.0, 1.0], top_p=1 - 2**-53))
def test_top_p_keeps_the_fewest_that_reach_it(drawn: Draw) -> None:
    stages, p = drawn.stages(), drawn.settings.top_p
    if not stages["top_p"].active:
        return
    probabilities, kept = shares(stages["top_k"].values), stages["top_p"].kept
    order = sorted(range(len(probabilities)), key=lambda id: (-probabilities[id], id))
    m = np.count_nonzero(kept)
    assert sorted(order[:m]) == np.flatnonzero(kept).tolist()
    assert probabilities[order[:m]].sum() >= p - 1e-12
    assert m == 1 or probabilities[order[: m - 1]].sum() < p + 1e-12


@given(draws())
@example(a_draw([1.0, 1.0, 0.9], min_p=1.0))
def test_min_p_is_relative_to_the_best(drawn: Draw) -> None:
    stages, p = drawn.stages(), drawn.settings.min_p
    if not stages["min_p"].active:
        return
    values = stages["top_p"].values
    with np.errstate(over="ignore"):
        relative, kept = np.exp(values - values.max()), stages["min_p"].kept
    assert (relative[kept] >= p * (1 - 1e-9)).all() and (relative[~kept] <= p * (1 + 1e-9)).all()
    assert kept[values == values.max()].all()


@given(draws())
def test_greedy_takes_the_best_and_the_lowest_id_on_a_tie(drawn: Draw) -> None:
    for settings in (
        SamplingConfig(greedy=True, top_k=drawn.settings.top_k, repetition_penalty=drawn.settings.repetition_penalty),
        SamplingConfig(temperature=0, min_p=drawn.settings.min_p),
    ):
        stages = settings.stages(drawn.scores, drawn.previous)
        best = int(np.argmax(stages[1].values))
        assert np.flatnonzero(stages[-1].values).tolist() == [best] and stages[-1].values[best] == 1
        assert Chain(settings, drawn.scores, drawn.previous).draw(0.999) == best


@given(draws(), st.floats(0, 1, exclude_max=True))
@example(a_draw([0.0] * 4), 0.25)
@example(a_draw([0.0] * 10 + [-np.inf, -2000.0]), float(np.nextafter(1, 0)))
def test_the_draw_is_the_first_id_whose_cumulative_probability_exceeds_the_random_number(
    drawn: Draw, uniform: float
) -> None:
    chain = Chain(drawn.settings, drawn.scores, drawn.previous)
    distribution = drawn.settings.distribution(drawn.scores, drawn.previous)
    beyond = np.flatnonzero(np.cumsum(distribution) > uniform)
    id = chain.draw(uniform)
    assert id == (beyond[0] if len(beyond) else np.flatnonzero(distribution)[-1])  # rounding may leave less than 1
    assert distribution[id] > 0
    assert [chain.probability(each) for each in range(len(distribution))] == distribution.tolist()
    best = drawn.scores.max()
    expected = drawn.scores[id] - best - np.log(np.exp(drawn.scores - best).sum())
    assert chain.raw_logprob(id) == pytest.approx(expected, rel=1e-9, abs=1e-14 * max(1, abs(best)))


@given(scores(), st.floats(5e-324, 1e308), st.floats(5e-324, 1e308), st.booleans())
@example(np.array([5.0, -1.0]), 1e-308, 1.0, False)
def test_settings_beyond_all_measure_are_obeyed_or_refused(
    values: Scores, penalty: float, temperature: float, greedy: bool
) -> None:
    settings = SamplingConfig(repetition_penalty=penalty, temperature=temperature, greedy=greedy)
    try:
        distribution = settings.distribution(values, range(len(values)))
    except SamplingError as error:
        assert "repetition penalty" in str(error)
        return
    assert distribution.sum() == pytest.approx(1, abs=1e-12)


@given(
    st.lists(st.floats() | st.sampled_from((np.inf, -np.inf, np.nan, 0.0)), max_size=9),
    sampling_settings(),
    st.lists(st.integers(-2, 10) | st.sampled_from((-(2**63), 2**62)), max_size=4),
)
def test_anything_else_is_refused_in_a_line(values: list[float], settings: SamplingConfig, previous: list[int]) -> None:
    try:
        distribution = settings.distribution(values, previous)
    except SamplingError as error:
        assert str(error).isprintable()
        return
    assert np.isfinite(max(values)) and distribution.sum() == pytest.approx(1, abs=1e-12)
