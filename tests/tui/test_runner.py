"""The engine's thread: as far as it is asked to go, no further, and never in anybody's way."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic

import pytest

from cutaway.core import Generation, ModelError, SamplingConfig
from cutaway.core.events import (
    AttentionDone,
    BlockDone,
    Embedded,
    Event,
    Finished,
    MlpDone,
    TokenChosen,
    Tokenized,
)
from cutaway.core.models.model import Model
from cutaway.tui.gate import Grain
from cutaway.tui.runner import Answer, Failed, News, Ready, Refused, Runner
from tests.patience import PATIENCE


def wait_until(happened: Callable[[], object]) -> None:
    deadline = monotonic() + PATIENCE
    turn = threading.Event()
    while not happened():
        assert monotonic() < deadline
        turn.wait(0.001)


def a_generation(model: Model, tokens: int = 4) -> Generation:
    return Generation(model, [610, 573], SamplingConfig(seed=1), max_new_tokens=tokens, ignore_eos=True)


@contextmanager
def started(prepare: Callable[[], Generation], *, running: bool = False, speed: float = math.inf) -> Iterator[Runner]:
    with under_way(Runner(prepare, running=running, speed=speed)) as runner:
        yield runner


@contextmanager
def under_way(runner: Runner) -> Iterator[Runner]:
    runner.start()
    try:
        yield runner
    finally:
        runner.cancel()
        runner._thread.join(PATIENCE)
        assert not runner._thread.is_alive()


def whoami(number: int) -> tuple[int, str]:
    return number, threading.current_thread().name


class ShortInbox(deque[News]):
    """An inbox that lets the engine get only so far ahead of whoever empties it, however much quicker it is."""

    def append(self, news: News) -> None:
        wait_until(lambda: len(self) < 100)
        super().append(news)


class Heard:
    """What came out of a runner's inbox."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.news: list[News] = []

    def until(self, happened: Callable[[list[News]], object]) -> None:
        def drained() -> object:
            self.news += self.runner.drain()
            return happened(self.news)

        wait_until(drained)

    def until_tokens(self, count: int) -> None:
        self.until(lambda news: self.tokens() >= count)

    def until_events(self, count: int) -> None:
        self.until(lambda news: len(self.events()) >= count)

    def until_answered(self, value: object) -> None:
        self.until(lambda news: Answer(value) in news)

    def tokens(self) -> int:
        self.news += self.runner.drain()
        return sum(isinstance(news, TokenChosen) for news in self.news)

    def events(self) -> list[Event]:
        self.news += self.runner.drain()
        return [news for news in self.news if isinstance(news, Event)]

    def is_parked(self) -> bool:
        """Whether the thread waits at the gate, where only a key can wake it."""
        return bool(self.runner.gate._changed._waiters)  # type: ignore[attr-defined]


def test_nothing_is_computed_before_it_is_asked_for(fable: Model) -> None:
    with started(lambda: a_generation(fable)) as runner:
        heard = Heard(runner)
        wait_until(heard.is_parked)
        assert [type(news) for news in runner.drain()] == [Ready]


def test_a_step_is_exactly_one_token(fable: Model) -> None:
    with started(lambda: a_generation(fable)) as runner:
        heard = Heard(runner)
        for count in (1, 2, 3):
            wait_until(heard.is_parked)
            runner.gate.step()
            heard.until_tokens(count)
            wait_until(heard.is_parked)
            assert heard.tokens() == count


@pytest.mark.parametrize("grain", list(Grain))
def test_steps_of_a_grain_stop_at_every_end_of_it_and_lose_nothing(fable: Model, grain: Grain) -> None:
    expected = [event for event in a_generation(fable, 2) if not isinstance(event, Finished)]
    stops = [number for number, event in enumerate(expected, 1) if Grain.ended_by(event) >= grain]
    with started(lambda: a_generation(fable, 2)) as runner:
        heard = Heard(runner)
        for stop in stops:
            wait_until(heard.is_parked)
            runner.gate.step(grain)
            heard.until_events(stop)
            wait_until(heard.is_parked)
            assert len([event for event in heard.events() if not isinstance(event, Finished)]) == stop
        heard.until(lambda news: isinstance(news[-1], Finished))
        assert [type(event) for event in heard.events()[:-1]] == [type(event) for event in expected]


def test_a_question_is_answered_inside_a_pass_while_nothing_moves(fable: Model) -> None:
    with started(lambda: a_generation(fable, 1)) as runner:
        heard = Heard(runner)
        for number in range(5):
            wait_until(heard.is_parked)
            runner.gate.step(Grain.STAGE)
            heard.until_events(number + 1)
            wait_until(heard.is_parked)
            runner.ask(partial(whoami, number))
            heard.until_answered((number, "engine"))
            assert len(heard.events()) == number + 1
        kinds = [type(news) for news in heard.news if isinstance(news, Event | Answer)]
        assert kinds == [
            each for kind in (Tokenized, Embedded, AttentionDone, MlpDone, BlockDone) for each in (kind, Answer)
        ]


