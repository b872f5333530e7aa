"""One sentence above the keys: what was just said, or else what happened at this moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.strip import Strip
from textual.timer import Timer

from .drawable import cell_width, clip
from .line import Line
from .look import style
from .panel import Panel

SAID_SECONDS = 4.0
"""How long a passing sentence stays."""

Tone = Literal["quiet", "here"]


@dataclass(frozen=True, slots=True)
class NoticeView:
    """One sentence about what just happened."""

    text: str
    """Drawable."""
    tone: Tone = "quiet"
    short: str = ""
    """The same in fewer words, for where `text` does not fit."""


class NoticeLine(Panel[NoticeView]):
    """Shows what was said for a few seconds, and what `idle` gave it otherwise."""

    HAS_BORDER = False
    DEFAULT_CSS = "NoticeLine { height: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._said: NoticeView | None = None
        self._idle = NoticeView("")
        self._hush: Timer | None = None

    def say(self, view: NoticeView, *, lasting: bool = False) -> None:
        """Show *view* for a few seconds, or *lasting* until something else is said."""
        self.hush()
        self._said = view
        self._hush = None if lasting else self.set_timer(SAID_SECONDS, self.hush)
        self.show(view)

    def hush(self) -> None:
        """Let go of what was said."""
        if self._hush is not None:
            self._hush.stop()
        self._said = self._hush = None
        self.show(self._idle)

    def idle(self, view: NoticeView) -> None:
        """What stands here while nothing is said."""
        self._idle = view
        if self._said is None:
            self.show(view)

    def draw(self, view: NoticeView, width: int, height: int) -> list[Strip]:
        look = self.look
        line = Line(width, style(look.text, look.ground)).gap(1)
        text = view.short if view.short and cell_width(view.text) > width - 2 else view.text
        colour = look.here if view.tone == "here" else look.quiet
        return [line.add(clip(text, width - 2), style(colour, look.ground)).strip()]
