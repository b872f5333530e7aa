"""The text as the model sees it: tokens side by side, the prompt apart from what was written, surprise as a tint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.style import Style
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


class TokenStream(Panel[TokenStreamView]):
    """Shows a `TokenStreamView`, scrolled so that the current token is in sight."""

    def draw(self, view: TokenStreamView, width: int, height: int) -> list[Strip]:
        lines, where = wrap(view.tokens, width - 2, view.current)
        first = max(min(where - height + 1, len(lines) - height), 0) if where >= height else 0
        return [self._line(view, line, width) for line in lines[first : first + height]]

    def titles(self, view: TokenStreamView | None) -> tuple[str, str]:
        return tr("text"), tr("prompt quiet · written bold · the tint is surprise")

    def _line(self, view: TokenStreamView, line: list[tuple[int, str]], width: int) -> Strip:
        look = self.look
        built = Line(width, style(look.text, look.panel)).gap(1)
        for index, text in line:
            if view.current is None or index < view.current:
                tone = _style(view.tokens[index], look)
            elif index == view.current:
                tone = style(look.ink, look.here, True)
            else:
                tone = style(look.line, look.panel)
            built.add(text, tone + UNDERLINED if index in view.marked else tone)
        return built.strip()


def wrap(tokens: tuple[TokenCell, ...], columns: int, current: int | None) -> tuple[list[list[tuple[int, str]]], int]:
    """Tokens in lines of at most *columns*, as (index, text) pieces, and the line that holds *current*.

    A token stays whole unless it is wider than a line of its own.
    """
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
