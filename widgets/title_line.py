"""The first line: what is open, and how it goes. It fits by leaving out whole parts, the least important first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.strip import Strip

from .drawable import cell_width
from .line import Line
from .look import style
from .panel import Panel

Tone = Literal["badge", "strong", "plain", "quiet", "here", "what"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a line."""

    text: str
    """Drawable."""
    tone: Tone = "plain"
    weight: int = 0
    """The parts of greatest weight are the first to be left out; 0 always stays."""
    gap: int = 1
    """Columns before it."""


@dataclass(frozen=True, slots=True)
class TitleView:
    """What is open, on the left; how it goes, on the right."""

    left: tuple[Part, ...]
    right: tuple[Part, ...]


class TitleLine(Panel[TitleView]):
    """The first line of the screen."""

    HAS_BORDER = False
    DEFAULT_CSS = "TitleLine { height: 1; }"

    def draw(self, view: TitleView, width: int, height: int) -> list[Strip]:
        left, right = _fitting(view, width - 3)
        line = Line(width, style(self.look.text, self.look.ground))
        for part in left:
            self._add(line, part)
        line.to(width - _cells(right) - 1)
        for part in right:
            self._add(line, part)
        return [line.strip()]

    def _add(self, line: Line, part: Part) -> None:
        look = self.look
        tones = {
            "badge": style(look.ink, look.here, True),
            "strong": style(look.text, look.ground, True),
            "plain": style(look.text, look.ground),
            "quiet": style(look.quiet, look.ground),
            "here": style(look.here, look.ground, True),
            "what": style(look.what, look.ground),
        }
        line.gap(part.gap).add(f" {part.text} " if part.tone == "badge" else part.text, tones[part.tone])


def _cells(parts: list[Part]) -> int:
    return sum(part.gap + cell_width(part.text) + (2 if part.tone == "badge" else 0) for part in parts)


def _fitting(view: TitleView, room: int) -> tuple[list[Part], list[Part]]:
    """The parts that fit into *room* columns, the heaviest left out first."""
    left, right = list(view.left), list(view.right)
    while _cells(left) + _cells(right) > room:
        heaviest = max((*left, *right), key=lambda part: part.weight, default=None)
        if heaviest is None or heaviest.weight == 0:
            break
        (left if heaviest in left else right).remove(heaviest)
    return left, right
