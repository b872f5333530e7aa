"""The engine's thread and its gate: as far as it is asked to go, no further, and never in anybody's way."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, product, repeat
from time import monotonic

import pytest

from cutaway.core import Generation, ModelError, SamplingConfig
from cutaway.core.events import (
    AttentionDone,
    BlockDone,
    Embedded,
    Event,
    Finished,
    LogitsReady,
    MlpDone,
    SamplingStage,
    TokenChosen,
    Tokenized,
)
from cutaway.core.models.model import Model
from cutaway.tui import runner as runner_module
from cutaway.tui.runner import Answer, Failed, Gate, Grain, News, Ready, Refused, Runner
from tests.patience import PATIENCE

SLACK = runner_module._SLACK


def nothing_asked() -> bool:
    return False


def wait_until(happened: Callable[[], object]) -> None:
    deadline = monotonic() + PATIENCE
    turn = threading.Event()
    while not happened():
        assert monotonic() < deadline
        turn.wait(0.001)


class Clock:
    """Time that passes only while the gate waits for it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    class Condition:
        """Lets time pass instead of waiting."""

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

        def notify_all(self) -> None: ...

        def wait(self, seconds: float | None) -> None:
            assert seconds is not None, "nobody would ever wake it"
            clock.waits.append(seconds)
            clock.now += seconds

    monkeypatch.setattr(runner_module, "monotonic", lambda: clock.now)
    monkeypatch.setattr("threading.Condition", Condition)
    return clock


@pytest.mark.parametrize("speed", [0.5, 8.0, 64.0])
def test_tokens_come_at_the_speed_that_was_asked_for(clock: Clock, speed: float) -> None:
    gate, begun = Gate(True, speed), clock.now
    for number in range(50):
        assert gate.pass_event(Grain.TOKEN, nothing_asked)
        assert -SLACK - 1e-6 <= clock.now - begun - number / speed <= 1e-6


def test_the_engine_is_not_hurried_after_a_slow_token(clock: Clock) -> None:
    """A hiccup is made up for; a model that is slower than the speed is not chased afterwards."""
    gate = Gate(True, 10.0)
    assert gate.pass_event(Grain.TOKEN, nothing_asked)
    clock.now += 5.0
    begun = clock.now
    times = [clock.now - begun for _ in range(5) if gate.pass_event(Grain.TOKEN, nothing_asked)]
    assert times[0] == 0 and times[1] >= 0.04 and times[4] >= 0.3


def test_as_fast_as_it_goes_never_waits(clock: Clock) -> None:
    gate = Gate(True, math.inf)
    assert all(gate.pass_event(Grain.TOKEN, nothing_asked) for _ in range(100))
    assert clock.waits == []


def test_a_gate_knows_whether_the_engine_waits(clock: Clock) -> None:
    gate = Gate(True, 10.0)
    gate.pass_event(Grain.TOKEN, nothing_asked)
    for took, waits in ((0.01, True), (0.5, False), (0.01, True), (0.02, True)):
        clock.now += took
        asked = iter([True, False])
        while not gate.pass_event(Grain.TOKEN, lambda: next(asked, False)):  # noqa: B023 - called at once
            clock.now += 0.001
        assert gate.waits == waits
        assert gate.pass_event(Grain.STAGE, nothing_asked) and gate.waits == waits


def test_another_speed_holds_at_once(clock: Clock) -> None:
    gate = Gate(True, 0.5)
    gate.pass_event(Grain.TOKEN, nothing_asked)
    gate.set_speed(4.0)
    begun = clock.now
    gate.pass_event(Grain.TOKEN, nothing_asked)
    gate.pass_event(Grain.TOKEN, nothing_asked)
    assert clock.now - begun == pytest.approx(0.25, abs=SLACK + 1e-6)


def test_running_again_does_not_wait(clock: Clock) -> None:
    gate = Gate(True, 0.5)
    gate.pass_event(Grain.TOKEN, nothing_asked)
    gate.run(False)
    gate.run(True)
    assert gate.pass_event(Grain.TOKEN, nothing_asked) and clock.waits == []


def test_steps_pass_without_waiting_and_are_counted(clock: Clock) -> None:
    gate = Gate(False, 8.0)
    gate.step()
    gate.step()
    assert gate.pass_event(Grain.TOKEN, nothing_asked) and gate.pass_event(Grain.TOKEN, nothing_asked)
    with pytest.raises(AssertionError, match="nobody"):
        gate.pass_event(Grain.TOKEN, nothing_asked)


def test_pausing_forgets_steps_that_were_not_taken(clock: Clock) -> None:
    gate = Gate(False, 8.0)
    gate.step()
    gate.run(False)
    with pytest.raises(AssertionError, match="nobody"):
        gate.pass_event(Grain.TOKEN, nothing_asked)


def test_a_question_is_answered_before_the_next_token(clock: Clock) -> None:
    for gate in (Gate(True, 8.0), Gate(False, 8.0)):
        gate.step()
        assert not gate.pass_event(Grain.TOKEN, lambda: True)
        assert gate.pass_event(Grain.TOKEN, nothing_asked)


def test_nothing_passes_a_cancelled_gate(clock: Clock) -> None:
    for running in (True, False):
        gate = Gate(running, 8.0)
        gate.step()
        gate.cancel()
        assert not gate.pass_event(Grain.TOKEN, nothing_asked)


def test_nothing_passes_once_the_run_is_over(clock: Clock) -> None:
    gate = Gate(True, 8.0)
    gate.step()
    with pytest.raises(AssertionError, match="nobody"):
        gate.pass_event(Grain.TOKEN, nothing_asked, over=True)


