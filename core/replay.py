"""A trace told again, token by token, without the model that made it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint

from .events import Event, TokenChosen
from .trace import Step, Trace


class Replay(Iterator[Event]):
    """The `TokenChosen` events of a trace that is complete from the start.

    One thread may iterate while another seeks, without a lock: a seek puts a new iterator in place by a single
    assignment, and iterating only ever moves the iterator it took. So no seek is lost; at most one more event comes
    from the old place.
    """

    def __init__(self, trace: Trace, at: int = 0) -> None:
        self.trace = trace
        self._closed = False
        self._ahead: Iterator[Step]
        self.seek(at)

    def __next__(self) -> Event:
        ahead = self._ahead
        if self._closed:
            raise StopIteration
        step = next(ahead)
        return TokenChosen(step.id, step.probability, step.raw_logprob, step.uniform, step.forced)

    @property
    def at(self) -> int:
        """The generated step that comes next; their number when none does."""
        return len(self.trace.steps) - length_hint(self._ahead)

    def seek(self, step: int) -> None:
        """Go on from generated *step*; a step before the first is the first, one past the last ends the replay."""
        self._ahead = iter(self.trace.steps[max(step, 0) :])

    def close(self) -> None:
        """Tell nothing more, wherever somebody seeks to."""
        self._closed = True
