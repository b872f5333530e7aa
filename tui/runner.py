"""The one thread that runs the engine, and the gate that lets it go on.

The engine never waits for the screen: it appends events to an inbox that the screen empties when it has time.
The screen never waits for the engine: it says run, pause, step or cancel, and goes on at once. The thread is a
daemon, so that leaving does not wait for a product of large matrices to come to its end.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from time import monotonic

from ..core.errors import CutawayError
from ..core.events import Event, TokenChosen
from ..core.generation import Generation

SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, float("inf"))
"""Tokens a second the gate can let through, from one every two seconds to as fast as it goes."""

_SLACK = 0.05
"""How far, in seconds, a late token may be caught up with."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The generation is prepared; its events follow."""

    generation: Generation


@dataclass(frozen=True, slots=True)
class Failed:
    """The run ended with an error."""

    sentence: str
    details: str
    """The traceback, for ``--debug``."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that was asked for could not be done; the run goes on."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question asked of the engine's thread came to."""

    value: object


News = Event | Ready | Failed | Answer | Refused


class Gate:
    """Decides when the next token may begin. Every method returns at once, except `pass_token`."""

    def __init__(self, running: bool, speed: float) -> None:
        self._changed = threading.Condition()
        self._running = running
        self._speed = speed
        self._granted = 0
        self._due = 0.0
        self.cancelled = False

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
            self._running, self._granted, self._due = running, 0, 0.0
            self._changed.notify_all()

    def step(self) -> None:
        """Let one more token through while paused."""
        with self._changed:
            self._granted += 1
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

    def pass_token(self, asked: Callable[[], bool], *, over: bool = False) -> bool:
        """Wait until the next token may begin (True), or somebody has *asked* something or cancelled (False).

        Once the run is *over* no token may begin.
        """
        with self._changed:
            while not (self.cancelled or asked()):
                wait = None
                if self._granted and not over:
                    self._granted -= 1
                    return True
                if self._running and not over:
                    wait = self._due - monotonic()
                    if wait <= 0:
                        self._due = max(self._due, monotonic() - _SLACK) + 1 / self._speed
                        return True
                self._changed.wait(wait)
            return False


class Runner:
    """Prepares a generation on its own thread, pulls its events, and puts them into `inbox`."""

    def __init__(self, prepare: Callable[[], Generation], *, running: bool, speed: float) -> None:
        self.gate = Gate(running, speed)
        self.inbox: deque[News] = deque()
        self._prepare = prepare
        self._questions: deque[Callable[[], object]] = deque()
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)

    def start(self) -> None:
        """Begin to prepare."""
        self._thread.start()

    def ask(self, question: Callable[[], object]) -> None:
        """Have *question* computed on the engine's thread between two tokens; an `Answer` comes through the inbox."""
        self._questions.append(question)
        self.gate.poke()

    def cancel(self) -> None:
        """Stop at the next event; returns at once."""
        self.gate.cancel()

    def drain(self) -> Iterable[News]:
        """Everything that has happened since the last call, oldest first."""
        while self.inbox:
            yield self.inbox.popleft()

    def _work(self) -> None:
        try:
            with closing(self._prepare()) as generation:
                self.inbox.append(Ready(generation))
                self._pull(generation)
        except Exception as error:
            self.inbox.append(Failed(_sentence(error), traceback.format_exc()))

    def _pull(self, generation: Generation) -> None:
        """Pull events, waiting at the gate before each token and answering questions while there."""
        if not self._wait():
            return
        for event in generation:
            self.inbox.append(event)
            if self.gate.cancelled:
                break
            last = generation.trace.finish_reason is not None
            if type(event) is TokenChosen and not last and not self._wait():
                break
        self._wait(over=True)

    def _wait(self, over: bool = False) -> bool:
        """Answer questions until the next token may begin, or for good once the run is over; False when cancelled."""
        while not self.gate.pass_token(lambda: bool(self._questions), over=over):
            if self.gate.cancelled:
                return False
            question = self._questions.popleft()
            try:
                self.inbox.append(Answer(question()))
            except Exception as error:
                self.inbox.append(Refused(_sentence(error)))
        return True


def _sentence(error: Exception) -> str:
    """What to tell a person about *error*."""
    return str(error) if isinstance(error, CutawayError) else f"{type(error).__name__}: {error}"
