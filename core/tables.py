"""What only the weights can say of a trace, in tables: so that a recording shows it without them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .events import Floats

Ids = NDArray[np.int64]

LENS_BEST = 10
"""Tokens that the lens keeps of each layer and position."""


@dataclass(frozen=True, slots=True, eq=False)
class LensTable:
    """What each of L layers would say next at n positions; k = min(10, V) tokens of each."""

    ids: Ids
    """The likeliest tokens [L, n, k], best first, lowest id on a tie."""
    probabilities: Floats
    """Theirs [L, n, k]."""
    entropy: Floats
    """Of the whole distribution [L, n], in bits."""
    rank: Ids
    """Place of the token that really follows [L, n], from 0; −1 where nothing follows yet."""
    probability: Floats
    """Of that token [L, n]; NaN likewise."""

    def window(self, start: int, stop: int, layers: int | None = None) -> LensTable:
        """The first *layers* at the positions from *start* to *stop*."""
        part = np.s_[:layers, start:stop]
        return LensTable(
            self.ids[part], self.probabilities[part], self.entropy[part], self.rank[part], self.probability[part]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Computed once, when a trace was saved with its weights at hand. P prompt tokens, T positions, D width."""

    lens: LensTable
    """At every position: [L, T, …]."""
    attribution: Floats
    """What each part adds to the score of the token that follows [2L + 2, T]; see `attribution.attribution`."""
    attention_output: Floats
    """What attention adds to the residual stream [L, T, D]."""
    prompt_surprisal: Floats
    """−log₂ of each prompt token's probability [P], in bits; NaN at 0."""
