"""Numbers as cells: one scale from low to high, one for signed numbers, and glyphs where there is no colour.

A level is a step of a scale, 0 to 63. On the signed scale the middle is zero. What is not there is not a low number
but `ABSENT`, and shows the panel's ground.

Without colour a number is drawn by how much of its cell is filled: from a dot, which is next to nothing, to a full
block. On the signed scale that is for positive numbers; negative ones are drawn by horizontal strokes, one for
little and three for much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.segment import Segment
from rich.style import Style

from .look import LEVELS, MIDDLE, Look, contrast, style

Levels = NDArray[np.uint8]

Tone = TypeVar("Tone", str, tuple[str, str])

ABSENT = 255
"""In place of a level: there is nothing here."""

GLYPHS = "·░▒▓█"
"""From low to high."""
SIGNED_GLYPHS = "≡=-·░▒█"
"""From far below zero to far above."""

LEGIBLE = 4.5
"""Contrast of a mark with what it stands on."""


def levels_of(values: ArrayLike) -> Levels:
    """Levels of *values* from 0 to 1; what is beyond is drawn as the end it is beyond, NaN as 0."""
    shares = np.nan_to_num(np.clip(values, 0.0, 1.0), nan=0.0)
    levels: Levels = (shares * (LEVELS - 1) + 0.5).astype(np.uint8)
    return levels


def signed_levels_of(values: ArrayLike, limit: float) -> Levels:
    """Levels of *values* from −*limit* to *limit* on the signed scale; NaN, and all where *limit* is 0, as zero."""
    if not limit > 0:
        return np.full(np.shape(values), MIDDLE, np.uint8)
    shares = np.nan_to_num(np.clip(np.asarray(values, np.float64) / limit, -1.0, 1.0), nan=0.0)
    levels: Levels = ((shares + 1) * (LEVELS - 1) / 2 + 0.5).astype(np.uint8)
    return levels


def paint(levels: ArrayLike, cell: int, look: Look, *, signed: bool = False) -> list[Segment]:
    """A row of *levels*, each *cell* columns wide."""
    row = np.asarray(levels, np.uint8).tolist()
    if look.glyphs:
        return _glyphs(row, cell, look, signed)
    tones = _tones(look, signed)
    return [
        Segment(" " * (cell * count), style(look.text, tone)) for tone, count in _runs(tones[level] for level in row)
    ]


def paint_halves(upper: ArrayLike, lower: ArrayLike | None, look: Look, *, signed: bool = False) -> list[Segment]:
    """Two rows of levels in one line, a column for each pair. Without *lower* there is nothing below."""
    above = np.asarray(upper, np.uint8)
    below = np.full_like(above, ABSENT) if lower is None else np.asarray(lower, np.uint8)
    if look.glyphs:
        return _glyphs(_stronger(above, below, signed).tolist(), 1, look, signed)
    tones = _tones(look, signed)
    pairs = ((tones[high], tones[low]) for high, low in zip(above.tolist(), below.tolist(), strict=True))
    return [_halves(*pair, count, look) for pair, count in _runs(pairs)]


def ink_on(level: int, look: Look, *, signed: bool = False) -> Style:
    """The style of a bold mark that can be read on the ground of *level*; reversed where cells are glyphs."""
    if look.glyphs:
        return _reversed(look)
    return _ink_on(_tones(look, signed)[level], look.text, look.ink)


def scale(cells: int, look: Look, *, signed: bool = False) -> list[Segment]:
    """A legend's strip of *cells* columns, from low to high."""
    return paint(np.linspace(0, LEVELS - 1, cells).astype(np.uint8), 1, look, signed=signed)


def _halves(upper: str, lower: str, count: int, look: Look) -> Segment:
    """Two colours over each other; one colour as a blank, which shows no seam."""
    if upper == lower:
        return Segment(" " * count, style(look.text, upper))
    return Segment("▀" * count, style(upper, lower))


def _glyphs(row: list[int], cell: int, look: Look, signed: bool) -> list[Segment]:
    text = "".join(_GLYPH_OF[signed][level] * cell for level in row)
    return [Segment(text, style(look.text, look.panel))] if text else []


def _stronger(one: Levels, other: Levels, signed: bool) -> Levels:
    """Of two levels the one farther from nothing; anything rather than what is absent."""
    middle = MIDDLE if signed else 0
    strength = [np.where(levels == ABSENT, -1, abs(levels.astype(np.int16) - middle)) for levels in (one, other)]
    return np.where(strength[0] >= strength[1], one, other)


def _runs(tones: Iterable[Tone]) -> Iterator[tuple[Tone, int]]:
    """Stretches of equal tones, with their lengths."""
    return ((tone, sum(1 for _ in run)) for tone, run in groupby(tones))


def _table(low_to_high: Sequence[str], absent: str) -> tuple[str, ...]:
    """What stands for each of the 256 levels there could be, from as many steps as there are."""
    steps = [low_to_high[round(level * (len(low_to_high) - 1) / (LEVELS - 1))] for level in range(LEVELS)]
    return (*steps, *[steps[-1]] * (ABSENT - LEVELS), absent)


_GLYPH_OF = {False: _table(GLYPHS, " "), True: _table(SIGNED_GLYPHS, " ")}


@lru_cache
def _tones(look: Look, signed: bool) -> tuple[str, ...]:
    """The ground for each level."""
    return _table(look.signed_levels if signed else look.levels, look.panel)


@lru_cache(1 << 10)
def _ink_on(ground: str, *inks: str) -> Style:
    """The first of *inks* that is legible on *ground*; black or white where none is, one of which always is."""
    legible = (ink for ink in (*inks, "#000000", "#ffffff") if contrast(ink, ground) >= LEGIBLE)
    return style(next(legible), ground, True)


@lru_cache
def _reversed(look: Look) -> Style:
    return style(look.text, look.panel, True) + Style(reverse=True)
