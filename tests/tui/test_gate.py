"""The gate: it lets the engine go as far as was asked, as fast, and no further."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, product, repeat

import pytest

from cutaway.core import Generation, SamplingConfig
from cutaway.core.events import (
    AttentionDone,
    BlockDone,
    Embedded,
    Event,
    LogitsReady,
    MlpDone,
    SamplingStage,
    TokenChosen,
    Tokenized,
)
from cutaway.core.models.model import Model
from cutaway.tui import gate as gate_module
from cutaway.tui.gate import Gate, Grain

SLACK = gate_module._SLACK


def nothing_asked() -> bool:
    return False


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

    monkeypatch.setattr(gate_module, "monotonic", lambda: clock.now)
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
    for event in Generation(fable, [610, 573], SamplingConfig(seed=1), max_new_tokens=2, ignore_eos=True):
        grains.setdefault(type(event), set()).add(Grain.ended_by(event))
    assert grains.pop(TokenChosen) == {Grain.TOKEN}
    assert grains.pop(BlockDone) == {Grain.LAYER}
    assert grains.keys() >= {Tokenized, Embedded, AttentionDone, MlpDone, LogitsReady, SamplingStage}
    assert all(grain == {Grain.STAGE} for grain in grains.values())
