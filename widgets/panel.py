"""A panel: a widget that is a pure function from what it shows to rows of cells.

A panel is given a whole new view whenever something moved; it draws all its rows and repaints those that
differ. That keeps drawing simple and the terminal quiet. The border is part of the rows, so a panel looks the
same on the screen and in a picture.
"""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from rich.segment import Segment
from textual import events
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from .drawable import cell_width, clip
from .line import Line
from .look import Look, look, style

View = TypeVar("View")


class Panel(Widget, Generic[View]):
    """Shows one view. Subclasses write `draw`, and `titles` where they have a border."""

    DEFAULT_CSS = "Panel { height: 1fr; }"
    HAS_BORDER: ClassVar[bool] = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.look: Look = look()
        self._view: View | None = None
        self._waiting = ""
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
        if view != self._view:
            self._view = view
            self.redraw()

    def wait(self, sentence: str) -> None:
        """Show nothing but a drawable *sentence*, until there is a view."""
        self._view, self._waiting = None, sentence
        self.redraw()

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
            self.refresh()
            return
        changed = [y for y, (new, old) in enumerate(zip(rows, self._rows, strict=True)) if new != old]
        self._rows = rows
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def draw(self, view: View, width: int, height: int) -> list[Strip]:
        """The rows of *view*, each *width* columns; at most *height* of them."""
        raise NotImplementedError

    def titles(self, view: View | None) -> tuple[str, str]:
        """What stands in the upper and in the lower border, drawable."""
        return "", ""

    def render_line(self, y: int) -> Strip:
        if y < len(self._rows):
            return self._rows[y]
        return Strip.blank(self.size.width, style(self.look.text, self.look.ground))

    def on_resize(self) -> None:
        self.redraw()

    def on_focus(self) -> None:
        self.call_later(self.redraw)  # `has_focus` changes only after this

    def on_blur(self) -> None:
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
        drawn = self._empty(columns, rows) if self._view is None else self.draw(self._view, columns, rows)[:rows]
        ground = self.look.panel if self.HAS_BORDER else self.look.ground
        blank = Strip.blank(columns, style(self.look.text, ground))
        drawn += [blank] * (rows - len(drawn))
        return frame(drawn, columns, *self.titles(self._view), self.has_focus, self.look) if self.HAS_BORDER else drawn

    def _empty(self, columns: int, rows: int) -> list[Strip]:
        """What stands here while there is nothing to show."""
        if not self.HAS_BORDER:
            return []
        blank = Line(columns, style(self.look.text, self.look.panel)).strip()
        text = clip(self._waiting, columns)
        line = Line(columns, style(self.look.quiet, self.look.panel)).gap((columns - cell_width(text)) // 2).add(text)
        return [*[blank] * ((rows - 1) // 2), line.strip()]


def frame(rows: list[Strip], columns: int, upper: str, lower: str, focused: bool, look: Look) -> list[Strip]:
    """*rows* in a round border with a title above and a note below, each left out where it does not fit."""
    edge = style(look.here if focused else look.line, look.panel)
    side = Segment("│", edge)
    title = style(look.here if focused else look.text, look.panel, focused)
    note = style(look.quiet, look.panel)
    framed = [Strip([side, *row, side], columns + 2) for row in rows]
    upper = clip(upper, max(columns - 4, 0))
    gap = columns - (cell_width(upper) + 3 if upper else 0)
    top = [Segment("╭─", edge), Segment(f" {upper} ", title)] if upper else [Segment("╭", edge)]
    lower = lower if cell_width(lower) + 4 <= columns else ""
    bottom_gap = columns - (cell_width(lower) + 3 if lower else 0)
    bottom = [Segment(f" {lower} ", note), Segment("─╯", edge)] if lower else [Segment("╯", edge)]
    return [
        Strip([*top, Segment("─" * gap + "╮", edge)], columns + 2),
        *framed,
        Strip([Segment("╰" + "─" * bottom_gap, edge), *bottom], columns + 2),
    ]
