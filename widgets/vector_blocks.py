"""Vectors of many positions side by side as blocks of cells: queries, keys and values, or what attention adds."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from textual.strip import Strip

from ..core.catalogue import tr
from .drawable import cell_width, clip, fit
from .line import Line
from .look import Look, style
from .numbers import Number
from .sentence import centred
from .shade import paint, scale, signed_levels_of

LEGEND_ROWS = 2
"""Lines under the blocks: the scale, and the lengths of the vectors that are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorsView:
    """Vectors of one head, or of all heads together, for the n positions in sight."""

    layer: int
    head: int | None
    """None where they are of all heads together."""
    stage: str
    """What they are, as the title says it."""
    blocks: tuple[tuple[str, NDArray[np.float32]], ...]
    """Name and vectors [n, d] of each block; row i is the position `first` + i."""
    first: int
    labels: tuple[str, ...]
    """Drawable text of every position [T]."""
    query: int
    """Position that is looked at."""
    note: str = ""
    """Why a block is missing, if one is."""
    apart: bool = False
    """Whether each block has a scale of its own, as what they hold is not alike; else one is for all."""

    @property
    def limits(self) -> list[float]:
        """The magnitude at the end of each block's scale."""
        largest = [float(np.abs(values).max(initial=0.0)) for _, values in self.blocks]
        return largest if self.apart else [max(largest)] * len(largest)


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """Where the blocks stand in a panel."""

    label: int
    """Columns of the rows' labels."""
    cells: tuple[int, ...]
    """Cells of each block."""
    pools: tuple[int, ...]
    """Numbers in a cell of each block."""
    cell: int
    """Columns of a cell."""

    @classmethod
    def of(cls, sizes: tuple[int, ...], columns: int) -> BlockLayout:
        """The widest layout of blocks of so many numbers each."""
        label = min(max(columns // 4, 6), 12)
        room = max((columns - label - 3 - 2 * (len(sizes) - 1)) // len(sizes), 1)
        pools = tuple(ceil(size / room) for size in sizes)
        cell = max(min(room // max(sizes), 4), 1)
        return cls(label, tuple(ceil(size / pool) for size, pool in zip(sizes, pools, strict=True)), pools, cell)


def pooled_signed(values: NDArray[np.float32], pool: int) -> NDArray[np.float32]:
    """Values [n, d] with *pool* neighbours in one cell, the one of largest magnitude: [n, ⌈d/pool⌉]."""
    if pool == 1:
        return values
    padded = np.pad(values, ((0, 0), (0, -values.shape[1] % pool))).reshape(len(values), -1, pool)
    largest = np.abs(padded).argmax(axis=2)[..., None]
    cells: NDArray[np.float32] = np.take_along_axis(padded, largest, axis=2)[..., 0]
    return cells


def draw_blocks(view: VectorsView, width: int, height: int, look: Look) -> list[Strip]:
    """The rows of *view*: names, vectors, and the legend at the bottom."""
    if not view.blocks:
        return centred(view.note, width, height, look)
    layout = BlockLayout.of(tuple(values.shape[1] for _, values in view.blocks), width)
    limits = view.limits
    levels = [
        signed_levels_of(pooled_signed(values, pool), limit)
        for (_, values), pool, limit in zip(view.blocks, layout.pools, limits, strict=True)
    ]
    rows = [_names(view, layout, width, look)]
    for row in range(len(view.blocks[0][1])):
        rows.append(_row(view, row, [block[row] for block in levels], layout, width, look))
    blank = Line(width, style(look.text, look.panel)).strip()
    rows = [*rows, *[blank] * height][: height - LEGEND_ROWS]
    return [*rows, _legend(view, limits, layout, width, look), _lengths(view, width, look)]


def _names(view: VectorsView, layout: BlockLayout, width: int, look: Look) -> Strip:
    line = Line(width, style(look.quiet, look.panel)).to(layout.label + 2)
    for (name, values), cells in zip(view.blocks, layout.cells, strict=True):
        text = f"{name} [{values.shape[1]}]"
        line.add(fit(text, cells * layout.cell)).gap(2)
    return line.strip()


def _row(
    view: VectorsView, row: int, levels: list[NDArray[np.uint8]], layout: BlockLayout, width: int, look: Look
) -> Strip:
    position = view.first + row
    tone = style(look.here, look.panel, True) if position == view.query else style(look.quiet, look.panel)
    line = Line(width, style(look.text, look.panel)).gap(1)
    line.add(fit(view.labels[position], layout.label, "right"), tone).gap(1)
    for block in levels:
        line.paint(paint(block, layout.cell, look, signed=True)).gap(2)
    return line.strip()


def _legend(view: VectorsView, limits: list[float], layout: BlockLayout, width: int, look: Look) -> Strip:
    """The scale and its ends, each block's where they have their own."""
    line = Line(width, style(look.quiet, look.panel)).gap(1)
    line.add("− " if view.apart else f"{Number(-limits[0]):.2f} ")
    line.paint(scale(min(16, max(width // 5, 4)), look, signed=True))
    line.add(" +" if view.apart else f" {limits[0]:.2f}")
    for (name, _), limit in zip(view.blocks, limits, strict=True) if view.apart else ():
        text = f"{name} ±{limit:.2f}"
        line.gap(2).add(text if cell_width(text) + 2 < line.room else "")
    if (pool := max(layout.pools)) > 1:
        text = tr("1 cell = {count} numbers, the largest", count=pool)
        line.gap(2).add(text if cell_width(text) + 2 < line.room else "")
    return line.strip()


def _lengths(view: VectorsView, width: int, look: Look) -> Strip:
    """How long the vectors of the position that is looked at are."""
    line = Line(width, style(look.text, look.panel)).gap(1)
    line.add(clip(view.labels[view.query], 12), style(look.here, look.panel))
    for name, values in view.blocks:
        length = float(np.linalg.norm(values[view.query - view.first]))
        text = tr("‖{name}‖ {length:.3f}", name=name, length=length)
        if cell_width(text) + 2 <= line.room:
            line.gap(2).add(text)
    return line.strip()
