"""A panel: a frame of the right size, and nothing repainted that did not change."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Region, Size
from textual.strip import Strip

from cutaway.widgets.line import Line
from cutaway.widgets.look import look, style
from cutaway.widgets.panel import Panel, frame

Check = Callable[[Sequence[Strip], int], None]

PLAIN = style("#ffffff", "#000000")


class Words(Panel[tuple[str, ...]]):
    """A word a row."""

    DEFAULT_CSS = "Words { width: 1fr; height: 1fr; }"
    can_focus = True

    def draw(self, view: tuple[str, ...], width: int, height: int) -> list[Strip]:
        return [Line(width, PLAIN).add(word).strip() for word in view]

    def titles(self, view: tuple[str, ...] | None) -> tuple[str, str]:
        return "words", f"{len(view)} of them" if view else ""


class Bare(Words):
    """The same without a border."""

    HAS_BORDER = False


class PanelApp(App[None]):
    """One panel, and the rows it asked to have painted again."""

    def __init__(self, panel: Words) -> None:
        super().__init__()
        self.panel = panel
        self.painted: list[set[int] | None] = []

    def compose(self) -> ComposeResult:
        yield self.panel

    def watch_painting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Note from now on which rows of the panel are refreshed; None stands for all."""

        def refresh(*regions: Region, **_: object) -> Words:
            self.painted.append({y for region in regions for y in region.line_range} if regions else None)
            return self.panel

        monkeypatch.setattr(self.panel, "refresh", refresh)

    def rows(self) -> list[Strip]:
        return [self.panel.render_line(y) for y in range(self.panel.size.height)]


def words(rows: Iterable[Strip]) -> list[str]:
    return [row.text.strip("│ ") for row in rows]


async def test_only_rows_that_differ_are_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PanelApp(Words())
    async with app.run_test(size=(30, 8)):
        app.panel.show(("a", "b", "c"))
        app.watch_painting(monkeypatch)
        app.panel.show(("a", "B", "c"))
        assert app.painted == [{2}]
        app.panel.show(("a", "B", "c"))
        assert app.painted == [{2}]
        app.panel.show(("a", "B"))
        assert app.painted == [{2}, {3, 7}]  # the note below counts them
        app.panel.show(("A", "B", "c"))
        assert app.painted[2:] == [{1, 3, 7}]
        app.panel.wear(look("light"))
        assert app.painted[3:] == [None]
        assert words(app.rows())[1:4] == ["A", "B", "c"]


async def test_the_frame_goes_around_and_names_what_is_inside(check_rows: Check) -> None:
    app = PanelApp(Words())
    async with app.run_test(size=(30, 8)) as pilot:
        app.panel.show(("a", "b"))
        check_rows(app.rows(), 30)
        top, *middle, bottom = [row.text for row in app.rows()]
        assert top == "╭─ words " + "─" * 20 + "╮"
        assert bottom == "╰" + "─" * 16 + " 2 of them ─╯"
        assert all(row[0] == row[-1] == "│" for row in middle)
        assert app.panel.inner_size == Size(28, 6)
        await pilot.resize_terminal(50, 5)
        await pilot.pause()
        check_rows(app.rows(), 50)
        assert app.rows()[0].text == "╭─ words " + "─" * 40 + "╮"
        assert app.panel.inner_size == Size(48, 3)


async def test_a_panel_without_a_border_fills_its_place(check_rows: Check) -> None:
    app = PanelApp(Bare())
    async with app.run_test(size=(30, 4)):
        app.panel.show(("a", "b"))
        check_rows(app.rows(), 30)
        assert words(app.rows()) == ["a", "b", "", ""]
        assert app.panel.inner_size == Size(30, 4)
        app.panel.show(tuple("abcdefgh"))
        assert words(app.rows()) == ["a", "b", "c", "d"]


async def test_a_waiting_panel_says_what_for(check_rows: Check) -> None:
    app = PanelApp(Words())
    async with app.run_test(size=(30, 7)):
        app.panel.show(("a",))
        app.panel.wait("opening the model …")
        check_rows(app.rows(), 30)
        assert words(app.rows())[1:-1] == ["", "", "opening the model …", "", ""]
        assert app.panel.view is None
        app.panel.wait("a sentence that is longer than the panel is wide")
        check_rows(app.rows(), 30)
        assert [word for word in words(app.rows())[1:-1] if word] == [
            "a sentence that is longer",
            "than the panel is wide",
        ]
        app.panel.show(("b",))
        assert words(app.rows())[1] == "b"


async def test_what_was_painted_is_counted() -> None:
    app = PanelApp(Words())
    async with app.run_test(size=(30, 8)):
        app.panel.show(("a", "b", "c"))
        before = Panel.sent
        app.panel.show(("a", "b", "c"))
        assert Panel.sent == before
        app.panel.show(("a", "B", "c"))
        row = Panel.sent - before
        assert row >= 30
        app.panel.show(("A", "b", "C"))
        assert Panel.sent - before == 4 * row


