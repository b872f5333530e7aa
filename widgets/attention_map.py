"""Who looks at whom: one head's attention, queries down, keys across, with the exact value under the cursor.

Rows are the newest queries that fit, so that each keeps its label. Columns are all keys. Few positions have large
cells with their number in them; many have one line each and two columns, then one column, then several keys to a
cell (the largest of them).
The future is not zero but absent, and is drawn so. On the way to the weights the same map shows the scores, before
and after the mask; queries, keys, values and what attention adds are drawn as blocks (`vector_blocks.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from ..core.catalogue import tr
from .drawable import beginning, cell_width, clip, fit
from .line import Line
from .look import Look, style
from .numbers import Number
from .pointing import Pointing
from .ruler import add_ruler
from .shade import ink_on, levels_of, paint, scale, signed_levels_of
from .vector_blocks import VectorsView, draw_blocks, pooled_signed

Kind = Literal["scores", "masked", "weights"]
"""The three faces of a map: q·k before the mask, after it, and the shares that softmax makes of them."""


@dataclass(frozen=True, slots=True, eq=False)
class AttentionView:
    """One head at one moment; n queries are in sight of the T positions."""

    layer: int
    head: int
    values: NDArray[np.float32]
    """Weights after softmax, or scores before it [n, T]; row i is the query at position `first` + i."""
    first: int
    labels: tuple[str, ...]
    """Drawable text of every position [T]."""
    query: int
    """Position of the query that is looked at."""
    key: int
    """Position of the key that is looked at."""
    kind: Kind = "weights"
    done: int | None = None
    """Queries that have been computed; those after them are not there yet. None is all."""
    silent: bool = False
    """Whether the head's output was set to zero after the weights were computed."""
    limit: float = 1.0
    """The magnitude at the end of the scale of scores."""

    @property
    def value(self) -> float:
        """The number in the cell that is looked at."""
        return float(self.values[self.query - self.first, self.key])

    def seen(self, query: int) -> int:
        """How many keys *query* has on this map."""
        if self.done is not None and query >= self.done:
            return 0
        return len(self.labels) if self.kind == "scores" else query + 1


LEGEND_ROWS = 2
"""Lines under the map: the scale with the value under the cursor, and what the query looks at most."""


