"""The text as tokens: whole where they fit, all of them there, each kind to be told apart."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from rich.cells import split_graphemes
from rich.style import Style
from textual.app import App, ComposeResult
from textual.strip import Strip

from cutaway.widgets.drawable import cell_width
from cutaway.widgets.look import look
from cutaway.widgets.token_stream import FULL_TINT_BITS, Kind, TokenCell, TokenStream, TokenStreamView, wrap

Check = Callable[[Sequence[Strip], int], None]


def cells(*texts: str, kind: Kind = "written") -> tuple[TokenCell, ...]:
    return tuple(TokenCell(text, kind, None, text.endswith("⏎")) for text in texts)


def lines_of(tokens: tuple[TokenCell, ...], columns: int) -> list[list[str]]:
    return [[text for _, text in line] for line in wrap(tokens, columns, None)[0]]


def drawn(
    tokens: tuple[TokenCell, ...], width: int, height: int, current: int | None = None, coming: str = ""
) -> list[Strip]:
    return TokenStream().draw(TokenStreamView(tokens, current, coming=coming), width, height)


def style_of(text: str, rows: list[Strip]) -> Style:
    """The style *text* is drawn in."""
    return next(segment.style for row in rows for segment in row if segment.text == text and segment.style)


@pytest.mark.parametrize(
    ("texts", "columns", "expected"),
    [
        (["One", "·day"], 10, [["One", "·day"]]),
        (["One", "·day"], 7, [["One", "·day"]]),
        (["One", "·day"], 6, [["One"], ["·day"]]),
        (["a", "漢字"], 4, [["a"], ["漢字"]]),
        (["漢字漢字"], 5, [["漢字"], ["漢字"]]),
        (["a", "abcdefgh", "b"], 3, [["a"], ["abc"], ["def"], ["gh", "b"]]),
        (["e\u0301e\u0301e\u0301"], 2, [["e\u0301e\u0301"], ["e\u0301"]]),
        (["a", "⏎", "b"], 9, [["a", "⏎"], ["b"]]),
        (["a⏎", "b⏎"], 9, [["a⏎"], ["b⏎"], []]),
        ([], 9, [[]]),
    ],
)
def test_tokens_stay_whole_where_they_fit(texts: list[str], columns: int, expected: list[list[str]]) -> None:
    assert [line for line in lines_of(cells(*texts), columns) if line] == [line for line in expected if line]


@pytest.mark.parametrize("columns", [2, 3, 7, 40, 118])
def test_nothing_is_lost_and_nothing_is_cut_in_the_middle(hostile_tokens: list[str], columns: int) -> None:
    tokens = cells(*hostile_tokens)
    lines, _ = wrap(tokens, columns, None)
    for line in lines:
        assert sum(cell_width(text) for _, text in line) <= columns
    assert "".join(text for line in lines for _, text in line) == "".join(hostile_tokens)
    pieces: dict[int, list[str]] = {}
    for line in lines:
        for index, text in line:
            pieces.setdefault(index, []).append(text)
    for index, parts in pieces.items():
        whole = tokens[index].text
        assert "".join(parts) == whole
        if len(parts) > 1:
            assert cell_width(whole) > columns
            ends = {end for _, end, _ in split_graphemes(whole)[0]}
            assert {len("".join(parts[:n])) for n in range(1, len(parts))} <= ends


def test_a_token_begins_a_new_line_only_when_it_has_to(hostile_tokens: list[str]) -> None:
    columns = 40
    lines, _ = wrap(cells(*hostile_tokens), columns, None)
    for line, following in zip(lines, lines[1:], strict=False):
        if line and following and not hostile_tokens[line[-1][0]].endswith("⏎"):
            whole = hostile_tokens[following[0][0]]
            assert sum(cell_width(text) for _, text in line) + cell_width(whole) > columns


@pytest.mark.parametrize(("width", "height"), [(20, 3), (60, 2), (118, 7), (30, 1)])
def test_every_row_is_as_wide_as_the_panel(
    hostile_tokens: list[str], check_rows: Check, width: int, height: int
) -> None:
    tokens = cells(*hostile_tokens)
    for current in (None, 0, 1, len(tokens) // 2, len(tokens) - 1):
        rows = drawn(tokens, width, height, current)
        assert 1 <= len(rows) <= height
        check_rows(rows, width)


def test_everything_is_drawn(hostile_tokens: list[str], check_rows: Check) -> None:
    """With room for all of it, the rows hold every token."""
    rows = drawn(cells(*hostile_tokens), 120, 10_000)
    check_rows(rows, 120)
    assert "".join(row.text for row in rows).replace(" ", "") == "".join(hostile_tokens).replace(" ", "")


@pytest.mark.parametrize("height", [1, 2, 4, 9])
def test_the_current_token_is_in_sight(height: int) -> None:
    tokens = cells(*(f"·word{number}" for number in range(100)), "·" * 90, "⏎", "x⏎", "·end")
    for current in range(len(tokens)):
        rows = drawn(tokens, 40, height, current)
        here = [segment for row in rows for segment in row if segment.style == _here()]
        assert here, current
        assert "".join(segment.text for segment in here) in tokens[current].text


def test_the_text_begins_at_the_top_and_leaves_no_rows_empty() -> None:
    tokens = cells(*(f"·word{number:03}" for number in range(100)))
    assert drawn(tokens, 40, 5, 3)[0].text.strip().startswith("·word000")
    rows = drawn(tokens, 40, 5, 99)
    assert len(rows) == 5 and all(row.text.strip() for row in rows)
    assert rows[-1].text.rstrip().endswith("·word099")


@pytest.mark.parametrize("kind", ["prompt", "written"])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_tint_grows_with_surprise(kind: Kind, theme: str) -> None:
    """Step by step away from the panel's colour, towards the warm one, up to the full tint."""
    stream = TokenStream()
    stream.look = look(theme)
    bits = [FULL_TINT_BITS * step / 100 for step in range(130)]
    tokens = tuple(TokenCell(f"t{index}", kind, surprisal) for index, surprisal in enumerate(bits))
    rows = stream.draw(TokenStreamView(tokens, None), 100, 100)
    distances = []
    for index in range(len(tokens)):
        ground = style_of(f"t{index}", rows).bgcolor
        assert ground is not None and ground.triplet is not None
        panel = tuple(bytes.fromhex(stream.look.panel[1:]))
        distances.append(sum(abs(a - b) for a, b in zip(ground.triplet, panel, strict=True)))
    assert distances == sorted(distances)
    assert distances[0] == 0 and distances[99] > distances[50] > 0 and distances[100] == distances[-1]


