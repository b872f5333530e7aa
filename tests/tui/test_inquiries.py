"""Questions about what is looked at: asked once, one at a time, and seldom enough that a run hardly notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from cutaway.core import ModelError
from cutaway.tui import inquiries as inquiries_module
from cutaway.tui.gate import Gate
from cutaway.tui.inquiries import IDLE_SHARE, SHARE, Found, Inquiry
from cutaway.tui.runner import Runner


class Asked:
    """A runner that keeps questions until somebody has them answered."""

    def __init__(self, running: bool = False) -> None:
        self.gate = Gate(running, 8.0)
        self.questions: list[Callable[[], object]] = []

    def ask(self, question: Callable[[], object]) -> None:
        self.questions.append(question)

    def answer(self) -> Found:
        """The answer to the oldest question."""
        found = self.questions.pop(0)()
        assert isinstance(found, Found)
        return found


class Clock:
    """Time that passes only where somebody says so."""

    def __init__(self) -> None:
        self.now = 50.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(inquiries_module, "perf_counter", lambda: clock.now)
    return clock


def ask(inquiry: Inquiry[str], runner: Asked, key: object, clock: Clock | None = None, seconds: float = 0.0) -> None:
    """Ask for *key*; the answer is the key in words, and takes so many *seconds*."""

    def compute() -> str:
        if clock:
            clock.now += seconds
        return f"about {key}"

    inquiry.ask(cast(Runner, runner), (key,), compute)


def test_a_question_is_computed_by_whoever_answers_and_kept_with_its_key() -> None:
    inquiry, runner = Inquiry[str](), Asked()
    assert inquiry.value is None and inquiry.key == ()
    ask(inquiry, runner, 1)
    assert inquiry.value is None and len(runner.questions) == 1
    found = runner.answer()
    assert (found.inquiry, found.key, found.value) == (inquiry, (1,), "about 1")
    inquiry.take(found)
    assert [inquiry.key, inquiry.value] == [(1,), "about 1"]


def test_what_is_known_or_asked_is_not_asked_again() -> None:
    inquiry, runner = Inquiry[str](), Asked()
    for _ in range(3):
        ask(inquiry, runner, 1)
    assert len(runner.questions) == 1
    inquiry.take(runner.answer())
    for _ in range(3):
        ask(inquiry, runner, 1)
    assert runner.questions == []


@pytest.mark.parametrize("running", [False, True])
def test_one_is_asked_at_a_time_and_then_the_newest(running: bool) -> None:
    """Somebody walks faster than the engine answers; the screen asks again at every answer."""
    inquiry, runner = Inquiry[str](), Asked(running)
    for key in range(5):
        ask(inquiry, runner, key)
    assert len(runner.questions) == 1
    runner.gate.run(False)
    inquiry.take(runner.answer())
    assert inquiry.key == (0,)
    for _ in range(2):
        ask(inquiry, runner, 4)
    inquiry.take(runner.answer())
    assert [inquiry.key, inquiry.value] == [(4,), "about 4"] and runner.questions == []


def test_what_cannot_be_answered_says_why_and_is_not_asked_for_ever() -> None:
    inquiry, runner = Inquiry[str](), Asked()

    def fail() -> str:
        raise ModelError("no weights", hint="find some")

    inquiry.ask(cast(Runner, runner), (1,), fail)
    found = runner.answer()
    assert found.problem == "no weights; find some" and found.value is None
    inquiry.take(found)
    assert inquiry.key == (1,) and inquiry.value is None
    inquiry.ask(cast(Runner, runner), (1,), fail)
    assert runner.questions == []


def test_going_back_to_what_was_known_asks_again_only_when_it_is_gone() -> None:
    inquiry, runner = Inquiry[str](), Asked()
    for key in (1, 2):
        ask(inquiry, runner, key)
        inquiry.take(runner.answer())
    ask(inquiry, runner, 1)
    assert len(runner.questions) == 1


@pytest.mark.parametrize(("waits", "most"), [(False, SHARE), (True, IDLE_SHARE)])
@pytest.mark.parametrize("seconds", [0.004, 0.1, 2.0])
def test_while_running_questions_take_no_more_than_their_share(
    clock: Clock, seconds: float, waits: bool, most: float
) -> None:
    """Asked as often as the screen likes, for a while: what answering takes is a small part of it, or a larger one
    where the engine waits between tokens."""
    inquiry, runner = Inquiry[str](), Asked(running=True)
    runner.gate.waits = waits
    begun, spent = clock.now, 0.0
    for key in range(20_000):
        ask(inquiry, runner, key, clock, seconds)
        if runner.questions:
            inquiry.take(runner.answer())
            spent += seconds
        clock.now += seconds / 20
    assert most * 0.8 <= spent / (clock.now - begun) <= most * 1.01


def test_a_pause_ends_the_rest(clock: Clock) -> None:
    inquiry, runner = Inquiry[str](), Asked(running=True)
    ask(inquiry, runner, 1, clock, 2.0)
    inquiry.take(runner.answer())
    ask(inquiry, runner, 2, clock)
    assert runner.questions == []
    runner.gate.run(False)
    ask(inquiry, runner, 2, clock)
    assert len(runner.questions) == 1


def test_another_text_is_asked_about_even_where_the_old_answer_never_comes() -> None:
    inquiry, runner = Inquiry[str](), Asked(running=True)
    ask(inquiry, runner, 1)
    inquiry.forget()
    other = Asked(running=True)
    ask(inquiry, other, 2)
    assert len(other.questions) == 1
