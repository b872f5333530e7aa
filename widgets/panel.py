"""A panel: a widget that is a pure function from what it shows to rows of cells.

A panel is given a whole new view whenever something moved; it draws all its rows and repaints those that
differ. That keeps drawing simple and the terminal quiet. The border is part of the rows, so a panel looks the
same on the screen and in a picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from rich.segment import Segment
from textual import events
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from .drawable import cell_width, clip
from .line import Line
from .look import Look, look, style
from .sentence import centred

View = TypeVar("View")

LEAST_COLUMNS = 8
"""Columns inside a panel below which it draws nothing: there is nothing that could be read."""


class Panel(Widget, Generic[View]):
    """Shows one view. Subclasses write `draw`, and `titles` where they have a border."""

    DEFAULT_CSS = "Panel { height: 1fr; }"
    HAS_BORDER: ClassVar[bool] = True
    sent: ClassVar[int] = 0
    """About how many bytes all panels together have had painted so far."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.look: Look = look()
        self._view: View | None = None
        self.number = ""
        """The key that shows this panel alone, as its title says."""
        self._waiting = ""
        self._posing = False
        self._place: object = None
        """Where keys are, as the present view has it."""
        self._ahead: list[Any] = []
        """Places that keys have moved to since, oldest first: they may outrun the screen."""
        self._early: list[Callable[[], None]] = []
        """What keys asked for before there was anything to do it to."""
        self._rows: list[Strip] = []

    @property
    def view(self) -> View | None:
        """What is shown."""
        return self._view

    @property
    def inner_size(self) -> Size:
        """Columns and rows inside the border."""
        border = 2 if self.HAS_BORDER else 0
        return Size(max(self.size.width - border, 0), max(self.size.height - border, 0))

    def show(self, view: View) -> None:
        """Show *view* from now on."""
        self._settle(self.place_of(view))
        if view != self._view:
            self._view = view
            self.redraw()
        early, self._early = self._early, []
        for do in early:
            do()

    def place_of(self, view: View) -> object:
        """Where keys are in *view*, in a panel where they can be somewhere."""
        return None

    @property
    def _moved(self) -> Any:
        """Where keys have moved to, if the view does not show it yet; None otherwise."""
        return self._ahead[-1] if self._ahead else None

    @_moved.setter
    def _moved(self, place: Any) -> None:
        self._ahead.append(place)

    def _settle(self, place: object) -> None:
        """Keys are at *place* now: one they moved to, with more to come, or one that somebody else chose."""
        if place in self._ahead:
            del self._ahead[: self._ahead.index(place) + 1]
        elif place != self._place:
            self._ahead.clear()
        self._place = place

    def once_shown(self, do: Callable[[], None]) -> None:
        """*do* what a key asks for as soon as there is a view: whoever types ahead means what is about to come."""
        self._early.append(do)

    def wait(self, sentence: str) -> None:
        """Show nothing but a drawable *sentence*, until there is a view."""
        self._view, self._waiting = None, sentence
        self._forget_keys()
        self.redraw()

    def _forget_keys(self) -> None:
        self._ahead.clear()
        self._early.clear()

    def wear(self, look: Look) -> None:
        """Draw in another look from now on."""
        self.look = look
        self._rows = []
        self.redraw()

    def redraw(self) -> None:
        """Draw everything, repaint the rows that differ."""
        if not (self.inner_size.width > 0 and self.inner_size.height > 0):
            return
        rows = self._framed()
        if len(rows) != len(self._rows):
            self._rows = rows
            Panel.sent += sum(map(_bytes, rows))
            self.refresh()
            return
        changed = [y for y, (new, old) in enumerate(zip(rows, self._rows, strict=True)) if new != old]
        self._rows = rows
        if changed:
            Panel.sent += sum(_bytes(rows[y]) for y in changed)
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def draw(self, view: View, width: int, height: int) -> list[Strip]:
        """The rows of *view*, each *width* columns; at most *height* of them."""
        raise NotImplementedError

    def titles(self, view: View | None) -> tuple[str, str]:
        """What stands in the upper and in the lower border, drawable."""
        return "", ""

    @property
    def in_focus(self) -> bool:
        """Whether keys go here, and the panel is to say so."""
        return self.has_focus and not self._posing

    def portrait(self) -> list[Strip]:
        """The rows for a picture: nobody has entered, and of empty rows that follow each other there is one."""
        self._posing = True
        try:
            rows = self._framed()
        finally:
            self._posing = False
        empty = [_is_empty(row) for row in rows]
        return [row for y, row in enumerate(rows) if not (empty[y] and y and empty[y - 1])]

    def render_line(self, y: int) -> Strip:
        if y < len(self._rows):
            return self._rows[y]
        return Strip.blank(self.size.width, style(self.look.text, self.look.ground))

    def on_resize(self) -> None:
        self.redraw()

    def on_hide(self, event: events.Hide) -> None:
        """A panel that is on the screen again by the time it hears that it was hidden keeps the focus."""
        if all(node.display for node in self.ancestors_with_self):
            event.prevent_default()

    def on_focus(self) -> None:
        self.call_later(self.redraw)  # `has_focus` changes only after this

    def on_blur(self) -> None:
        self._forget_keys()
        self.call_later(self.redraw)

    def inner_offset(self, event: events.MouseEvent) -> tuple[int, int] | None:
        """Column and row of a mouse event inside the border, or None."""
        offset = event.get_content_offset(self)
        border = 1 if self.HAS_BORDER else 0
        if offset is None:
            return None
        x, y = offset.x - border, offset.y - border
        inside = 0 <= x < self.inner_size.width and 0 <= y < self.inner_size.height
        return (x, y) if inside else None

    def _framed(self) -> list[Strip]:
        columns, rows = self.inner_size
        if columns < LEAST_COLUMNS:
            drawn, titles = [], ("", "")
        else:
            drawn, titles = self._drawn(columns, rows), self.titles(self._view)
        ground = self.look.panel if self.HAS_BORDER else self.look.ground
        blank = Strip.blank(columns, style(self.look.text, ground))
        drawn += [blank] * (rows - len(drawn))
        return frame(drawn, columns, *titles, self.in_focus, self.look, self.number) if self.HAS_BORDER else drawn

    def _drawn(self, columns: int, rows: int) -> list[Strip]:
        return self._empty(columns, rows) if self._view is None else self.draw(self._view, columns, rows)[:rows]

    def _empty(self, columns: int, rows: int) -> list[Strip]:
        """What stands here while there is nothing to show."""
        return centred(self._waiting, columns, rows, self.look) if self.HAS_BORDER else []


