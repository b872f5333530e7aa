"""Panels in which the mouse points at things: while it is over one, and until it leaves."""

from __future__ import annotations

from textual import events
from textual.message import Message

from .panel import Panel, View


class Pointing(Panel[View]):
    """Says what the mouse points at. Subclasses know what is where."""

    def pointed_at(self, x: int, y: int) -> Message | None:
        """What to say about a place inside the border; None where there is nothing."""
        raise NotImplementedError

    def let_go(self) -> Message:
        """What to say when nothing is pointed at any more."""
        raise NotImplementedError

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point(event)

    def on_click(self, event: events.Click) -> None:
        self._point(event)

    def on_leave(self) -> None:
        if not self.has_focus:  # what keys point at stays
            self.post_message(self.let_go())

    def _point(self, event: events.MouseEvent) -> None:
        place = self.inner_offset(event)
        if place and (message := self.pointed_at(*place)):
            self.post_message(message)
