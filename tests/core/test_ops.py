"""The arithmetic, each function against the same formula written in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import ops
from cutaway.core.models.attention import attention_pattern

Floats = NDArray[np.float32]

LINE = np.linspace(-8, 8, 2001, dtype=np.float32)
FAR = np.array([-3e4, -1000, -200, -100, -0.0, 0.0, 100, 200, 1000, 3e4], np.float32)


def random(*shape: int) -> Floats:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_erf_against_the_standard_library() -> None:
    points = np.concatenate([np.linspace(-7, 7, 14_001), np.geomspace(1e-300, 100, 500), [1.9999999, 2.0, 2.0000001]])
    truth = np.array([math.erf(point) for point in points])
    np.testing.assert_allclose(ops.erf(points), truth, rtol=1e-14, atol=0)


@pytest.mark.filterwarnings("error")
def test_erf_of_what_is_no_ordinary_number() -> None:
    found = ops.erf(np.array([np.inf, -np.inf, 0.0, -0.0, np.nan, 1e300]))
    np.testing.assert_array_equal(found, [1, -1, 0, 0, np.nan, 1])
    assert np.signbit(found).tolist()[2:4] == [False, True]


def exact_gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def tanh_gelu(x: float) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


FORMULAS = {
    "gelu": exact_gelu,
    "gelu_tanh": tanh_gelu,
    "gelu_quick": lambda x: x * sigmoid(1.702 * x),
    "relu": lambda x: max(x, 0.0),
    "silu": lambda x: x * sigmoid(x),
    "tanh": math.tanh,
}


def test_every_activation_is_tested() -> None:
    assert FORMULAS.keys() == ops.ACTIVATIONS.keys()


@pytest.mark.parametrize("name", FORMULAS)
def test_activations(name: str) -> None:
    kept = LINE.copy()
    found = ops.ACTIVATIONS[name](LINE)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [FORMULAS[name](float(x)) for x in LINE], rtol=5e-7, atol=5e-7)
    np.testing.assert_array_equal(LINE, kept)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", FORMULAS)
def test_activations_far_from_zero(name: str) -> None:
    """Nothing overflows, and no warning is printed over the screen."""
    np.testing.assert_allclose(
        ops.ACTIVATIONS[name](FAR), [FORMULAS[name](float(x)) for x in FAR], rtol=1e-6, atol=1e-6
    )


def test_the_two_forms_of_gelu_differ() -> None:
    assert 4e-4 < np.abs(ops.gelu(LINE) - ops.gelu_tanh(LINE)).max() < 5e-4


def test_layer_norm_takes_the_biased_variance() -> None:
    one, zero = np.ones(2, np.float32), np.zeros(2, np.float32)
    row = np.array([[1, 3]], np.float32)  # variance 1; the unbiased one is 2
    np.testing.assert_allclose(ops.layer_norm(row, one, zero, 1e-12), [[-1, 1]], rtol=1e-6)


def test_layer_norm_adds_epsilon_inside_the_root() -> None:
    one, zero = np.ones(2, np.float32), np.zeros(2, np.float32)
    row = np.array([[1, 3]], np.float32)
    np.testing.assert_allclose(ops.layer_norm(row, one, zero, 3.0), [[-0.5, 0.5]], rtol=1e-6)
    np.testing.assert_array_equal(ops.layer_norm(np.ones((1, 2), np.float32), one, zero, 1e-5), [[0, 0]])


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3, 1e-12])
def test_layer_norm_against_float64(epsilon: float) -> None:
    x, weight, bias = random(7, 48) * 3 + 5, random(48), random(48)
    kept = x.copy()
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    truth = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * weight + bias
    found = ops.layer_norm(x, weight, bias, epsilon)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, truth, atol=1e-5)
    np.testing.assert_array_equal(x, kept)


@pytest.mark.filterwarnings("error")
def test_softmax() -> None:
    scores = np.array([[0, math.log(3), -np.inf], [1e30, -np.inf, 1e30], [-1e30, 5, 5]], np.float32)
    found = ops.softmax_in_place(scores)
    assert found is scores
    np.testing.assert_allclose(found, [[0.25, 0.75, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]], rtol=1e-6)
    assert (found[[0, 1], [2, 1]] == 0).all()


def test_softmax_rows_sum_to_one() -> None:
    np.testing.assert_allclose(ops.softmax_in_place(random(5, 300) * 20).sum(-1), 1, atol=1e-6)


def test_mask_of_a_whole_text() -> None:
    masked = ops.mask_future_in_place(np.ones((2, 3, 3), np.float32), 0)
    for head in masked:
        np.testing.assert_array_equal(head, [[1, -np.inf, -np.inf], [1, 1, -np.inf], [1, 1, 1]])


def test_mask_after_a_cache() -> None:
    masked = ops.mask_future_in_place(np.ones((1, 2, 5), np.float32), 3)
    np.testing.assert_array_equal(masked[0], [[1, 1, 1, 1, -np.inf], [1, 1, 1, 1, 1]])


def test_mask_of_a_single_query() -> None:
    np.testing.assert_array_equal(ops.mask_future_in_place(np.ones((2, 1, 4), np.float32), 3), np.ones((2, 1, 4)))


def test_mask_of_a_single_query_with_keys_after_it() -> None:
    masked = ops.mask_future_in_place(np.ones((1, 1, 4), np.float32), 1)
    np.testing.assert_array_equal(masked[0], [[1, 1, -np.inf, -np.inf]])


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_neighbouring_query_heads_share_a_key_head(key_heads: int) -> None:
    query, key = random(4, 3, 8), random(key_heads, 5, 8)
    found = attention_pattern(query, key, 0.5, 2)
    assert found.shape == (4, 3, 5)
    for head in range(4):
        for row in range(3):
            seen: NDArray[Any] = key[head * key_heads // 4, : 2 + row + 1].astype(np.float64)
            weights = np.exp(seen @ query[head, row] * 0.5)
            np.testing.assert_allclose(found[head, row, : 3 + row], weights / weights.sum(), rtol=1e-5)
            assert (found[head, row, 3 + row :] == 0).all()