def test_what_is_not_known_has_no_tint() -> None:
    rows = drawn((TokenCell("a", "written", None), TokenCell("b", "written", 0.0)), 20, 1)
    assert style_of("a", rows).bgcolor == style_of("b", rows).bgcolor


def test_kinds_are_told_apart() -> None:
    kinds: tuple[Kind, ...] = ("added", "prompt", "written")
    tokens = tuple(TokenCell(kind, kind, 3.0) for kind in kinds)
    added, prompt, written = (style_of(kind, drawn(tokens, 60, 1)) for kind in kinds)
    current = style_of("prompt", drawn(tokens, 60, 1, current=1))
    later = style_of("written", drawn(tokens, 60, 1, current=1))
    looks = [(style.color, style.bold, style.italic) for style in (added, prompt, written, current, later)]
    assert len(set(looks)) == 5
    assert written.bold and not prompt.bold


@pytest.mark.parametrize("current", [None, 0, 2])
def test_tokens_that_are_looked_at_elsewhere_are_underlined(current: int | None) -> None:
    tokens = cells("One", "·day", "·a", "·dog", "·ran")
    plain, marked = (
        TokenStream().draw(TokenStreamView(tokens, current, frozenset(places)), 60, 1)[0] for places in ((), (1, 3))
    )
    assert [segment.text for segment in marked if segment.style and segment.style.underline] == ["·day", "·dog"]
    assert [segment.text for segment in plain if segment.style and segment.style.underline] == []
    for before, after in zip(plain, marked, strict=True):
        assert before.style is not None and after.style is not None
        assert (before.style.color, before.style.bgcolor) == (after.style.color, after.style.bgcolor)


@pytest.mark.parametrize("height", [1, 2, 5])
def test_what_is_coming_stands_behind_the_last_token_and_in_sight(height: int) -> None:
    tokens = cells(*(f"·word{number}" for number in range(50)))
    rows = drawn(tokens, 40, height, coming="▁")
    assert rows[-1].text.rstrip().endswith("·word49▁")
    written, coming = style_of("·word49", rows), style_of("▁", rows)
    assert coming.color != written.color and not coming.bold
    assert "▁" in drawn(tokens, 40, 50, current=3, coming="▁")[-1].text
    assert "▁" not in drawn(tokens, 40, height, current=3, coming="▁")[-1].text


def test_why_no_token_follows_is_said_behind_the_last(check_rows: Check) -> None:
    rows = drawn(cells("One", "·day"), 40, 3, 1, coming=" ■ the model ended its text")
    check_rows(rows, 40)
    assert rows[0].text.strip() == "One·day ■ the model ended its text"
    rows = drawn(cells("One", "·day"), 20, 3, 1, coming=" ■ the model ended its text")
    check_rows(rows, 20)
    assert "".join(row.text for row in rows).split() == "One·day ■ the model ended its text".split()


