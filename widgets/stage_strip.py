"""The second line: the stages of a pass as a sentence, the one we are at lit."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip

from .drawable import cell_width
from .line import Line
from .look import style
from .panel import Panel


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
                "off": style(look.line, look.ground),
            }[state]
            line.add(text, tone)
        return [line.strip()]


def _stage_parts(view: StagesView, room: int) -> tuple[list[tuple[str, str]], str]:
    """Texts, each ``past``, ``here``, ``ahead`` or ``off``, and what stands between, in the roomiest form that fits."""
    states = [_state(view, index) for index in range(len(view.names))]
    full = list(zip(view.names, states, strict=True))
    joined = _joined_layers(view, full)
    for parts in (full, joined, [part for part in joined if part[1] != "off"]):
        for joint in (" ─ ", " "):
            if sum(cell_width(text) for text, _ in parts) + len(joint) * (len(parts) - 1) <= room:
                return parts, joint
    return [part for part in joined if part[1] == "here"] or full[:1], " "


def _state(view: StagesView, index: int) -> str:
    if index == view.current:
        return "here"
    return "off" if index in view.off else "past" if index < view.current else "ahead"


def _joined_layers(view: StagesView, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The same with all layers in one part: the one we are in, or ``L0–L11``."""
    count, first, last = len(view.layers), view.layers.start, view.layers.stop
    inside = view.current in view.layers
    text = view.names[view.current] if inside else f"L0–L{count - 1}"
    state = "here" if inside else "past" if view.current >= last else "ahead"
    return [*parts[:first], (text, state), *parts[last:]]