def test_a_pause_inside_a_pass_finishes_the_token(fable: Model) -> None:
    """Whenever it is said, the thread parks behind a whole token."""
    runner = Runner(lambda: a_generation(fable, 500), running=False, speed=math.inf)
    runner.inbox = ShortInbox()
    with under_way(runner):
        heard = Heard(runner)
        for round in range(1, 6):
            runner.gate.run(True)
            heard.until_events(47 * round + 1)
            runner.gate.run(False)
            heard.until(lambda news: heard.is_parked())
            assert isinstance(heard.events()[-1], TokenChosen)
            assert len(runner.inbox) == 0


def test_a_pause_parks_before_the_next_token_and_loses_nothing(fable: Model) -> None:
    with started(lambda: a_generation(fable, 50), running=True, speed=8.0) as runner:
        heard = Heard(runner)
        heard.until_tokens(2)
        runner.gate.run(False)
        wait_until(heard.is_parked)
        parked = heard.tokens()
        assert isinstance(heard.news[-1], TokenChosen)
        runner.gate.set_speed(math.inf)
        runner.gate.run(True)
        heard.until(lambda news: isinstance(news[-1], Finished))
        assert parked < heard.tokens() == 50
    events = [news for news in heard.news if isinstance(news, Event)]
    assert [type(event) for event in events] == [type(event) for event in a_generation(fable, 50)]


def test_questions_are_answered_between_tokens_and_after_the_last(fable: Model) -> None:
    with started(lambda: a_generation(fable, 2)) as runner:
        heard = Heard(runner)
        for token in range(3):
            wait_until(heard.is_parked)
            runner.ask(partial(whoami, token))
            heard.until_answered((token, "engine"))
            runner.gate.step()
            heard.until_tokens(min(token + 1, 2))
        assert [type(news) for news in heard.news[-2:]] == [Finished, Answer]


def test_many_questions_keep_their_order(fable: Model) -> None:
    with started(lambda: a_generation(fable, 30), running=True) as runner:
        heard = Heard(runner)
        for number in range(20):
            runner.ask(partial(int, number))
        heard.until_answered(19)
        heard.until(lambda news: any(isinstance(each, Finished) for each in news))
        assert [news.value for news in heard.news if isinstance(news, Answer)] == list(range(20))


@pytest.mark.parametrize("state", ["preparing", "parked", "running", "paced", "over"])
def test_cancel_works_from_any_state(fable: Model, state: str) -> None:
    allowed = threading.Event()

    def prepare() -> Generation:
        if state == "preparing":
            assert allowed.wait(PATIENCE)
        return a_generation(fable, 2 if state == "over" else 400)

    speed = 0.5 if state == "paced" else math.inf
    with started(prepare, running=state not in ("parked", "preparing"), speed=speed) as runner:
        heard = Heard(runner)
        if state == "over":
            heard.until(lambda news: news and isinstance(news[-1], Finished))
        if state in ("parked", "paced", "over"):
            wait_until(heard.is_parked)
        if state == "running":
            heard.until_tokens(2)
        runner.cancel()
        allowed.set()
        runner._thread.join(PATIENCE)
        assert not runner._thread.is_alive()
        assert state != "preparing" or heard.tokens() == 0


def test_a_run_that_cannot_begin_says_why() -> None:
    def prepare() -> Generation:
        raise ModelError("no such model", hint="give another")

    with started(prepare) as runner:
        runner._thread.join(PATIENCE)
        [failed] = runner.drain()
        assert isinstance(failed, Failed)
        assert failed.sentence == "no such model; give another"
        assert failed.details.startswith("Traceback") and "ModelError" in failed.details


def break_it() -> Generation:
    raise KeyError("ouch")


def test_a_bug_becomes_a_sentence_too() -> None:
    with started(break_it) as runner:
        runner._thread.join(PATIENCE)
        [failed] = runner.drain()
        assert isinstance(failed, Failed) and failed.sentence == "KeyError: 'ouch'"
        assert "break_it" in failed.details


def test_a_question_that_cannot_be_answered_stops_nothing(fable: Model) -> None:
    with started(lambda: a_generation(fable, 2)) as runner:
        heard = Heard(runner)
        runner.ask(break_it)
        heard.until(lambda news: Refused("KeyError: 'ouch'") in news)
        runner.gate.run(True)
        heard.until(lambda news: isinstance(news[-1], Finished))


def test_the_thread_does_not_keep_the_program_alive(fable: Model) -> None:
    assert Runner(lambda: a_generation(fable), running=True, speed=1.0)._thread.daemon
