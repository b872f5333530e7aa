"""A run on the screen: it goes by itself, and every moment of it can be gone back to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cutaway.tui.gate import SPEEDS
from cutaway.widgets.attention_map import AttentionMap
from cutaway.widgets.candidate_bars import CandidateBars
from cutaway.widgets.token_stream import TokenStream

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person


def panels(person: Person) -> tuple[list[str], list[str]]:
    return person.panel(AttentionMap), person.panel(CandidateBars)


async def test_text_and_attention_move_without_a_key(open_app: OpenApp) -> None:
    async with open_app(speed=8.0, max_new_tokens=400) as person:
        await person.has_steps(1)
        before = person.panel(TokenStream), *panels(person)
        await person.goes_on(2)
        after = person.panel(TokenStream), *panels(person)
        assert all(old != new for old, new in zip(before, after, strict=True))
        assert "Once·upon·a·time" in "".join(before[0])
        assert "fable" in person.title and "a tiny story model" in person.title
        assert "▶ at most 8/s" in person.title


async def test_it_starts_paused_when_asked_to(open_app: OpenApp) -> None:
    async with open_app(step=True) as person:
        await person.until(lambda: "paused" in person.title)
        assert person.trace.steps == []
        assert "→ reads the prompt and draws the first token" in person.text
        assert "space runs" in person.notice
        await person.press("space")
        await person.has_steps(3)


async def test_space_pauses_and_resumes(open_app: OpenApp) -> None:
    async with open_app(speed=8.0, max_new_tokens=400) as person:
        await person.has_steps(2)
        await person.press("space")
        assert "‖ paused" in person.title
        assert not person.screen.runner.gate.running
        await person.rests()  # a token that had begun comes to its end; no other begins
        steps = len(person.trace.steps)
        await person.pilot.pause(0.2)
        assert len(person.trace.steps) == steps == person.moment.steps
        await person.press("space")
        assert "▶" in person.title
        await person.has_steps(steps + 2)


async def test_one_key_one_token(open_app: OpenApp) -> None:
    async with open_app(step=True) as person:
        for key, steps in (("right", 1), ("n", 2), ("right", 3)):
            await person.press(key)
            await person.has_steps(steps)
            await person.rests()
            assert len(person.trace.steps) == steps
            assert f"token {steps - 1} · {steps}/64" in person.title
        await person.press("right", "right", "right")
        await person.has_steps(6)


async def test_every_moment_can_be_gone_back_to(open_app: OpenApp) -> None:
    """What the panels showed when a token was the newest is what they show when one comes back to it."""
    async with open_app(step=True) as person:
        pictures = []
        for step in range(9):
            await person.press("n")
            await person.has_steps(step + 1)
            pictures.append(panels(person))
        assert len({repr(picture) for picture in pictures}) == 9
        first = person.moment.prompt_length
        for step in range(7, -1, -1):
            await person.press("left" if step % 2 else "b")
            assert panels(person) == pictures[step]
            assert person.stream.current == first + step
            assert f"back at token {step} · {step + 1}/64" in person.title
        await person.press("left")
        assert panels(person) == pictures[0]
        for step in range(1, 9):
            await person.press("right")
            assert panels(person) == pictures[step]
        assert "back" not in person.title
        await person.press("home")
        assert panels(person) == pictures[0]
        await person.press("end")
        assert panels(person) == pictures[8]
        assert len(person.trace.steps) == 9


async def test_going_back_pauses_and_running_comes_back_to_now(open_app: OpenApp) -> None:
    async with open_app(speed=8.0, max_new_tokens=400) as person:
        await person.has_steps(3)
        await person.press("left")
        assert "‖ paused" in person.title and person.screen.cursor.place is not None
        await person.press("space")
        assert person.screen.following
        await person.goes_on(2)
        assert person.stream.current == person.moment.prompt_length + person.moment.steps - 1


async def test_going_back_says_what_happened_there(open_app: OpenApp) -> None:
    async with open_app(step=True) as person:
        for step in range(3):
            await person.press("n")
            await person.has_steps(step + 1)
        for step in (1, 0):
            await person.press("left")
            assert person.notice.startswith(
                f"token {step}: ‹{person.moment.label(person.moment.prompt_length + step)}› drawn"
            )


async def test_layer_and_head_stay_within_the_model(open_app: OpenApp) -> None:
    async with open_app(max_new_tokens=2) as person:
        await person.has_ended()
        seen = set()
        for key in ["up"] * 6 + ["down"] * 6 + ["left_square_bracket"] * 9 + ["right_square_bracket"] * 9:
            await person.press(key)
            view = person.attention
            seen.add((view.layer, view.head))
            assert 0 <= view.layer < 4 and 0 <= view.head < 8
            assert f"layer {view.layer} head {view.head}" in person.panel(AttentionMap)[0]
        assert {layer for layer, _ in seen} == set(range(4))
        assert {head for _, head in seen} == set(range(8))


async def test_up_is_towards_the_first_layer(open_app: OpenApp) -> None:
    async with open_app(step=True) as person:
        await person.press("n")
        await person.has_steps(1)
        layer, head = person.attention.layer, person.attention.head
        await person.press("up", "left_square_bracket")
        assert (person.attention.layer, person.attention.head) == (layer - 1, head - 1)
        await person.press("down", "right_square_bracket")
        assert (person.attention.layer, person.attention.head) == (layer, head)


async def test_speed_goes_from_one_token_in_two_seconds_up_to_no_limit(open_app: OpenApp) -> None:
    async with open_app(step=True, speed=8.0) as person:
        gate = person.screen.runner.gate
        for speed in [*SPEEDS[5:], SPEEDS[-1]]:
            await person.press("plus")
            assert gate.speed == speed
            assert "as fast as it goes" in person.notice or f"at most {speed:g} tokens a second" in person.notice
        for speed in [*SPEEDS[-2::-1], SPEEDS[0]]:
            await person.press("minus")
            assert gate.speed == speed
        assert SPEEDS[0] == 0.5


async def test_restart_runs_the_same_prompt_again(open_app: OpenApp) -> None:
    async with open_app("A dog", max_new_tokens=5) as person:
        await person.has_ended()
        before = person.trace
        await person.press("r")
        await person.until(lambda: person.trace is not before)
        await person.has_ended()
        assert person.trace.token_ids == before.token_ids
        assert person.trace.prompt == "A dog"


async def test_restart_of_ids_is_of_the_same_ids(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(model=str(tiny), prompt_ids=[5, 6, 7], max_new_tokens=3, ignore_eos=True) as person:
        await person.has_ended()
        before = person.trace
        await person.press("r")
        await person.until(lambda: person.trace is not before)
        await person.has_ended()
        assert person.trace.token_ids == before.token_ids
        assert person.trace.prompt_ids == (5, 6, 7)


@pytest.mark.parametrize("size", [(120, 40), (60, 18)])
async def test_an_end_by_length_says_so(open_app: OpenApp, size: tuple[int, int]) -> None:
    async with open_app(max_new_tokens=3, size=size) as person:
        await person.has_ended()
        assert "as many tokens as asked for" in person.notice and "…" not in person.notice
        assert "■ end" in person.title
        assert len(person.trace.steps) == 3
        await person.press("n")
        assert "the run is at its end" in person.notice and "…" not in person.notice
        await person.press("space")
        assert len(person.trace.steps) == 3 and not person.screen.runner.gate.running


async def test_an_end_by_an_end_token_says_so(open_app: OpenApp, brief: Path) -> None:
    async with open_app(model=str(brief), prompt_ids=[1, 2, 3], greedy=True) as person:
        await person.has_ended()
        assert "the model ended its text" in person.notice
        assert len(person.trace.steps) == 4


async def test_an_end_token_can_be_ignored(open_app: OpenApp, brief: Path) -> None:
    async with open_app(
        model=str(brief), prompt_ids=[1, 2, 3], greedy=True, ignore_eos=True, max_new_tokens=6
    ) as person:
        await person.has_ended()
        assert len(person.trace.steps) == 6


async def test_a_full_context_says_so(open_app: OpenApp, short: Path) -> None:
    async with open_app(model=str(short), prompt_ids=[1, 2, 3], ignore_eos=True) as person:
        await person.has_ended()
        assert "the context is full, all 16 positions are used" in person.notice
        assert len(person.trace.steps) == 14


@pytest.mark.parametrize("size", [(120, 40), (60, 18)])
async def test_numbers_that_are_none_end_the_run_and_not_the_app(
    open_app: OpenApp, broken: Path, size: tuple[int, int]
) -> None:
    async with open_app(model=str(broken), prompt_ids=[1, 2, 3], ignore_eos=True, size=size) as person:
        await person.until(lambda: "NaN" in person.notice)
        assert person.notice.startswith("the scores hold NaN")
        assert len(person.trace.steps) == person.moment.steps == 4
        await person.press("left")
        assert "back at token 2" in person.title
        await person.press("end", "n", "space")
        assert len(person.trace.steps) == 4
        before = person.trace
        await person.press("r")
        await person.until(lambda: person.trace is not before)
        await person.until(lambda: "NaN" in person.notice)


async def test_a_model_that_cannot_be_opened_ends_the_app_with_one_sentence(open_app: OpenApp, tmp_path: Path) -> None:
    async with open_app(model=str(tmp_path)) as person:
        await person.until(lambda: person.app.failure)
        failure = person.app.failure
        assert failure is not None and "config.json" in failure.sentence
        assert "\n" not in failure.sentence
    assert person.app.return_code == 1


async def test_a_model_without_a_tokenizer_shows_ids(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(model=str(tiny), prompt_ids=[5, 6, 7], max_new_tokens=3, ignore_eos=True) as person:
        await person.has_ended()
        assert "#5#6#7" in person.panel(TokenStream)[1]


async def test_quitting_leaves(open_app: OpenApp) -> None:
    for key in ("q", "ctrl+c", "ctrl+q"):
        async with open_app(speed=64.0) as person:
            await person.press(key)
            await person.until(lambda: not person.app.is_running)
            assert person.app.return_code in (0, None)
