"""Every head of every layer at a glance."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.cache import Floats
from ...core.overview import Overview, block_size
from ...core.trace import Trace
from ...widgets.heads_map import HeadsView
from ..cursor import Cursor
from ..moment import Moment

SLICE = 0.03
"""Seconds that may be spent on the maps at a time: a long text takes several."""


@dataclass(frozen=True, slots=True, eq=False)
class HeadsFound:
    """The maps of so many layers, and what they are about."""

    trace: Trace
    step: int
    maps: Floats
    """Block maxima [L', H, N, N]."""
    positions: int
    whole: bool
    """Whether these are all the layers that were asked for."""


def find_heads(overview: Overview, step: int, layers: int, T: int) -> HeadsFound:
    """Compute the maps of *layers* at *T* positions, or of as many as there is time for."""
    known = overview.advance(layers, T, SLICE)
    return HeadsFound(overview.trace, step, overview.maps(known, T), T, known == layers)


def heads_view(moment: Moment, cursor: Cursor, found: HeadsFound) -> HeadsView:
    """The maps of *found*, the head looked at among them."""
    config = moment.trace.model.config
    return HeadsView(
        maps=found.maps,
        layers=config.layers,
        positions=found.positions,
        block=block_size(found.positions),
        layer=cursor.layer,
        head=cursor.head,
        kv_heads=config.kv_heads,
        silent=moment.silent_heads(found.step),
    )
