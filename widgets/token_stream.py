"""The text as the model sees it: tokens side by side, the prompt apart from what was written, surprise as a tint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from ..core.catalogue import tr
from .drawable import beginning, cell_width
from .line import Line
from .look import Look, style
from .panel import Panel

Kind = Literal["added", "prompt", "written"]

UNDERLINED = Style(underline=True)

QUIET_TINT = 0.25
"""Strength of a tint from which quiet text could no longer be read on it."""
FULL_TINT_BITS = 12.0
"""Surprisal, in bits, that gets the strongest tint."""


@dataclass(frozen=True, slots=True)
class TokenCell:
    """One token of the text."""

    text: str
    """Drawable."""
    kind: Kind
    """``added`` by the tokenizer, of the ``prompt``, or ``written`` by the model."""
    surprisal: float | None
    """How unexpected it was, in bits; None where that is not known."""
    breaks: bool = False
    """Whether the text goes on in a new line after it."""


@dataclass(frozen=True, slots=True)
class TokenStreamView:
    """The text, and the token that is looked at."""

    tokens: tuple[TokenCell, ...]
    current: int | None
    """Index of that token; those after it are barely there. None before anything was written."""
    marked: frozenset[int] = frozenset()
    """Indices that are underlined: the tokens somebody looks at elsewhere."""
    coming: str = ""
    """What stands where the next token will: a mark while its pass is under way, or why no token follows."""


class TokenStream(Panel[TokenStreamView], can_focus=True):
    """Shows a `TokenStreamView`, scrolled so that the current token is in sight."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", show=False),
        Binding("right", "move(1)", show=False),
        Binding("up", "line(-1)", show=False),
        Binding("down", "line(1)", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Somebody wants to look at a token."""

        index: int

    def draw(self, view: TokenStreamView, width: int, height: int) -> list[Strip]:
        return [self._line(view, line, width) for line in self._visible(view, width, height)]

    def titles(self, view: TokenStreamView | None) -> tuple[str, str]:
        above = self._above(view) if view else 0
        title = tr("text · {count} above", count=above) if above else tr("text")
        return title, tr("prompt quiet · written bold · the tint is surprise")

    def token_at(self, x: int, y: int) -> int | None:
        """Index of the token at a place inside the border, or None where there is none."""
        if self.view is None:
            return None
        lines = self._visible(self.view, *self.inner_size)
        column = 1
        for index, text in lines[y] if y < len(lines) else ():
            if column <= x < column + cell_width(text) and index < len(self.view.tokens):
                return index
            column += cell_width(text)
        return None

    def on_click(self, event: events.Click) -> None:
        place = self.inner_offset(event)
        if self.view and place and (index := self.token_at(*place)) is not None:
            self._choose(self.view, index)

    def place_of(self, view: TokenStreamView) -> object:
        return self._current(view)

    def action_move(self, change: int) -> None:
        """To the neighbour of the current token, or of the one last moved to: keys may outrun the screen."""
        if (view := self.view) and view.tokens:
            self._choose(view, self._token_of_keys(view) + change)

    def action_line(self, change: int) -> None:
        """To the first token of the line above or below."""
        if (view := self.view) and view.tokens:
            lines, where = wrap(_all(view), self.inner_size.width - 2, self._token_of_keys(view))
            there = range(where + change, len(lines) if change > 0 else -1, change)
            line = next((lines[row] for row in there if lines[row]), lines[where])
            self._choose(view, line[0][0] if line else self._token_of_keys(view))

    def _current(self, view: TokenStreamView) -> int:
        return len(view.tokens) - 1 if view.current is None else view.current

    def _token_of_keys(self, view: TokenStreamView) -> int:
        """Where keys are: a token of the prompt is looked at without being the current one."""
        return self._current(view) if self._moved is None else min(self._moved, len(view.tokens) - 1)

    def _choose(self, view: TokenStreamView, index: int) -> None:
        self._moved = min(max(index, 0), len(view.tokens) - 1)
        self.post_message(self.Chosen(self._moved))

    def _visible(self, view: TokenStreamView, width: int, height: int) -> list[list[tuple[int, str]]]:
        """The lines in sight, as (index, text) pieces; what is coming has the index after the last token."""
        lines, first = self._scrolled(view, width, height)
        return lines[first : first + height]

    def _above(self, view: TokenStreamView) -> int:
        """How many lines are out of sight above."""
        return self._scrolled(view, *self.inner_size)[1]

    def _scrolled(self, view: TokenStreamView, width: int, height: int) -> tuple[list[list[tuple[int, str]]], int]:
        """All lines, and the first that is in sight."""
        looked_at = len(view.tokens) if view.current is None and view.coming else view.current
        lines, where = wrap(_all(view), width - 2, looked_at)
        return lines, max(min(where - height + 1, len(lines) - height), 0) if where >= height else 0

    def _line(self, view: TokenStreamView, line: list[tuple[int, str]], width: int) -> Strip:
        look = self.look
        built = Line(width, style(look.text, look.panel)).gap(1)
        for index, text in line:
            if index == len(view.tokens):
                tone = style(look.here, look.panel)
            elif view.current is None or index < view.current:
                tone = _style(view.tokens[index], look)
            elif index == view.current:
                tone = style(look.ink, look.here, True)
            else:
                tone = style(look.faint, look.panel)
            built.add(text, tone + UNDERLINED if index in view.marked else tone)
        return built.strip()


def _all(view: TokenStreamView) -> tuple[TokenCell, ...]:
    """The tokens, and what is coming after them."""
    return (*view.tokens, TokenCell(view.coming, "written", None)) if view.coming else view.tokens


def wrap(tokens: tuple[TokenCell, ...], columns: int, current: int | None) -> tuple[list[list[tuple[int, str]]], int]:
    """Tokens in lines of at most *columns*, as (index, text) pieces, and the line that holds *current*.

    A token stays whole unless it is wider than a line of its own.
    """
    columns = max(columns, 1)
    lines: list[list[tuple[int, str]]] = [[]]
    used = where = 0
    for index, token in enumerate(tokens):
        text, cells = token.text, cell_width(token.text)
        if used and used + cells > columns:
            lines.append([])
            used = 0
        while cells > columns:
            piece = beginning(text, columns) or text[:1]
            lines[-1].append((index, piece))
            lines.append([])
            text = text[len(piece) :]
            cells = cell_width(text)
        lines[-1].append((index, text))
        used += cells
        if index == current:
            where = len(lines) - 1
        if token.breaks:
            lines.append([])
            used = 0
    return lines, where


def _style(token: TokenCell, look: Look) -> Style:
    strength = 0.0 if token.surprisal is None else token.surprisal / FULL_TINT_BITS
    tint = look.tint(strength)
    if token.kind == "written":
        return style(look.text, tint, bold=True)
    readable = look.quiet if strength < QUIET_TINT else look.text
    return style(readable, tint, italic=token.kind == "added")
