"""The second line: the stages of a pass as a sentence, the one we are at lit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual import events
from textual.message import Message
from textual.strip import Strip

from .drawable import cell_width
from .line import Line
from .look import style
from .panel import Panel

State = Literal["past", "here", "ahead", "off"]

Part = tuple[str, State]
"""A text of the strip, and where it stands from where we are."""


@dataclass(frozen=True, slots=True)
class StagesView:
    """The stages of one pass as a sentence, and the one we are at."""

    names: tuple[str, ...]
    layers: range
    """Indices in `names` that are the model's layers."""
    current: int
    """Index of the stage that was last reached; −1 before the first."""
    off: frozenset[int] = frozenset()
    """Indices of stages that the settings let do nothing."""


class StageStrip(Panel[StagesView]):
    """Shows a `StagesView` in one line."""

    HAS_BORDER = False
    DEFAULT_CSS = "StageStrip { height: 1; }"

    @dataclass
    class Chosen(Message):
        """Somebody wants to look at a stage."""

        index: int
        """Into `StagesView.names`."""

    def on_click(self, event: events.Click) -> None:
        place = self.inner_offset(event)
        if self.view and place and (index := self.stage_at(place[0])) is not None:
            self.post_message(self.Chosen(index))

    def stage_at(self, x: int) -> int | None:
        """The stage at a column, or None where there is none, or several that share a name."""
        if self.view is None:
            return None
        parts, joint = _stage_parts(self.view, self.size.width - 2)
        column = 1
        for text, _ in parts:
            if column <= x < column + cell_width(text):
                return self.view.names.index(text) if text in self.view.names else None
            column += cell_width(text) + len(joint)
        return None

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
                "off": style(look.faint, look.ground),
            }[state]
            line.add(text, tone)
        return [line.strip()]


def _stage_parts(view: StagesView, room: int) -> tuple[list[Part], str]:
    """The stages and what stands between them, in the roomiest form that fits: with all layers, with the layers before
    and after this one as ranges, without what is off, or what there is room for on either side."""
    full = [(name, _state(view, index)) for index, name in enumerate(view.names)]
    joined = _joined_layers(view, full)
    active = [part for part in joined if part[1] != "off"]
    for parts in (full, joined, active):
        for joint in (" ─ ", " "):
            if _width(parts, joint) <= room:
                return parts, joint
    return _around_here(active, room), " "


def _width(parts: list[Part], joint: str) -> int:
    return sum(cell_width(text) for text, _ in parts) + len(joint) * (len(parts) - 1)


def _state(view: StagesView, index: int) -> State:
    if index == view.current:
        return "here"
    return "off" if index in view.off else "past" if index < view.current else "ahead"


def _joined_layers(view: StagesView, parts: list[Part]) -> list[Part]:
    """The same with the layers as ``L0–L11``, or as ``L0–L3``, the one we are in, ``L5–L11``."""
    first, last, here = view.layers.start, view.layers.stop, view.current
    if here not in view.layers:
        return [*parts[:first], *_range(parts, view.layers, view.layers), *parts[last:]]
    before = _range(parts, range(first, here), view.layers)
    after = _range(parts, range(here + 1, last), view.layers)
    return [*parts[:first], *before, parts[here], *after, *parts[last:]]


def _range(parts: list[Part], some: range, layers: range) -> list[Part]:
    """Some of the *layers* as one part, or as none where they are none."""
    if not some:
        return []
    first, last = some[0] - layers.start, some[-1] - layers.start
    return [(f"L{first}" if first == last else f"L{first}–L{last}", parts[some[0]][1])]


def _around_here(parts: list[Part], room: int) -> list[Part]:
    """As many parts as fit, those furthest from the one we are at left out first, and that one always there."""
    here = next((index for index, part in enumerate(parts) if part[1] == "here"), 0)
    first, last = 0, len(parts)
    while last - first > 1 and _width(parts[first:last], " ") > room:
        first, last = (first + 1, last) if here - first > last - 1 - here else (first, last - 1)
    return parts[first:last]