ONE_PASS = (*[Grain.STAGE] * 2, Grain.LAYER, *[Grain.STAGE] * 2, Grain.LAYER, *[Grain.STAGE] * 3, Grain.TOKEN)
"""What the events of a pass through two layers make whole."""


def stop_of(gate: Gate, ends: Iterator[Grain]) -> list[Grain]:
    """The ends that the gate lets the engine come to before it waits for somebody."""
    passed = []
    for ended in ends:
        passed.append(ended)
        try:
            assert gate.pass_event(ended, nothing_asked)
        except AssertionError as error:
            assert "nobody" in str(error)
            return passed
    raise AssertionError("it never waits")


def passes() -> Iterator[Grain]:
    return chain.from_iterable(repeat(ONE_PASS))


def after_the_last(gate: Gate) -> Iterator[Grain]:
    """The ends after the one the engine stands at, once it was let on."""
    assert gate.pass_event(Grain.TOKEN, nothing_asked)
    return passes()


@pytest.mark.parametrize(
    ("grain", "stops"),
    [
        (Grain.STAGE, [[end] for end in ONE_PASS]),
        (Grain.LAYER, [list(ONE_PASS[:3]), list(ONE_PASS[3:6]), list(ONE_PASS[6:])]),
        (Grain.TOKEN, [list(ONE_PASS)] * 3),
    ],
)
def test_a_step_goes_to_the_next_end_of_its_grain(clock: Clock, grain: Grain, stops: list[list[Grain]]) -> None:
    """The end of a token ends a layer and a stage as well."""
    gate = Gate(False, 8.0)
    ends = passes()
    stood_at = Grain.TOKEN
    for expected in stops * 2:
        gate.step(grain)
        assert gate.pass_event(stood_at, nothing_asked)
        assert stop_of(gate, ends) == expected
        stood_at = expected[-1]
    assert clock.waits == []


def test_steps_of_several_grains_follow_each_other(clock: Clock) -> None:
    gate = Gate(False, 8.0)
    for grain in (Grain.STAGE, Grain.LAYER, Grain.STAGE, Grain.TOKEN, Grain.STAGE):
        gate.step(grain)
    assert stop_of(gate, after_the_last(gate)) == [*ONE_PASS, ONE_PASS[0]]


def test_a_pause_in_a_pass_lets_its_token_be_finished(clock: Clock) -> None:
    for place in range(len(ONE_PASS) - 1):
        gate = Gate(True, math.inf)
        ends = passes()
        for _ in range(place + 1):
            assert gate.pass_event(next(ends), nothing_asked)
        gate.run(False)
        assert stop_of(gate, ends) == list(ONE_PASS[place + 1 :])


def test_a_pause_forgets_what_a_step_was_to_come_to(clock: Clock) -> None:
    """Pausing again stops where the engine stands: nobody is running, so there is nothing to finish."""
    gate = Gate(False, 8.0)
    gate.step(Grain.TOKEN)
    ends = after_the_last(gate)
    assert gate.pass_event(next(ends), nothing_asked)
    gate.run(False)
    assert stop_of(gate, ends) == [ONE_PASS[1]]


def test_running_goes_on_from_the_middle_of_a_pass(clock: Clock) -> None:
    gate = Gate(False, math.inf)
    gate.step(Grain.STAGE)
    ends = after_the_last(gate)
    assert stop_of(gate, ends) == [ONE_PASS[0]]
    gate.run(True)
    assert all(gate.pass_event(ended, nothing_asked) for ended in list(ONE_PASS) * 3)


def test_the_speed_counts_tokens_and_not_events(clock: Clock) -> None:
    gate, begun = Gate(True, 8.0), clock.now
    assert gate.pass_event(Grain.TOKEN, nothing_asked)
    for number in range(1, 20):
        assert all(gate.pass_event(ended, nothing_asked) for ended in ONE_PASS)
        assert clock.now - begun == pytest.approx(number / 8.0, abs=SLACK + 1e-6)


@pytest.mark.parametrize("ended", [Grain.STAGE, Grain.LAYER])
def test_inside_a_pass_a_run_is_not_stopped_by_questions_a_step_is(clock: Clock, ended: Grain) -> None:
    assert Gate(True, 0.5).pass_event(ended, lambda: True)
    gate = Gate(False, 0.5)
    gate.step(Grain.TOKEN)
    assert gate.pass_event(Grain.TOKEN, nothing_asked)
    assert not gate.pass_event(ended, lambda: True)
    assert gate.pass_event(ended, nothing_asked)  # the step goes on where it was


def test_nothing_passes_a_cancelled_gate_inside_a_pass(clock: Clock) -> None:
    for running, ended in product((True, False), (Grain.STAGE, Grain.LAYER)):
        gate = Gate(running, 8.0)
        gate.step()
        gate.cancel()
        assert not gate.pass_event(ended, nothing_asked)


def test_what_each_event_makes_whole(fable: Model) -> None:
    grains: dict[type[Event], set[Grain]] = {}
    for event in a_generation(fable, 2):
        grains.setdefault(type(event), set()).add(Grain.ended_by(event))
    assert grains.pop(TokenChosen) == {Grain.TOKEN}
    assert grains.pop(BlockDone) == {Grain.LAYER}
    assert grains.keys() >= {Tokenized, Embedded, AttentionDone, MlpDone, LogitsReady, SamplingStage}
    assert all(grain == {Grain.STAGE} for grain in grains.values())


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
