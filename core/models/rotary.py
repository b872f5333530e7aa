"""Rotary position encoding: queries and keys turn with their position, so that scores see only the distance.

Su et al. 2021, "RoFormer" (arXiv:2104.09864). Scalings: linear (Chen et al. 2023, arXiv:2306.15595), llama3
(Llama team 2024, arXiv:2407.21783) and YaRN (Peng et al. 2023, arXiv:2309.00071), as Hugging Face transformers
computes them.

Shapes: H heads, n positions in this step, d head size.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..checkpoint.rope import RopeConfig

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_FIRST_TABLE = 512
"""Positions whose angles are computed at once: few enough to be free, and a whole context in small models."""


class Rotary:
    """The rotation of one model, shared by its layers; the angles of a position are computed once."""

    def __init__(self, config: RopeConfig, head_size: int, positions: int) -> None:
        self.frequencies = frequencies(config, head_size)
        self._factor = config.attention_factor
        self._positions = positions
        half = head_size // 2
        self._pairs = (half, 2) if config.interleaved else (2, half)
        """How a row is seen as pairs."""
        self._axis = -1 if config.interleaved else -2
        """The axis along which a pair lies."""
        self._swapped = (
            (..., slice(None, None, -1)) if config.interleaved else (..., slice(None, None, -1), slice(None))
        )
        """Where in the pairs (a, b) the pairs (b, a) are."""
        self._tables = self._computed(min(positions, _FIRST_TABLE))

    def __call__(self, x: Floats, start: int) -> Floats:  # [H, n, d] -> [H, n, d]
        """Turn rows that stand at the positions from *start* on: (a, b) becomes (a·cos − b·sin, b·cos + a·sin)."""
        stop = start + x.shape[1]
        tables = self._tables
        if stop > len(tables[0]):  # branches run side by side: whoever needs more puts a whole new table in place
            tables = self._tables = self._computed(max(min(2 * len(tables[0]), self._positions), stop))
        pairs = x.reshape(*x.shape[:2], *self._pairs)
        turned = pairs * tables[0][start:stop]
        turned += pairs[self._swapped] * tables[1][start:stop]
        return turned.reshape(x.shape)

    def _computed(self, count: int) -> tuple[Floats, Floats]:
        """Cosines, and sines with the sign they are added with, for *count* positions, each as pairs are seen."""
        angles = np.arange(count)[:, None] * self.frequencies  # [count, d/2]
        cos, sin = np.cos(angles) * self._factor, np.sin(angles) * self._factor
        both = (np.stack(pair, self._axis) for pair in ((cos, cos), (-sin, sin)))
        cosines, sines = (table.astype(np.float32) for table in both)
        return cosines, sines


def frequencies(config: RopeConfig, head_size: int) -> Doubles:
    """Radians from one position to the next [d/2], for each pair, scaled as *config* says."""
    plain = config.theta ** -(np.arange(0, head_size, 2) / head_size)
    match config.scaling:
        case "linear":
            return plain / config.factor
        case "llama3":
            return plain * _llama3(config, plain)
        case "yarn":
            return plain * _yarn(config, head_size)
    return plain


def _llama3(config: RopeConfig, plain: Doubles) -> Doubles:
    """What each pair's frequency is multiplied with, by how often it turns in the original context."""
    turns = config.original_positions * plain / (2 * math.pi)
    low, high = config.low_frequency_factor, config.high_frequency_factor
    unscaled = np.clip((turns - low) / (high - low), 0, 1)  # 0: slow pairs, in full; 1: fast ones, not at all
    scale: Doubles = unscaled + (1 - unscaled) / config.factor
    return scale


def _yarn(config: RopeConfig, head_size: int) -> Doubles:
    """What each pair's frequency is multiplied with, by its place between the fast pairs and the slow ones."""

    def pair_that_turns(times: float) -> float:
        """The (fractional) pair that turns so often in the original context."""
        turn = config.original_positions / (times * 2 * math.pi)
        return head_size * math.log(turn) / (2 * math.log(config.theta))

    first, last = pair_that_turns(config.beta_fast), pair_that_turns(config.beta_slow)
    if config.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_size - 1)
    slow = np.clip((np.arange(head_size // 2) - first) / (last - first or 0.001), 0, 1)
    scale: Doubles = (1 - slow) + slow / config.factor
    return scale
