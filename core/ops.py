"""The arithmetic of a transformer, one small pure function each.

Every function takes and returns float32 arrays whose last axis is the feature axis; leading axes are rows.
They allocate what they return and never write to their arguments, unless the name says so.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]

_GELU_SCALE = np.float32(np.sqrt(2.0 / np.pi))


def layer_norm(x: Floats, weight: Floats, bias: Floats, epsilon: float) -> Floats:
    """Normalise each row to mean 0 and variance 1, then scale and shift (Ba et al. 2016, arXiv:1607.06450).

    The variance is the biased one and *epsilon* stands inside the root.
    """
    width = x.shape[-1]
    centred = x - np.add.reduce(x, axis=-1, keepdims=True) / np.float32(width)  # [n, D]
    variance = np.vecdot(centred, centred) / np.float32(width)  # [n]
    centred /= np.sqrt(variance + np.float32(epsilon))[..., None]
    centred *= weight
    centred += bias
    return centred


def rms_norm(x: Floats, weight: Floats, epsilon: float) -> Floats:
    """Scale each row to a root mean square of 1, then by *weight* (Zhang and Sennrich 2019, arXiv:1910.07467).

    *epsilon* stands inside the root.
    """
    mean_square = np.vecdot(x, x)[..., None] / np.float32(x.shape[-1])  # [n, 1]
    mean_square += np.float32(epsilon)
    scaled: Floats = x / np.sqrt(mean_square, out=mean_square)
    scaled *= weight
    return scaled


def softmax_in_place(scores: Floats) -> Floats:
    """Turn each row of *scores* into probabilities, in place: exp(x − max) over its sum.

    A row needs one finite score; −inf becomes exactly 0.
    """
    scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= np.add.reduce(scores, axis=-1, keepdims=True)
    return scores


def mask_future_in_place(scores: Floats, start: int) -> Floats:
    """Set scores [..., n, T] to −inf where a key comes after its query; query row i stands at *start* + i."""
    queries, keys = scores.shape[-2:]
    if keys > start + 1:
        future = np.arange(start, keys) > np.arange(start, start + queries)[:, None]  # [n, T − start]
        np.copyto(scores[..., start:], np.float32(-np.inf), where=future)
    return scores


def gelu_tanh(x: Floats) -> Floats:
    """GELU in its tanh form, ½x(1 + tanh(u)) with u = √(2/π)(x + 0.044715x³) (Hendrycks and Gimpel, arXiv:1606.08415).

    Computed as x·σ(2u), which is the same: NumPy's exponential is faster than its tanh.
    """
    inner = x * x
    inner *= _GELU_SCALE * np.float32(-2.0 * 0.044715)
    inner -= _GELU_SCALE * np.float32(2.0)
    inner *= x  # −2u
    with np.errstate(over="ignore"):  # far below 0 the exponential is inf, and the quotient 0
        np.exp(inner, out=inner)
    inner += np.float32(1.0)
    np.divide(x, inner, out=inner)
    return inner


def gelu(x: Floats) -> Floats:
    """GELU in its exact form, ½x(1 + erf(x/√2)) (Hendrycks and Gimpel, arXiv:1606.08415)."""
    return np.float32(0.5) * x * (np.float32(1.0) + erf(x / np.float32(np.sqrt(2.0))).astype(np.float32))


def gelu_quick(x: Floats) -> Floats:
    """The sigmoid approximation of GELU, x·σ(1.702x) (Hendrycks and Gimpel, arXiv:1606.08415)."""
    with np.errstate(over="ignore"):  # far below 0 the exponential is inf, and the quotient 0
        return x / (np.float32(1.0) + np.exp(np.float32(-1.702) * x))


def relu(x: Floats) -> Floats:
    """max(x, 0)."""
    positive: Floats = np.maximum(x, np.float32(0.0))
    return positive


def silu(x: Floats) -> Floats:
    """x·σ(x), also called swish (Elfwing et al. 2017, arXiv:1702.03118)."""
    with np.errstate(over="ignore"):  # far below 0 the exponential is inf, and the quotient 0
        return x / (np.float32(1.0) + np.exp(-x))


def erf(x: Floats) -> Floats:
    """The error function in float64, to about 1e-14: NumPy has none.

    A series below 2 and a continued fraction above, both from Abramowitz and Stegun (1964), section 7.1.
    """
    z = np.abs(np.asarray(x, np.float64))
    size = np.where(z < 2.0, _erf_series(np.minimum(z, 2.0)), _erf_tail(np.clip(z, 2.0, 6.0)))
    signed: Floats = np.copysign(size, x)
    return signed


def _erf_series(z: Floats) -> Floats:
    """erf on [0, 2] by its confluent series: all terms positive, so no digits cancel (A&S 7.1.6)."""
    term = z.copy()
    total = z.copy()
    for n in range(1, 40):
        term *= 2.0 * z * z / (2 * n + 1)
        total += term
    series: Floats = 2.0 / np.sqrt(np.pi) * np.exp(-z * z) * total
    return series


def _erf_tail(z: Floats) -> Floats:
    """erf on [2, 6], beyond which it is 1 in float64: 40 levels of erfc's continued fraction (A&S 7.1.14)."""
    fraction = z.copy()
    for n in range(40, 0, -1):
        fraction = z + (n / 2.0) / fraction
    tail: Floats = 1.0 - np.exp(-z * z) / np.sqrt(np.pi) / fraction
    return tail


ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "gelu_tanh": gelu_tanh,
    "gelu": gelu,
    "gelu_quick": gelu_quick,
    "relu": relu,
    "silu": silu,
    "tanh": np.tanh,
}
"""The activation functions a configuration can name, after normalisation."""
