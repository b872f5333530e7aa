"""How often a run is drawn: seldom enough to leave the engine its time, and the terminal its bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import perf_counter

from textual.screen import Screen

from ..widgets.panel import Panel
from .gate import Gate

READABLE_SPEED = 8.0
"""Tokens a second at which a sentence about each can still be followed."""
DRAWING = 0.1
"""How much of the time a run may spend on being drawn."""
REMOTE_BYTES = 160_000
"""Bytes a second that a run may send over SSH."""


def is_remote() -> bool:
    """Whether the terminal is at the other end of a network."""
    return "SSH_CONNECTION" in os.environ


def can_be_followed(gate: Gate) -> bool:
    """Whether nothing goes on, or so slowly that every token can be looked at."""
    return not gate.running or gate.speed <= READABLE_SPEED


class Pacing:
    """When the next picture of a run may be drawn on *screen*."""

    def __init__(self, screen: Screen[None]) -> None:
        self._screen = screen
        self._next_picture = 0.0

    def is_due(self, gate: Gate) -> bool:
        """Whether a picture may be drawn now."""
        return can_be_followed(gate) or perf_counter() >= self._next_picture

    @property
    def terminal_lags(self) -> bool:
        """Whether the terminal has not taken everything yet: Textual keeps it in a queue without a public name."""
        queue = getattr(getattr(self._screen.app._driver, "_writer_thread", None), "_queue", None)
        return queue is not None and not queue.empty()

    @contextmanager
    def picture(self) -> Iterator[None]:
        """Around the drawing of one: until it is out, there is no other."""
        begun, sent = perf_counter(), Panel.sent
        yield
        self._next_picture = inf
        self._screen.call_after_refresh(self._is_out, begun, Panel.sent - sent)

    def _is_out(self, begun: float, sent: int) -> None:
        """Work out when a run may be drawn again, from what the last picture took in time and in bytes."""
        now = perf_counter()
        self._next_picture = now + (now - begun) * (1 - DRAWING) / DRAWING
        if is_remote():
            self._next_picture = max(self._next_picture, begun + sent / REMOTE_BYTES)
