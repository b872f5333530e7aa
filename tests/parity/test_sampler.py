"""Sampling against the distributions that another implementation made, in both orders of the first stages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cutaway.core import SamplingConfig
from cutaway.core.sampling import Chain, SamplingError, penalise, temper

Case = dict[str, Any]

ORDERS = ("hf", "tutorial")


def settings(case: Case) -> SamplingConfig:
    return SamplingConfig(
        temperature=float(case["temperature"]),
        top_k=case["top_k"],
        top_p=case["top_p"],
        min_p=case["min_p"],
        repetition_penalty=case["penalty"],
    )


def scores(case: Case) -> list[float]:
    return [float(score) for score in case["logits"]]


def test_distributions(sampler_cases: Case) -> None:
    for case in sampler_cases["cases"]:
        found = settings(case).distribution(scores(case), case["prev"])
        assert found.dtype == np.float64
        assert found.sum() == pytest.approx(1, abs=1e-12), case["name"]
        for order in ORDERS:
            expected = np.array(case["probs_f64"][order])
            if case["compare_as_multiset"]:
                found, expected = np.sort(found), np.sort(expected)
            np.testing.assert_allclose(found, expected, rtol=0, atol=case["probs_atol"], err_msg=case["name"])
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=case["name"])


def test_kept_tokens(sampler_cases: Case) -> None:
    for case in sampler_cases["cases"]:
        kept = np.flatnonzero(settings(case).stages(scores(case), case["prev"])[-1].kept).tolist()
        for order in ORDERS:
            if case["compare_as_multiset"]:
                assert len(kept) == len(case["kept"][order]), case["name"]
            else:
                assert kept == case["kept"][order], case["name"]


def test_penalty_and_temperature_may_be_swapped(sampler_cases: Case) -> None:
    for case in sampler_cases["cases"]:
        raw, previous = np.array(scores(case)), np.unique(np.array(case["prev"], np.int64))
        one = temper(penalise(raw, previous, case["penalty"]), case["temperature"])
        other = penalise(temper(raw, case["temperature"]), previous, case["penalty"])
        np.testing.assert_allclose(one, other, rtol=1e-15, err_msg=case["name"])


def test_what_makes_no_sense_is_refused(sampler_cases: Case) -> None:
    refused = [case for case in sampler_cases["invalid_or_special"] if case["expect"].startswith("error")]
    assert len(refused) == 13
    for case in refused:
        with pytest.raises(SamplingError) as caught:
            settings(case).distribution(scores(case), case["prev"])
        assert "\n" not in str(caught.value)


def test_temperature_zero_is_greedy(sampler_cases: Case) -> None:
    greedy = [case for case in sampler_cases["invalid_or_special"] if case["expect"] == "greedy"]
    assert len(greedy) == 2
    for case in greedy:
        chain = Chain(settings(case), scores(case), case["prev"])
        one_hot = np.eye(len(case["logits"]))[case["greedy_id"]]
        np.testing.assert_array_equal(chain.stages[-1].values, one_hot)
        assert {chain.draw(uniform) for uniform in (0.0, 0.5, np.nextafter(1, 0))} == {case["greedy_id"]}
