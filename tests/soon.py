"""Being done soon, however slow or busy the machine is: what counts is the work, not the clock on the wall."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time

SOON = 10.0
"""Seconds of work that nothing which gives up at once comes near, and that what does not give up goes far beyond."""


@contextmanager
def soon() -> Iterator[None]:
    """What is done inside takes this thread next to no work."""
    begun = thread_time()
    try:
        yield
    finally:
        worked = thread_time() - begun
    assert worked < SOON, f"it took {worked:.1f} seconds of work"
