"""Seven stages from scores to a distribution, and the draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import CutawayError, SamplingConfig
from cutaway.core.sampling import STAGES, Chain, SamplingError, drawn, log_sum_exp, penalise, softmax, top_k

ALMOST_ONE = float(np.nextafter(1, 0))
ALL = SamplingConfig(temperature=0.7, top_k=20, top_p=0.9, min_p=0.05, repetition_penalty=1.3, seed=1)


def random(size: int, seed: int = 5) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal(size) * 3).astype(np.float32)


def final(config: SamplingConfig, logits: Sequence[float], previous: Sequence[int] = ()) -> list[float]:
    distribution: list[float] = config.distribution(logits, previous).tolist()
    return distribution


def test_names_and_order() -> None:
    assert STAGES == ("raw", "repetition_penalty", "temperature", "top_k", "top_p", "min_p", "final")
    for config in (SamplingConfig(), ALL, SamplingConfig(greedy=True)):
        assert tuple(stage.name for stage in config.stages(random(30), [1])) == STAGES


@pytest.mark.parametrize(
    ("config", "active"),
    [
        (SamplingConfig(), set()),
        (ALL, set(STAGES[1:6])),
        (SamplingConfig(temperature=0.5), {"temperature"}),
        (SamplingConfig(top_k=5), {"top_k"}),
        (SamplingConfig(top_p=0.5), {"top_p"}),
        (SamplingConfig(top_p=0.0), {"top_p"}),
        (SamplingConfig(min_p=0.1), {"min_p"}),
        (SamplingConfig(repetition_penalty=0.9), {"repetition_penalty"}),
        (SamplingConfig(greedy=True, temperature=0.5, top_k=5, top_p=0.5, min_p=0.1), set()),
        (SamplingConfig(temperature=0, repetition_penalty=2.0, top_k=3), {"repetition_penalty"}),
    ],
)
def test_active_stages(config: SamplingConfig, active: set[str]) -> None:
    stages = config.stages(random(30), [1, 2])
    assert {stage.name for stage in stages if stage.active} == active | {"raw", "final"}
    before = stages[0]
    for stage in stages[1:-1]:
        if not stage.active:
            np.testing.assert_array_equal(stage.values, before.values)
            np.testing.assert_array_equal(stage.kept, before.kept)
        before = stage


def test_raw_values_are_the_scores_given() -> None:
    logits = random(50)
    np.testing.assert_array_equal(ALL.stages(logits, [1])[0].values, logits.astype(np.float64))


@pytest.mark.parametrize("config", [SamplingConfig(), ALL, SamplingConfig(greedy=True)])
def test_arrays_are_read_only(config: SamplingConfig) -> None:
    arrays: list[NDArray[Any]] = [config.distribution(random(30), [1])]
    for stage in config.stages(random(30), [1]):
        arrays += [stage.values, stage.kept, stage.kept_values]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_the_scores_given_stay_the_callers_own(kind: Any) -> None:
    class Other(np.ndarray[Any, Any]):
        pass

    for logits in (random(30).astype(kind), random(30).astype(kind).view(Other)):
        stages = ALL.stages(logits, [1])
        assert logits.flags.writeable
        assert not any(np.shares_memory(stage.kept_values, logits) for stage in stages)


def test_penalty_counts_each_token_once() -> None:
    scores = np.array([2.0, -2.0, 0.0, 2.0])
    once = SamplingConfig(repetition_penalty=2.0).stages(scores, [0, 1, 2])[1].values
    np.testing.assert_array_equal(once, [1.0, -4.0, 0.0, 2.0])
    often = SamplingConfig(repetition_penalty=2.0).stages(scores, [0, 1, 2] * 5)[1].values
    np.testing.assert_array_equal(often, once)
    np.testing.assert_array_equal(scores, [2.0, -2.0, 0.0, 2.0])


def test_a_penalty_that_is_off_asks_for_no_ids() -> None:
    assert SamplingConfig().stages([1.0, 2.0], [99])[1].active is False


@pytest.mark.parametrize("outside", [-1, 2, 10**6])
def test_penalised_ids_outside_the_vocabulary(outside: int) -> None:
    with pytest.raises(SamplingError, match=f"token {outside} is not in a vocabulary of 2"):
        SamplingConfig(repetition_penalty=1.1).distribution([1.0, 2.0], [0, outside])


def test_top_k_keeps_ties_with_the_last() -> None:
    def kept(k: int) -> list[int]:
        return np.flatnonzero(SamplingConfig(top_k=k).distribution([1.0, 3.0, 2.0, 2.0, 3.0, 2.0])).tolist()

    assert kept(1) == kept(2) == [1, 4]
    assert kept(3) == kept(4) == kept(5) == [1, 2, 3, 4, 5]
    assert kept(6) == kept(7) == kept(0) == [0, 1, 2, 3, 4, 5]


def test_top_p_keeps_the_token_that_crosses() -> None:
    logits = np.log([0.5, 0.3, 0.2])

    def kept(p: float) -> int:
        return int(np.count_nonzero(SamplingConfig(top_p=p).distribution(logits)))

    assert [kept(p) for p in (0, 1e-300, 0.4, 0.6, 0.79, 0.81, 0.999, ALMOST_ONE, 1)] == [1, 1, 1, 2, 2, 3, 3, 3, 3]


def test_top_p_takes_the_lowest_of_equal_tokens() -> None:
    np.testing.assert_array_equal(SamplingConfig(top_p=0.5).distribution([0.0] * 4), [0.5, 0.5, 0, 0])


def test_top_p_sees_what_top_k_left() -> None:
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    assert np.count_nonzero(SamplingConfig(top_p=0.55).distribution(logits)) == 2
    assert np.count_nonzero(SamplingConfig(top_k=2, top_p=0.55).distribution(logits)) == 1


def test_min_p_is_relative_to_the_best() -> None:
    logits = np.log([0.5, 0.26, 0.24])
    assert final(SamplingConfig(min_p=0.5), logits.tolist())[2] == 0
    assert np.count_nonzero(SamplingConfig(min_p=0.47).distribution(logits)) == 3
    np.testing.assert_array_equal(SamplingConfig(min_p=1.0).distribution([1.0, 1.0, 0.9]), [0.5, 0.5, 0])


def test_greedy_takes_the_lowest_id_on_a_tie() -> None:
    for config in (SamplingConfig(greedy=True), SamplingConfig(temperature=0), SamplingConfig(greedy=True, top_k=2)):
        assert final(config, [1.0, 3.0, 3.0]) == [0, 1, 0]


def test_greedy_is_penalised_first() -> None:
    assert final(SamplingConfig(greedy=True, repetition_penalty=2.0), [3.0, 2.0], [0]) == [0, 1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("temperature", [1e-4, 1e-30, 1e-300, 1e-307, 1e-308, 5e-324])
@pytest.mark.parametrize(
    "logits", [[1.0, 5.0, 4.999], [-5.0, -1.0, -1.001], [15.0, 20.0, -20.0], [-3e38, 3e38, -np.inf]]
)
def test_a_tiny_temperature(temperature: float, logits: list[float]) -> None:
    """Nothing overflows, and no warning is printed over the screen."""
    expected = np.eye(3)[int(np.argmax(logits))]
    np.testing.assert_allclose(SamplingConfig(temperature=temperature).distribution(logits), expected, atol=1e-4)


def test_a_tiny_temperature_keeps_ties() -> None:
    assert final(SamplingConfig(temperature=1e-308), [-2.0, -1.0, -1.0]) == [0, 0.5, 0.5]


def test_a_huge_temperature() -> None:
    np.testing.assert_allclose(SamplingConfig(temperature=1e300).distribution([1.0, 9.0]), [0.5, 0.5])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("penalty", "logits"), [(1e-308, [5.0, -1.0]), (1e308, [-5.0, -6.0])])
def test_a_penalty_beyond_all_numbers(penalty: float, logits: list[float]) -> None:
    for settings in ({}, {"greedy": True}):
        with pytest.raises(SamplingError, match="repetition penalty"):
            SamplingConfig(repetition_penalty=penalty, **settings).distribution(logits, [0, 1])


def test_softmax_and_its_logarithm() -> None:
    scores = np.array([1000.0, 1000.0 + math.log(3)])
    np.testing.assert_allclose(softmax(scores), [0.25, 0.75])
    assert log_sum_exp(scores) == pytest.approx(1000 + math.log(4), abs=1e-12)


def test_penalise_leaves_its_argument() -> None:
    scores = np.array([1.0, 2.0])
    penalise(scores, np.array([0]), 2.0)
    np.testing.assert_array_equal(scores, [1.0, 2.0])


# The draw


def test_the_draw_takes_the_first_id_beyond_the_random_number() -> None:
    chain = Chain(SamplingConfig(), [0.0] * 4)  # a quarter each, exactly
    edges = {0.0: 0, 0.25: 1, 0.5: 2, 0.75: 3, ALMOST_ONE: 3, float(np.nextafter(0.25, 0)): 0}
    assert {uniform: chain.draw(uniform) for uniform in edges} == edges


def test_the_draw_never_takes_a_token_of_no_probability() -> None:
    chain = Chain(SamplingConfig(), [-np.inf, 0.0, -np.inf, 0.0, -np.inf])
    assert [chain.draw(uniform) for uniform in (0.0, 0.49, 0.5, ALMOST_ONE)] == [1, 1, 3, 3]


def test_the_draw_when_rounding_leaves_the_sum_below_one() -> None:
    logits = [0.0] * 10 + [-np.inf, -2000.0]
    distribution = SamplingConfig().distribution(logits)
    assert np.cumsum(distribution)[-1] <= ALMOST_ONE  # ten times a tenth
    assert Chain(SamplingConfig(), logits).draw(ALMOST_ONE) == 9


def test_the_draw_skips_removed_tokens() -> None:
    chain = Chain(SamplingConfig(top_k=2), [0.0, 5.0, 1.0, 5.0])
    assert [chain.draw(uniform) for uniform in (0.0, 0.499, 0.5, ALMOST_ONE)] == [1, 1, 3, 3]
    assert [chain.probability(id) for id in range(4)] == [0, 0.5, 0, 0.5]


def test_probabilities_of_single_tokens() -> None:
    logits = random(100)
    chain = Chain(ALL, logits, [4])
    np.testing.assert_array_equal([chain.probability(id) for id in range(100)], chain.stages[-1].values)
    np.testing.assert_allclose([chain.raw_logprob(id) for id in range(100)], np.log(softmax(logits.astype(float))))


# What makes no sense


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -0.1}, "temperature is -0.1; it must be 0 or more"),
        ({"temperature": math.inf}, "temperature is inf; it must be 0 or more"),
        ({"temperature": math.nan}, "temperature is nan; it must be 0 or more"),
        ({"top_k": -1}, r"top_k is -1; it must be 0 \(off\) or more"),
        ({"top_p": 1.01}, r"top_p is 1.01; it must be from 0 to 1 \(off\)"),
        ({"top_p": -0.01}, "top_p is -0.01"),
        ({"top_p": math.nan}, "top_p is nan"),
        ({"min_p": 1.01}, r"min_p is 1.01; it must be from 0 \(off\) to 1"),
        ({"min_p": -0.5}, "min_p is -0.5"),
        ({"repetition_penalty": 0}, r"repetition_penalty is 0.0; it must be more than 0 \(1 is off\)"),
        ({"repetition_penalty": math.inf}, "repetition_penalty is inf"),
        ({"seed": -1}, "seed is -1; it must be from 0 to"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SamplingError, match=message) as caught:
        SamplingConfig(**settings)
    assert isinstance(caught.value, CutawayError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([1.0, np.nan], "NaN"),
        ([np.nan, np.inf], "NaN"),
        ([1.0, np.inf], r"\+inf"),
        ([-np.inf, -np.inf], "every score is −inf"),
        ([], "no scores"),
        ([[1.0, 2.0]], "no scores"),
    ],
)
@pytest.mark.parametrize("greedy", [False, True])
def test_scores_that_cannot_be_sampled_from(logits: Any, message: str, greedy: bool) -> None:
    with pytest.raises(SamplingError, match=message):
        SamplingConfig(greedy=greedy).distribution(logits)
    with pytest.raises(SamplingError, match=r"\(generated token 7\)"):
        Chain(SamplingConfig(greedy=greedy), logits, where="generated token 7")


def test_the_librarys_defaults_change_nothing() -> None:
    assert SamplingConfig() == SamplingConfig(1.0, 0, 1.0, 0.0, 1.0, False, None)
    logits = random(64)
    np.testing.assert_array_equal(SamplingConfig().distribution(logits, [1]), softmax(logits.astype(np.float64)))


@pytest.mark.parametrize("size", [1, 63, 64, 65, 64 * 9 + 17, 1100, 5000])
def test_top_k_of_large_vocabularies(size: int) -> None:
    """Ties and infinities included, and the best among the last ids, which fill no group."""
    chance = np.random.default_rng(size)
    for spread in (3, 1000):
        scores = chance.integers(-spread, spread, size).astype(np.float64)
        scores[chance.integers(0, size, size // 5)] = -np.inf
        scores[-1] = spread + 1
        for k in {1, min(size, 2), min(size, 40), size // 2 or 1, size}:
            threshold = np.sort(scores)[-k]
            assert top_k(scores, k).tolist() == np.flatnonzero(scores >= threshold).tolist()


@pytest.mark.parametrize("size", [1, 2, 511, 512, 513, 1100, 5000])
def test_the_draw_from_large_vocabularies(size: int) -> None:
    """With probabilities that add up without rounding, in whatever order."""
    chance = np.random.default_rng(size)
    counts = chance.multinomial(2**20, chance.dirichlet(np.full(size, 0.3)))
    probabilities = counts / 2**20
    reached = np.cumsum(probabilities)
    for uniform in [0.0, 1 - 2**-20, *chance.random(200), *reached[reached < 1][:: max(size // 50, 1)].tolist()]:
        assert drawn(probabilities, uniform) == int(np.searchsorted(reached, uniform, side="right"))
    assert drawn(probabilities * 0.999, 0.9999) == int(np.flatnonzero(counts)[-1])  # the sum is a hair under it
