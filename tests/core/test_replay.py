"""A trace told again: every token, from anywhere, while somebody seeks."""

from __future__ import annotations

from threading import Thread

import pytest

from cutaway.core import Generation, SamplingConfig, Trace
from cutaway.core.events import TokenChosen
from cutaway.core.models.model import Model
from cutaway.core.replay import Replay


@pytest.fixture(scope="module")
def told(tiny: Model) -> tuple[Trace, list[TokenChosen]]:
    run = Generation(tiny, [5, 83, 92], SamplingConfig(seed=4), max_new_tokens=12, ignore_eos=True)
    return run.trace, [event for event in run if isinstance(event, TokenChosen)]


def says(events: list[TokenChosen]) -> list[tuple[object, ...]]:
    return [tuple(event.told().values()) for event in events]


def rest(replay: Replay) -> list[TokenChosen]:
    events = list(replay)
    assert all(isinstance(event, TokenChosen) for event in events)
    return events  # type: ignore[return-value]


@pytest.mark.parametrize("at", [0, 1, 11, 12])
def test_the_tokens_that_were_chosen(at: int, told: tuple[Trace, list[TokenChosen]]) -> None:
    trace, events = told
    replay = Replay(trace, at)
    assert replay.trace is trace and replay.at == at
    assert says(rest(replay)) == says(events[at:])
    assert replay.at == 12
    with pytest.raises(StopIteration):
        next(replay)


def test_seeking(told: tuple[Trace, list[TokenChosen]]) -> None:
    trace, events = told
    replay = Replay(trace)
    next(replay)
    for step, place in ((5, 5), (2, 2), (-3, 0), (12, 12), (99, 12), (11, 11)):
        replay.seek(step)
        assert replay.at == place
        assert says(rest(replay)) == says(events[place:])


def test_closing(told: tuple[Trace, list[TokenChosen]]) -> None:
    replay = Replay(told[0])
    next(replay)
    replay.close()
    replay.close()
    replay.seek(3)
    with pytest.raises(StopIteration):
        next(replay)


def test_no_seek_is_lost(told: tuple[Trace, list[TokenChosen]]) -> None:
    """One thread iterates without end while another seeks; where it was last sent, it goes on from."""
    trace, _ = told
    replay = Replay(trace)
    stop = False

    def iterate() -> None:
        while not stop:
            next(replay, None)

    thread = Thread(target=iterate)
    thread.start()
    for _ in range(3000):
        replay.seek(4)
        assert replay.at >= 4
        replay.seek(9)
        assert replay.at >= 9
    stop = True
    thread.join()
