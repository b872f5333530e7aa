"""A head's attention as cells: every weight in its place, the future absent, the cursor's value exact."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from rich.cells import split_graphemes
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.strip import Strip

from cutaway.widgets.attention_map import AttentionMap, AttentionView, Kind, Layout, pooled, to_levels
from cutaway.widgets.drawable import fit
from cutaway.widgets.look import COLORMAPS, LEVELS, THEMES, look
from cutaway.widgets.shade import signed_levels_of

Check = Callable[[Sequence[Strip], int], None]

SIZES = [(20, 6), (23, 9), (31, 12), (47, 20), (60, 15), (61, 16), (118, 30), (200, 60)]
"""Columns and rows inside a panel."""
LENGTHS = [1, 2, 8, 9, 25, 44, 45, 92, 93, 186, 1100]
"""Keys: around every change of the layout, for some of the sizes."""
BOTH = [*product(SIZES, LENGTHS)]

per_size = pytest.mark.parametrize("size", SIZES)


class Column(NamedTuple):
    """One column of a row: its character ("" behind a wide one) and the colour behind it."""

    character: str
    ground: str


def columns_of(row: Strip) -> list[Column]:
    columns = []
    for text, style, _ in row:
        assert style is not None and style.bgcolor is not None and style.bgcolor.triplet is not None
        for start, end, cells in split_graphemes(text)[0]:
            ground = style.bgcolor.triplet.hex
            columns += [Column(text[start:end], ground), *[Column("", ground)] * (cells - 1)]
    return columns


def a_view(T: int, queries: int, *, seed: int = 0, labels: Sequence[str] = ()) -> AttentionView:
    """The newest queries of T positions, looked at somewhere in the middle."""
    rng = np.random.default_rng(seed)
    n = min(queries, T)
    first = T - n
    weights = rng.random((n, T)).astype(np.float32) ** 6
    weights *= np.arange(T) <= first + np.arange(n)[:, None]
    weights /= weights.sum(axis=1, keepdims=True)
    query = first + int(rng.integers(n))
    names = tuple(labels[place % len(labels)] if labels else f"·t{place}" for place in range(T))
    return AttentionView(3, 5, weights, first, names, query, int(rng.integers(query + 1)))


def a_map(view: AttentionView | None = None, theme: str = "dark", colormap: str = "lagoon") -> AttentionMap:
    panel = AttentionMap()
    panel.look = look(theme, colormap)
    panel._view = view
    return panel


def drawn(size: tuple[int, int], T: int, seed: int = 0) -> tuple[AttentionView, Layout, list[Strip]]:
    layout = Layout.of(T, *size)
    view = a_view(T, layout.queries, seed=seed)
    return view, layout, a_map().draw(view, *size)


def map_cells(view: AttentionView, layout: Layout) -> Iterator[tuple[int, int, int]]:
    """Row of the view, first key, and column in the panel of every cell there is, future ones included."""
    for row in range(len(view.values)):
        for cell in range(layout.count):
            yield row, cell * layout.pool, layout.left + cell * layout.cell


@pytest.fixture
def sized(monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[int, int]], None]:
    """A function that gives maps a size without a screen."""
    return lambda size: monkeypatch.setattr(AttentionMap, "inner_size", Size(*size))


@pytest.mark.parametrize("columns", [20, 27, 31, 47, 60, 61, 118, 200])
def test_a_layout_holds_all_keys_and_fits(columns: int) -> None:
    for rows, T in product([6, 15, 60], range(1, 1101)):
        layout = Layout.of(T, columns, rows)
        assert layout.left + layout.count * layout.cell <= columns
        assert (layout.count - 1) * layout.pool < T <= layout.count * layout.pool
        assert layout.cell in (1, 2 * layout.tall) and layout.pool >= 1
        assert layout.cell == 1 or layout.pool == 1
        assert layout.tall == 1 or layout.queries >= T
        assert layout.header + layout.queries * layout.tall + 2 <= rows


def test_a_layout_is_no_coarser_than_it_must_be() -> None:
    for (columns, rows), T in BOTH:
        layout = Layout.of(T, columns, rows)
        if layout.pool > 1:
            room = columns - layout.left
            assert -(-T // (layout.pool - 1)) * layout.cell > room - 2


@per_size
def test_every_row_is_as_wide_as_the_panel(size: tuple[int, int], check_rows: Check) -> None:
    for T in LENGTHS:
        _, _, rows = drawn(size, T)
        assert len(rows) == size[1]
        check_rows(rows, size[0])


@pytest.mark.parametrize(("size", "T"), BOTH)
def test_every_cell_has_the_colour_of_its_weight(size: tuple[int, int], T: int) -> None:
    view, layout, rows = drawn(size, T)
    colours = look()
    for row, line in product(range(len(view.values)), range(layout.tall)):
        columns, query = columns_of(rows[layout.header + row * layout.tall + line]), view.first + row
        levels = to_levels(pooled(view.values[row : row + 1, : query + 1], layout.pool))[0]
        present = "".join(colours.levels[level] * layout.cell for level in levels)
        future = colours.panel * (size[0] - layout.left - layout.cell * len(levels))
        assert "".join(column.ground for column in columns[layout.left :]) == present + future
        marks = [" " * layout.cell] * len(levels)
        if layout.tall > 1 and line == layout.tall // 2:
            marks = [number(view.values[row, key], layout.cell) for key in range(query + 1)]
        if query == view.query:
            mark = marks[view.key // layout.pool]
            marks[view.key // layout.pool] = bracketed(mark) if layout.cell > 1 else "+"
        assert "".join(column.character for column in columns[layout.left :]).rstrip() == "".join(marks).rstrip()


def number(weight: float, cells: int) -> str:
    """A weight at the right of a cell: in per cent, or with two digits where there is room."""
    text = f"{weight:.2f}" if cells >= 6 else f"{100 * weight:.0f}"
    return f"{text:>{cells - 1}} "


def bracketed(cell: str) -> str:
    """The same with brackets, where the number leaves room for them."""
    text = cell.strip()
    return f"[{text:>{len(cell) - 2}}]" if len(text) <= len(cell) - 2 else cell


@pytest.mark.parametrize("kind", ["scores", "masked"])
def test_scores_have_their_sign_and_their_future(kind: Kind) -> None:
    """Before the mask a query sees keys that come later; after it none."""
    values = np.array([[2.0, -8.0, 4.0], [0.0, 1.0, -2.0]], np.float32)
    view = AttentionView(0, 0, values, 0, ("a", "b", "c"), 1, 0, kind, limit=8.0)
    panel = a_map()
    layout = Layout.of(3, 40, 12)
    rows = panel.draw(view, 40, 12)
    middle = [layout.header + row * layout.tall + layout.tall // 2 for row in range(2)]
    grounds = [columns_of(rows[y])[layout.left :: layout.cell] for y in middle]
    levels = signed_levels_of(values, 8.0)
    for row in range(2):
        for key in range(3):
            there = kind == "scores" or key <= row
            expected = panel.look.signed_levels[levels[row, key]] if there else panel.look.panel
            assert grounds[row][key].ground == expected
    assert rows[-2].text.split()[-1] == "0.0000"
    assert "−8.0" in rows[-2].text and "8.0" in rows[-2].text


def test_a_query_that_has_not_looked_back_yet_is_not_there(sized: Callable[[tuple[int, int]], None]) -> None:
    sized((40, 12))
    values = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]], np.float32)
    view = AttentionView(0, 0, values, 0, ("a", "b", "c"), 2, 0, "weights", 2)
    panel = a_map(view)
    layout = Layout.of(3, 40, 12)
    rows = panel.draw(view, 40, 12)
    last = rows[layout.header + 2 * layout.tall :][: layout.tall]
    assert all(column.ground == panel.look.panel for row in last for column in columns_of(row)[layout.left :])
    assert "not yet" in rows[-2].text and "c has not looked back yet" in rows[-1].text
    assert panel.cell_at(layout.left, layout.header + 2 * layout.tall) is None
    assert panel.cell_at(layout.left, layout.header + layout.tall) == (1, 0)


@per_size
def test_a_place_on_the_map_is_the_cell_drawn_there(
    size: tuple[int, int], sized: Callable[[tuple[int, int]], None]
) -> None:
    sized(size)
    for T in LENGTHS:
        view, layout, _ = drawn(size, T)
        panel = a_map(view)
        assert panel.visible_queries(T) == layout.queries
        cells: dict[tuple[int, int], tuple[int, int]] = {}
        for row, low, x in map_cells(view, layout):
            query = view.first + row
            if low <= query:
                pool = view.values[row, low : min(low + layout.pool, query + 1)]
                cell = query, low + int(pool.argmax())
                for offset, line in product(range(layout.cell), range(layout.tall)):
                    cells[x + offset, layout.header + row * layout.tall + line] = cell
        for y, x in product(range(-1, size[1] + 1), range(-1, size[0] + 1)):
            assert panel.cell_at(x, y) == cells.get((x, y)), (x, y)


def test_there_is_no_cell_while_there_is_nothing_to_see(sized: Callable[[tuple[int, int]], None]) -> None:
    sized((60, 20))
    assert a_map().cell_at(20, 10) is None


@pytest.mark.parametrize(("theme", "colormap"), product(THEMES, COLORMAPS))
def test_the_future_is_not_a_weight_of_nothing(theme: str, colormap: str) -> None:
    view = AttentionView(0, 0, np.eye(3, dtype=np.float32), 0, ("a", "b", "c"), 1, 1)
    panel = a_map(theme=theme, colormap=colormap)
    layout = Layout.of(3, 40, 12)
    row = columns_of(panel.draw(view, 40, 12)[layout.header + layout.tall])
    nothing, here, absent = (row[layout.left + layout.cell * key].ground for key in range(3))
    assert nothing == panel.look.levels[0]
    assert here == panel.look.levels[-1]
    assert absent == panel.look.panel
    assert len({nothing, here, absent}) == 3


def test_levels_rise_with_weight_and_use_the_whole_scale() -> None:
    levels = to_levels(np.linspace(0, 1, 5001, dtype=np.float32))
    assert list(levels) == sorted(levels)
    assert set(levels.tolist()) == set(range(LEVELS))
    assert to_levels(np.array([0.0, 1.0, 1.0000001, -1e-9], np.float32)).tolist() == [0, 63, 63, 0]
    assert to_levels(np.array([0.001], np.float32)) > 0


@pytest.mark.parametrize("pool", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("T", [1, 2, 6, 7, 49, 51])
def test_a_cell_of_several_keys_shows_the_largest(T: int, pool: int) -> None:
    weights = np.random.default_rng(pool * T).random((3, T)).astype(np.float32)
    cells = pooled(weights, pool)
    assert cells.shape == (3, -(-T // pool))
    for row, cell in product(range(3), range(cells.shape[1])):
        assert cells[row, cell] == weights[row, cell * pool : (cell + 1) * pool].max()


@per_size
def test_the_value_is_the_weight_under_the_cursor(size: tuple[int, int]) -> None:
    """Whole, whatever else has to give way."""
    for T, seed in product(LENGTHS, range(3)):
        view, _, rows = drawn(size, T, seed)
        assert view.value == view.values[view.query - view.first, view.key]
        assert rows[-2].text.split()[-1] == f"{view.value:.4f}"


def test_the_legend_names_both_tokens() -> None:
    view, _, rows = drawn((60, 20), 30)
    query, key = (f"{view.labels[position]}@{position}" for position in (view.query, view.key))
    assert f"{query} → {key}  {view.value:.4f}" in rows[-2].text


def test_tokens_that_are_there_twice_are_told_apart() -> None:
    weights = np.array([[0.5, 0.3, 0.2]], np.float32)
    view = AttentionView(0, 0, weights, 2, ("·a", "·b", "·a"), 2, 0)
    assert a_map().draw(view, 80, 20)[-1].text.split()[3:] == "·a@0 50 % ·b 30 % ·a@2 20 %".split()


@per_size
def test_every_query_has_its_label(size: tuple[int, int]) -> None:
    for T in LENGTHS:
        view, layout, rows = drawn(size, T)
        for row in range(len(view.values)):
            text = rows[layout.header + row * layout.tall + layout.tall // 2].text
            assert text[1 : 1 + layout.label] == fit(view.labels[view.first + row], layout.label, "right")


def test_keys_have_their_first_letters_written_downwards() -> None:
    labels = ("·Once", "·upon", "·a", "漢字", "·", "e\u0301te")
    view = AttentionView(0, 0, np.full((1, 6), 1 / 6, np.float32), 5, labels, 5, 3)
    rows = a_map().draw(view, 27, 16)
    left = Layout.of(6, 27, 16).left
    columns = [columns_of(row) for row in rows[:3]]
    down = ["".join(line[left + 2 * key].character for line in columns).strip() for key in range(6)]
    assert down == ["Onc", "upo", "a", "漢字", "·", "ete"]


@pytest.mark.parametrize(("size", "T"), [((31, 12), 20), ((31, 12), 1100), ((118, 30), 90)])
def test_the_ruler_counts_positions_and_marks_the_cursor(size: tuple[int, int], T: int) -> None:
    for seed in range(9):
        view, layout, rows = drawn(size, T, seed)
        assert layout.cell == 1
        ruler = rows[0].text[layout.left :]
        at = view.key // layout.pool
        assert ruler[at] == "▾" and ruler.count("▾") == 1
        for column in range(0, layout.count, 10):
            number = str(column * layout.pool)
            room = range(column, column + len(number))
            if at not in range(column - 1, room.stop + 1) and room.stop <= layout.count:
                assert ruler[column : room.stop] == number


def test_what_a_query_looks_at_most_comes_first() -> None:
    weights = np.array([[0.02, 0.5, 0.28, 0.2, 0.0]], np.float32)
    view = AttentionView(0, 0, weights, 4, ("·a", "·b", "·c", "·d", "·e"), 4, 0)
    words = a_map().draw(view, 80, 20)[-1].text.split()
    assert words[:3] == ["·e", "looks", "at"]
    assert words[3:] == "·b 50 % ·c 28 % ·d 20 % ·a 2 %".split()


@per_size
def test_hostile_labels_move_nothing(size: tuple[int, int], hostile_tokens: list[str], check_rows: Check) -> None:
    for T in LENGTHS:
        view = a_view(T, Layout.of(T, *size).queries, labels=hostile_tokens[:100])
        check_rows(a_map().draw(view, *size), size[0])


@pytest.mark.parametrize("size", [(20, 6), (118, 30)])
def test_every_token_may_be_a_label(size: tuple[int, int], hostile_tokens: list[str], check_rows: Check) -> None:
    for start in range(0, len(hostile_tokens), 100):
        labels = hostile_tokens[start : start + 100]
        rows = a_map().draw(a_view(len(labels), Layout.of(len(labels), *size).queries, labels=labels), *size)
        check_rows(rows, size[0])


class MapApp(App[None]):
    """One map and what it said."""

    def __init__(self, view: AttentionView) -> None:
        super().__init__()
        self.shown = view
        self.said: list[tuple[int, int] | None] = []

    def compose(self) -> ComposeResult:
        yield AttentionMap()

    def on_mount(self) -> None:
        self.query_one(AttentionMap).show(self.shown)

    def on_attention_map_pointed(self, message: AttentionMap.Pointed) -> None:
        self.said.append(message.cell)


async def test_mouse_and_arrows_point_at_cells() -> None:
    app = MapApp(a_view(12, 12))
    async with app.run_test(size=(62, 24)) as pilot:
        panel, layout = app.query_one(AttentionMap), Layout.of(12, 60, 22)
        for query, key in ((11, 0), (11, 11), (7, 3), (0, 0)):
            x, y = layout.left + layout.cell * key, layout.header + layout.tall * query
            assert await pilot.hover(AttentionMap, (x + 1, y + 1))
            await pilot.pause()
            assert app.said[-1] == (query, key)
        before = len(app.said)
        future = layout.left + layout.cell * 9 + 1, layout.header + 3 * layout.tall + 1
        await pilot.hover(AttentionMap, future)
        await pilot.hover(AttentionMap, (0, 0))  # the border
        await pilot.pause()
        assert len(app.said) == before
        panel.focus()
        await pilot.pause()
        view = app.shown
        for arrow, down, right in (("up", -1, 0), ("down", 1, 0), ("left", 0, -1), ("right", 0, 1)):
            panel.wait("")
            panel.show(view)
            await pilot.press(arrow)
            await pilot.pause()
            query = min(max(view.query + down, 0), 11)
            assert app.said[-1] == (query, min(max(view.key + right, 0), query))


async def test_arrows_stop_at_the_edges() -> None:
    weights = np.tril(np.ones((3, 3), np.float32))
    app = MapApp(AttentionView(0, 0, weights, 0, ("a", "b", "c"), 0, 0))
    async with app.run_test(size=(62, 24)) as pilot:
        panel = app.query_one(AttentionMap)
        panel.focus()
        for query, key in ((0, 0), (1, 1), (2, 0)):
            panel.show(AttentionView(0, 0, weights, 0, ("a", "b", "c"), query, key))
            app.said.clear()
            await pilot.press("up", "down", "left", "right")
            await pilot.pause()
            assert len(app.said) == 4
            assert all(said is not None and 0 <= said[1] <= said[0] < 3 for said in app.said)


async def test_arrows_may_outrun_the_screen() -> None:
    """Every one counts, even if several come before the first was drawn."""
    app = MapApp(a_view(12, 12))
    async with app.run_test(size=(62, 24)) as pilot:
        panel = app.query_one(AttentionMap)
        panel.show(AttentionView(0, 0, app.shown.values, 0, app.shown.labels, 11, 5))
        panel.focus()
        await pilot.press("up", "up", "up", "right")
        await pilot.pause()
        assert app.said == [(10, 5), (9, 5), (8, 5), (8, 6)]


def test_what_one_token_leaves_the_other_may_have() -> None:
    """On the smallest common terminal neither name is cut while there is room for both."""
    labels = ("Once", *[f"·t{place}" for place in range(1, 36)], "·saw")
    weights = np.full((1, 37), 1 / 37, np.float32)
    view = AttentionView(0, 4, weights, 36, labels, 36, 0)
    assert "·saw@36 → Once@0  0.0270" in a_map().draw(view, 40, 12)[-2].text


def test_where_the_note_has_no_room_the_queries_in_sight_still_have(sized: Callable[[tuple[int, int]], None]) -> None:
    view = a_view(37, 10)
    for width, note in ((38, "queries 27–36"), (80, "queries 27–36 · weights after softmax")):
        sized((width, 14))
        assert a_map().titles(view)[1] == note
