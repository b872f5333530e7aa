"""What decoders are made of, one small part each: matrices, norms, embedding, MLPs.

Shapes: n positions in this step, D width, F MLP width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .. import ops

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Linear:
    """x·W + b. The weight is [in, out] in whatever order the file keeps it: products read either as fast."""

    weight: Floats
    bias: Floats | None

    def __call__(self, x: Floats) -> Floats:  # [n, in] -> [n, out]
        y: Floats = x @ self.weight
        if self.bias is not None:
            y += self.bias
        return y


class Norm(Protocol):
    """A norm over the last axis, and what it does to parts of a sum."""

    def __call__(self, x: Floats, /) -> Floats: ...  # [n, D] -> [n, D]

    def pull_back(self, x: Floats, readout: Floats) -> Floats:  # [n, D], [n, D] -> [n, D]
        """What to multiply parts of *x* with to see what each adds to norm(x)·readout, the scale held at that of x.

        Whatever the parts, their products sum to all of it but `offset`.
        """
        ...

    def offset(self, readout: Floats) -> Floats:  # [n, D] -> [n]
        """What the norm adds to norm(x)·readout whatever x is."""
        ...


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """`ops.layer_norm` with its weights."""

    weight: Floats
    bias: Floats
    epsilon: float

    def __call__(self, x: Floats, /) -> Floats:
        return ops.layer_norm(x, self.weight, self.bias, self.epsilon)

    def pull_back(self, x: Floats, readout: Floats) -> Floats:
        """See `Norm.pull_back`: readout·weight without its mean, over the standard deviation of x."""
        scale = np.sqrt(x.var(axis=-1, keepdims=True) + np.float32(self.epsilon))  # [n, 1]
        weighted = readout * self.weight
        direction: Floats = (weighted - weighted.mean(axis=-1, keepdims=True)) / scale
        return direction

    def offset(self, readout: Floats) -> Floats:
        """bias·readout."""
        added: Floats = np.vecdot(readout, self.bias)
        return added


@dataclass(frozen=True, slots=True)
class RmsNorm:
    """`ops.rms_norm` with its weight."""

    weight: Floats
    epsilon: float

    def __call__(self, x: Floats, /) -> Floats:
        return ops.rms_norm(x, self.weight, self.epsilon)

    def pull_back(self, x: Floats, readout: Floats) -> Floats:
        """See `Norm.pull_back`: readout·weight over the root mean square of x."""
        scale = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))  # [n, 1]
        direction: Floats = readout * self.weight / scale
        return direction

    def offset(self, readout: Floats) -> Floats:
        """Nothing: there is no bias."""
        return np.zeros(readout.shape[:-1], np.float32)


@dataclass(frozen=True, eq=False)
class Embedding:
    """A row for every token and, in families that add positions, a row for every position."""

    token: Floats  # [V, D]
    position: Floats | None  # [positions, D]

    def __call__(self, ids: Sequence[int], positions: NDArray[np.int64]) -> tuple[Floats, Floats | None, Floats]:
        """Token vectors, position vectors and their sum, each [n, D]."""
        token = self.token[np.asarray(ids)]  # [n, D]
        if self.position is None:
            return token, None, token
        position = self.position[positions]  # [n, D]
        return token, position, token + position

    @cached_property
    def norms(self) -> Floats:
        """Length of every token's vector [V]; reads the whole table, so it is computed when first asked for."""
        norms: Floats = np.sqrt(np.vecdot(self.token, self.token))
        return norms


@dataclass(frozen=True, slots=True)
class Mlp:
    """A position by itself: activation(x·W_in + b)·W_out + b."""

    up: Linear
    activation: Callable[[Floats], Floats]
    down: Linear

    def hidden(self, x: Floats) -> Floats:
        """Input of the last matrix: [n, D] -> [n, F]."""
        return self.activation(self.up(x))


@dataclass(frozen=True, slots=True)
class GatedMlp:
    """A position by itself: (activation(x·W_gate) · x·W_up)·W_out (Shazeer 2020, arXiv:2002.05202)."""

    gate: Linear
    up: Linear
    activation: Callable[[Floats], Floats]
    down: Linear

    def hidden(self, x: Floats) -> Floats:
        """Input of the last matrix, the gated product: [n, D] -> [n, F]."""
        product = self.activation(self.gate(x))
        product *= self.up(x)
        return product
