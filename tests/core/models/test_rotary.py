"""Rotary positions: pairs turn, lengths stay, and a score sees nothing but the distance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cutaway.core.checkpoint.rope import RopeConfig
from cutaway.core.models.rotary import Rotary, frequencies

PLAIN = RopeConfig(theta=10000.0)


def rows(heads: int, count: int, size: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((heads, count, size)).astype(np.float32)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("size", [2, 6, 10, 64])
def test_each_pair_turns_by_its_angle(size: int, interleaved: bool) -> None:
    x, half = rows(3, 5, size), size // 2
    turned = Rotary(replace(PLAIN, interleaved=interleaved), size, 32)(x, 7)
    assert turned.shape == x.shape and turned.dtype == np.float32
    for pair in range(half):
        a, b = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + half)
        angles = np.arange(7, 12) * 10000.0 ** (-2 * pair / size)
        complex_rows = (x[..., a] + 1j * x[..., b]) * np.exp(1j * angles)
        np.testing.assert_allclose(turned[..., a], complex_rows.real, atol=1e-6)
        np.testing.assert_allclose(turned[..., b], complex_rows.imag, atol=1e-6)


def test_position_0_does_not_turn_and_lengths_stay() -> None:
    x = rows(2, 9, 8)
    turned = Rotary(PLAIN, 8, 16)(x, 0)
    np.testing.assert_array_equal(turned[:, 0], x[:, 0])
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-5)


def test_scores_see_only_the_distance() -> None:
    x, rotary = rows(1, 4, 16), Rotary(PLAIN, 16, 2048)
    near, far = (rotary(x, start) for start in (3, 1500))
    np.testing.assert_allclose(near @ near.transpose(0, 2, 1), far @ far.transpose(0, 2, 1), atol=1e-4)


def test_one_position_at_a_time_is_the_same() -> None:
    x, rotary = rows(2, 30, 6), Rotary(PLAIN, 6, 64)
    together = rotary(x, 5)
    alone = [rotary(x[:, i : i + 1], 5 + i) for i in range(30)]
    np.testing.assert_array_equal(np.concatenate(alone, axis=1), together)


def test_the_table_grows_with_the_text_and_changes_nothing_before() -> None:
    x = rows(1, 1, 8)
    one, other = Rotary(PLAIN, 8, 131072), Rotary(PLAIN, 8, 131072)
    early = one(x, 500).copy()
    for start in (511, 512, 600, 5000, 131071):
        np.testing.assert_array_equal(one(x, start), other(x, start))
    np.testing.assert_array_equal(one(x, 500), early)
    angle = np.float64(131071)  # the fastest pair turns by one radian a position
    np.testing.assert_allclose(
        one(x, 131071)[0, 0, 0], x[0, 0, 0] * np.cos(angle) - x[0, 0, 4] * np.sin(angle), atol=1e-6
    )


def test_the_argument_is_left_alone() -> None:
    x = rows(2, 3, 8)
    x.flags.writeable = False
    Rotary(PLAIN, 8, 16)(x, 2)


# Scalings; that they are what transformers computes is tested with the reference models


def test_linear_slows_every_pair() -> None:
    scaled = frequencies(replace(PLAIN, scaling="linear", factor=4.0), 8)
    np.testing.assert_allclose(scaled, frequencies(PLAIN, 8) / 4, rtol=1e-15)


@pytest.mark.parametrize("scaling", ["llama3", "yarn"])
def test_slow_pairs_are_slowed_down_and_fast_ones_left_alone(scaling: str) -> None:
    config = replace(PLAIN, scaling=scaling, factor=8.0, original_positions=8192)
    ratio = frequencies(config, 128) / frequencies(PLAIN, 128)
    assert ratio[0] == 1 and ratio[-1] == pytest.approx(1 / 8)
    assert (np.diff(ratio) <= 1e-15).all() and ((1 / 8 < ratio) & (ratio < 1)).sum() > 5


def test_attention_factor_stretches_what_is_turned() -> None:
    x = rows(2, 3, 8)
    stretched = Rotary(replace(PLAIN, attention_factor=1.25), 8, 16)(x, 4)
    np.testing.assert_allclose(stretched, 1.25 * Rotary(PLAIN, 8, 16)(x, 4), rtol=1e-5, atol=1e-6)