def _is_empty(row: Strip) -> bool:
    """Whether there is nothing between the borders, not even a colour."""
    return not row.text.strip("│ ") and len({segment.style and segment.style.bgcolor for segment in row}) == 1


STYLE_BYTES = 40
"""What it takes to change both colours on a terminal."""


def _bytes(row: Strip) -> int:
    """About what it takes to paint *row*."""
    return row.cell_length + STYLE_BYTES * len(row)


def frame(
    rows: list[Strip], columns: int, upper: str, lower: str, focused: bool, look: Look, number: str = ""
) -> list[Strip]:
    """*rows* in a round border: a *number* and a title above, a note below, each left out where it does not fit."""
    edge = style(look.here if focused else look.line, look.panel)
    side = Segment("│", edge)
    title = style(look.here if focused else look.text, look.panel, focused)
    note = style(look.quiet, look.panel)
    framed = [Strip([side, *row, side], columns + 2) for row in rows]
    top = Line(columns + 2, edge).add("╭─")
    number = number if columns > 8 else ""
    if upper := clip(upper, max(columns - 4 - (cell_width(number) + 1 if number else 0), 0)):
        top.add(" ").add(f"{number} " if number else "", note).add(f"{upper} ", title)
    bottom = Line(columns + 2, edge).add("╰")
    if lower and cell_width(lower) + 4 <= columns:
        bottom.add("─" * (columns - cell_width(lower) - 3)).add(f" {lower} ", note).add("─╯")
    else:
        bottom.add("─" * columns + "╯")
    return [top.add("─" * (top.room - 1) + "╮").strip(), *framed, bottom.strip()]
