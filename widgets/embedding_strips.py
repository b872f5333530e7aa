"""Where a token enters the model: its vector, that of its position, and their sum, number under number.

All strips share one signed scale, so that a dimension can be followed downwards. Where the vectors have more numbers
than the panel has columns, a cell is one of several: that whose sum is of largest magnitude, in every strip the same
one, so that what stands in one column adds up. Where they have far fewer, cells get wider.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from ..core.catalogue import tr
from .drawable import cell_width, clip, fit
from .line import Line
from .look import Look, style
from .numbers import Number, bar
from .pointing import Pointing
from .ruler import add_ruler
from .sentence import centred, wrapped
from .shade import Levels, ink_on, paint, scale, signed_levels_of


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingView:
    """One token on its way into the first layer."""

    token: str
    """Drawable."""
    id: int
    position: int
    parts: tuple[tuple[str, NDArray[np.float32]], ...]
    """Names and vectors [D]; the last is the sum of those before it."""
    nearest: tuple[tuple[str, float], ...]
    """Drawable tokens with their cosine similarity, nearest first."""
    dimension: int | None = None
    """Index of the numbers that are pointed at."""
    note: str = ""
    """Why nothing is known, where that is so."""

    @property
    def width(self) -> int:
        """D."""
        return len(self.parts[0][1]) if self.parts else 0

    @property
    def looked_at(self) -> int:
        """The dimension that is pointed at, or the one whose sum is of largest magnitude. There have to be parts."""
        return int(self.drawn(self.width)[0]) if self.dimension is None else self.dimension

    def drawn(self, pool: int) -> NDArray[np.intp]:
        """The dimension that each cell of *pool* neighbours draws [⌈D/pool⌉]: the one of largest sum, by magnitude.

        There have to be parts.
        """
        sizes = np.nan_to_num(np.abs(self.parts[-1][1]), nan=-1.0, posinf=np.inf)
        sizes = np.pad(sizes, (0, -self.width % pool), constant_values=-2.0)
        largest: NDArray[np.intp] = sizes.reshape(-1, pool).argmax(axis=1)
        return largest + np.arange(0, self.width, pool)

    @property
    def limit(self) -> float:
        """Largest magnitude of all numbers: the end of the scale."""
        return max((float(np.abs(values).max(initial=0.0)) for _, values in self.parts), default=0.0)


LABEL = 14
"""Columns of a label beside a strip: a name and the vector's length."""
UNDER = 3
"""Lines under the strips at least: the numbers pointed at, the scale, the nearest tokens."""
THICKEST = 4
"""Lines of a strip at most."""
WIDEST_CELL = 8
"""Columns of a number at most."""
NARROW = 40
"""Columns from which a line holds a dimension and its three numbers."""
ROOMY = 50
"""Columns from which it also says why it is this dimension."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the strips stand in a panel. Depends on its size and the number of strips and numbers, on nothing else."""

    beside: bool
    """Whether labels stand beside the strips, for want of lines; else over them."""
    ruler: int
    """Lines over the strips, 1 or 0."""
    thick: int
    """Lines of a strip."""
    cell: int
    """Columns of a cell."""
    pool: int
    """Numbers in a cell."""
    count: int
    """Cells of a strip."""

    @classmethod
    def of(cls, parts: int, numbers: int, columns: int, rows: int) -> Layout:
        """The layout of so many strips of so many *numbers*, in a panel of *columns* and *rows*."""
        beside = rows < 1 + 2 * parts + UNDER
        ruler = int(rows > parts + UNDER)
        thick = 1 if beside else min(max((rows - 1 - parts - UNDER) // (2 * parts), 1), THICKEST)
        room = max(columns - 2 - (LABEL + 1 if beside else 0), 1)
        pool = ceil(numbers / room)
        cell = min(max(room // numbers, 1), WIDEST_CELL)
        return cls(beside, ruler, thick, cell, pool, ceil(numbers / pool))

    @property
    def left(self) -> int:
        """The column the strips begin at."""
        return 1 + (LABEL + 1 if self.beside else 0)

    def rows(self, part: int) -> range:
        """The lines of one strip."""
        label = 0 if self.beside else 1
        top = self.ruler + part * (label + self.thick) + label
        return range(top, top + self.thick)


class EmbeddingStrips(Pointing[EmbeddingView], can_focus=True):
    """Shows an `EmbeddingView`; says which dimension the mouse, and in focus the arrows, point at."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", show=False),
        Binding("right", "move(1)", show=False),
    ]

    @dataclass
    class Pointed(Message):
        """Somebody points at a dimension, or no longer at any."""

        dimension: int | None

    def titles(self, view: EmbeddingView | None) -> tuple[str, str]:
        if view is None or not view.parts:
            return tr("embedding"), ""
        columns, rows = self.inner_size
        pool = Layout.of(len(view.parts), view.width, columns, rows).pool
        place = {"id": view.id, "position": view.position}
        if pool > 1:
            note = tr("1 cell = {count} numbers, the largest sum", count=pool)
        else:
            note = tr("{count} numbers", count=view.width)
        if columns < 36:
            return tr("embedding · ‹{token}›", token=clip(view.token, max(columns - 20, 4))), note
        if columns < 46:
            return tr("embedding · ‹{token}› #{id}", token=clip(view.token, columns - 27), **place), note
        token = clip(view.token, columns - 42)
        return tr("embedding · ‹{token}› #{id} at position {position}", token=token, **place), note

    def draw(self, view: EmbeddingView, width: int, height: int) -> list[Strip]:
        if not view.parts:
            return centred(view.note, width, height, self.look)
        layout = Layout.of(len(view.parts), view.width, width, height)
        rows, drawn = [_ruler(view, layout, width, self.look)] * layout.ruler, view.drawn(layout.pool)
        for name, values in view.parts:
            levels = signed_levels_of(values[drawn], view.limit)  # [cells]
            rows += _strip(view, name, float(np.linalg.norm(values)), levels, layout, width, self.look)
        rows += [_numbers(view, width, self.look), _legend(view, width, self.look)]
        left = max(height - len(rows), 0)
        if view.note:
            rows += _note(view.note, width, left, self.look)
        return [*rows, *_nearest(view, width, left, self.look)]

    def dimension_at(self, x: int, y: int) -> int | None:
        """The dimension that is drawn at a place inside the border, or None where there is no number."""
        view = self.view
        if view is None or not view.parts:
            return None
        layout = Layout.of(len(view.parts), view.width, *self.inner_size)
        cell = (x - layout.left) // layout.cell
        if not 0 <= cell < layout.count or not any(y in layout.rows(part) for part in range(len(view.parts))):
            return None
        return int(view.drawn(layout.pool)[cell])

    def pointed_at(self, x: int, y: int) -> Message | None:
        dimension = self.dimension_at(x, y)
        return None if dimension is None else self.Pointed(dimension)

    def let_go(self) -> Message:
        return self.Pointed(None)

    def place_of(self, view: EmbeddingView) -> object:
        return view.dimension

    def action_move(self, change: int) -> None:
        """Point at a neighbour of the dimension that is pointed at, or was last moved to; at first at an end."""
        if (view := self.view) is None:
            self.once_shown(partial(self.action_move, change))
        elif view.parts:
            dimension = view.dimension if self._moved is None else self._moved
            start = (-1 if change > 0 else view.width) if dimension is None else dimension
            self._moved = min(max(start + change, 0), view.width - 1)
            self.post_message(self.Pointed(self._moved))


def _ruler(view: EmbeddingView, layout: Layout, cells: int, look: Look) -> Strip:
    """Numbers of the dimensions, far enough apart, and a mark over the one that is pointed at."""
    numbers = ((dimension // layout.pool * layout.cell, dimension) for dimension in range(0, view.width, _step(layout)))
    line = Line(cells, style(look.quiet, look.panel)).to(layout.left)
    pointed = view.dimension
    at = None if pointed is None else pointed // layout.pool * layout.cell + layout.cell // 2
    return add_ruler(line, numbers, layout.count * layout.cell, at, look).strip()


def _step(layout: Layout) -> int:
    """How many dimensions lie between two numbers of the ruler: a power of two, as the widths of models are made of."""
    step = 1
    while step * layout.cell < 8 * layout.pool:
        step *= 2
    return step


def _strip(
    view: EmbeddingView, name: str, norm: float, levels: Levels, layout: Layout, cells: int, look: Look
) -> list[Strip]:
    """One vector with its label and length, the cell that is pointed at marked."""
    quiet, plain = style(look.quiet, look.panel), style(look.text, look.panel)
    length = f"{norm:.2f}"
    painted = Line(cells, plain).gap(1)
    if layout.beside:
        painted.add(fit(name, LABEL - len(length) - 1)).gap(1).add(length, quiet).gap(1)
    if view.dimension is None:
        painted.paint(paint(levels, layout.cell, look, signed=True))
    else:
        at = view.dimension // layout.pool
        painted.paint(paint(levels[:at], layout.cell, look, signed=True))
        painted.add(_mark(layout.cell), ink_on(int(levels[at]), look, signed=True))
        painted.paint(paint(levels[at + 1 :], layout.cell, look, signed=True))
    strips = [painted.strip()] * layout.thick
    if layout.beside:
        return strips
    label = Line(cells, plain).gap(1).add(clip(name, max(cells - 14, 3))).gap(2).add(f"‖·‖ {length}", quiet)
    return [label.strip(), *strips]


def _mark(cell: int) -> str:
    """What stands in the cell that is pointed at."""
    return ("[" + "]".rjust(cell - 1)) if cell > 1 else "+"


def _numbers(view: EmbeddingView, cells: int, look: Look) -> Strip:
    """The numbers that are looked at, added up."""
    line = Line(cells, style(look.text, look.panel)).gap(1)
    if cells >= NARROW:
        line.add(_name(view, cells), style(look.quiet if view.dimension is None else look.here, look.panel))
    values = [float(part[view.looked_at]) for _, part in view.parts]
    texts = [sum_of([f"{Number(value):.{digits}f}" for value in values]) for digits in (4, 3, 2)]
    return line.add(next((text for text in texts if cell_width(text) < line.room), texts[-1])).strip()


def _name(view: EmbeddingView, cells: int) -> str:
    """What the dimension is called that is looked at."""
    name = f"d {view.looked_at}: "
    return tr("largest, {dimension}", dimension=name) if view.dimension is None and cells >= ROOMY else name


def sum_of(numbers: list[str]) -> str:
    """Numbers as a sum; the last is what the others come to."""
    return " = ".join([" + ".join(numbers[:-1]), numbers[-1]]) if len(numbers) > 1 else numbers[0]


def _legend(view: EmbeddingView, cells: int, look: Look) -> Strip:
    """The scale, from the largest magnitude below zero to the same above; and the dimension, where the numbers that
    are pointed at have no room for it."""
    quiet, end = style(look.quiet, look.panel), f"{view.limit:.3g}"
    line = Line(cells, quiet).gap(1).add(f"{Number(-view.limit):.3g} ")
    line.paint(scale(min(24, max(cells // 5, 6)), look, signed=True)).add(f" {end}")
    if cells < NARROW:
        return line.right(f"d {view.looked_at} ", style(look.here, look.panel)).strip()
    text = tr("one scale for all")
    return (line.gap(2).add(text) if cell_width(text) < line.room - 2 else line).strip()


def _note(note: str, cells: int, rows: int, look: Look) -> list[Strip]:
    """Why there is no more to see, in at most so many *rows*."""
    quiet = style(look.quiet, look.panel)
    return [Line(cells, quiet).gap(1).add(line).strip() for line in wrapped(note, cells - 2, rows)]


def _nearest(view: EmbeddingView, cells: int, rows: int, look: Look) -> list[Strip]:
    """The tokens whose vectors point most nearly the same way: a line each, or as many as fit into one line."""
    if rows < 1 or not view.nearest:
        return []
    quiet, plain, what = (style(colour, look.panel) for colour in (look.quiet, look.text, look.what))
    if rows < 4:
        line = Line(cells, plain).gap(1).add(tr("near"), quiet)
        for token, cosine in view.nearest:
            token, number = clip(token, 12), f"{Number(cosine):.2f}"
            if cell_width(token) + len(number) + 4 > line.room:
                break
            line.gap(2).add(token, what).gap(1).add(number)
        return [line.strip()]
    token_cells = min(max(cells - 20, 7), 18)
    heading = Line(cells, quiet).gap(1).add(fit(tr("nearest tokens"), token_cells)).gap(1)
    strips = [Line(cells, quiet).strip(), heading.add(fit(tr("cosine"), 7, "right")).strip()]
    for token, cosine in view.nearest[: rows - 2]:
        line = Line(cells, plain).gap(1).add(fit(token, token_cells), what).gap(1)
        line.add(fit(f"{Number(cosine):.3f}", 7, "right")).gap(1)
        strips.append(line.add(bar(max(cosine, 0.0), min(line.room - 1, 40)), what).strip())
    return strips
