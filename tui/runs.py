"""The present run, and the one that was asked for until it is ready to take its place."""

from __future__ import annotations

from collections.abc import Iterator

from .runner import Failed, News, Ready, Refused, Runner


class Runs:
    """At most one run is shown and one more is being prepared; the shown one is lost only to one that works."""

    def __init__(self, first: Runner) -> None:
        self.current = first
        self._next: Runner | None = None

    def begin(self, runner: Runner) -> None:
        """Prepare another run, forgetting one that is still being prepared."""
        if self._next is not None:
            self._next.cancel()
        self._next = runner
        runner.start()

    def cancel(self) -> None:
        """Stop everything."""
        self.current.cancel()
        if self._next is not None:
            self._next.cancel()

    def news(self) -> Iterator[News]:
        """What happened since the last call. A `Ready` begins another run; one that cannot begin is `Refused`."""
        if self._next is not None:
            for news in self._next.drain():
                if isinstance(news, Ready):
                    self.current.cancel()
                    self.current, self._next = self._next, None
                    yield news
                elif isinstance(news, Failed):
                    self._next = None
                    yield Refused(news.sentence)
                break
        yield from self.current.drain()