async def test_the_title_says_the_key_that_shows_it_alone() -> None:
    app = PanelApp(Words())
    app.panel.number = "3"
    async with app.run_test(size=(30, 8)):
        app.panel.show(("a",))
        assert app.rows()[0].text == "╭─ 3 words " + "─" * 18 + "╮"
        [number] = [segment for segment in app.rows()[0] if segment.text.strip() == "3"]
        [title] = [segment for segment in app.rows()[0] if segment.text.strip() == "words"]
        assert number.style != title.style


async def test_the_focused_panel_looks_so() -> None:
    app = PanelApp(Words())
    async with app.run_test(size=(30, 4)) as pilot:
        app.panel.show(("a",))
        app.panel.blur()
        await pilot.pause()
        before = app.rows()
        app.panel.focus()
        await pilot.pause()
        assert app.rows() != before
        assert [row.text for row in app.rows()] == [row.text for row in before]
        app.panel.blur()
        await pilot.pause()
        assert app.rows() == before


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (2, 9), (9, 2), (3, 3), (5, 3)])
async def test_too_little_room_is_no_error(size: tuple[int, int]) -> None:
    app = PanelApp(Words())
    async with app.run_test(size=size) as pilot:
        app.panel.show(("a word",))
        await pilot.resize_terminal(40, 5)
        await pilot.pause()
        assert words(app.rows())[1] == "a word"


@pytest.mark.parametrize("columns", range(1, 40))
def test_titles_fit_the_frame_or_are_left_out(columns: int, check_rows: Check) -> None:
    row = Line(columns, PLAIN).strip()
    for upper, lower in (("attention", "weights after softmax"), ("", ""), ("漢字", "漢字"), ("·", "")):
        framed = frame([row], columns, upper, lower, focused=False, look=look())
        check_rows(framed, columns + 2)
        top, _, bottom = (line.text for line in framed)
        assert top[0] == "╭" and top[-1] == "╮" and bottom[0] == "╰" and bottom[-1] == "╯"
        assert bottom.strip("╰─╯ ") in (lower, "")
        assert upper.startswith(top.strip("╭─╮ ").rstrip("…"))
        numbered = frame([row], columns, upper, lower, focused=False, look=look(), number="7")
        check_rows(numbered, columns + 2)
        top = numbered[0].text.strip("╭─╮ ")
        assert top.startswith("7 ") == bool(upper and columns > 8)
        assert upper.startswith(top.removeprefix("7 ").rstrip("…"))
    full = frame([row], columns, "up", "down", focused=True, look=look())
    assert ("up" in full[0].text) == (columns >= 6)
    assert ("down" in full[2].text) == (columns >= 8)


class Stops(Panel[int]):
    """Keys are at a number."""

    def place_of(self, view: int) -> object:
        return view


def test_what_is_asked_for_early_is_done_once_there_is_a_view() -> None:
    done: list[str] = []
    panel = Stops()
    for what in "ab":
        panel.once_shown(partial(done.append, what))
    assert done == []
    for place in (5, 6):
        panel.show(place)
        assert done == ["a", "b"]
    panel.wait("nothing yet")
    panel.once_shown(partial(done.append, "c"))
    panel.wait("and nothing to come")
    panel.show(5)
    assert done == ["a", "b"]


def test_keys_that_outrun_the_screen_are_all_counted() -> None:
    """A view that is behind takes back nothing; one that is elsewhere takes back everything."""
    panel = Stops()
    panel.show(5)
    panel._moved = 6
    panel._moved = 7
    panel.show(5)  # drawn before either was heard of
    assert panel._moved == 7
    panel.show(6)
    assert panel._moved == 7
    panel.show(7)
    assert panel._moved is None
    panel._moved = 8
    panel.show(2)  # somebody else chose
    assert panel._moved is None


async def test_a_panel_that_is_shown_again_keeps_the_focus() -> None:
    """That it was hidden may be told after it is back."""
    app = PanelApp(Words())
    async with app.run_test(size=(30, 8)) as pilot:
        app.panel.focus()
        await pilot.pause()
        app.panel.post_message(events.Hide())
        await pilot.pause()
        assert app.focused is app.panel
        app.panel.display = False
        await pilot.pause()
        assert app.focused is None


@pytest.mark.parametrize("kind", [Words, Bare])
@pytest.mark.parametrize("columns", range(1, 10))
async def test_where_nothing_could_be_read_nothing_is_drawn(kind: type[Words], columns: int) -> None:
    """Panels need not know what to do with no room at all."""

    class Careful(kind):  # type: ignore[misc, valid-type]
        def draw(self, view: tuple[str, ...], width: int, height: int) -> list[Strip]:
            assert width >= 8
            return super().draw(view, width, height)  # type: ignore[no-any-return]

        def titles(self, view: tuple[str, ...] | None) -> tuple[str, str]:
            assert self.inner_size.width >= 8
            return super().titles(view)  # type: ignore[no-any-return]

    app = PanelApp(Careful())
    async with app.run_test(size=(columns, 6)) as pilot:
        app.panel.show(("one", "two"))
        await pilot.pause()
        assert all(strip.cell_length == columns for strip in app.rows())
        assert len(app.panel.portrait()) <= 6
