"""The one thread that runs the engine, as far as its gate lets it.

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

from ..core.errors import CutawayError
from ..core.events import Event
from ..core.generation import Generation
from ..core.trace import Trace
from .gate import Gate, Grain


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
