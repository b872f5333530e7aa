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
from enum import IntEnum
from time import monotonic

from ..core.errors import CutawayError
from ..core.events import BlockDone, Event, TokenChosen
from ..core.generation import Generation
from ..core.trace import Trace

SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, float("inf"))
"""Tokens a second the gate can let through, from one every two seconds to as fast as it goes."""

_SLACK = 0.05
"""How far, in seconds, a late token may be caught up with."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The run is prepared; its events follow."""

    source: Generation | Trace
    steps: int
    """Tokens that it begins with: those of a run that is over. No event tells of them."""


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


class Runner:
    """Prepares a generation on its own thread, pulls its events, and puts them into `inbox`."""

    def __init__(self, prepare: Callable[[], Generation | Trace], *, running: bool, speed: float) -> None:
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
            source = self._prepare()
        except Exception as error:
            self._say_failed(error)
            return
        trace = source.trace if isinstance(source, Generation) else source
        self.inbox.append(Ready(source, len(trace.steps)))
        if isinstance(source, Generation):
            with closing(source):
                self._pull(source)
        self._wait(Grain.TOKEN, over=True)

    def _pull(self, generation: Generation) -> None:
        """Pull events, waiting at the gate after each and answering questions while there."""
        if not self._wait(Grain.TOKEN):
            return
        try:
            for event in generation:
                self.inbox.append(event)
                last = generation.trace.finish_reason is not None
                if self.gate.cancelled or not (last or self._wait(Grain.ended_by(event))):
                    break
        except Exception as error:
            self._say_failed(error)

    def _say_failed(self, error: Exception) -> None:
        self.inbox.append(Failed(sentence_of(error), traceback.format_exc()))

    def _wait(self, ended: Grain, over: bool = False) -> bool:
        """Answer questions until the engine may go on, or for good once the run is over; False when cancelled."""
        while not self.gate.pass_event(ended, lambda: bool(self._questions), over=over):
            if self.gate.cancelled:
                return False
            question = self._questions.popleft()
            try:
                self.inbox.append(Answer(question()))
            except Exception as error:
                self.inbox.append(Refused(sentence_of(error)))
        return True


def sentence_of(error: Exception) -> str:
    """What to tell a person about *error*."""
    return str(error) if isinstance(error, CutawayError) else f"{type(error).__name__}: {error}"
