"""The lines around the panels: what runs and how fast, where in the pass we are, what happened, which keys do what.

Each fits itself to its width by leaving out whole parts, the least important first; nothing is cut in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from textual import events
from textual.message import Message
from textual.strip import Strip

from .drawable import cell_width, clip
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
        line.gap(1).add(f" {part.text} " if part.tone == "badge" else part.text, tones[part.tone])


def _cells(parts: list[Part]) -> int:
    return sum(cell_width(part.text) + (3 if part.tone == "badge" else 1) for part in parts)


def _fitting(view: TitleView, room: int) -> tuple[list[Part], list[Part]]:
    """The parts that fit into *room* columns, the heaviest left out first."""
    left, right = list(view.left), list(view.right)
    while _cells(left) + _cells(right) > room:
        heaviest = max((*left, *right), key=lambda part: part.weight, default=None)
        if heaviest is None or heaviest.weight == 0:
            break
        (left if heaviest in left else right).remove(heaviest)
    return left, right


@dataclass(frozen=True, slots=True)
class StagesView:
    """The stages of one pass as a sentence, and the one we are at."""

    names: tuple[str, ...]
    layers: range
    """Indices in `names` that are the model's layers."""
    current: int
    """Index of the stage that was last reached; −1 before the first."""


class StageStrip(Panel[StagesView]):
    """Shows a `StagesView` in one line."""

    HAS_BORDER = False
    DEFAULT_CSS = "StageStrip { height: 1; }"

    def draw(self, view: StagesView, width: int, height: int) -> list[Strip]:
        look = self.look
        line = Line(width, style(look.text, look.ground)).gap(1)
        parts, joint = _stage_parts(view, width - 2)
        for place, (text, state) in enumerate(parts):
            if place:
                line.add(joint, style(look.line, look.ground))
            tone = {
                "past": style(look.what, look.ground),
                "here": style(look.ink, look.what, True),
                "ahead": style(look.quiet, look.ground),
            }[state]
            line.add(text, tone)
        return [line.strip()]


def _stage_parts(view: StagesView, room: int) -> tuple[list[tuple[str, str]], str]:
    """Texts with ``past``, ``here`` or ``ahead``, and what stands between them, in the roomiest form that fits."""
    states = ["past" if i < view.current else "here" if i == view.current else "ahead" for i in range(len(view.names))]
    full = list(zip(view.names, states, strict=True))
    for parts in (full, _joined_layers(view, full)):
        for joint in (" ─ ", " "):
            if sum(cell_width(text) for text, _ in parts) + len(joint) * (len(parts) - 1) <= room:
                return parts, joint
    return [part for part in _joined_layers(view, full) if part[1] == "here"] or full[:1], " "


def _joined_layers(view: StagesView, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The same with all layers in one part: ``L7/12`` while we are in them."""
    count, first, last = len(view.layers), view.layers.start, view.layers.stop
    inside = view.current in view.layers
    text = f"L{view.current - first}/{count}" if inside else f"L0–L{count - 1}"
    state = "here" if inside else "past" if view.current >= last else "ahead"
    return [*parts[:first], (text, state), *parts[last:]]


@dataclass(frozen=True, slots=True)
class NoticeView:
    """One sentence about what just happened."""

    text: str
    """Drawable."""
    tone: Literal["quiet", "here", "plain"] = "quiet"
    short: str = ""
    """The same in fewer words, for where `text` does not fit."""


class NoticeLine(Panel[NoticeView]):
    """Shows a `NoticeView`."""

    HAS_BORDER = False
    DEFAULT_CSS = "NoticeLine { height: 1; }"

    def draw(self, view: NoticeView, width: int, height: int) -> list[Strip]:
        look = self.look
        colour = {"quiet": look.quiet, "here": look.here, "plain": look.text}[view.tone]
        line = Line(width, style(look.text, look.ground)).gap(1)
        text = view.short if view.short and cell_width(view.text) > width - 2 else view.text
        return [line.add(clip(text, width - 2), style(colour, look.ground)).strip()]


@dataclass(frozen=True, slots=True)
class KeyHint:
    """A key and what it does, in a word."""

    key: str
    label: str
    action: str
    """What a click on it asks for."""


@dataclass(frozen=True, slots=True)
class KeysView:
    """The keys worth showing, the most useful first; those at the end are left out first."""

    hints: tuple[KeyHint, ...]
    last: tuple[KeyHint, ...] = field(default=())
    """Hints that always stay, at the right edge."""


class KeyLine(Panel[KeysView]):
    """Shows a `KeysView`; a click on a hint does what its key does."""

    HAS_BORDER = False
    DEFAULT_CSS = "KeyLine { height: 1; }"

    @dataclass
    class Asked(Message):
        """Somebody clicked a hint."""

        action: str

    def draw(self, view: KeysView, width: int, height: int) -> list[Strip]:
        look = self.look
        line = Line(width, style(look.text, look.ground))
        for column, hint in self._placed(view, width):
            line.to(column).add(hint.key, style(look.here, look.ground, True)).gap(1)
            line.add(hint.label, style(look.quiet, look.ground))
        return [line.strip()]

    def on_click(self, event: events.Click) -> None:
        if self.view is None or (place := self.inner_offset(event)) is None:
            return
        for column, hint in self._placed(self.view, self.size.width):
            if column <= place[0] < column + _hint_cells(hint):
                self.post_message(self.Asked(hint.action))

    def _placed(self, view: KeysView, room: int) -> list[tuple[int, KeyHint]]:
        """The hints that fit, each with its column."""
        end = room - 1 - sum(_hint_cells(hint) + 2 for hint in view.last)
        placed, column = [], 1
        for hint in view.hints:
            if column + _hint_cells(hint) > end:
                break
            placed.append((column, hint))
            column += _hint_cells(hint) + 2
        column = end + 2
        for hint in view.last:
            placed.append((column, hint))
            column += _hint_cells(hint) + 2
        return placed


def _hint_cells(hint: KeyHint) -> int:
    return cell_width(hint.key) + 1 + cell_width(hint.label)
