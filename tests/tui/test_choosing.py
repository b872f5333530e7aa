"""Taking another way: a candidate becomes the next token, the text it leaves is kept, and both can go on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.tui.stages import Place
from cutaway.widgets.candidate_bars import CandidateBars

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person

PROMPT = [5, 6, 7, 8]
SETTINGS = SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, seed=1)


def options(model: Path, **more: object) -> dict[str, object]:
    return {"model": str(model), "prompt_ids": PROMPT, "max_new_tokens": 6, "ignore_eos": True} | more


def run(model: Path, tokens: int = 6) -> Generation:
    """The run of the app, without it."""
    generation = Generation(load_model(model), PROMPT, SETTINGS, max_new_tokens=tokens, ignore_eos=True)
    assert list(generation)
    return generation


def ids(generation: Generation) -> list[int]:
    """What *generation* writes when it goes on to its end."""
    list(generation)
    return [step.id for step in generation.trace.steps]


def written(person: Person) -> list[int]:
    return [step.id for step in person.trace.steps]


async def takes(person: Person, row: int) -> int:
    """With the keys in the panel, go to *row* and take it; return the token."""
    before, panel = person.trace, await person.enters(CandidateBars)
    assert panel.view is not None
    while panel.view.pointed != row:
        await person.press("down" if panel.view.pointed < row else "up")
    token = int(panel.view.rows[row].text.removeprefix("#"))
    await person.press("enter")
    await person.until(lambda: person.trace is not before)
    return token


async def forks(person: Person, step: int) -> None:
    """Wait until the branch that was asked for has its first token."""
    await person.until(lambda: person.moment.steps > step)


def other_row(person: Person, away: int = 1) -> int:
    """A row that was not drawn."""
    drawn = person.candidates.drawn
    assert drawn is not None
    return next(row for row in range(away, len(person.candidates.rows)) if row != drawn)


async def comes_to(person: Person, place: Place) -> None:
    await person.until(lambda: person.screen.place == place)


async def goes_back(person: Person, count: int) -> None:
    for _ in range(count):
        await person.press("left")


async def test_a_candidate_is_taken_at_the_end_of_the_text(open_app: OpenApp, tiny: Path) -> None:
    parent = run(tiny)
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        old = person.trace
        token = await takes(person, other_row(person))
        await forks(person, 5)
        assert written(person) == [*ids(parent)[:5], token]
        assert written(person) == ids(parent.branch(5, token=token))
        assert person.trace.steps[5].forced
        assert person.notice.startswith(f"token 5 is ‹#{token}› now, and the run is at its end: as many tokens")
        assert person.notice.endswith("W walks back")
        assert "text 2 of 2" in person.title
        assert person.candidates.how == "yours"
        assert person.candidates.pointed == person.candidates.drawn  # the keys are still at what was taken
        assert old.steps[5].id != token and len(old.steps) == 6


async def test_a_candidate_is_taken_back_in_the_text_and_the_run_goes_on(open_app: OpenApp, tiny: Path) -> None:
    parent = run(tiny)
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        await goes_back(person, 3)
        assert person.screen.place == Place(2, person.moment.stages.last)
        token = await takes(person, other_row(person))
        await forks(person, 2)
        assert written(person) == [*ids(parent)[:2], token]
        assert not person.screen.runner.gate.running and "space goes on" in person.notice
        assert person.screen.following and "token 2 · 3/6" in person.title
        await person.press("escape", "space")
        await person.has_ended()
        assert written(person) == ids(parent.branch(2, token=token))
        assert [cell.text for cell in person.moment.cells] == [f"#{id}" for id in person.trace.token_ids]


async def test_the_old_text_is_kept_and_walked_to_and_goes_on(open_app: OpenApp, tiny: Path) -> None:
    """A run that is not over is left, another is tried, and the first goes on as if nothing had been."""
    parent = run(tiny)
    async with open_app(**options(tiny, step=True)) as person:
        for step in range(4):
            await person.press("right")
            await person.has_steps(step + 1)
        first = person.trace
        await person.press("left", "left")
        token = await takes(person, other_row(person))
        await forks(person, 1)
        second = person.trace
        await person.press("escape", "right")
        await person.has_steps(3)
        await person.press("w")
        assert person.trace is first and "text 1 of 2" in person.title and written(person) == ids(parent)[:4]
        assert person.notice == "text 1 of 2"
        await person.press("space")
        await person.has_ended()
        assert written(person) == ids(parent)
        await person.press("W")
        assert person.trace is second and "text 2 of 2" in person.title
        await person.press("space")
        await person.until(lambda: person.moment.steps == 6)
        assert written(person) == ids(parent.branch(1, token=token))
        await person.press("w")
        assert person.trace is first
        await person.press("W")
        assert person.trace is second


async def test_a_branch_of_a_branch(open_app: OpenApp, tiny: Path) -> None:
    parent = run(tiny)
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        await goes_back(person, 4)
        one = await takes(person, other_row(person))
        await forks(person, 1)
        await person.press("escape", "space")
        await person.until(lambda: person.moment.steps == 6)
        child = parent.branch(1, token=one)
        assert written(person) == ids(child)
        await goes_back(person, 2)
        two = await takes(person, other_row(person, 2))
        await forks(person, 3)
        await person.press("escape", "space")
        await person.until(lambda: person.moment.steps == 6)
        assert written(person) == ids(child.branch(3, token=two))
        assert "text 3 of 3" in person.title
        for number in (1, 2, 3):
            await person.press("w")
            assert f"text {number} of 3" in person.title


async def test_a_double_click_takes_and_a_single_one_points(open_app: OpenApp, tiny: Path) -> None:
    parent = run(tiny)
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        before, row = person.trace, other_row(person, 2)
        panel = person.screen.query_one(CandidateBars)
        token = int(person.candidates.rows[row].text.removeprefix("#"))
        await person.pilot.click(panel, (6, 2 + row))
        await person.until(lambda: person.candidates.pointed == row)
        assert person.trace is before
        await person.pilot.click(panel, (6, 2 + row), times=2)
        await person.until(lambda: person.trace is not before)
        await forks(person, 5)
        assert written(person) == ids(parent.branch(5, token=token))


async def test_the_token_that_was_drawn_is_not_taken_again(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        before, drawn = person.trace, person.candidates.drawn
        assert drawn is not None
        panel = await person.enters(CandidateBars)
        while panel.view and panel.view.pointed != drawn:
            await person.press("down")
        await person.press("enter")
        assert person.notice == f"‹#{before.steps[-1].id}› is what was taken here"
        assert person.trace is before and "branch" not in person.title


async def test_walking_with_one_text_says_how_to_have_another(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        before = person.trace
        await person.press("w")
        assert "there is one text only" in person.notice and person.trace is before


async def test_a_candidate_is_taken_in_the_middle_of_a_pass(open_app: OpenApp, tiny: Path) -> None:
    """The token is drawn first, so that its number is spent; then the other one takes its place."""
    parent = run(tiny)
    async with open_app(**options(tiny, step=True)) as person:
        stages = person.moment.stages
        for index in range(stages.index("top_k") + 1):
            await person.press("full_stop")
            await comes_to(person, Place(0, index))
        await person.enters(CandidateBars)
        row = next(row for row, each in enumerate(person.candidates.rows) if each.text != f"#{ids(parent)[0]}")
        token = await takes(person, row)
        await forks(person, 0)
        await person.press("escape", "space")
        await person.until(lambda: person.moment.steps == 6)
        assert written(person) == ids(parent.branch(0, token=token))


async def test_a_candidate_that_a_filter_took_out_can_be_taken(open_app: OpenApp) -> None:
    """What a person puts need not be what the settings would allow; the text shows it as theirs."""
    async with open_app("A dog ran", max_new_tokens=4, top_k=2) as person:
        await person.has_ended()
        row = next(row for row, each in enumerate(person.candidates.rows) if each.removed_by)
        text = person.candidates.rows[row].text
        panel = await person.enters(CandidateBars)
        for _ in range(row):
            await person.press("down")
        assert panel.view is not None and panel.view.pointed == row
        before = person.trace
        await person.press("enter")
        await person.until(lambda: person.trace is not before)
        await forks(person, 3)
        assert person.moment.cells[-1].text == text
        assert person.trace.steps[-1].probability == 0.0 and person.trace.steps[-1].forced
        assert "◂ yours" in "\n".join(person.panel(CandidateBars))
        surprise = person.moment.cells[-1].surprisal
        assert surprise is not None and surprise == pytest.approx(-person.trace.steps[-1].raw_logprob / 0.6931471806)


async def test_keys_pressed_while_a_branch_is_made_belong_to_the_branch_or_to_nothing(
    open_app: OpenApp, tiny: Path
) -> None:
    parent = run(tiny)
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        await goes_back(person, 2)
        row, panel = other_row(person), await person.enters(CandidateBars)
        assert panel.view is not None
        token = int(panel.view.rows[row].text.removeprefix("#"))
        for _ in range(row):
            await person.press("down")
        before = person.trace
        person.types("enter", "enter", "n", "n")
        await person.until(lambda: person.trace is not before)
        await forks(person, 3)
        await person.press("escape", "space")
        await person.until(lambda: person.moment.steps == 6)
        assert written(person) == ids(parent.branch(3, token=token))
        assert ids(parent) == [step.id for step in before.steps]


async def test_restarting_gives_branches_up(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        await takes(person, other_row(person))
        await forks(person, 5)
        branch = person.trace
        await person.press("escape", "r")
        await person.until(lambda: person.trace is not branch)
        await person.has_ended()
        assert written(person) == ids(run(tiny)) and "branch" not in person.title
