"""A ruler from 0 to 1, cut into the shares of the tokens, and the place where a random number fell on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from textual.strip import Strip

from .drawable import cell_width
from .line import Line
from .look import LEVELS, Look, style
from .shade import ink_on, paint

SHADES = (LEVELS // 5, LEVELS // 2)
"""Levels that neighbouring shares take in turn."""
GAP = "░"
"""Where many small tokens lie."""


@dataclass(frozen=True, slots=True)
class Share:
    """One token's stretch of [0, 1): probabilities added up by ascending id."""

    text: str
    """Drawable."""
    low: float
    high: float
    drawn: bool
    """Whether this is the token that was drawn."""


def ruler(shares: tuple[Share, ...], uniform: float | None, cells: int, look: Look) -> list[Strip]:
    """Three lines of *cells* columns: a mark over *uniform*, the shares by ascending id, and the ruler's numbers."""
    band = max(cells - 2, 1)
    return [_mark(uniform, band, cells, look), _band(shares, uniform, band, cells, look), _ticks(band, cells, look)]


def cell_of(uniform: float, band: int) -> int:
    """The cell that a number in [0, 1) falls on, of a band of so many."""
    return min(max(int(uniform * band), 0), band - 1)


def stretches(shares: tuple[Share, ...], uniform: float | None, band: int) -> Iterator[tuple[Share | None, int]]:
    """Shares in order with the cells each takes, those too small for one left out; None where small tokens lie.

    A cell belongs to the share its middle lies in, but the cell under *uniform* to the drawn token, where
    that is what the number fell on.
    """
    owners = np.full(band, -1)
    middles = (np.arange(band) + 0.5) / band
    for place, share in enumerate(shares):
        owners[(share.low <= middles) & (middles < share.high)] = place
    for place, share in enumerate(shares):
        if share.drawn and uniform is not None and share.low <= uniform <= share.high:
            owners[cell_of(uniform, band)] = place
    for owner, run in groupby(owners.tolist()):
        yield (None if owner < 0 else shares[owner]), len(list(run))


def _mark(uniform: float | None, band: int, cells: int, look: Look) -> Strip:
    """The number that was drawn, over its place."""
    line = Line(cells, style(look.here, look.panel, True))
    if uniform is None:
        return line.strip()
    at, text = cell_of(uniform, band), f"u = {uniform:.4f}"
    if at + 2 + len(text) < band:
        return line.to(1 + at).add(f"▾ {text}").strip()
    if at > len(text):
        return line.to(at - len(text)).add(f"{text} ▾").strip()
    return line.to(1 + at).add("▾").strip()


def _band(shares: tuple[Share, ...], uniform: float | None, band: int, cells: int, look: Look) -> Strip:
    line = Line(cells, style(look.text, look.panel)).gap(1)
    turn = 0
    for share, count in stretches(shares, uniform, band):
        if share is None:
            line.add(GAP * count, style(look.line, look.panel))
            continue
        label = share.text if cell_width(share.text) <= count else ""
        before = (count - cell_width(label)) // 2
        after = count - before - cell_width(label)
        if share.drawn:
            line.add(" " * before + label + " " * after, style(look.ink, look.here, True))
            continue
        level, turn = SHADES[turn], 1 - turn
        ink = style(look.text, look.panel, True) if look.glyphs else ink_on(level, look)  # reversed is what was drawn
        line.paint(paint([level] * before, 1, look)).add(label, ink)
        line.paint(paint([level] * after, 1, look))
    return line.strip()


def _ticks(band: int, cells: int, look: Look) -> Strip:
    """Numbers under the band: its ends and middle, and the quarters where there is room."""
    line = Line(cells, style(look.quiet, look.panel))
    for number in (0.0, 0.25, 0.5, 0.75, 1.0) if band >= 30 else (0.0, 0.5, 1.0):
        text = f"{number:g}"
        line.to(1 + min(max(round(number * band) - len(text) // 2, 0), band - len(text))).add(text)
    return line.strip()
