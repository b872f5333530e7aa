"""Trying other sampling settings on a token: a preview without arithmetic, and a branch that keeps its word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.models.decoder import Decoder
from cutaway.tui.stages import Place
from cutaway.widgets.candidate_bars import CandidateBars
from cutaway.widgets.numbers import percent
from cutaway.widgets.sampling_stages import Layout, SamplingStages, SamplingView

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person

PROMPT = [5, 6, 7, 8]
SETTINGS = SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, seed=1)
ORDER = ("temperature", "repetition_penalty", "top_k", "top_p", "min_p", "seed", "greedy")
"""The settings from top to bottom."""


def options(model: Path, **more: object) -> dict[str, object]:
    return {
        "model": str(model),
        "prompt_ids": PROMPT,
        "max_new_tokens": 6,
        "ignore_eos": True,
        "size": (120, 40),
    } | more


def run(model: Path) -> Generation:
    generation = Generation(load_model(model), PROMPT, SETTINGS, max_new_tokens=6, ignore_eos=True)
    assert list(generation)
    return generation


def written(person: Person) -> list[int]:
    return [step.id for step in person.trace.steps]


def view(person: Person) -> SamplingView:
    shown = person.screen.query_one(SamplingStages).view
    assert shown is not None
    return shown


def tried(person: Person) -> SamplingConfig:
    assert person.screen.draft is not None
    return person.screen.draft.settings


async def opens(person: Person, name: str) -> None:
    """Open the panel where it is not open, and go to the setting called *name*."""
    panel = person.screen.query_one(SamplingStages)
    if not person.screen.sampling_open:
        await person.press("t")
    await person.until(lambda: panel.has_focus and panel.view is not None)
    while view(person).selected != ORDER.index(name):
        await person.press("down" if view(person).selected < ORDER.index(name) else "up")


async def comes_to(person: Person, place: Place) -> None:
    await person.until(lambda: person.screen.place == place)


def assert_previewed(person: Person, parent: Generation, step: int, settings: SamplingConfig) -> int:
    """The panels show the distribution of *settings*, and the token they would draw there; return it."""
    scores, text = parent.trace.scores(step), parent.trace.token_ids[: len(PROMPT) + step]
    assert scores is not None
    wanted = settings.distribution(scores, text)
    shown = view(person)
    for row in person.candidates.rows:
        id = int(row.text.removeprefix("#"))
        assert row.share == pytest.approx(wanted[id], abs=1e-9)
        assert (row.removed_by is None) == (wanted[id] > 0)
    for each, stage in zip(shown.stages, settings.stages(scores, text), strict=True):
        assert (each.left, each.active) == (stage.kept.sum(), stage.active)
    drawn = person.candidates.drawn
    assert drawn is not None
    id = int(person.candidates.rows[drawn].text.removeprefix("#"))
    if settings.is_greedy:
        assert id == int(np.argmax(scores))
    else:
        uniform = np.random.Generator(np.random.PCG64(settings.seed)).random(step + 1)[-1]
        assert shown.uniform == uniform
        assert id == int(np.flatnonzero(np.cumsum(wanted) > uniform)[0])
    assert f"‹#{id}›" in shown.outcome
    return id


CHANGES = (
    (("temperature", "right", 12), {"temperature": 1.4}),
    (("temperature", "left", 10), {"temperature": 0.3}),
    (("top_k", "left", 7), {"top_k": 3}),
    (("top_p", "left", 12), {"top_p": 0.35}),
    (("min_p", "right", 5), {"min_p": 0.15}),
    (("repetition_penalty", "right", 20), {"repetition_penalty": 2.0}),
    (("seed", "right", 3), {"seed": 4}),
    (("seed", "left", 3), {"seed": 0}),
    (("greedy", "right", 1), {"greedy": True}),
)


@pytest.mark.parametrize(("keys", "changes"), CHANGES)
async def test_a_preview_is_exact_and_enter_keeps_it(
    open_app: OpenApp, tiny: Path, keys: tuple[str, str, int], changes: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """No forward pass, no event, no other trace until enter; then a branch whose token is the one that was shown."""
    parent, wanted = run(tiny), replace(SETTINGS, **changes)  # type: ignore[arg-type]
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        await person.press("left", "left")
        before, passes = person.trace, []
        forward = Decoder.forward
        monkeypatch.setattr(Decoder, "forward", lambda *given: (passes.append(1), forward(*given))[1])  # type: ignore[func-returns-value]
        name, key, times = keys
        await opens(person, name)
        for _ in range(times):
            await person.press(key)
        assert tried(person) == wanted
        id = assert_previewed(person, parent, 3, wanted)
        assert "preview" in person.panel(SamplingStages)[0]
        assert person.trace is before and written(person) == [step.id for step in parent.trace.steps] and not passes
        await person.press("enter")
        await person.until(lambda: person.trace is not before)
        await person.until(lambda: person.moment.steps > 3)
        assert written(person) == [*[step.id for step in parent.trace.steps[:3]], id] and not passes
        assert "these settings hold from token 3 on" in person.notice
        assert person.trace.settings_at(3) == wanted and person.trace.settings_at(2) == SETTINGS
        assert not view(person).changed and person.screen.draft is None
        await person.press("space")
        await person.until(lambda: person.moment.steps == 6)
        branch = parent.branch(3, sampling=wanted)
        list(branch)
        assert written(person) == [step.id for step in branch.trace.steps]


async def test_several_settings_at_once(open_app: OpenApp, tiny: Path) -> None:
    parent = run(tiny)
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        for name, key, times in (
            ("temperature", "right", 8),
            ("top_k", "left", 40),
            ("repetition_penalty", "right", 4),
        ):
            await opens(person, name)
            for _ in range(times):
                await person.press(key)
        wanted = replace(SETTINGS, temperature=1.2, top_k=0, repetition_penalty=1.2)
        assert tried(person) == wanted
        assert_previewed(person, parent, 5, wanted)
        await opens(person, "greedy")
        await person.press("right")
        assert_previewed(person, parent, 5, replace(wanted, greedy=True))
        assert "greedy takes the likeliest" in view(person).outcome
        await person.press("left")
        assert_previewed(person, parent, 5, wanted)


async def test_escape_discards_and_back_to_the_old_value_is_no_change(open_app: OpenApp, tiny: Path) -> None:
    parent = run(tiny)
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        before, bars = person.trace, person.panel(CandidateBars)
        await opens(person, "temperature")
        await person.press("right", "right")
        assert view(person).changed and view(person).settings[0].value == "0.9"
        await person.press("escape")
        assert person.screen.draft is None and not view(person).changed
        assert "the settings are as they were" in person.notice
        assert_previewed(person, parent, 5, SETTINGS)
        await person.press("right", "left")
        assert person.screen.draft is None and not view(person).changed
        await person.press("enter")
        assert person.notice == "nothing was changed"
        await person.press("escape")
        await person.until(lambda: not person.screen.sampling_open and person.screen.focused is None)
        assert person.trace is before and person.panel(CandidateBars) == bars


async def test_looking_at_another_token_forgets_what_was_tried(open_app: OpenApp, tiny: Path) -> None:
    parent = run(tiny)
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        await opens(person, "temperature")
        await person.press("right")
        assert view(person).changed
        await person.press("b")
        assert person.screen.place == Place(4, person.moment.stages.last)
        assert person.screen.draft is None and not view(person).changed
        assert_previewed(person, parent, 4, SETTINGS)


async def test_the_mouse_selects_and_changes(open_app: OpenApp, tiny: Path) -> None:
    parent = run(tiny)
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        await opens(person, "temperature")
        panel = person.screen.query_one(SamplingStages)
        layout = Layout.of(view(person), *panel.inner_size)
        row = ORDER.index("top_k")
        assert row in layout.in_sight
        await person.pilot.click(panel, (1 + layout.less, 1 + row - layout.first))
        await person.until(lambda: person.screen.draft is not None and view(person).selected == row)
        assert_previewed(person, parent, 5, replace(SETTINGS, top_k=30))
        layout = Layout.of(view(person), *panel.inner_size)
        await person.pilot.click(panel, (1 + layout.more, 1 + row - layout.first))
        await person.until(lambda: person.screen.draft is None)
        await person.pilot.click(panel, (3, 1 + ORDER.index("min_p") - layout.first))
        await person.until(lambda: view(person).selected == ORDER.index("min_p"))
        assert person.screen.draft is None


async def test_the_draw_can_be_tried_again_in_the_middle_of_a_pass(open_app: OpenApp, tiny: Path) -> None:
    """Before the draw there is no number, and nothing can be applied; the shares are exact all the same."""
    parent = run(tiny)
    async with open_app(**options(tiny, step=True)) as person:
        stages = person.moment.stages
        await opens_early(person)
        for index in range(stages.index("logits") + 1):
            await person.press("full_stop")
            await comes_to(person, Place(0, index))
        await opens(person, "temperature")
        await person.press("right")
        wanted = replace(SETTINGS, temperature=0.85)
        assert tried(person) == wanted and view(person).uniform is None
        assert "has not been drawn yet" in view(person).outcome
        scores = parent.trace.scores(0)
        assert scores is not None
        shares = wanted.distribution(scores, PROMPT)
        for row in person.candidates.rows:
            assert row.share == pytest.approx(shares[int(row.text.removeprefix("#"))], abs=1e-9)
        await person.press("enter")
        assert "the token is not drawn yet" in person.notice and person.trace.steps == []


async def opens_early(person: Person) -> None:
    """Opening the panel when there is nothing in it yet is no harm."""
    await person.press("t")
    await person.press("right", "up", "down", "enter")
    await person.press("t")
    assert person.trace.steps == []


async def test_opened_inside_a_pass_it_says_what_goes_on_to_the_draw(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny, step=True)) as person:
        for index in range(5):
            await person.press("full_stop")
            await comes_to(person, Place(0, index))
        await person.press("t")
        assert person.notice == "nothing to draw from yet: esc, then →, goes on to the draw"
        await person.press("escape", "right")
        await person.has_steps(1)
        await person.press("t")
        assert "nothing to draw" not in person.notice


async def test_taking_a_candidate_of_a_preview_takes_that_token(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny)) as person:
        await person.has_ended()
        await opens(person, "top_k")
        await person.press("left", "left", "left")
        before, panel = person.trace, person.screen.query_one(CandidateBars)
        row = next(row for row in range(3) if row != person.candidates.drawn)
        text = person.candidates.rows[row].text
        await person.pilot.click(panel, (6, 2 + row), times=2)
        await person.until(lambda: person.trace is not before)
        await person.until(lambda: person.moment.steps == 6)
        assert person.moment.cells[-1].text == text


async def test_shares_on_the_ruler_are_those_of_the_settings(open_app: OpenApp) -> None:
    """With a real vocabulary: stretches by id, the drawn token's around the number, percentages as everywhere."""
    async with open_app("A dog ran", max_new_tokens=3, size=(120, 40)) as person:
        await person.has_ended()
        await opens(person, "temperature")
        await person.press("right", "right", "right", "right")
        scores = person.trace.scores(2)
        assert scores is not None
        wanted = tried(person).distribution(scores, person.trace.previous_ids(2))
        shown, ends = view(person), np.cumsum(wanted)
        assert shown.uniform is not None
        [drawn] = [share for share in shown.shares if share.drawn]
        assert drawn.low <= shown.uniform < drawn.high
        assert drawn.high == pytest.approx(ends[int(np.flatnonzero(ends > shown.uniform)[0])], abs=1e-9)
        assert all(
            first.high <= second.low + 1e-12 for first, second in zip(shown.shares, shown.shares[1:], strict=False)
        )
        assert percent(float(wanted.max())) in "\n".join(person.panel(CandidateBars))