TALL = (4, 3, 2)
"""Lines that a cell has where all positions fit so; the largest is tried first."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the map of T keys stands in a panel. Depends on nothing that changes from token to token but T."""

    label: int
    """Columns of the rows' labels."""
    cell: int
    """Columns of a cell: 1, or two for each line."""
    tall: int
    """Lines of a cell."""
    pool: int
    """Keys in a cell."""
    count: int
    """Cells in a full row."""
    header: int
    """Lines over the map for the keys' labels."""
    queries: int
    """Queries that fit."""

    @classmethod
    def of(cls, keys: int, columns: int, rows: int) -> Layout:
        """The widest layout of *keys* in a panel of *columns* and *rows*."""
        label = min(max(columns // 4, 6), 12)
        room, lines = max(columns - label - 3, 1), rows - LEGEND_ROWS
        tall = next((tall for tall in TALL if 2 * tall * keys <= room and tall * keys < lines), 1)
        cell = 2 * tall if 2 * keys <= room else 1
        pool = max(ceil(keys * cell / room), 1)
        header = 1 if cell != 2 else 3 if rows >= 16 else 2
        return cls(label, cell, tall, pool, ceil(keys / pool), header, max((lines - header) // tall, 1))

    @property
    def left(self) -> int:
        """The column the map begins at."""
        return self.label + 2


class AttentionMap(Pointing[AttentionView | VectorsView], can_focus=True):
    """Shows an `AttentionView` or a `VectorsView`; says where the mouse, and in focus the arrows, want to look."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1, 0)", show=False),
        Binding("down", "move(1, 0)", show=False),
        Binding("left", "move(0, -1)", show=False),
        Binding("right", "move(0, 1)", show=False),
    ]

    @dataclass
    class Pointed(Message):
        """Somebody points at a cell, or no longer at any."""

        cell: tuple[int, int] | None
        """Query and key."""

    def visible_queries(self, keys: int) -> int:
        """How many queries fit on a map of *keys* keys; ask for so many rows."""
        return Layout.of(keys, *self.inner_size).queries

    def titles(self, view: AttentionView | VectorsView | None) -> tuple[str, str]:
        if view is None:
            return tr("attention"), ""
        title = self._title(view.layer, view.head)
        if isinstance(view, VectorsView):
            return f"{title} · {view.stage}", ""
        pool = Layout.of(len(view.labels), *self.inner_size).pool
        shown = {
            "scores": tr("scores before the mask"),
            "masked": tr("scores after the mask"),
            "weights": tr("weights after softmax"),
        }[view.kind]
        note = tr("1 cell = {count} keys, the largest", count=pool) if pool > 1 else shown
        if view.first:
            note = self._part(view, note)
        stage = {"scores": tr("scores"), "masked": tr("mask"), "weights": tr("silenced") if view.silent else ""}[
            view.kind
        ]
        return f"{title} · {stage}" if stage else title, note

    def _title(self, layer: int, head: int | None) -> str:
        """What is looked at: a head of a layer, or all of them."""
        place, narrow = {"layer": layer, "head": head}, self.inner_size.width < 46
        if head is None:
            return tr("attention · L{layer}", **place) if narrow else tr("attention · layer {layer}", **place)
        if narrow:
            return tr("attention · L{layer} H{head}", **place)
        return tr("attention · layer {layer} head {head}", **place)

    def _part(self, view: AttentionView, note: str) -> str:
        """Which queries are in sight, and *note* where there is room for it too."""
        part = tr("queries {first}–{last}", first=view.first, last=len(view.labels) - 1)
        both = f"{part} · {note}"
        return both if cell_width(both) + 4 <= self.inner_size.width else part

    def draw(self, view: AttentionView | VectorsView, width: int, height: int) -> list[Strip]:
        if isinstance(view, VectorsView):
            return draw_blocks(view, width, height, self.look)
        layout = Layout.of(len(view.labels), width, height)
        map_rows = height - LEGEND_ROWS
        levels = _levels(view, layout.pool)  # [n, cells]
        rows = _heading(view, layout, width, self.look)
        for row in range(len(levels)):
            for line in range(layout.tall):
                rows.append(_map_row(view, row, line, levels[row], layout, width, self.look))
        rows += [_line(width, self.look).strip()] * (map_rows - len(rows))
        return [*rows[:map_rows], _legend(view, width, self.look), _strongest(view, width, self.look)]

    def cell_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Query and key at a place inside the border, or None where there is no cell.

        Of several keys in one cell, the one with the largest weight.
        """
        view = self.view
        if view is None:
            return None
        if isinstance(view, VectorsView):
            row = y - 1
            inside = 0 <= row < len(view.blocks[0][1]) if view.blocks else False
            return (view.first + row, min(view.first + row, len(view.labels) - 1)) if inside else None
        layout = Layout.of(len(view.labels), *self.inner_size)
        row = (y - layout.header) // layout.tall
        query = view.first + row
        low = (x - layout.left) // layout.cell * layout.pool
        if not (0 <= row < len(view.values) and 0 <= low < view.seen(query)):
            return None
        keys = view.values[row, low : min(low + layout.pool, view.seen(query))]
        return query, low + int(np.argmax(np.abs(keys)))

    def pointed_at(self, x: int, y: int) -> Message | None:
        cell = self.cell_at(x, y)
        return cell and self.Pointed(cell)

    def let_go(self) -> Message:
        return self.Pointed(None)

    def place_of(self, view: AttentionView | VectorsView) -> object:
        return view.query, view.key if isinstance(view, AttentionView) else view.query

    def action_move(self, queries: int, keys: int) -> None:
        """Point at a neighbour of the cell that is looked at, or was last moved to: keys may outrun the screen."""
        if (view := self.view) is None:
            return
        query, key = self._moved or (view.query, view.key if isinstance(view, AttentionView) else view.query)
        query = min(max(query + queries, 0), len(view.labels) - 1)
        seen = view.seen(query) if isinstance(view, AttentionView) else query + 1
        self._moved = query, min(max(key + keys, 0), max(seen - 1, 0))
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
    return levels_of(np.sqrt(np.clip(weights, 0.0, 1.0)))


def _levels(view: AttentionView, pool: int) -> NDArray[np.uint8]:
    """A level for every cell of the map [n, ⌈T/pool⌉]."""
    if view.kind == "weights":
        return to_levels(pooled(view.values, pool))
    return signed_levels_of(pooled_signed(view.values, pool), view.limit)


def _line(cells: int, look: Look) -> Line:
    return Line(cells, style(look.text, look.panel))


def _tones(look: Look) -> tuple[Style, Style]:
    """What stands back, and where you are."""
    return style(look.quiet, look.panel), style(look.here, look.panel, True)


def _heading(view: AttentionView, layout: Layout, cells: int, look: Look) -> list[Strip]:
    """The keys' labels over the map, as far as there is room."""
    if layout.cell == 1:
        return [_ruler(view, layout, cells, look)]
    if layout.cell == 2:
        return _labels_downwards(view, layout, cells, look)
    quiet, here = _tones(look)
    line = _line(cells, look).to(layout.left)
    for key, label in enumerate(view.labels):
        text = beginning(label.removeprefix("·") or label, layout.cell - 1)
        line.add(fit(text, layout.cell), here if key == view.key else quiet)
    return [line.strip()]


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
    numbers = ((column, column * layout.pool) for column in range(0, layout.count, 10))
    line = _line(cells, look).to(layout.left)
    return add_ruler(line, numbers, layout.count, view.key // layout.pool, look).strip()


def _map_row(
    view: AttentionView, row: int, part: int, levels: NDArray[np.uint8], layout: Layout, cells: int, look: Look
) -> Strip:
    """One line of a query: its label, and a cell for every key that it may see, numbered where it is large."""
    query, middle = view.first + row, part == layout.tall // 2
    quiet, here = _tones(look)
    label = fit(view.labels[query] if middle else "", layout.label, "right")
    line = _line(cells, look).gap(1).add(label, here if query == view.query else quiet).gap(1)
    present = ceil(view.seen(query) / layout.pool)
    cursor = view.key // layout.pool if query == view.query else -1
    signed = view.kind != "weights"
    if middle and layout.tall > 1:
        for key in range(present):
            text = _number(float(view.values[row, key]), layout.cell, signed)
            mark = _marked(text, layout.cell) if key == cursor else f"{text.rjust(layout.cell - 1)} "
            line.add(mark, ink_on(int(levels[key]), look, signed=signed))
        return line.strip()
    if not 0 <= cursor < present:
        return line.paint(paint(levels[:present], layout.cell, look, signed=signed)).strip()
    line.paint(paint(levels[:cursor], layout.cell, look, signed=signed))
    line.add(_marked("", layout.cell) if layout.cell > 1 else "+", ink_on(int(levels[cursor]), look, signed=signed))
    return line.paint(paint(levels[cursor + 1 : present], layout.cell, look, signed=signed)).strip()


def _marked(text: str, cells: int) -> str:
    """A cell that is looked at: *text* between brackets, where they fit."""
    return f"[{text.rjust(cells - 2)}]" if len(text) <= cells - 2 else f"{text.rjust(cells - 1)} "


def _number(value: float, cells: int, signed: bool) -> str:
    """A value as short as a cell wants it: a weight in per cent or with two digits, a score with one or none."""
    if cells < 6:
        return f"{Number(value):.0f}" if signed else f"{100 * value:.0f}"
    return f"{Number(value):.1f}" if signed else f"{value:.2f}"


def _legend(view: AttentionView, cells: int, look: Look) -> Strip:
    """The scale on the left; on the right the two tokens under the cursor and their exact value."""
    quiet, _ = _tones(look)
    signed = view.kind != "weights"
    line = _line(cells, look).gap(1).add(f"{Number(-view.limit):.1f} " if signed else "0 ", quiet)
    line.paint(scale(min(16, max(cells // 5 - (cells < 50) * 2, 4)), look, signed=signed))
    line.add(f" {view.limit:.1f} " if signed else " 1 ", quiet)
    if not signed:
        line.add(tr("√ scale") if cells >= 50 else "√", quiet)
    value = f"{Number(view.value):.4f}" if view.key < view.seen(view.query) else tr("not yet")
    room = line.room - cell_width(value) - 7
    pair = _pair(view, room)
    line.to(cells - cell_width(pair) - cell_width(value) - 3)
    line.add(pair, style(look.here, look.panel)).gap(2)
    return line.add(value, style(look.text, look.panel, True)).strip()


def _pair(view: AttentionView, cells: int) -> str:
    """The two tokens that are looked at, in *cells* columns beside the arrow: what one leaves, the other may have."""
    if cells < 2:
        return ""
    key = _placed(view, view.key, max(cells // 2, cells - cell_width(_placed(view, view.query, cells))))
    return f"{_placed(view, view.query, cells - cell_width(key))} → {key}"


def _placed(view: AttentionView, position: int, cells: int) -> str:
    """A token with its position, as far as *cells* columns have room: tokens may stand in a text many times."""
    number = f"@{position}"
    label = view.labels[position]
    return f"{clip(label, cells - len(number))}{number}" if cells > len(number) + 1 else clip(label, cells)


def _strongest(view: AttentionView, cells: int, look: Look) -> Strip:
    """A row as a sentence: what the query looks at most."""
    quiet, _ = _tones(look)
    row = view.values[view.query - view.first, : view.seen(view.query)]
    line = _line(cells, look).gap(1)
    if not row.size:
        return line.add(tr("{token} has not looked back yet", token=clip(view.labels[view.query], 12)), quiet).strip()
    token = clip(view.labels[view.query], 12)
    line.add(
        tr("{token} looks at", token=token) if view.kind == "weights" else tr("{token} scores", token=token), quiet
    )
    for key in np.argsort(-row, kind="stable")[:8].tolist():
        share = f"{row[key]:.0%}".replace("%", " %") if view.kind == "weights" else f"{Number(row[key]):.2f}"
        label = clip(view.labels[key], 12)
        if view.labels.count(view.labels[key]) > 1:
            label = _placed(view, key, 16)
        if cell_width(label) + len(share) + 4 > line.room or (view.kind == "weights" and row[key] < 0.005):
            break
        line.gap(2).add(label, style(look.what, look.panel)).gap(1).add(share)
    return line.strip()
