"""The first launch says hello, once, and stands in nobody's way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cutaway.tui.app import CutawayApp
from cutaway.tui.welcome import WORDS, is_first_launch
from cutaway.widgets.card import Card

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person

Greet = Callable[..., AbstractAsyncContextManager["Person"]]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that remembers, empty."""
    monkeypatch.setattr("platformdirs.user_state_path", lambda name, appauthor: tmp_path / "state" / name)
    return tmp_path / "state"


@pytest.fixture
def greet(open_app: OpenApp, monkeypatch: pytest.MonkeyPatch) -> Greet:
    """A function that opens the app as on the first launch."""
    begin = CutawayApp.on_mount

    def on_mount(app: CutawayApp) -> None:
        app.welcome = True
        begin(app)

    @asynccontextmanager
    async def sit_down(**options: object) -> AsyncIterator[Person]:
        """It stays until a key is pressed, unless a test says otherwise."""
        monkeypatch.setattr(CutawayApp, "on_mount", on_mount)
        async with open_app(**{"speed": 8.0, "max_new_tokens": 400} | options) as person:
            yield person

    monkeypatch.setattr("cutaway.tui.screen.SECONDS", 1000.0)
    return sit_down


def card(person: Person) -> Card:
    return person.screen.query_one(Card)


def test_the_first_launch_is_the_first_only(state: Path) -> None:
    assert is_first_launch()
    assert not is_first_launch() and not is_first_launch()


@pytest.mark.parametrize("trouble", ["a file in its place", "not writable"])
def test_where_it_cannot_be_remembered_nothing_is_said(
    state: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    if trouble == "a file in its place":
        state.write_text("")
    else:
        monkeypatch.setattr(Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "no")))
    assert not is_first_launch()
    assert not is_first_launch()


@pytest.mark.parametrize("size", [(60, 18), (80, 24), (120, 40), (200, 60)])
async def test_the_words_can_be_read_over_the_run(greet: Greet, size: tuple[int, int]) -> None:
    async with greet(size=size) as person:
        await person.has_steps(2)
        seen = "\n".join(person.rows)
        assert card(person).display and "welcome" in seen
        for names, words in WORDS:
            assert words in seen and all(person.screen.key(name) in seen for name in names)
        assert "? help" in person.rows[-1] and "token" in person.rows[0]
        await person.goes_on(2)  # and the run goes on


@pytest.mark.parametrize("key", ["space", "right", "question_mark", "t", "x", "tab"])
async def test_any_key_sends_it_away_and_does_what_it_does(greet: Greet, key: str) -> None:
    async with greet(size=(100, 30)) as person:
        await person.has_steps(1)
        running = person.screen.runner.gate.running
        await person.press(key)
        await person.until(lambda: not card(person).display)
        assert "stops it, and lets it go on" not in person.text
        assert person.screen.runner.gate.running == (running and key not in ("space", "right"))
        if key == "tab":
            assert person.screen.focused is not None


async def test_it_goes_by_itself(greet: Greet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cutaway.tui.screen.SECONDS", 0.2)
    async with greet(step=True) as person:
        await person.until(lambda: not card(person).display)
        await person.press("n")
        await person.has_steps(1)


async def test_a_click_beside_it_reaches_what_is_there(greet: Greet) -> None:
    async with greet(size=(120, 40), step=True) as person:
        await person.sees()
        await person.pilot.click("#text", (2, 1))
        await person.sees()
        assert person.app.is_running and person.screen.cursor.cell is not None


async def test_a_terminal_that_is_too_small_is_only_told_so(greet: Greet) -> None:
    async with greet(size=(40, 10), max_new_tokens=2) as person:
        assert "make the terminal larger" in " ".join(person.text.split())
        assert "stops it" not in person.text
        await person.press("space")
        await person.pilot.resize_terminal(80, 24)
        await person.fills((80, 24))
        assert not card(person).display


async def test_it_is_not_said_where_nobody_asked(open_app: OpenApp) -> None:
    async with open_app(max_new_tokens=1) as person:
        await person.has_ended()
        assert not card(person).display
