"""The logit lens as a table: every number in its column, the drawn token lit, a window where it is long."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from rich.style import Style
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.strip import Strip

from cutaway.widgets.drawable import cell_width
from cutaway.widgets.layer_table import LayerRow, LayersView, LayerTable
from cutaway.widgets.look import look
from cutaway.widgets.numbers import percent

Check = Callable[[Sequence[Strip], int], None]

WIDTHS = [30, 40, 58, 80, 100, 120]


def a_row(layer: int, best: Sequence[str] = ("·girl", "·boy", "·dog", ","), share: float = 0.4) -> LayerRow:
    tokens = tuple((token, share / 2**place) for place, token in enumerate(best))
    return LayerRow(f"L{layer}", 10.0 + layer, tokens, 0.0321, 17 + layer, 6.25)


def a_view(count: int = 4, layer: int = 1, drawn: str = "·boy", **changes: Any) -> LayersView:
    rows = tuple(a_row(each) for each in range(count))
    output = LayerRow("output", None, rows[-1].best, rows[-1].drawn, rows[-1].rank, rows[-1].entropy)
    return replace(LayersView(rows, output, layer, "·little", drawn), **changes)


def drawn(view: LayersView, width: int = 100, height: int = 12) -> list[Strip]:
    return LayerTable().draw(view, width, height)


def column_of(text: str, row: Strip) -> int:
    """The column *text* begins at."""
    return cell_width(row.text[: row.text.index(text)])


def style_of(text: str, row: Strip) -> Style:
    return next(segment.style for segment in row if segment.text.strip() == text and segment.style)


def titled(monkeypatch: pytest.MonkeyPatch, view: LayersView, size: tuple[int, int]) -> tuple[str, str]:
    monkeypatch.setattr(LayerTable, "inner_size", Size(*size))
    return LayerTable().titles(view)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("height", [1, 3, 4, 6, 15, 50])
def test_every_row_is_as_wide_as_the_panel(width: int, height: int, check_rows: Check) -> None:
    for count in (1, 4, 12, 48):
        for view in (a_view(count, count - 1), a_view(count, 0, "", output=None), a_view(count, 0, note="why " * 20)):
            rows = drawn(view, width, height)
            check_rows(rows, width)
            assert len(rows) <= max(height, 2)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_says_what_its_layer_would_say(width: int) -> None:
    rows = drawn(a_view(), width)
    for layer, row in enumerate(rows[1:5]):
        words = row.text.removeprefix("▸").split()
        assert words[0] == f"L{layer}"
        assert "·girl" in words
        assert "40.0 %" in row.text and "3.21 %" in row.text
        assert (f"{10 + layer}.00" in words) == (width >= 40)
        assert (str(17 + layer) in words) == (width >= 58)
        assert ("·dog" in words) == (width >= 102)


def test_the_least_important_columns_give_way_first() -> None:
    """Once a part is there it stays in all wider panels, and what matters more is there before it."""
    parts = ["10.00", "17", "·boy", "6.25", "·dog"]
    first = [min(width for width in range(28, 140) if part in drawn(a_view(), width)[1].text.split()) for part in parts]
    assert first == sorted(first) and first[0] < 40 and first[-1] <= 102
    for part, start in zip(parts, first, strict=True):
        assert all(part in drawn(a_view(), width)[1].text.split() for width in range(start, 140))


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_jumps_from_token_to_token(width: int) -> None:
    long = tuple(a_row(layer, ["w" * 40, "漢字漢字漢字漢字漢字", "x", "y"], 0.999) for layer in range(4))
    one, other = drawn(a_view(), width), drawn(a_view(rows=long, drawn="w" * 40), width)
    for number, same in (("40.0 %", "99.9 %"), ("3.21 %", "3.21 %")):
        assert column_of(number, one[1]) == column_of(same, other[1])
    reached = (a_row(0), *(LayerRow(f"L{layer}", None, ()) for layer in range(1, 4)))
    early = drawn(a_view(rows=reached, output=None), width)
    assert early[1].text.partition("·girl")[1:] == one[1].text.partition("·girl")[1:]
    assert column_of("·girl", early[1]) == column_of("·girl", one[1])


def test_headings_stand_over_their_columns() -> None:
    heading, row, *_ = drawn(a_view(), 100)
    for word, number in (("length", "10.00"), ("‹·boy›", "3.21 %"), ("rank", "17"), ("entropy", "6.25")):
        end = heading.text.index(word) + len(word)
        assert row.text[:end].endswith(number)
    assert heading.text.index("likeliest next") == row.text.index("·girl")


def test_the_drawn_token_is_lit_wherever_it_stands() -> None:
    colours = look()
    rows = (a_row(0, ["·girl", "·boy", "·dog"]), a_row(1, ["·boy", "·girl", "·dog"]))
    second, first = drawn(a_view(rows=rows, layer=0), 100)[1:3]
    for row in (second, first):
        tone = style_of("·boy", row)
        assert tone.color and tone.color.triplet and tone.color.triplet.hex == colours.here
    best = style_of("·girl", second)
    assert best.color and best.color.triplet and best.color.triplet.hex == colours.what
    assert style_of("·boy", first).bold and not best.bold


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("layer", range(4))
def test_the_layer_looked_at_is_marked_and_no_other(width: int, layer: int) -> None:
    rows = drawn(a_view(layer=layer), width)
    assert [place for place, row in enumerate(rows) if row.text.startswith("▸")] == [layer + 1]


def test_the_output_says_that_it_is_the_last_layer_again() -> None:
    for width, words in ((100, "= model's output"), (40, "= output"), (30, "=")):
        last, output = drawn(a_view(), width)[4:6]
        assert output.text.strip().startswith(words)
        assert output.text.partition("·girl")[2] == last.text.partition("·girl")[2]


def test_lengths_are_compared_by_their_bars() -> None:
    rows = tuple(LayerRow(f"L{layer}", norm, ()) for layer, norm in enumerate((10.0, 20.0, 40.0)))
    bars = [row.text.count("█") for row in drawn(a_view(rows=rows), 200)[1:4]]
    assert bars[2] == 5 and bars[0] < bars[1] < bars[2]


@pytest.mark.parametrize("norm", [0.0, 0.5, 99.994, 99.996, 999.97, 123456.7, 9.9e8, 3e38])
def test_any_length_keeps_its_column(norm: float) -> None:
    rows = (a_row(0), LayerRow("L1", norm, a_row(1).best, 0.0321, 18, 6.25))
    one, other = drawn(a_view(rows=rows), 100)[1:3]
    assert one.text.index("·girl") == other.text.index("·girl") and one.text.index("40.0") == other.text.index("40.0")


def test_layers_not_reached_say_so_quietly() -> None:
    rows = (a_row(0), LayerRow("L1", None, ()))
    reached, ahead = drawn(a_view(rows=rows, layer=0, drawn="", output=None), 58)[1:3]
    assert ahead.text.split() == ["L1", "·", "·"]
    assert style_of("L1", ahead) != style_of("L0", drawn(a_view(rows=rows, layer=1), 58)[1])
    assert "·girl" in reached.text


def test_the_output_has_its_line_before_it_is_there() -> None:
    """So that the layers do not move when it comes."""
    for height in (4, 8, 20):
        with_output, without = drawn(a_view(12), 58, height), drawn(a_view(12, output=None), 58, height)
        assert without == with_output[:-1]


@pytest.mark.parametrize("height", range(1, 20))
def test_a_long_model_shows_a_window_around_the_layer(height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for layer in range(24):
        view = a_view(24, layer)
        names = [row.text[1:4].strip() for row in drawn(view, 58, height) if row.text[1:4].startswith("L")]
        assert f"L{layer}" in names
        first, last = int(names[0][1:]), int(names[-1][1:])
        assert names == [f"L{each}" for each in range(first, last + 1)]
        _, note = titled(monkeypatch, view, (58, height))
        assert note == f"layers {first}–{last} of 24"
        assert len(names) == (height - 2 if height >= 4 else height)


def test_titles_say_after_what(monkeypatch: pytest.MonkeyPatch) -> None:
    assert titled(monkeypatch, a_view(), (58, 12)) == ("layers · after ‹·little›", "what each layer would say next")
    title, _ = titled(monkeypatch, a_view(after="w" * 80), (30, 12))
    assert title.endswith("›") and "…" in title and len(title) <= 26


def test_without_weights_it_says_why() -> None:
    note = "what layers would say needs the weights: --model"
    rows = tuple(LayerRow(f"L{layer}", 10.0 + layer, ()) for layer in range(4))
    text = "\n".join(row.text for row in drawn(a_view(rows=rows, output=None, note=note), 58))
    assert note in text and "13.00" in text
    assert note in "\n".join(row.text for row in drawn(a_view(rows=(), output=None, note=note), 58))


@pytest.mark.parametrize("width", [30, 58, 120])
def test_every_token_fits_its_column(width: int, hostile_tokens: list[str], check_rows: Check) -> None:
    for start in range(0, len(hostile_tokens), 40):
        texts = hostile_tokens[start : start + 40]
        rows = tuple(a_row(place, texts[place:] + texts[:place]) for place in range(len(texts)))
        check_rows(drawn(a_view(rows=rows, drawn=texts[0]), width, 50), width)


def test_percentages_are_those_of_the_candidates() -> None:
    rows = (a_row(0, share=0.00001), a_row(1, share=1.0))
    small, whole = drawn(a_view(rows=rows), 58)[1:3]
    assert percent(0.00001) in small.text and "100.0 %" in whole.text


class TableApp(App[None]):
    """One table and what it said."""

    def __init__(self, view: LayersView) -> None:
        super().__init__()
        self.shown = view
        self.said: list[int] = []

    def compose(self) -> ComposeResult:
        yield LayerTable()

    def on_mount(self) -> None:
        self.query_one(LayerTable).show(self.shown)

    def on_layer_table_chosen(self, message: LayerTable.Chosen) -> None:
        self.said.append(message.layer)


async def test_clicks_choose_the_layer_they_hit() -> None:
    app = TableApp(a_view(24, 12))
    async with app.run_test(size=(60, 14)) as pilot:
        panel = app.query_one(LayerTable)
        for y in (0, 1, 2, 5, 11, 12, 13):
            app.said.clear()
            await pilot.click(LayerTable, (9, y))
            await pilot.pause()
            name = panel.render_line(y).text[2:5].strip()
            assert app.said == ([int(name[1:])] if name.startswith("L") else [])


async def test_arrows_choose_neighbours_and_may_outrun_the_screen() -> None:
    app = TableApp(a_view(4, 1))
    async with app.run_test(size=(60, 14)) as pilot:
        app.query_one(LayerTable).focus()
        await pilot.press("down", "down", "down", "up")
        await pilot.pause()
        assert app.said == [2, 3, 3, 2]
        app.query_one(LayerTable).show(a_view(4, 0))
        app.said.clear()
        await pilot.press("up", "down")
        await pilot.pause()
        assert app.said == [0, 1]


async def test_arrows_that_come_before_the_table_count() -> None:
    app = TableApp(a_view(4, 1))
    async with app.run_test(size=(60, 14)) as pilot:
        panel = app.query_one(LayerTable)
        panel.wait("no layers yet")
        panel.focus()
        await pilot.press("down", "down")
        assert app.said == []
        panel.show(app.shown)
        await pilot.pause()
        assert app.said == [2, 3]
