"""The gate of a run: whether the engine may go on, how far, and how fast.

Nobody waits at it but the engine's thread: whoever says run, pause, step or cancel goes on at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from time import monotonic

from ..core.events import BlockDone, Event, TokenChosen

SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, float("inf"))
"""Tokens a second the gate can let through, from one every two seconds to as fast as it goes."""

_SLACK = 0.05
"""How far, in seconds, a late token may be caught up with."""


class Grain(IntEnum):
    """How far one step goes: to the next event, to the end of a layer, to the end of a token."""

    STAGE = 0
    LAYER = 1
    TOKEN = 2

    @classmethod
    def ended_by(cls, event: Event) -> Grain:
        """What is whole once *event* is out."""
        if isinstance(event, TokenChosen):
            return cls.TOKEN
        return cls.LAYER if isinstance(event, BlockDone) else cls.STAGE


class Gate:
    """Decides when the engine may go on. Every method returns at once, except `pass_event`."""

    def __init__(self, running: bool, speed: float) -> None:
        self._changed = threading.Condition()
        self._running = running
        self._speed = speed
        self._granted: deque[Grain] = deque()
        self._goal: Grain | None = None
        """What the step under way ends with; None while standing still."""
        self._due = 0.0
        self.cancelled = False
        self.waits = False
        """Whether the engine had to wait for its last token's turn: it is quicker than it was asked to be."""

    @property
    def running(self) -> bool:
        """Whether tokens follow each other without being asked for."""
        return self._running

    @property
    def speed(self) -> float:
        """Most tokens a second while running."""
        return self._speed

    def run(self, running: bool) -> None:
        """Run, or pause before the next token."""
        with self._changed:
            self._goal = Grain.TOKEN if self._running and not running else None  # a token under way is finished
            self._running, self._due = running, 0.0
            self._granted.clear()
            self._changed.notify_all()

    def step(self, grain: Grain = Grain.TOKEN) -> None:
        """Go on while paused, up to the next end of a *grain*."""
        with self._changed:
            self._granted.append(grain)
            self._changed.notify_all()

    def set_speed(self, speed: float) -> None:
        """Let through at most *speed* tokens a second."""
        with self._changed:
            self._speed, self._due = speed, 0.0
            self._changed.notify_all()

    def cancel(self) -> None:
        """Let nothing through any more."""
        with self._changed:
            self.cancelled = True
            self._changed.notify_all()

    def poke(self) -> None:
        """Wake a waiting thread, so that it looks for questions."""
        with self._changed:
            self._changed.notify_all()

    def pass_event(self, ended: Grain, asked: Callable[[], bool], *, over: bool = False) -> bool:
        """Wait until the engine may go on (True), or somebody has *asked* something or cancelled (False).

        *ended* is what the last event made whole. Once the run is *over* nothing may go on.
        """
        if self._running and ended < Grain.TOKEN and not self.cancelled:
            return True
        waited = False
        with self._changed:
            while not (self.cancelled or asked()):
                if self._goal is not None and self._goal <= ended:
                    self._goal = None
                if not over and (self._goal is not None or self._take_grant()):
                    return True
                wait = None
                if self._running and not over:
                    wait = self._due - monotonic() if ended is Grain.TOKEN else 0.0
                    waited = waited or wait > 0
                    if wait <= 0:
                        self.waits = waited
                        self._due = max(self._due, monotonic() - _SLACK) + 1 / self._speed
                        return True
                self._changed.wait(wait)
            return False

    def _take_grant(self) -> bool:
        """Begin the next step that was asked for, if any."""
        if not self._granted:
            return False
        self._goal = self._granted.popleft()
        return True