class TextApp(App[None]):
    """The text, and the tokens that were chosen in it."""

    CSS = "TokenStream { width: 22; height: 6; }"

    def __init__(self, view: TokenStreamView) -> None:
        super().__init__()
        self.text = view
        self.chosen: list[int] = []
        self.stays = False
        """Whether the current token remains the current one, whatever is chosen."""

    def compose(self) -> ComposeResult:
        yield TokenStream()

    def on_mount(self) -> None:
        self.query_one(TokenStream).show(self.text)

    def on_token_stream_chosen(self, message: TokenStream.Chosen) -> None:
        self.chosen.append(message.index)
        if not self.stays:
            self.query_one(TokenStream).show(replace(self.text, current=message.index))


@pytest.mark.parametrize("columns", [-3, 0, 1])
def test_a_text_without_room_is_wrapped_all_the_same(columns: int) -> None:
    lines, where = wrap(cells("One", "", "漢字"), columns, 2)
    assert [text for line in lines for _, text in line if text] == ["O", "n", "e", "漢", "字"]
    assert lines[where][-1][0] == 2


async def test_arrows_go_from_token_to_token_and_from_line_to_line() -> None:
    tokens = cells(*(f"·word{number}" for number in range(8)))  # three to a line
    app = TextApp(TokenStreamView(tokens, None, coming="▁"))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("left", "left", "right", "up", "up", "up", "down", "right", *["right"] * 5)
        assert app.chosen == [6, 5, 6, 3, 0, 0, 3, 4, 5, 6, 7, 7, 7]


async def test_arrows_that_outrun_the_screen_are_all_counted() -> None:
    tokens = cells(*(f"·word{number}" for number in range(8)))
    app = TextApp(TokenStreamView(tokens, None))
    async with app.run_test(size=(40, 10)) as pilot:
        stream = app.query_one(TokenStream)
        for change in (-1, -1, -1, 1):
            stream.action_move(change)
        stream.action_line(-1)
        await pilot.pause()
        assert app.chosen == [6, 5, 4, 5, 0]


async def test_arrows_go_on_from_a_token_that_does_not_become_the_current_one() -> None:
    """As those of a prompt do not: they are looked at, the moment stays."""
    tokens = cells(*(f"·word{number}" for number in range(8)))
    app = TextApp(TokenStreamView(tokens, 5))
    async with app.run_test(size=(40, 10)) as pilot:
        app.stays = True
        await pilot.press("left", "left")
        assert app.chosen == [4, 3]
        await pilot.click(TokenStream, (2, 1))
        await pilot.press("right")
        assert app.chosen == [4, 3, 0, 1]
        app.query_one(TokenStream).show(replace(app.text, current=6))
        await pilot.press("left")
        assert app.chosen[-1] == 5


async def test_arrows_pass_over_line_breaks() -> None:
    app = TextApp(TokenStreamView(cells("a", "⏎", "⏎", "b", "·c"), 4))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("up", "up", "down", "down", "down")
        assert app.chosen == [2, 0, 2, 3, 3]


async def test_a_click_chooses_the_token_under_it() -> None:
    tokens = cells(*(f"·word{number}" for number in range(40)), "漢字")
    for current in (None, 20, 3):
        app = TextApp(TokenStreamView(tokens, current, coming="▁"))
        async with app.run_test(size=(40, 10)) as pilot:
            stream = app.query_one(TokenStream)
            rows = [stream.render_line(y) for y in range(6)]
            for y, row in enumerate(rows[1:-1], 1):
                column = 0
                for segment in row:
                    if segment.text.startswith(("·word", "漢字")):
                        for x in (column, column + segment.cell_length - 1):
                            await pilot.click(TokenStream, (x, y))
                            await pilot.pause()
                            assert [tokens[index].text for index in app.chosen] == [segment.text]
                            app.chosen.clear()
                            stream.show(app.text)
                    column += segment.cell_length
            await pilot.click(TokenStream, (5, 0))
            await pilot.click(TokenStream, (20, 1))
            await pilot.pause()
            assert app.chosen == []


async def test_without_a_text_keys_choose_nothing() -> None:
    app = TextApp(TokenStreamView((), None))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("left", "right", "up", "down")
        await pilot.click(TokenStream, (3, 1))
        app.query_one(TokenStream).wait("opening the model …")
        await pilot.press("left", "down")
        await pilot.click(TokenStream, (3, 1))
        await pilot.pause()
        assert app.chosen == []


def _here() -> Style:
    return style_of("x", drawn(cells("x"), 9, 1, 0))
