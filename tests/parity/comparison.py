"""A run's events against what another implementation computed for all positions at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cutaway.core.events import AttentionDone, BlockDone, Event, LogitsReady

Doubles = NDArray[np.float64]

Truth = tuple[list[Doubles], list[Doubles], Doubles]
"""Residuals [n, D] and attention [H, n, n] of every layer, and the logits [n, V]."""


def assert_same(events: list[Event], truth: Truth) -> int:
    """Every event of a run says what *truth* says; returns how many positions it went through."""
    residuals, maps, logits = truth
    position = length = 0
    for event in events:
        match event:
            case AttentionDone(layer=layer, pattern=pattern):
                stop = pattern.shape[2]
                np.testing.assert_allclose(pattern, maps[layer][:, stop - pattern.shape[1] : stop, :stop], atol=2e-5)
            case BlockDone(layer=layer, residual=residual):
                rows = residuals[layer][position : position + len(residual)]
                np.testing.assert_allclose(residual, rows, rtol=1e-4, atol=1e-4 * np.abs(rows).max())
                length = len(residual)
            case LogitsReady(logits=scores):
                position += length
                rows = logits[position - len(scores) : position]
                np.testing.assert_allclose(scores, rows, rtol=1e-4, atol=1e-4 * np.abs(rows).max())
    return position
