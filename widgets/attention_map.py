"""Who looks at whom: one head's attention, queries down, keys across, with the exact value under the cursor.

Rows are the newest queries that fit, one a line, so that each keeps its label. Columns are all keys: two cells
wide where they fit, one cell where they do not, and several keys to a cell (the largest of them) beyond that.
The future is not zero but absent, and is drawn so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from ..core.catalogue import tr
from .drawable import cell_width, clip, fit
from .line import Line
from .look import LEVELS, Look, style
from .panel import Panel


@dataclass(frozen=True, slots=True, eq=False)
class AttentionView:
    """One head at one moment; n queries are in sight of the T positions."""

    layer: int
    head: int
    weights: NDArray[np.float32]
    """Weights after softmax [n, T]; row i is the query at position `first` + i."""
    first: int
    labels: tuple[str, ...]
    """Drawable text of every position [T]."""
    query: int
    """Position of the query that is looked at."""
    key: int
    """Position of the key that is looked at."""
    silent: bool = False
    """Whether the head's output was set to zero after the weights were computed."""

    @property
    def weight(self) -> float:
        """The weight of the cell that is looked at."""
        return float(self.weights[self.query - self.first, self.key])


LEGEND_ROWS = 2
"""Lines under the map: the scale with the value under the cursor, and what the query looks at most."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the map of T keys stands in a panel. Depends on nothing that changes from token to token but T."""

    label: int
    """Columns of the rows' labels."""
    cell: int
    """Columns of a cell, 2 or 1."""
    pool: int
    """Keys in a cell."""
    count: int
    """Cells in a full row."""
    header: int
    """Lines over the map for the keys' labels."""
    queries: int
    """Lines of the map."""

    @classmethod
    def of(cls, keys: int, columns: int, rows: int) -> Layout:
        """The widest layout of *keys* in a panel of *columns* and *rows*."""
        label = min(max(columns // 4, 6), 12)
        room = max(columns - label - 3, 1)
        cell = 2 if 2 * keys <= room else 1
        pool = max(ceil(keys * cell / room), 1)
        header = (3 if rows >= 16 else 2) if cell == 2 else 1
        return cls(label, cell, pool, ceil(keys / pool), header, max(rows - header - LEGEND_ROWS, 1))

    @property
    def left(self) -> int:
        """The column the map begins at."""
        return self.label + 2


class AttentionMap(Panel[AttentionView], can_focus=True):
    """Shows an `AttentionView`; says where the mouse, and in focus the arrows, want to look."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1, 0)", show=False),
        Binding("down", "move(1, 0)", show=False),
        Binding("left", "move(0, -1)", show=False),
        Binding("right", "move(0, 1)", show=False),
    ]

    _moved: tuple[int, int] | None = None
    """Where keys have moved to since the present view was shown."""

    @dataclass
    class Pointed(Message):
        """Somebody points at a cell, or no longer at any."""

        cell: tuple[int, int] | None
        """Query and key."""

    def visible_queries(self, keys: int) -> int:
        """How many queries fit on a map of *keys* keys; ask for so many rows."""
        return Layout.of(keys, *self.inner_size).queries

    def titles(self, view: AttentionView | None) -> tuple[str, str]:
        if view is None:
            return tr("attention"), ""
        pool = Layout.of(len(view.labels), *self.inner_size).pool
        note = (
            tr("1 cell = {count} keys, their largest weight", count=pool) if pool > 1 else tr("weights after softmax")
        )
        place = {"layer": view.layer, "head": view.head}
        if view.silent:
            return tr("attention · L{layer} H{head} · silenced", **place), note
        if self.inner_size.width < 34:
            return tr("attention · L{layer} H{head}", **place), note
        return tr("attention · layer {layer} head {head}", **place), note

    def draw(self, view: AttentionView, width: int, height: int) -> list[Strip]:
        layout = Layout.of(len(view.labels), width, height)
        map_rows = height - LEGEND_ROWS
        levels = to_levels(pooled(view.weights, layout.pool))  # [n, cells]
        rows = _labels_downwards(view, layout, width, self.look) if layout.cell == 2 else []
        rows += [_ruler(view, layout, width, self.look)] if layout.cell == 1 else []
        rows += [_map_row(view, row, levels[row], layout, width, self.look) for row in range(len(levels))]
        rows += [_line(width, self.look).strip()] * (map_rows - len(rows))
        return [*rows[:map_rows], _legend(view, width, self.look), _strongest(view, width, self.look)]

    def cell_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Query and key at a place inside the border, or None where there is no cell.

        Of several keys in one cell, the one with the largest weight.
        """
        view = self.view
        if view is None:
            return None
        layout = Layout.of(len(view.labels), *self.inner_size)
        row, query = y - layout.header, view.first + y - layout.header
        low = (x - layout.left) // layout.cell * layout.pool
        if not (0 <= row < len(view.weights) and 0 <= low <= query):
            return None
        return query, low + int(np.argmax(view.weights[row, low : min(low + layout.pool, query + 1)]))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point(event)

    def on_click(self, event: events.Click) -> None:
        self._point(event)

    def _point(self, event: events.MouseEvent) -> None:
        place = self.inner_offset(event)
        if place and (cell := self.cell_at(*place)):
            self.post_message(self.Pointed(cell))

    def on_leave(self) -> None:
        if not self.has_focus:
            self.post_message(self.Pointed(None))

    def show(self, view: AttentionView) -> None:
        self._moved = None
        super().show(view)

    def action_move(self, queries: int, keys: int) -> None:
        """Point at a neighbour of the cell that is looked at, or was last moved to: keys may outrun the screen."""
        if view := self.view:
            query, key = self._moved or (view.query, view.key)
            query = min(max(query + queries, 0), len(view.labels) - 1)
            self._moved = query, min(max(key + keys, 0), query)
            self.post_message(self.Pointed(self._moved))


def pooled(weights: NDArray[np.float32], pool: int) -> NDArray[np.float32]:
    """Weights [n, T] with *pool* neighbouring keys in one cell, the largest of them: [n, ⌈T/pool⌉]."""
    if pool == 1:
        return weights
    padded = np.pad(weights, ((0, 0), (0, -weights.shape[1] % pool)))
    cells: NDArray[np.float32] = padded.reshape(len(weights), -1, pool).max(axis=2)
    return cells


def to_levels(weights: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Levels of the scale for *weights*, by their square root: small weights stay visible."""
    return (np.sqrt(np.clip(weights, 0.0, 1.0)) * (LEVELS - 1) + 0.5).astype(np.uint8)


def _line(cells: int, look: Look) -> Line:
    return Line(cells, style(look.text, look.panel))


def _tones(look: Look) -> tuple[Style, Style]:
    """What stands back, and where you are."""
    return style(look.quiet, look.panel), style(look.here, look.panel, True)


def _labels_downwards(view: AttentionView, layout: Layout, cells: int, look: Look) -> list[Strip]:
    """The keys' labels, their first letters written downwards."""
    quiet, here = _tones(look)
    columns = [_letters(label, layout.header) for label in view.labels]
    rows = []
    for row in range(layout.header):
        line = _line(cells, look).to(layout.left)
        for key, letters in enumerate(columns):
            line.add(fit(letters[row], 2), here if key == view.key else quiet)
        rows.append(line.strip())
    return rows


def _letters(label: str, rows: int) -> list[str]:
    """The first characters of *label*, one a row, the leading space mark left out."""
    letters = [letter for letter in label.removeprefix("·") or label if cell_width(letter) > 0][:rows]
    return [*letters, *[""] * (rows - len(letters))]


def _ruler(view: AttentionView, layout: Layout, cells: int, look: Look) -> Strip:
    """Positions of the keys, every tenth cell, and a mark over the one that is looked at."""
    marks = [" "] * layout.count
    for column in range(0, layout.count, 10):
        number = str(column * layout.pool)
        if column + len(number) <= layout.count:
            marks[column : column + len(number)] = number
    at = view.key // layout.pool
    quiet, here = _tones(look)
    line = _line(cells, look).to(layout.left)
    return line.add("".join(marks[:at]), quiet).add("▾", here).add("".join(marks[at + 1 :]), quiet).strip()


def _map_row(view: AttentionView, row: int, levels: NDArray[np.uint8], layout: Layout, cells: int, look: Look) -> Strip:
    """A query: its label, and a cell for every key that it may see."""
    query = view.first + row
    quiet, here = _tones(look)
    label = fit(view.labels[query], layout.label, "right")
    line = _line(cells, look).gap(1).add(label, here if query == view.query else quiet).gap(1)
    present = query // layout.pool + 1
    cursor = view.key // layout.pool if query == view.query else -1
    for start, stop in _runs(levels[:present], cursor):
        ground = look.levels[levels[start]]
        if start == cursor:
            ink = look.ink if levels[start] >= LEVELS // 2 else look.text
            line.add("[]" if layout.cell == 2 else "+", style(ink, ground, True))
        else:
            line.add(" " * (layout.cell * (stop - start)), style(look.text, ground))
    return line.strip()


def _runs(levels: NDArray[np.uint8], cursor: int) -> list[tuple[int, int]]:
    """Stretches of equal level, the *cursor*'s cell apart from its neighbours."""
    cuts = {0, len(levels), *(np.flatnonzero(levels[1:] != levels[:-1]) + 1).tolist()}
    if 0 <= cursor < len(levels):
        cuts |= {cursor, cursor + 1}
    ordered = sorted(cuts)
    return list(zip(ordered[:-1], ordered[1:], strict=True))


def _legend(view: AttentionView, cells: int, look: Look) -> Strip:
    """The scale on the left; on the right the two tokens under the cursor and their exact weight."""
    quiet, _ = _tones(look)
    line = _line(cells, look).gap(1).add("0 ", quiet)
    for level in np.linspace(0, LEVELS - 1, min(16, max(cells // 5, 4))).astype(int):
        line.add(" ", style(look.text, look.levels[level]))
    line.add(" 1 ", quiet)
    if cells >= 50:
        line.add(tr("√ scale"), quiet)
    value = f"{view.weight:.4f}"
    room = (line.room - cell_width(value) - 7) // 2
    pair = f"{clip(view.labels[view.query], room)} → {clip(view.labels[view.key], room)}" if room > 0 else ""
    line.to(cells - cell_width(pair) - cell_width(value) - 3)
    line.add(pair, style(look.here, look.panel)).gap(2)
    return line.add(value, style(look.text, look.panel, True)).strip()


def _strongest(view: AttentionView, cells: int, look: Look) -> Strip:
    """A row as a sentence: what the query looks at most."""
    quiet, _ = _tones(look)
    weights = view.weights[view.query - view.first, : view.query + 1]
    line = _line(cells, look).gap(1)
    line.add(tr("{token} looks at", token=clip(view.labels[view.query], 12)), quiet)
    for key in np.argsort(-weights, kind="stable")[:8]:
        label, share = clip(view.labels[key], 12), f"{weights[key]:.0%}".replace("%", " %")
        if cell_width(label) + len(share) + 4 > line.room or weights[key] < 0.005:
            break
        line.gap(2).add(label, style(look.what, look.panel)).gap(1).add(share)
    return line.strip()
