"""The embedding's strips: every number in its cell on one scale, and the exact ones under the cursor."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.cells import split_graphemes
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.strip import Strip

from cutaway.widgets.embedding_strips import EmbeddingStrips, EmbeddingView, Layout
from cutaway.widgets.look import look
from cutaway.widgets.shade import signed_levels_of

Check = Callable[[Sequence[Strip], int], None]

SIZES = [(30, 6), (30, 12), (40, 14), (58, 8), (58, 14), (100, 20), (120, 50)]
"""Columns and rows inside a panel."""
NUMBERS = [4, 16, 27, 28, 64, 256, 768, 4096]

per_size = pytest.mark.parametrize("size", SIZES)


def a_view(numbers: int = 64, dimension: int | None = None, **changes: Any) -> EmbeddingView:
    rng = np.random.default_rng(numbers)
    token, position = rng.normal(size=(2, numbers)).astype(np.float32)
    parts = (("token", token), ("position", position), ("sum", token + position))
    nearest = tuple((f"·near{place}", 0.9 - place / 10) for place in range(10))
    return replace(EmbeddingView("·little", 401, 7, parts, nearest, dimension), **changes)


def drawn(view: EmbeddingView, size: tuple[int, int] = (100, 20)) -> list[Strip]:
    return EmbeddingStrips().draw(view, *size)


def layout_of(view: EmbeddingView, size: tuple[int, int]) -> Layout:
    return Layout.of(len(view.parts), view.width, *size)


def grounds(row: Strip) -> list[str]:
    """The colour behind every column."""
    found = []
    for text, style, _ in row:
        assert style is not None and style.bgcolor is not None and style.bgcolor.triplet is not None
        found += [style.bgcolor.triplet.hex] * sum(cells for _, _, cells in split_graphemes(text)[0])
    return found


@per_size
def test_every_row_is_as_wide_as_the_panel(size: tuple[int, int], check_rows: Check) -> None:
    for numbers in NUMBERS:
        view = a_view(numbers)
        some = (view, a_view(numbers, numbers - 1), a_view(numbers, 0, parts=view.parts[:1], nearest=()))
        for each in (*some, a_view(numbers, nearest=(), note="needs the weights " * 9)):
            rows = drawn(each, size)
            check_rows(rows, size[0])
            assert len(rows) <= size[1]


@per_size
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_layout_holds_every_number_and_fits(size: tuple[int, int], parts: int) -> None:
    for numbers in range(1, 900):
        layout = Layout.of(parts, numbers, *size)
        assert (layout.count - 1) * layout.pool < numbers <= layout.count * layout.pool
        assert layout.left + layout.count * layout.cell < size[0]
        assert layout.pool == 1 or layout.cell == 1
        assert layout.rows(parts - 1).stop + 3 <= size[1]
        lines = [line for part in range(parts) for line in layout.rows(part)]
        assert len(set(lines)) == parts * layout.thick and 1 <= layout.thick <= 4


@per_size
@pytest.mark.parametrize("numbers", NUMBERS)
def test_a_cell_is_the_dimension_of_largest_sum_in_every_strip(size: tuple[int, int], numbers: int) -> None:
    view = a_view(numbers)
    layout, rows, colours = layout_of(view, size), drawn(view, size), look()
    limit = max(float(np.abs(values).max()) for _, values in view.parts)
    for cell in range(layout.count):
        low = cell * layout.pool
        dimension = low + int(np.abs(view.parts[-1][1][low : low + layout.pool]).argmax())
        start = layout.left + cell * layout.cell
        for part, (_, values) in enumerate(view.parts):
            level = int(signed_levels_of(values[dimension], limit))
            for line in layout.rows(part):
                assert set(grounds(rows[line])[start : start + layout.cell]) == {colours.signed_levels[level]}


@per_size
def test_unasked_the_numbers_of_the_largest_sum_are_told(size: tuple[int, int]) -> None:
    """A picture that nobody points at says something too."""
    view = a_view(256)
    best = int(np.abs(view.parts[-1][1]).argmax())
    text = "\n".join(row.text for row in drawn(view, size))
    token, position, both = (f"{values[best]:.4f}".replace("-", "−") for _, values in view.parts)
    assert f"{token} + {position} = {both} " in text
    assert f"largest, d {best}: {token}" in text if size[0] >= 50 else f"d {best}" in text


@per_size
def test_every_strip_has_its_name_and_length(size: tuple[int, int]) -> None:
    view = a_view(256)
    layout, rows = layout_of(view, size), drawn(view, size)
    for part, (name, values) in enumerate(view.parts):
        label = rows[layout.rows(part).start - (0 if layout.beside else 1)].text.split()
        assert label[0] == name and f"{np.linalg.norm(values):.2f}" in label


@per_size
@pytest.mark.parametrize("numbers", [64, 256])
def test_the_numbers_pointed_at_are_exact(size: tuple[int, int], numbers: int) -> None:
    for dimension in range(numbers):
        view = a_view(numbers, dimension)
        text = "\n".join(row.text for row in drawn(view, size))
        token, position, both = (f"{values[dimension]:.4f}".replace("-", "−") for _, values in view.parts)
        assert f"{token} + {position} = {both} " in text
        assert f"d {dimension}: {token}" in text or f"d {dimension} " in text


@per_size
@pytest.mark.parametrize("numbers", [16, 64, 256])
def test_the_cell_pointed_at_is_marked_in_every_strip(size: tuple[int, int], numbers: int) -> None:
    for dimension in range(0, numbers, 7):
        view = a_view(numbers, dimension)
        layout, rows, plain = layout_of(view, size), drawn(view, size), drawn(a_view(numbers), size)
        start = layout.left + dimension // layout.pool * layout.cell
        for part in range(3):
            for line in layout.rows(part):
                text = rows[line].text[layout.left : layout.left + layout.count * layout.cell]
                assert text.strip()[0] in "[+" and layout.left + text.index(text.strip()[0]) == start
                assert grounds(rows[line]) == grounds(plain[line])
        if layout.ruler:
            assert rows[0].text.index("▾") == start + layout.cell // 2


@per_size
@pytest.mark.parametrize("numbers", NUMBERS)
def test_the_ruler_counts_dimensions(size: tuple[int, int], numbers: int) -> None:
    view = a_view(numbers)
    layout = layout_of(view, size)
    if not layout.ruler:
        return
    ruler = drawn(view, size)[0].text
    marks = [int(number) for number in ruler.split()]
    assert marks[0] == 0 and marks == sorted(marks) and (len(marks) > 1 or layout.count * layout.cell < 16)
    for number in marks:
        start = layout.left + number // layout.pool * layout.cell
        assert ruler[start : start + len(str(number))] == str(number)


def test_all_strips_share_the_scale_the_legend_names() -> None:
    parts = (("token", np.array([0.5, 0.0], np.float32)), ("sum", np.array([-2.0, 0.0], np.float32)))
    view = a_view(parts=parts)
    layout, rows = layout_of(view, (58, 14)), drawn(view, (58, 14))
    assert any("−2 " in row.text and " 2 " in row.text for row in rows)
    token, both = (grounds(rows[layout.rows(part).start])[layout.left] for part in range(2))
    assert both == look().signed_levels[0] and token == look().signed_levels[int(signed_levels_of(0.5, 2.0))]


def test_a_vector_of_nothing_is_no_error() -> None:
    drawn(a_view(parts=(("token", np.zeros(8, np.float32)), ("sum", np.zeros(8, np.float32)))))


@per_size
def test_nearest_tokens_come_with_their_cosines(size: tuple[int, int]) -> None:
    text = "\n".join(row.text for row in drawn(a_view(), size))
    assert "·near0" in text and "0.90" in text
    if size[1] >= 50:
        assert all(f"·near{place}" in text for place in range(10)) and "0.000" in text


def test_a_cosine_below_zero_has_no_bar() -> None:
    rows = drawn(a_view(nearest=(("·a", 0.5), ("·b", -0.5))))
    one, other = (next(row.text for row in rows if token in row.text) for token in ("·a", "·b"))
    assert "█" in one and "█" not in other and "−0.500" in other


def test_what_is_not_known_is_said() -> None:
    note = "token, position and nearest tokens need the weights"
    view = a_view(nearest=(), parts=a_view().parts[2:], note=note)
    text = "\n".join(row.text for row in drawn(view, (58, 14)))
    assert "sum" in text and note in text
    assert note in "\n".join(row.text for row in drawn(a_view(nearest=(), parts=(), note=note), (58, 14)))


@pytest.mark.parametrize("size", [(30, 6), (58, 20)])
def test_any_token_may_be_near(size: tuple[int, int], hostile_tokens: list[str], check_rows: Check) -> None:
    for start in range(0, len(hostile_tokens), 30):
        nearest = tuple((text, 0.5) for text in hostile_tokens[start : start + 30])
        check_rows(drawn(a_view(nearest=nearest), size), size[0])


def test_titles_say_which_token_and_what_a_cell_is(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = EmbeddingStrips()
    monkeypatch.setattr(EmbeddingStrips, "inner_size", Size(58, 14))
    assert panel.titles(a_view(256)) == (
        "embedding · ‹·little› #401 at position 7",
        "1 cell = 5 numbers, the largest sum",
    )
    assert panel.titles(a_view(16))[1] == "16 numbers"
    monkeypatch.setattr(EmbeddingStrips, "inner_size", Size(30, 6))
    assert panel.titles(a_view())[0] == "embedding · ‹·little›"
    assert panel.titles(a_view(token="w" * 40))[0].endswith("…›")


def test_without_colour_signs_still_differ() -> None:
    panel = EmbeddingStrips()
    panel.look = look("dark", "lagoon", "none")
    view = a_view(parts=(("token", np.array([1.0, -1.0], np.float32)),))
    layout = layout_of(view, (40, 12))
    row = panel.draw(view, 40, 12)[layout.rows(0).start].text
    assert row[layout.left] != row[layout.left + layout.cell]


class StripsApp(App[None]):
    """One panel and what it said."""

    def __init__(self, view: EmbeddingView) -> None:
        super().__init__()
        self.shown = view
        self.said: list[int | None] = []

    def compose(self) -> ComposeResult:
        yield EmbeddingStrips()

    def on_mount(self) -> None:
        self.query_one(EmbeddingStrips).show(self.shown)

    def on_embedding_strips_pointed(self, message: EmbeddingStrips.Pointed) -> None:
        self.said.append(message.dimension)


async def test_the_mouse_points_at_the_number_that_is_drawn() -> None:
    app = StripsApp(a_view(256))
    async with app.run_test(size=(60, 16)) as pilot:
        layout = layout_of(app.shown, (58, 14))
        for part, cell in ((0, 0), (1, 17), (2, layout.count - 1)):
            place = layout.left + cell + 1, layout.rows(part).start + 1
            await pilot.hover(EmbeddingStrips, place)
            await pilot.pause()
            low = cell * layout.pool
            bundle = app.shown.parts[-1][1][low : low + layout.pool]
            assert app.said[-1] == low + int(np.abs(bundle).argmax())
        before = len(app.said)
        await pilot.hover(EmbeddingStrips, (5, 2))  # a label
        await pilot.hover(EmbeddingStrips, (58, layout.rows(0).start + 1))  # beside the strip
        await pilot.pause()
        assert len(app.said) == before


async def test_arrows_move_the_dimension_and_stop_at_the_ends() -> None:
    app = StripsApp(a_view(16))
    async with app.run_test(size=(60, 16)) as pilot:
        panel = app.query_one(EmbeddingStrips)
        panel.focus()
        await pilot.press("right", "right", "right", "left")
        await pilot.pause()
        assert app.said == [0, 1, 2, 1]
        for dimension, key, found in ((None, "left", 15), (15, "right", 15), (0, "left", 0), (7, "left", 6)):
            panel.wait("")
            panel.show(a_view(16, dimension))
            await pilot.press(key)
            await pilot.pause()
            assert app.said[-1] == found


async def test_leaving_lets_go_unless_keys_are_here() -> None:
    app = StripsApp(a_view(16))
    async with app.run_test(size=(60, 16)) as pilot:
        panel = app.query_one(EmbeddingStrips)
        panel.blur()
        await pilot.pause()
        panel.on_leave()
        await pilot.pause()
        assert app.said == [None]
        panel.focus()
        await pilot.pause()
        panel.on_leave()
        await pilot.pause()
        assert app.said == [None]


async def test_arrows_that_come_before_the_numbers_count() -> None:
    app = StripsApp(a_view(16))
    async with app.run_test(size=(60, 16)) as pilot:
        panel = app.query_one(EmbeddingStrips)
        panel.wait("no numbers yet")
        panel.focus()
        await pilot.press("right", "right")
        assert app.said == []
        panel.show(app.shown)
        await pilot.pause()
        assert app.said == [0, 1]
