"""llama3 scaling out of the tensor that GGUF files have in its place.

Conversion writes what each pair's frequency is divided by, and drops the four numbers it follows from (Llama team
2024, arXiv:2407.21783). They are found again, and refused unless they give the same factors.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...catalogue import tr
from ...errors import ModelError

FREQUENCIES = "rope_freqs.weight"
_LOW, _HIGH = 1.0, 4.0
"""Turns in the original context: pairs of fewer are slowed down in full, of more not at all. All Llamas agree."""
_CLOSE = 1e-4


def llama3_scaling(
    factors: NDArray[np.float64], theta: float, head_size: int, *, where: str
) -> dict[str, object] | None:
    """Return the ``rope_scaling`` of a config.json that divides frequencies by *factors* [d/2]; None if it is none.

    Raises:
        ModelError: they are of another shape or follow another rule.
    """
    if factors.shape == (head_size // 2,) and np.isfinite(factors).all() and factors.min() >= 1:
        if factors.max() == 1:
            return None
        wavelengths = 2 * math.pi * theta ** (np.arange(0, head_size, 2) / head_size)  # [d/2]
        factor = float(factors.max())
        original = _original_positions(factors, wavelengths, factor)
        if np.allclose(_factors(wavelengths, factor, original), factors, rtol=_CLOSE):
            return {
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": _LOW,
                "high_freq_factor": _HIGH,
                "original_max_position_embeddings": original,
            }
    what = tr("the factors in {name} follow no rule that is supported", name=FREQUENCIES)
    raise ModelError(what, where=where)


def _factors(wavelengths: NDArray[np.float64], factor: float, original: int) -> NDArray[np.float64]:
    """Return what llama3 divides frequencies by, as conversion computes it."""
    smooth = np.clip((original / wavelengths - _LOW) / (_HIGH - _LOW), 0, 1)
    divisors: NDArray[np.float64] = 1 / ((1 - smooth) / factor + smooth)
    return divisors


def _original_positions(factors: NDArray[np.float64], wavelengths: NDArray[np.float64], factor: float) -> int:
    """Return the context before it was stretched, which a pair that is slowed down in part gives away.

    Where there is none, every context between the pairs on both sides does the same; a power of two is likely.
    """
    between = (factors > 1) & (factors < factor)
    if between.any():
        smooth = (1 / factors[between] - 1 / factor) / (1 - 1 / factor)
        return max(round(float(np.median(wavelengths[between] * (smooth * (_HIGH - _LOW) + _LOW)))), 1)
    unscaled = wavelengths[factors == 1].max(initial=0.25) * _HIGH
    return 2 ** math.ceil(math.log2(unscaled)) if unscaled > 1 else 1
