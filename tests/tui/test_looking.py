"""Looking around: the mouse and the arrows name cells and their exact values; help, palette, sizes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len
from textual.command import CommandList, CommandPalette
from textual.containers import VerticalScroll
from textual.widgets import OptionList

from cutaway.core.attention_stages import attention_rows
from cutaway.tui.help_screen import HelpScreen
from cutaway.tui.keys import KEYS, help_rows
from cutaway.tui.layout import SMALLEST
from cutaway.tui.prompt_screen import PromptScreen
from cutaway.tui.stages import Place
from cutaway.widgets.attention_map import AttentionMap, Layout
from cutaway.widgets.candidate_bars import CandidateBars
from cutaway.widgets.key_line import KeyLine
from cutaway.widgets.panel import Panel
from cutaway.widgets.token_stream import TokenStream

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person


def legend(person: Person) -> str:
    """The line under the map that names the cell."""
    return person.panel(AttentionMap)[-3].strip("│ ")


def exact(person: Person, query: int, key: int) -> float:
    """The weight of a cell, from the trace itself."""
    cursor = person.screen.cursor
    return float(attention_rows(person.trace, cursor.layer, cursor.head, query, query + 1)[0, key])


def is_in(person: Person, name: str) -> bool:
    """Whether keys go to the panel of that name."""
    return person.screen.focused is not None and person.screen.focused.id == name


def is_alone(person: Person, name: str) -> bool:
    return person.screen.alone == name


def is_below(box: VerticalScroll, line: int) -> bool:
    return box.scroll_offset.y > line


def place_of(layout: Layout, query: int, key: int) -> tuple[int, int]:
    """Column and row of the panel that a cell of the map begins at; *query* counts from the first in sight."""
    return 1 + layout.left + layout.cell * key, 1 + layout.header + layout.tall * query


async def test_hovering_a_cell_shows_its_value_and_both_tokens(open_app: OpenApp) -> None:
    async with open_app("A dog ran", max_new_tokens=6) as person:
        await person.has_ended()
        panel = person.screen.query_one(AttentionMap)
        T = person.moment.prompt_length + 5
        layout = Layout.of(T, *panel.inner_size)
        assert layout.queries >= T and layout.pool == 1
        for query, key in ((T - 1, 0), (3, 1), (2, 2), (0, 0)):
            await person.pilot.hover(panel, place_of(layout, query, key))
            await person.looks_at((query, key))
            label = person.moment.label
            names = f"{label(query)}@{query} → {label(key)}@{key}"
            assert legend(person).endswith(f"{names}  {exact(person, query, key):.4f}")
        await person.pilot.hover(CandidateBars, (3, 3))
        await person.looks_at(None)
        view = person.attention
        assert view.query == T - 1 and view.value == view.values[-1].max()


async def test_a_late_click_on_help_leaves_what_lies_over_it(open_app: OpenApp) -> None:
    """A click may come when the palette is on its way, or has just opened."""
    async with open_app("A dog ran", step=True) as person:
        await person.press("question_mark")
        await person.until(lambda: isinstance(person.app.screen, HelpScreen))
        shown = person.app.screen
        assert isinstance(shown, HelpScreen)
        await person.press("ctrl+p")
        await person.until(lambda: isinstance(person.app.screen, CommandPalette))
        shown.on_click()
        await person.sees()
        assert isinstance(person.app.screen, CommandPalette)
        await person.press("escape")
        await person.until(lambda: person.app.screen is shown)
        shown.on_click()
        shown.on_click()
        await person.until(lambda: person.app.screen is person.screen)


async def test_the_palette_outlives_any_size(open_app: OpenApp) -> None:
    async with open_app("A dog ran", step=True) as person:
        await person.press("ctrl+p")
        await person.until(lambda: isinstance(person.app.screen, CommandPalette))
        for columns in (4, 1, 6, 3, 80):
            await person.pilot.resize_terminal(columns, 24)
            await person.sees()
        assert isinstance(person.app.screen, CommandPalette)
        await person.closes()


@pytest.mark.parametrize("way", ["click", "late"])
async def test_what_goes_wrong_in_the_palette_ends_the_palette_alone(
    open_app: OpenApp, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Its list is not proof against what comes while it is being filled."""

    def fail(*_: object) -> None:
        raise IndexError("list index out of range")

    async with open_app("A dog ran", max_new_tokens=2) as person:
        await person.has_ended()
        await person.press("ctrl+p")
        await person.until(lambda: isinstance(person.app.screen, CommandPalette))
        if way == "click":
            monkeypatch.setattr(OptionList, "_on_click", fail)
            await person.pilot.click(CommandList, (3, 1))
        else:
            await person.app.screen.query_one(CommandList).remove()
            person.types("z")
        await person.until(lambda: person.app.screen is person.screen)
        assert person.app.failure is None and person.app._exception is None
        await person.press("left")
        assert "back at token 0" in person.title
        monkeypatch.undo()


