"""Questions to the engine's thread about what is looked at: one at a time, and seldom enough not to slow a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, TypeVar

from .runner import Runner, sentence_of

T = TypeVar("T")

SHARE = 0.04
"""How much of a running engine's time one kind of question may take."""
IDLE_SHARE = 0.5
"""How much, where the engine waits between tokens anyway."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The answer to an inquiry."""

    inquiry: Inquiry[Any]
    key: tuple[object, ...]
    value: Any
    seconds: float
    problem: str = ""
    """Why there is none, where that is so."""


class Inquiry(Generic[T]):
    """One kind of question, asked again whenever its key changes; one is under way at a time."""

    def __init__(self) -> None:
        self.key: tuple[object, ...] = ()
        """What `value` is the answer for."""
        self.value: T | None = None
        self.problem = ""
        """Why there is no answer, where that is so."""
        self._under_way = False
        self._answered, self._took = 0.0, 0.0
        """When the last answer came, and how long it took."""

    def ask(self, runner: Runner, key: tuple[object, ...], compute: Callable[[], T]) -> None:
        """Have *compute* answered for *key*, unless that is known; while running, not too often.

        An answer makes the screen ask again, so the newest key is not forgotten.
        """
        if key == self.key or self._under_way or (runner.gate.running and self._rests(runner.gate.waits)):
            return
        self._under_way = True

        def question() -> Found:
            begun = perf_counter()
            try:
                value, problem = compute(), ""
            except Exception as error:
                value, problem = None, sentence_of(error)
            return Found(self, key, value, perf_counter() - begun, problem)

        runner.ask(question)

    def _rests(self, waits: bool) -> bool:
        """Whether the engine is to be left alone for a while, longer where it does not *wait* between tokens."""
        share = IDLE_SHARE if waits else SHARE
        return perf_counter() < self._answered + self._took * (1 - share) / share

    def take(self, found: Found) -> None:
        """Keep an answer, or that there is none."""
        self.key, self.value, self.problem = found.key, found.value, found.problem
        self._under_way = False
        self._answered, self._took = perf_counter(), found.seconds

    def forget(self) -> None:
        """Another thread is asked from now on: what was asked may never be answered."""
        self._under_way = False
