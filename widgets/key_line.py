"""The last line: keys and what they do. Whole hints only; a click on one does what its key does."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip

from .drawable import cell_width
from .line import Line
from .look import style
from .panel import Panel

GAP = 2
"""Columns between hints."""


@dataclass(frozen=True, slots=True)
class KeyHint:
    """Keys, and what they do in a word."""

    keys: tuple[tuple[str, str], ...]
    """How each key is written, and what a click on it asks for."""
    label: str

    @property
    def text(self) -> str:
        """How the keys are written: arrows side by side, others apart."""
        keys = [key for key, _ in self.keys]
        return ("" if all(len(key) == 1 and not key.isascii() for key in keys) else " ").join(keys)

    @property
    def cells(self) -> int:
        """Columns it takes."""
        return cell_width(self.text) + 1 + cell_width(self.label)

    def action_at(self, column: int) -> str:
        """What a click on *column* of the hint asks for: the key it is on, or the first one's."""
        share = column * len(self.keys) // cell_width(self.text)
        return self.keys[share if share < len(self.keys) else 0][1]


@dataclass(frozen=True, slots=True)
class KeysView:
    """The keys worth showing, the most useful first; those at the end are left out first."""

    hints: tuple[KeyHint, ...]
    last: tuple[KeyHint, ...] = ()
    """Hints that always stay, at the right edge."""


class KeyLine(Panel[KeysView]):
    """Shows a `KeysView`."""

    HAS_BORDER = False
    DEFAULT_CSS = "KeyLine { height: 1; }"

    @dataclass
    class Asked(Message):
        """Somebody clicked a hint."""

        action: str

    def draw(self, view: KeysView, width: int, height: int) -> list[Strip]:
        look = self.look
        line = Line(width, style(look.text, look.ground))
        for column, hint in _placed(view, width):
            line.to(column).add(hint.text, style(look.here, look.ground, True)).gap(1)
            line.add(hint.label, style(look.quiet, look.ground))
        return [line.strip()]

    def on_click(self, event: events.Click) -> None:
        if self.view is None or (place := self.inner_offset(event)) is None:
            return
        for column, hint in _placed(self.view, self.size.width):
            if column <= place[0] < column + hint.cells:
                if action := hint.action_at(place[0] - column):
                    self.post_message(self.Asked(action))


def _placed(view: KeysView, room: int) -> list[tuple[int, KeyHint]]:
    """The hints that fit, each with its column."""
    end = room - 1 - sum(hint.cells + GAP for hint in view.last)
    placed, column = [], 1
    for hint in view.hints:
        if column + hint.cells > end:
            break
        placed.append((column, hint))
        column += hint.cells + GAP
    column = end + GAP
    for hint in view.last:
        placed.append((column, hint))
        column += hint.cells + GAP
    return placed