async def test_a_terminal_too_small_keeps_no_picture_of_a_panel(
    open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app("A dog ran", max_new_tokens=2) as person:
        await person.has_ended()
        await person.press("1")
        await person.pilot.resize_terminal(50, 15)
        said: list[str] = []
        monkeypatch.setattr(person.screen, "say", lambda sentence, *_, **__: said.append(sentence))
        await person.press("S")
        assert said == ["there is no room for that panel here"]


async def test_arrows_in_the_text_walk_on_through_the_prompt(open_app: OpenApp) -> None:
    async with open_app("A dog ran", max_new_tokens=2) as person:
        await person.has_ended()
        await person.enters(TokenStream)
        await person.press("left")
        assert person.screen.place == Place(0, person.moment.stages.last)
        for query in reversed(range(person.moment.prompt_length)):
            await person.press("left")
            await person.looks_at_query(query)
        await person.press("left", "right")
        await person.looks_at_query(1)
        for _ in range(person.moment.prompt_length - 1):  # and out of it again
            await person.press("right")
        assert person.screen.place == Place(0, person.moment.stages.last) and person.screen.cursor.cell is None


async def test_the_cell_stays_while_the_run_goes_on(open_app: OpenApp) -> None:
    async with open_app("A dog ran", step=True, speed=8.0, max_new_tokens=400) as person:
        await person.press("n")
        await person.has_steps(1)
        panel = person.screen.query_one(AttentionMap)
        layout = Layout.of(person.moment.prompt_length, *panel.inner_size)
        await person.pilot.hover(panel, place_of(layout, 2, 1))
        await person.looks_at((2, 1))
        await person.press("space")
        await person.goes_on(2)
        assert (person.attention.query, person.attention.key) == (2, 1)
        assert legend(person).endswith(f"{exact(person, 2, 1):.4f}")


async def test_tab_enters_the_map_and_arrows_move_the_cell(open_app: OpenApp) -> None:
    async with open_app("A dog ran", max_new_tokens=5) as person:
        await person.has_ended()
        layer, last = person.attention.layer, person.moment.prompt_length + 3
        await person.enters(AttentionMap)
        await person.press("up")
        await person.until(lambda: person.attention.query == last - 1)
        key = person.attention.key
        await person.press("right" if key < last - 1 else "left")
        await person.until(lambda: person.attention.key != key)
        assert abs(person.attention.key - key) == 1
        assert person.attention.layer == layer and person.screen.following
        assert legend(person).endswith(f"{exact(person, person.attention.query, person.attention.key):.4f}")
        await person.press(*["left"] * 9, *["up"] * 9)
        await person.until(lambda: (person.attention.query, person.attention.key) == (0, 0))
        await person.press("left_square_bracket")
        assert (person.attention.query, person.attention.key) == (0, 0)
        await person.press("escape")
        await person.until(lambda: person.screen.focused is None)
        assert person.attention.query == last
        await person.press("up")
        assert person.attention.layer == layer - 1


async def test_space_runs_with_the_map_in_focus(open_app: OpenApp) -> None:
    async with open_app("A dog", step=True) as person:
        await person.press("n")
        await person.has_steps(1)
        await person.enters(AttentionMap)
        await person.press("space")
        await person.has_steps(3)


@pytest.mark.parametrize(("size", "names"), [
    ((100, 30), ["text", "attention", "candidates"]),
    ((120, 40), ["text", "attention", "candidates", "heads", "layers"]),
    ((170, 40), ["text", "attention", "candidates", "heads", "layers", "embedding"]),
])  # fmt: skip
async def test_tab_comes_round(open_app: OpenApp, size: tuple[int, int], names: list[str]) -> None:
    """Through every panel that is on the screen, and back."""
    async with open_app(max_new_tokens=1, size=size) as person:
        await person.has_ended()
        for keys, order in ((["tab"], names), (["shift+tab"], [*names[-2::-1], names[-1]])):
            for name in [*order, order[0]]:
                await person.press(*keys)
                await person.until(partial(is_in, person, name))
            await person.press("tab" if keys == ["shift+tab"] else "shift+tab")


async def test_a_map_longer_than_the_panel_scrolls_to_the_cell(open_app: OpenApp) -> None:
    async with open_app("A dog ran and " * 10, size=(80, 24), max_new_tokens=2) as person:
        await person.has_ended()
        view = person.attention
        assert view.first > 0
        await person.enters(AttentionMap)
        ups = len(view.values) + 3
        await person.press(*["up"] * ups)
        await person.looks_at_query(view.query - ups)
        looked = person.attention
        assert looked.first < view.first
        assert looked.first == looked.query
        assert looked.value == pytest.approx(exact(person, looked.query, looked.key), abs=1e-6)
        assert f"{looked.value:.4f}" in legend(person)
        panel = person.screen.query_one(AttentionMap)
        layout = Layout.of(len(looked.labels), *panel.inner_size)
        for row in (3, 1, 3):  # the map stays where it is under the mouse
            await person.pilot.hover(panel, place_of(layout, row, 0))
            await person.looks_at_query(looked.first + row)
            assert person.attention.first == looked.first


async def test_every_hint_can_be_clicked(open_app: OpenApp) -> None:
    async with open_app("A dog", step=True, size=(200, 40)) as person:
        keys = person.screen.query_one("#keys", KeyLine)

        async def click(hint: str, column: int = 1) -> None:
            line = keys.render_line(0).text
            assert await person.pilot.click(keys, (cell_len(line[: line.index(hint)]) + column, 0))
            await person.sees()

        await click("→ token", 0)
        await person.has_steps(1)
        await click("space run")
        await person.has_steps(3)
        await click("space run")
        assert not person.screen.runner.gate.running
        steps = person.moment.steps
        await click("←→ token", 0)
        assert person.screen.place is not None
        assert f"back at token {person.screen.place.step} · " in person.title and person.moment.steps >= steps
        layer = person.attention.layer
        await click("↑ ↓", 0)
        await person.until(lambda: person.attention.layer == layer - 1)
        await click("↓ [", 0)
        await person.until(lambda: person.attention.layer == layer)
        for hint, alone in (("z zoom", ""), ("tab panel", ""), ("z zoom", "text"), ("z zoom", "")):
            await click(hint)
            await person.until(partial(is_alone, person, alone))
        await click("? help")
        await person.until(lambda: isinstance(person.app.screen, HelpScreen))
        await person.closes()
        await click("s picture")
        await person.until(lambda: list(person.folder.glob("*.svg")))
        await click("e prompt")
        await person.until(lambda: isinstance(person.app.screen, PromptScreen))
        await person.closes()
        await click("q quit")
        await person.until(lambda: not person.app.is_running)


async def test_help_shows_every_key(open_app: OpenApp) -> None:
    """All of them can be read, if need be by scrolling."""
    async with open_app(max_new_tokens=1) as person:
        await person.has_ended()
        for size in ((120, 40), (80, 24), SMALLEST):
            await person.pilot.resize_terminal(*size)
            await person.press("question_mark")
            await person.until(lambda: isinstance(person.app.screen, HelpScreen))
            await person.fills(size)
            seen = person.text
            box = person.app.screen.query_one(VerticalScroll)
            while (above := box.scroll_offset.y) < box.max_scroll_y:
                await person.press("pagedown")
                await person.until(partial(is_below, box, above))
                seen += "\n" + person.text
            words = "".join(seen.split())
            for keys, sentence in help_rows():
                assert keys in seen
                assert all(word in words for word in sentence.split())
            await person.closes()


async def test_the_palette_does_what_keys_do(open_app: OpenApp) -> None:
    async with open_app(max_new_tokens=1) as person:
        await person.has_ended()
        before = person.trace
        commands = {command.title: command for command in person.app.get_system_commands(person.screen)}
        assert {key.title for key in KEYS if key.action != "app.command_palette"} == set(commands)
        await person.press("ctrl+p")
        await person.until(lambda: person.app.screen is not person.screen)
        await person.press(*"restart")
        await person.until(lambda: "Run the same prompt again" in person.text)
        await person.press("enter", "enter")
        await person.until(lambda: person.trace is not before)


async def test_every_command_of_the_palette_runs(open_app: OpenApp) -> None:
    async with open_app(max_new_tokens=2) as person:
        await person.has_ended()
        for command in person.app.get_system_commands(person.screen):
            if command.title == "quit":
                continue
            result = command.callback()
            if result is not None:
                await result
            await person.sees()
            while person.app.screen is not person.screen:
                await person.press("escape")
        assert person.app.is_running


async def test_resizing_in_the_middle_of_a_run(open_app: OpenApp) -> None:
    async with open_app(speed=2.0, max_new_tokens=400) as person:
        await person.has_steps(1)
        for size in ((60, 18), (59, 30), (200, 60), (80, 17), (10, 3), (1, 1), (61, 19), (80, 50), (100, 30)):
            await person.pilot.resize_terminal(*size)
            await person.fills(size)
            await person.goes_on(1)
            too_small = size[0] < 60 or size[1] < 18
            assert person.screen.has_class("-too-small") == too_small
            if too_small:
                assert "fable" not in person.text
                if size[0] > 50:
                    assert "Cutaway needs 60 × 18 cells; make the terminal larger." in person.text
                continue
            for kind in (AttentionMap, CandidateBars):
                panel = person.screen.query_one(kind)
                assert person.panel(kind)[-1][:1] == "╰"
                assert cell_len(person.panel(kind)[0]) == panel.size.width
        assert person.app.is_running


async def test_a_small_terminal_from_the_start(open_app: OpenApp) -> None:
    async with open_app(size=(40, 10), max_new_tokens=3) as person:
        await person.until(lambda: person.screen.moment is not None and person.moment.steps == 3)
        assert "make the terminal larger" in " ".join(person.text.split())
        await person.press("up", "question_mark", "escape")
        await person.pilot.resize_terminal(80, 24)
        await person.until(lambda: "the run is at its end" in person.text and "attention · L" in person.text)


async def test_growing_the_terminal_shows_more(open_app: OpenApp) -> None:
    async with open_app(size=(80, 24), max_new_tokens=3) as person:
        await person.has_ended()
        few = len(person.candidates.rows)
        await person.pilot.resize_terminal(160, 50)
        await person.until(lambda: len(person.candidates.rows) > few)
        panel = person.screen.query_one(CandidateBars)
        assert len(person.candidates.rows) == panel.inner_size.height - 2


async def test_the_look_is_worn_by_every_panel(open_app: OpenApp) -> None:
    async with open_app(max_new_tokens=1, theme="light", colormap="viridis") as person:
        await person.has_ended()
        looks = {panel.look for panel in person.screen.query(Panel)}
        assert [(look.name, look.colormap) for look in looks] == [("light", "viridis")]
