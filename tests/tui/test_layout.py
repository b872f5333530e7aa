"""Which panels are on the screen: at every size each is in sight or named with the key that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from cutaway.tui.layout import PANELS, SMALLEST, shown_panels
from cutaway.tui.stages import Place
from cutaway.widgets.attention_map import AttentionMap
from cutaway.widgets.candidate_bars import CandidateBars
from cutaway.widgets.heads_map import HeadsMap
from cutaway.widgets.key_line import KeyLine
from cutaway.widgets.panel import Panel
from cutaway.widgets.sampling_stages import SamplingStages
from cutaway.widgets.token_stream import TokenStream

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person

SIZES = [(60, 18), (61, 33), (80, 24), (80, 34), (100, 30), (120, 40), (159, 34), (160, 50), (200, 60), (300, 18)]


def options(model: Path, **more: object) -> dict[str, object]:
    return {"model": str(model), "prompt_ids": [5, 6, 7, 8], "max_new_tokens": 3, "ignore_eos": True} | more


def in_sight(person: Person) -> set[str]:
    """Panels that take up room on the screen."""
    panels = {name: person.screen.query_one(f"#{name}", Panel) for name in PANELS}
    return {name for name, panel in panels.items() if panel.display and panel.region.area > 0}


async def shows(person: Person, names: set[str]) -> None:
    """Wait until just these panels are in sight, with something in them."""

    def there() -> bool:
        panels = [person.screen.query_one(f"#{name}", Panel) for name in names]
        return in_sight(person) == names and all(panel.view is not None for panel in panels)

    await person.until(there)


async def comes_to(person: Person, place: Place) -> None:
    await person.until(lambda: person.screen.place == place)


def focus(person: Person) -> str | None:
    return person.screen.focused.id if person.screen.focused else None


def views_line(person: Person) -> str:
    return person.screen.query_one("#views", KeyLine).render_line(0).text


def assert_all_there_or_named(person: Person, size: tuple[int, int]) -> None:
    """Every panel is legible, or its key and name stand in the line of hidden views; nothing overlaps or is cut."""
    assert [cell_len(row) for row in person.rows] == [size[0]] * size[1]
    shown = in_sight(person)
    for number, (name, word) in enumerate(PANELS.items(), 1):
        if name in shown:
            panel = person.screen.query_one(f"#{name}", Panel)
            assert panel.size.height >= 4 and panel.size.width >= 25
            assert f"╭─ {number} " in panel.render_line(0).text
            assert panel.render_line(panel.size.height - 1).text[:1] == "╰"
            assert person.screen.region.contains_region(panel.region)
        if size[0] >= 80:
            assert (name in shown) != (f" {number} {word} " in f" {views_line(person)} ")
    regions = [person.screen.query_one(f"#{name}").region for name in shown]
    covered = {
        (x, y) for region in regions for x in range(region.x, region.right) for y in range(region.y, region.bottom)
    }
    assert len(covered) == sum(region.area for region in regions)


def test_panels_that_have_room() -> None:
    for columns, rows in SIZES:
        shown = shown_panels(columns, rows)
        assert {"text", "attention", "candidates"} <= shown <= set(PANELS)
        assert shown_panels(columns + 1, rows) >= shown and shown_panels(columns, rows + 1) >= shown
        for name in PANELS:
            assert shown_panels(columns, rows, name) == {name}
        assert "sampling" in shown_panels(columns, rows, "", True) and "sampling" not in shown
        assert shown_panels(columns, rows, "text", True) == {"text"}
    assert shown_panels(80, 24) == {"text", "attention", "candidates"}
    assert shown_panels(120, 40) == {"text", "attention", "candidates", "heads", "layers"}
    assert shown_panels(200, 60) == set(PANELS) - {"sampling"}


@pytest.mark.parametrize("size", SIZES)
async def test_every_panel_is_in_sight_or_named(open_app: OpenApp, tiny: Path, size: tuple[int, int]) -> None:
    async with open_app(**options(tiny, size=size)) as person:
        await person.has_ended()
        await person.fills(size)
        assert in_sight(person) == shown_panels(*size)
        assert_all_there_or_named(person, size)
        await person.press("t")
        await person.fills(size)
        await person.until(lambda: "sampling" in in_sight(person))
        assert_all_there_or_named(person, size)


@pytest.mark.parametrize("size", [(60, 18), (80, 24), (120, 40), (200, 60)])
async def test_every_view_alone_and_back(open_app: OpenApp, tiny: Path, size: tuple[int, int]) -> None:
    async with open_app(**options(tiny, size=size)) as person:
        await person.has_ended()
        everything = in_sight(person)
        for number, name in enumerate(PANELS, 1):
            await person.press(str(number))
            await shows(person, {name})
            panel = person.screen.query_one(f"#{name}", Panel)
            assert person.screen.focused is None and panel.size.width == size[0]
            assert_all_there_or_named(person, size)
            assert "0 all" in views_line(person)
        await person.press("0")
        await person.until(lambda: in_sight(person) == everything)
        await person.press("4", "4")
        await person.until(lambda: in_sight(person) == everything)
        await person.press("5", "escape")
        await person.until(lambda: in_sight(person) == everything)


async def test_z_zooms_the_panel_one_is_in(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny, size=(120, 40))) as person:
        await person.has_ended()
        everything = in_sight(person)
        await person.press("z")
        assert "tab enters a panel" in person.notice and in_sight(person) == everything
        before = (await person.enters(AttentionMap)).size
        await person.press("z")
        await person.until(lambda: in_sight(person) == {"attention"})
        assert person.screen.query_one(AttentionMap).size.area > 2 * before.area
        await person.press("down", "up")
        assert person.screen.cursor.cell is not None  # keys go on meaning the panel
        await person.press("z")
        await person.until(lambda: in_sight(person) == everything)
        assert person.screen.query_one(AttentionMap).size == before


async def test_tab_goes_round_the_panels_in_sight(open_app: OpenApp, tiny: Path) -> None:
    for size in ((80, 24), (200, 60)):
        async with open_app(**options(tiny, size=size)) as person:
            await person.has_ended()
            entered = []
            for _ in in_sight(person):
                await person.press("tab")
                entered.append(focus(person))
            assert set(entered) == in_sight(person)
            await person.press("tab")
            assert focus(person) == entered[0]
            await person.press("shift+tab")
            assert focus(person) == entered[-1]
            await person.press("escape")
            await person.until(lambda: person.screen.focused is None)


async def test_a_click_on_a_hidden_view_shows_it_and_all_shows_all(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny, size=(80, 24))) as person:
        await person.has_ended()

        async def click(words: str) -> None:
            line = views_line(person)
            assert words in line
            await person.pilot.click("#views", (cell_len(line[: line.index(words)]), 0))
            await person.sees()

        for words, name in (("4 heads", "heads"), ("6 embedding", "embedding"), ("7 sampling", "sampling")):
            await click(words)
            await shows(person, {name})
        await click("0 all")
        await person.until(lambda: in_sight(person) == {"text", "attention", "candidates"})
        await person.pilot.click("#text", (2, 1))
        assert in_sight(person) == {"text", "attention", "candidates"}


async def test_a_head_is_chosen_among_all_and_opened(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny, size=(80, 24))) as person:
        await person.has_ended()
        panel = person.screen.query_one(HeadsMap)
        assert panel.view is None
        person.types("4", "tab", "up", "right", "enter")  # all before there is a map
        await person.until(lambda: in_sight(person) == {"attention"})
        assert (person.attention.layer, person.attention.head) == (0, 3)
        assert person.screen.query_one(AttentionMap).has_focus


async def test_a_zoomed_view_follows_the_run_and_the_keys(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny, step=True, size=(80, 24))) as person:
        await person.press("5")
        for place in (Place(0, person.moment.stages.last), Place(1, person.moment.stages.last)):
            await person.press("n")
            await comes_to(person, place)
        await person.press("3")
        await person.until(lambda: person.screen.query_one(CandidateBars).view is not None)
        drawn = person.candidates.drawn
        assert drawn is not None and person.candidates.rows[drawn].text == person.moment.cells[-1].text


async def test_a_terminal_that_shrinks_and_grows_keeps_what_was_wanted(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny, size=(120, 40))) as person:
        await person.has_ended()
        await person.press("2")
        for size in ((40, 10), (80, 24), (59, 18), (60, 17), (1, 1), (200, 60), (120, 40)):
            await person.pilot.resize_terminal(*size)
            await person.fills(size)
            too_small = size[0] < SMALLEST[0] or size[1] < SMALLEST[1]
            assert person.screen.has_class("-too-small") == too_small
            if too_small:
                await person.press("up", "right", "full_stop", "t", "t", "z", "z", "2")
            else:
                await person.until(lambda: in_sight(person) == {"attention"})
                assert_all_there_or_named(person, size)
        await person.press("0")
        await person.until(lambda: in_sight(person) == shown_panels(120, 40))


async def test_focus_leaves_a_panel_that_is_no_longer_in_sight(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny, size=(120, 40))) as person:
        await person.has_ended()
        await person.enters(HeadsMap)
        await person.pilot.resize_terminal(80, 24)
        await person.fills((80, 24))
        await person.until(lambda: person.screen.focused is None)
        layer = person.screen.cursor.layer
        await person.press("up")
        assert person.screen.cursor.layer == layer - 1


async def test_sampling_opens_and_closes_beside_the_rest(open_app: OpenApp, tiny: Path) -> None:
    for size in ((80, 24), (120, 40)):
        async with open_app(**options(tiny, size=size)) as person:
            await person.has_ended()
            everything = in_sight(person)
            await person.press("t")
            assert person.screen.query_one(SamplingStages).has_focus
            assert {"text", "sampling"} <= in_sight(person)
            await person.press("t")
            await shows(person, everything)
            assert person.screen.focused is None and person.screen.query_one(TokenStream).size.height >= 4
