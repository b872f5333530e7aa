"""The runs of one sitting, each with its own thread: the one that is shown, those before it, and the next one.

A branch leaves another run's text and shares what they have in common; the older one waits at its gate and can be
walked back to, as can a run of another prompt. A run that was asked for is shown as soon as it is ready, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..core.conversation import Conversation
from ..core.generation import Generation
from ..core.models.model import Model
from ..core.overview import Overview
from ..core.trace import Trace
from .moment import Moment
from .runner import Failed, News, Ready, Refused, Runner
from .start import Source

MOST_RUNS = 12
"""Runs that are kept: each holds its rows, and a thread that waits."""


@dataclass(eq=False)
class Run:
    """One path of text, the thread that writes it, and how far it has been heard."""

    source: Generation | Trace
    runner: Runner
    moment: Moment
    origin: Source | None = None
    """What it continues; None for the model's own prompt."""
    conversation: Conversation | None = None
    """The chat that it is the last answer of, where it is one."""
    left_at: int | None = None
    """The generated step at which it left another run; None where it did not."""

    @property
    def model(self) -> Model | None:
        """The model, where there is one."""
        return self.source.model if isinstance(self.source, Generation) else None

    @property
    def over(self) -> bool:
        """Whether no token can follow those that have been heard of."""
        trace = self.moment.trace
        return trace.finish_reason is not None and self.moment.steps == len(trace.steps)


class Runs:
    """What is shown, what can be walked to, and what is being prepared."""

    def __init__(self, first: Runner, origin: Source | None = None) -> None:
        """Begin with the runner *first*, which continues *origin*."""
        self.shown: Run | None = None
        self.all: list[Run] = []
        """At most `MOST_RUNS` runs, in the order they were made."""
        self._first: Runner | None = first
        """The thread of the first run, until that one is shown."""
        self._origin = origin
        self._next: tuple[Runner, Source | None, Conversation | None] | None = None

    @property
    def runner(self) -> Runner:
        """The thread of the run that is shown, or of the first one before it is ready."""
        if self.shown is not None:
            return self.shown.runner
        assert self._first is not None
        return self._first

    def begin(self, runner: Runner, origin: Source | None, conversation: Conversation | None = None) -> None:
        """Prepare another run, which continues *origin*, or answers in a *conversation*.

        One that is still being prepared is forgotten.
        """
        if self._next is not None:
            self._next[0].cancel()
        self._next = runner, origin, conversation
        runner.start()

    def open(
        self, ready: Ready, runner: Runner, origin: Source | None, conversation: Conversation | None = None
    ) -> Run:
        """Show a run that is ready, after those that were there before."""
        if self.shown is not None:
            self.shown.runner.gate.run(False)
        source = ready.source
        moment = Moment(source.trace if isinstance(source, Generation) else source, ready.steps)
        return self._keep(Run(source, runner, moment, origin, conversation))

    def fork(self, parent: Run, generation: Generation, step: int, overview: Overview, speed: float) -> Run:
        """Show *generation*, which left *parent* at generated *step* with its *overview*; the other one waits."""
        runner = Runner(lambda: generation, running=False, speed=speed)
        moment = parent.moment.fork(generation.trace, overview)
        conversation = parent.conversation and parent.conversation.fork()
        if conversation:
            conversation.take(generation)
        run = self._keep(Run(generation, runner, moment, parent.origin, conversation, step))
        runner.start()
        return run

    def _keep(self, run: Run) -> Run:
        """Show *run* and let it be walked to; give up the oldest where there are many, but not the one just left."""
        left, self.shown, self._first = self.shown, run, None
        self.all.append(run)
        if len(self.all) > MOST_RUNS:
            old = next(old for old in self.all if old is not left)
            old.runner.cancel()
            self.all.remove(old)
        return run

    def walk(self, change: int) -> Run:
        """Show the run that many places further among all of them, round and round."""
        assert self.shown is not None
        self.shown = self.all[(self.all.index(self.shown) + change) % len(self.all)]
        return self.shown

    def cancel(self) -> None:
        """Stop everything."""
        for runner in {self.runner, *(run.runner for run in self.all)}:
            runner.cancel()
        if self._next is not None:
            self._next[0].cancel()

    def news(self, opened: Callable[[Run], None]) -> Iterator[News]:
        """What happened since the last call; *opened* is called when another run is shown.

        A run that was asked for and cannot begin is `Refused`.
        """
        if self._next is not None:
            for news in self._next[0].drain():
                if isinstance(news, Ready):
                    (runner, origin, conversation), self._next = self._next, None
                    opened(self.open(news, runner, origin, conversation))
                elif isinstance(news, Failed):
                    self._next = None
                    yield Refused(news.sentence)
                break
        runner = self.runner
        for news in runner.drain():
            if not isinstance(news, Ready):
                yield news
            elif self.shown is None:
                opened(self.open(news, runner, self._origin))
            if self.runner is not runner:  # what is left is for the run that was shown before
                break
