"""How fast a model decodes, and how near that comes to the speed at which its weights can be read at all.

A decode step reads every matrix once, so the memory's bandwidth is the limit. Both are measured in turn within one
run: a noisy machine slows both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from .cache import Capture
from .events import TokenChosen
from .generation import Generation
from .models.decoder import Decoder
from .models.model import Model
from .sampling import SamplingConfig

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured; rates are medians, by the wall clock."""

    first_token_seconds: float
    """From the prompt's ids to the first token."""
    decode_tokens_per_second: float
    limit_tokens_per_second: float
    """How often a second all matrices can be read by bare matrix-vector products."""
    bandwidth_gb_per_second: float
    """What that reads."""

    @property
    def share_of_limit(self) -> float:
        """The decode rate by the limit."""
        return self.decode_tokens_per_second / self.limit_tokens_per_second


def matrices(decoder: Decoder) -> list[Floats]:
    """Every matrix [in, out] that a decode step reads whole."""
    return [decoder.head.T, *(matrix for block in decoder.blocks for matrix in _within(block))]


def measure(model: Model, prompt: int, tokens: int, capture: Capture = "default") -> Speed:
    """Decode *tokens*, two or more, after a prompt of so many ids, reading all matrices once after each."""
    weights = matrices(model.decoder)
    read = reading(weights)
    ids = [id % model.config.vocabulary for id in range(prompt)]
    run = Generation(model, ids, SamplingConfig(seed=0), max_new_tokens=tokens, ignore_eos=True, capture=capture)
    steps, limits, begun = [], [], perf_counter()
    for event in run:
        if isinstance(event, TokenChosen):
            steps.append(perf_counter() - begun)
            limits.append(read())
            begun = perf_counter()
    step, limit = median(steps[1:]), median(limits)
    size = sum(matrix.nbytes for matrix in weights)
    return Speed(steps[0], 1 / step, 1 / limit, size / limit / 1e9)


def reading(weights: list[Floats]) -> Callable[[], float]:
    """A function that reads all *weights* [in, out] once by bare matrix-vector products, and says for how long."""
    vectors = {matrix.shape[0]: np.ones((1, matrix.shape[0]), np.float32) for matrix in weights}
    out = {matrix.shape[1]: np.empty((1, matrix.shape[1]), np.float32) for matrix in weights}

    def read() -> float:
        begun = perf_counter()
        for matrix in weights:
            np.matmul(vectors[matrix.shape[0]], matrix, out=out[matrix.shape[1]])
        return perf_counter() - begun

    return read


def _within(part: object) -> Iterator[Floats]:
    """The matrices of a part of a decoder, and of the parts it is made of."""
    if isinstance(part, np.ndarray):
        if part.ndim == 2:
            yield part
    elif is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            yield from _within(getattr(part, field.name))
