"""All heads at a glance: layers down, heads across, each a small map of its attention to choose it by.

A small map is a head's attention map seen from afar: queries down, keys across, the largest weight in each cell,
two rows of cells in a line. Maps never touch. Where there are more than fit, a window around the one looked at
is shown, and the border says which part it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil
from operator import itemgetter
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from ..core.catalogue import tr
from .drawable import cell_width
from .heads_layout import Layout
from .line import Line
from .look import Look, style
from .panel import Panel
from .shade import ABSENT, Levels, levels_of, paint_halves, scale


@dataclass(frozen=True, slots=True, eq=False)
class HeadsView:
    """Every head of a model at one moment, and the one that is looked at."""

    maps: NDArray[np.float32]
    """Largest weights [L', H, N, N] of blocks of positions, queries down, keys across, of the L' layers reached."""
    layers: int
    """Layers of the model."""
    positions: int
    block: int
    """Positions in a block."""
    layer: int
    """The layer that is looked at."""
    head: int
    """The head that is looked at."""
    kv_heads: int
    """Heads that have keys and values of their own; equally many query heads share each."""
    silent: frozenset[tuple[int, int]] = frozenset()
    """Layer and head of those whose output is set to zero."""

    @property
    def heads(self) -> int:
        """Heads of a layer."""
        heads: int = self.maps.shape[1]
        return heads


class Mark(NamedTuple):
    """Text over the cells."""

    line: int
    column: int
    text: str
    style: Style


class HeadsMap(Panel[HeadsView], can_focus=True):
    """Shows a `HeadsView`; says which head the mouse, and in focus the arrows, choose or open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1, 0)", show=False),
        Binding("down", "move(1, 0)", show=False),
        Binding("left", "move(0, -1)", show=False),
        Binding("right", "move(0, 1)", show=False),
        Binding("enter", "open", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Somebody wants to look at another head."""

        layer: int
        head: int

    @dataclass
    class Opened(Message):
        """Somebody wants to see a head's map in full."""

        layer: int
        head: int

    def titles(self, view: HeadsView | None) -> tuple[str, str]:
        if view is None:
            return tr("heads"), ""
        layout, room = self._layout(view, *self.inner_size), self.inner_size.width - 4
        part = next((note for note in _parts(view, layout) if cell_width(note) <= room), "")
        scale = "" if layout.bottom < self.inner_size.height else tr("√ scale")  # where there is no line for it
        some = " · ".join(note for note in (part, scale) if note)
        both = " · ".join(note for note in (some, self._cell(view, layout)) if note)
        return tr("heads"), next((note for note in (both, some) if cell_width(note) <= room), part)

    def draw(self, view: HeadsView, width: int, height: int) -> list[Strip]:
        layout = self._layout(view, width, height)
        canvas = _canvas(view, layout, width, height)
        marks = defaultdict(list)
        for mark in _marks(view, layout, self.look):
            marks[mark.line].append(mark)
        rows = [_row(canvas[2 * y], canvas[2 * y + 1], marks[y], self.look) for y in range(height)]
        if layout.bottom < height:
            rows[-1] = _legend(width, self.look)
        return rows

    def head_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Layer and head of the small map at a place inside the border, or None."""
        view = self.view
        if view is None:
            return None
        layout = self._layout(view, *self.inner_size)
        layers, heads = _in_sight(view, layout)
        for layer in layers:
            if 0 <= y - layout.line(layer, layers[0]) < layout.lines:
                for head in heads:
                    if 0 <= x - layout.column(head, heads[0]) < layout.width:
                        return layer, head
        return None

    def on_click(self, event: events.Click) -> None:
        place = self.inner_offset(event)
        if place and (found := self.head_at(*place)):
            self.post_message(self.Opened(*found) if event.chain == 2 else self.Chosen(*found))

    def place_of(self, view: HeadsView) -> object:
        return view.layer, view.head

    def action_move(self, layers: int, heads: int) -> None:
        """Choose a neighbour of the head that is looked at, or was last moved to: keys may outrun the screen."""
        if (view := self.view) is None:
            self.once_shown(partial(self.action_move, layers, heads))
            return
        layer, head = self._moved or (view.layer, view.head)
        layer = min(max(layer + layers, 0), view.layers - 1)
        self._moved = layer, min(max(head + heads, 0), view.heads - 1)
        self.post_message(self.Chosen(*self._moved))

    def action_open(self) -> None:
        """Open the head that is looked at, or was last moved to."""
        if view := self.view:
            self.post_message(self.Opened(*(self._moved or (view.layer, view.head))))
        else:
            self.once_shown(self.action_open)

    def _layout(self, view: HeadsView, width: int, height: int) -> Layout:
        halves = not self.look.glyphs
        return Layout.of(view.layers, view.heads, view.kv_heads, width, height, halves)

    def _cell(self, view: HeadsView, layout: Layout) -> str:
        """How much a cell stands for, where it is more than one weight."""
        N, rows = view.maps.shape[-1], layout.lines if self.look.glyphs else layout.rows
        queries, keys = (view.block * ceil(N / cells) for cells in (rows, layout.width))
        if queries * keys <= 1:
            return ""
        return tr("1 cell = the largest of up to {queries} × {keys} weights", queries=queries, keys=keys)


def shrunk(maps: NDArray[np.float32], rows: int, columns: int) -> Levels:
    """Levels of *maps* [L, H, N, N] on at most *rows* × *columns* cells; cells of the future alone are `ABSENT`.

    A cell shows its largest weight, on the same square-root scale as the attention map. Few blocks get several
    cells each, the same number everywhere.
    """
    N = maps.shape[-1]
    queries, keys = _starts(N, rows), _starts(N, columns)
    largest = np.maximum.reduceat(np.maximum.reduceat(maps, queries, axis=2), keys, axis=3)
    levels = levels_of(np.sqrt(largest))
    newest = np.append(queries[1:], N) - 1  # last query of each row
    levels[..., keys > newest[:, None]] = ABSENT
    return levels.repeat(rows // len(queries), axis=2).repeat(columns // len(keys), axis=3)


def _starts(blocks: int, cells: int) -> NDArray[np.int64]:
    """The first block of every cell: one each, or bundles of nearly the same size where there are more than cells."""
    count = min(blocks, cells)
    return np.arange(count) * blocks // count


def _in_sight(view: HeadsView, layout: Layout) -> tuple[range, range]:
    """The layers and the heads that are shown: those around the one looked at."""
    return _around(view.layer, layout.layers, view.layers), _around(view.head, layout.heads, view.heads)


def _around(chosen: int, shown: int, total: int) -> range:
    first = min(max(chosen - shown // 2, 0), total - shown)
    return range(first, first + shown)


def _parts(view: HeadsView, layout: Layout) -> list[str]:
    """Which part of the model is in sight where it is not all of it: in words, and shorter."""
    layers, heads = _in_sight(view, layout)
    words, signs = [], []
    if len(layers) < view.layers:
        place = {"first": layers[0], "last": layers[-1], "count": view.layers}
        words.append(tr("layers {first}–{last} of {count}", **place))
        signs.append(tr("L{first}–{last} of {count}", **place))
    if len(heads) < view.heads:
        place = {"first": heads[0], "last": heads[-1], "count": view.heads}
        words.append(tr("heads {first}–{last} of {count}", **place))
        signs.append(tr("H{first}–{last} of {count}", **place))
    return [" · ".join(words), " · ".join(signs)]


def _canvas(view: HeadsView, layout: Layout, width: int, height: int) -> Levels:
    """Levels of the whole panel [2 · height, width], two rows for a line."""
    canvas = np.full((2 * height, width), ABSENT, np.uint8)
    layers, heads = _in_sight(view, layout)
    reached = view.maps[layers[0] : layers[-1] + 1, heads[0] : heads[-1] + 1]
    if not reached.size:
        return canvas
    for layer, row in enumerate(shrunk(reached, layout.rows, layout.width), layers[0]):
        top = 2 * layout.line(layer, layers[0])
        for head, cells in enumerate(row, heads[0]):
            if (layer, head) not in view.silent:
                left = layout.column(head, heads[0])
                room = canvas[top : top + cells.shape[0], left : left + cells.shape[1]]
                room[:] = cells[: room.shape[0], : room.shape[1]]
    return canvas


def _row(upper: Levels, lower: Levels, marks: list[Mark], look: Look) -> Strip:
    """A line of the panel: cells, and the marks over them."""
    line = Line(len(upper), style(look.text, look.panel))
    for _, column, text, tone in sorted(marks, key=itemgetter(1)):
        line.paint(paint_halves(upper[line.used : column], lower[line.used : column], look)).add(text, tone)
    return line.paint(paint_halves(upper[line.used :], lower[line.used :], look)).strip()


def _marks(view: HeadsView, layout: Layout, look: Look) -> Iterator[Mark]:
    """What stands over the cells: labels, what there is no map of, and the frame around the head looked at."""
    yield from _layer_labels(view, layout, look)
    yield from _head_labels(view, layout, look)
    yield from _group_labels(view, layout, look)
    yield from _without_map(view, layout, look)
    yield from _frame(view, layout, look)


def _legend(width: int, look: Look) -> Strip:
    """The scale, and what goes which way; for a panel with a line to spare.

    That the scale is one of square roots is said always: it could not be read without.
    """
    quiet = style(look.quiet, look.panel)
    line = Line(width, quiet).gap(1).add("0 ").paint(scale(min(16, max(width // 5, 4)), look)).add(" 1 ")
    texts = tr("√ scale · queries down, keys across"), tr("√ scale"), "√"
    return line.add(next(text for text in texts if cell_width(text) < line.room or text == "√")).strip()


def _layer_labels(view: HeadsView, layout: Layout, look: Look) -> Iterator[Mark]:
    layers, _ = _in_sight(view, layout)
    for layer in layers:
        tone = style(look.text if layer < len(view.maps) else look.quiet, look.panel)
        if layer == view.layer:
            tone = style(look.here, look.panel, True)
        line = layout.line(layer, layers[0]) + (layout.lines - 1) // 2
        yield Mark(line, 1, f"L{layer}".rjust(layout.label), tone)


def _head_labels(view: HeadsView, layout: Layout, look: Look) -> Iterator[Mark]:
    """Numbers over the columns; `_frame` writes the one that its upper edge goes through."""
    layers, heads = _in_sight(view, layout)
    framed = view.layer == layers[0] and layout.gap
    for head in heads:
        tone = style(look.here, look.panel, True) if head == view.head else style(look.quiet, look.panel)
        if not (head == view.head and framed):
            yield Mark(layout.header - 1, layout.column(head, heads[0]), f"{head:^{layout.width}}", tone)


def _group_labels(view: HeadsView, layout: Layout, look: Look) -> Iterator[Mark]:
    """Which heads share keys and values, where there is a line for it."""
    _, heads = _in_sight(view, layout)
    for group in range(heads[0] // layout.group, heads[-1] // layout.group + 1) if layout.header > 1 else ():
        first, last = max(group * layout.group, heads[0]), min((group + 1) * layout.group - 1, heads[-1])
        left, right = layout.column(first, heads[0]), layout.column(last, heads[0]) + layout.width
        name = f" {tr('kv {index}', index=group)} "
        name = name if cell_width(name) <= right - left else ""
        yield Mark(0, left, f"{name:─^{right - left}}", style(look.quiet, look.panel))


def _without_map(view: HeadsView, layout: Layout, look: Look) -> Iterator[Mark]:
    """A dot for what is not computed yet, crosses for what is set to zero."""
    layers, heads = _in_sight(view, layout)
    dot, cross = style(look.faint, look.panel), style(look.quiet, look.panel)
    for layer in layers:
        line = layout.line(layer, layers[0])
        for head in heads:
            column = layout.column(head, heads[0])
            if layer >= len(view.maps):
                yield Mark(line + (layout.lines - 1) // 2, column, f"{'·':^{layout.width}}", dot)
            elif (layer, head) in view.silent:
                yield from (Mark(line + row, column, "×" * layout.width, cross) for row in range(layout.lines))


def _frame(view: HeadsView, layout: Layout, look: Look) -> Iterator[Mark]:
    """Around the head looked at: a box in the gaps, or bars on both sides where there is no gap above and below."""
    layers, heads = _in_sight(view, layout)
    line, column = layout.line(view.layer, layers[0]), layout.column(view.head, heads[0])
    here = style(look.here, look.panel, True)
    left, right = "││" if layout.gap else "▐▌"
    for row in range(line, line + layout.lines):
        yield Mark(row, column - 1, left, here)
        yield Mark(row, column + layout.width, right, here)
    if layout.gap:
        number = f" {view.head} " if layout.width > 4 else str(view.head)
        upper = f"{number if view.layer == layers[0] else '':─^{layout.width}}"
        yield Mark(line - 1, column - 1, f"┌{upper}┐", here)
        yield Mark(line + layout.lines, column - 1, f"└{'─' * layout.width}┘", here)
