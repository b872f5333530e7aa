"""All heads at a glance: every head in its place, the one looked at framed, and what is not there not drawn as a 0."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.strip import Strip

from cutaway.widgets.heads_layout import NARROWEST, WIDEST, Layout
from cutaway.widgets.heads_map import HeadsMap, HeadsView, shrunk
from cutaway.widgets.look import THEMES, Depth, look
from cutaway.widgets.shade import ABSENT, levels_of

Check = Callable[[Sequence[Strip], int], None]

SIZES = [(18, 3), (28, 7), (38, 12), (56, 18), (98, 26), (118, 48), (2, 1)]
"""Columns and rows inside a panel."""
MODELS = [(1, 1, 1), (1, 16, 16), (4, 8, 8), (4, 8, 2), (12, 12, 12), (24, 32, 8), (3, 4, 1)]
"""Layers, heads, key/value heads."""

per_size = pytest.mark.parametrize("size", SIZES)
per_model = pytest.mark.parametrize("model", MODELS)


def a_view(
    model: tuple[int, int, int] = (4, 8, 8),
    N: int = 20,
    *,
    layer: int = 0,
    head: int = 0,
    reached: int | None = None,
    silent: frozenset[tuple[int, int]] = frozenset(),
) -> HeadsView:
    layers, heads, kv_heads = model
    rng = np.random.default_rng(layers * heads + N)
    maps = np.tril(rng.random((layers if reached is None else reached, heads, N, N))).astype(np.float32)
    return HeadsView(maps, layers, N, 1, layer, head, kv_heads, silent)


def a_map(
    view: HeadsView | None = None,
    size: tuple[int, int] | None = None,
    theme: str = "dark",
    depth: Depth = "truecolor",
) -> HeadsMap:
    columns, rows = size or (0, 0)

    class Sized(HeadsMap):
        inner_size = Size(columns, rows)

    panel = Sized()
    panel.look = look(theme, depth=depth)
    panel._view = view
    return panel


def layout_of(view: HeadsView, size: tuple[int, int]) -> Layout:
    return Layout.of(view.layers, view.heads, view.kv_heads, *size)


def halves(row: Strip) -> list[tuple[str, str]]:
    """The colours of the upper and the lower half of every column; of text, its ground."""
    found = []
    for text, style, _ in row:
        assert style and style.bgcolor and style.bgcolor.triplet and style.color and style.color.triplet
        ground, ink = style.bgcolor.triplet.hex, style.color.triplet.hex
        found += [(ink if character == "▀" else ground, ground) for character in text]
    return found


def map_of(rows: Sequence[Strip], column: int, line: int, layout: Layout) -> list[list[str]]:
    """The colours of a small map, rows of cells from the top."""
    found = []
    for row in rows[line : line + layout.lines]:
        cells = halves(row)[column : column + layout.width]
        found += [[upper for upper, _ in cells], [lower for _, lower in cells]]
    return found[: layout.rows]


def naive(weights: NDArray[np.float32], rows: int, columns: int) -> list[list[int]]:
    """The levels of one head, cell by cell."""
    N = len(weights)
    down, across = min(rows, N), min(columns, N)
    cells = [[0] * across for _ in range(down)]
    for r, c in product(range(down), range(across)):
        queries = range(r * N // down, (r + 1) * N // down)
        keys = range(c * N // across, (c + 1) * N // across)
        seen = [weights[q, k] for q in queries for k in keys if k <= q]
        cells[r][c] = int(levels_of(np.sqrt(max(seen)))) if seen else ABSENT
    return [[level for level in row for _ in range(columns // across)] for row in cells for _ in range(rows // down)]


@pytest.mark.parametrize("N", [1, 2, 3, 5, 6, 7, 11, 12, 13, 20, 31, 32])
def test_a_cell_is_the_largest_weight_of_its_blocks(N: int) -> None:
    maps = np.tril(np.random.default_rng(N).random((2, 3, N, N))).astype(np.float32)
    for rows, columns in ((1, 3), (3, 6), (4, 5), (6, 6), (12, 12)):
        levels = shrunk(maps, rows, columns)
        assert levels.shape[2] <= rows and levels.shape[3] <= columns
        for layer, head in product(range(2), range(3)):
            assert levels[layer, head].tolist() == naive(maps[layer, head], rows, columns)


def test_many_blocks_fill_a_map_and_the_future_is_absent() -> None:
    levels = shrunk(np.zeros((1, 1, 13, 13), np.float32), 6, 6)[0, 0]
    assert levels.shape == (6, 6)
    assert (levels == np.where(np.tri(6), 0, ABSENT)).all()


@per_size
@per_model
def test_a_layout_fits_and_its_maps_do_not_touch(model: tuple[int, int, int], size: tuple[int, int]) -> None:
    layers, heads, kv_heads = model
    layout = Layout.of(*model, *size)
    assert NARROWEST <= layout.width <= WIDEST
    for first in range(heads - layout.heads + 1):
        columns = [layout.column(head, first) for head in range(first, first + layout.heads)]
        assert columns[0] > layout.label + 1
        assert all(right > left + layout.width for left, right in zip(columns, columns[1:], strict=False))
        if size[0] >= 18:
            assert columns[-1] + layout.width < size[0]  # and a column for the frame
    lines = [layout.line(layer, 0) for layer in range(layout.layers)]
    assert all(below >= above + layout.lines for above, below in zip(lines, lines[1:], strict=False))
    assert layout.gap or layout.layers == 1 or layout.rows == 2 * layout.lines - 1
    if size[1] >= 3:
        assert lines[-1] + layout.lines <= size[1]


def test_all_heads_are_in_sight_where_they_can_be() -> None:
    for model in MODELS[:5]:
        layout = Layout.of(*model, 98, 26)
        assert (layout.layers, layout.heads) == model[:2]
    assert Layout.of(1, 1, 1, 98, 26).width == WIDEST
    wide, narrow = Layout.of(4, 8, 8, 98, 26), Layout.of(4, 8, 8, 56, 26)
    assert wide.width > narrow.width and wide.heads == narrow.heads == 8


def test_a_layout_does_not_depend_on_the_text() -> None:
    rows = [a_map().draw(a_view(N=N), 56, 18) for N in (12, 13, 20, 32)]
    labels = [[row.text[:4] for row in drawn] for drawn in rows]  # up to the first map
    assert all(label == labels[0] for label in labels)


@per_size
@per_model
@pytest.mark.parametrize("depth", ["truecolor", "256", "none"])
def test_rows_have_the_panels_width(
    model: tuple[int, int, int], size: tuple[int, int], depth: Depth, check_rows: Check
) -> None:
    layers, heads, _ = model
    for N, reached in ((1, layers), (20, layers), (32, layers // 2), (0, 0)):
        for layer, head in ((0, 0), (layers - 1, heads - 1), (layers // 2, heads // 2)):
            view = a_view(model, N, layer=layer, head=head, reached=reached, silent=frozenset({(0, 0)}))
            rows = a_map(depth=depth).draw(view, *size)
            assert len(rows) == size[1]
            check_rows(rows, size[0])


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", [(56, 18), (98, 26)])
@pytest.mark.parametrize("model", [(4, 8, 8), (4, 8, 2), (12, 12, 12)])
def test_every_head_has_its_map(model: tuple[int, int, int], size: tuple[int, int], theme: str) -> None:
    view = a_view(model, layer=2, head=1)
    layout, panel = layout_of(view, size), a_map(theme=theme)
    tone = {ABSENT: panel.look.panel, **dict(enumerate(panel.look.levels))}
    rows = panel.draw(view, *size)
    first = min(max(2 - layout.layers // 2, 0), view.layers - layout.layers)
    for layer, head in product(range(first, first + layout.layers), range(view.heads)):
        found = map_of(rows, layout.column(head, 0), layout.line(layer, first), layout)
        expected = naive(view.maps[layer, head], layout.rows, layout.width)
        assert [row[: len(expected[0])] for row in found] == [[tone[level] for level in row] for row in expected]


def framed_at(rows: Sequence[Strip], corners: str) -> list[tuple[int, int]]:
    """Where each of the frame's corners stands, in `here`."""
    return [(row.text.index(corner), y) for corner in corners for y, row in enumerate(rows) if corner in row.text]


def test_the_head_looked_at_is_framed() -> None:
    view, size = a_view(layer=2, head=5), (56, 18)
    layout, panel = layout_of(view, size), a_map()
    rows = panel.draw(view, *size)
    column, line = layout.column(5, 0), layout.line(2, 0)
    left, right, upper, lower = column - 1, column + layout.width, line - 1, line + layout.lines
    assert framed_at(rows, "┌┐└┘") == [(left, upper), (right, upper), (left, lower), (right, lower)]
    here = [
        segment.text.strip()
        for row in rows
        for segment in row
        if segment.style and segment.style.color and segment.style.color.triplet
        if segment.style.color.triplet.hex == panel.look.here and segment.text.strip()
    ]
    assert "L2" in here and "5" in here
    assert not {"L0", "L1", "L3", "4", "6"} & set(here)


def test_the_frame_goes_through_the_number_over_the_first_layer() -> None:
    rows = a_map().draw(a_view(layer=0, head=3), 56, 18)
    assert rows[0].text.split() == ["0", "1", "2", "┌─", "3", "─┐", *"4567"]


@pytest.mark.parametrize("depth", ["truecolor", "256"])
def test_the_frame_is_bars_where_layers_are_close(depth: Depth) -> None:
    view, size = a_view((12, 12, 12), layer=5, head=7), (98, 26)
    layout = layout_of(view, size)
    assert not layout.gap
    rows = a_map(depth=depth).draw(view, *size)
    column, line = layout.column(7, 0), layout.line(5, 0)
    for y, row in enumerate(rows):
        if line <= y < line + layout.lines:
            assert row.text[column - 1] + row.text[column + layout.width] == "▐▌"
        else:
            assert not set("▐▌") & set(row.text)


@per_size
@per_model
def test_maps_of_glyphs_have_a_whole_line_between_them(model: tuple[int, int, int], size: tuple[int, int]) -> None:
    layout = Layout.of(*model, *size, halves=False)
    assert layout.gap == 1
    if size[1] >= 3:
        assert layout.line(layout.layers - 1, 0) + layout.lines <= size[1]
    view = a_view(model, layer=model[0] - 1)
    rows = a_map(depth="none").draw(view, *size)
    first = model[0] - layout.layers
    for layer in range(first, model[0] - 1):
        below = layout.line(layer, first) + layout.lines
        assert not set(rows[below].text) - set(" ┌─┐")


def test_layers_not_reached_stand_empty() -> None:
    view, size = a_view(reached=2), (56, 18)
    layout, panel = layout_of(view, size), a_map()
    rows = panel.draw(view, *size)
    for layer in range(4):
        lines = rows[layout.line(layer, 0) : layout.line(layer, 0) + layout.lines]
        assert any(f"L{layer}" in row.text for row in lines)
        coloured = {colour for row in lines for pair in halves(row) for colour in pair} - {panel.look.panel}
        assert bool(coloured) == (layer < 2)
        assert sum(row.text.count("·") for row in lines) == (0 if layer < 2 else 8)


def test_silenced_heads_are_crossed_out() -> None:
    view, size = a_view(silent=frozenset({(1, 2), (3, 7)})), (56, 18)
    layout = layout_of(view, size)
    rows = a_map().draw(view, *size)
    crossed = {(x, y) for y, row in enumerate(rows) for x, character in enumerate(row.text) if character == "×"}
    assert crossed == {
        (layout.column(head, 0) + x, layout.line(layer, 0) + y)
        for layer, head in view.silent
        for x, y in product(range(layout.width), range(layout.lines))
    }


@pytest.mark.parametrize("size", [(47, 10), (56, 12), (78, 19), (118, 36), (198, 56)])
@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 8, 8), (4, 8, 2), (12, 12, 12)])
@pytest.mark.parametrize("glyphs", [False, True])
def test_the_scale_is_told_and_nothing_is_cut(size: tuple[int, int], shape: tuple[int, int, int], glyphs: bool) -> None:
    """The scale says that it is one of square roots; the frame around the head looked at is whole."""
    for layer in range(shape[0]):
        view = a_view(shape, layer=layer)
        panel = a_map(view, size, depth="none" if glyphs else "truecolor")
        rows = [row.text for row in panel.draw(view, *size)]
        has_line = rows[-1].lstrip().startswith("0 ") and "√" in rows[-1]
        note = panel.titles(view)[1]
        assert has_line != ("√ scale" in note) or len(note) > size[0] - 16
        assert has_line or Layout.of(*shape, *size, not glyphs).layers < shape[0]  # it would have cost a layer
        text = "\n".join(rows)
        assert text.count("┌") == text.count("└") and text.count("┐") == text.count("┘")


def test_heads_that_share_keys_stand_together() -> None:
    view = a_view((4, 8, 2))
    layout = layout_of(view, (78, 19))
    columns = [layout.column(head, 0) for head in range(8)]
    steps = np.diff(columns).tolist()
    assert steps == [layout.width + 1] * 3 + [layout.width + 2] + [layout.width + 1] * 3
    rows = a_map().draw(view, 78, 19)
    assert rows[0].text.replace("─", "").split() == ["kv", "0", "kv", "1"]
    assert "kv" not in "".join(row.text for row in a_map().draw(a_view((4, 8, 8)), 78, 19))


@pytest.mark.parametrize("head", [0, 3, 6, 17, 31])
def test_groups_cut_by_the_window_keep_their_names_over_them(head: int) -> None:
    view = a_view((24, 32, 8), layer=20, head=head)
    layout, size = layout_of(view, (98, 26)), (98, 26)
    first = min(max(head - layout.heads // 2, 0), 32 - layout.heads)
    names = a_map().draw(view, *size)[0].text
    for group in range(8):
        if (at := names.find(f"kv {group}")) >= 0:
            assert layout.column(max(group * 4, first), first) <= at < layout.column(group * 4 + 4, first)


@pytest.mark.parametrize(
    ("model", "size", "note"),
    [
        ((4, 8, 8), (56, 18), "1 cell = the largest of up to 4 × 4 weights"),
        ((4, 8, 8), (28, 18), "heads 2–7 of 8"),
        ((4, 8, 8), (28, 7), "L1–3 of 4 · H2–7 of 8"),
        ((24, 32, 8), (98, 26), "layers 12–23 of 24 · heads 11–31 of 32 · 1 cell = the largest of up to 7 × 7 weights"),
        ((24, 32, 8), (60, 26), "layers 12–23 of 24 · heads 19–31 of 32"),
        ((24, 32, 8), (18, 3), "√ scale"),
    ],
)
def test_the_border_says_what_is_in_sight(model: tuple[int, int, int], size: tuple[int, int], note: str) -> None:
    view = a_view(model, layer=model[0] - 1, head=model[1] - 1)
    assert a_map(view, size).titles(view) == ("heads", note)


def test_a_glyph_stands_for_more_than_a_half_block() -> None:
    """Two rows of cells in one glyph are one cell to the eye."""
    view = a_view(N=20)
    assert layout_of(view, (56, 18)).lines == 3
    notes = [a_map(view, (56, 18), depth=depth).titles(view)[1] for depth in ("truecolor", "none")]
    assert notes == [f"1 cell = the largest of up to {size} weights" for size in ("4 × 4", "7 × 4")]


def test_one_weight_a_cell_needs_no_words() -> None:
    assert a_map(None, (56, 18)).titles(a_view(N=5)) == ("heads", "")
    assert a_map(None, (56, 18)).titles(None) == ("heads", "")


@per_model
@pytest.mark.parametrize("size", SIZES[1:6])
def test_a_place_on_a_map_is_its_head(model: tuple[int, int, int], size: tuple[int, int]) -> None:
    layers, heads, _ = model
    view = a_view(model, layer=layers - 1, head=heads // 2)
    layout, panel = layout_of(view, size), a_map(view, size)
    found = {(x, y): place for x, y in product(range(size[0]), range(size[1])) if (place := panel.head_at(x, y))}
    places = set(found.values())
    assert (layers - 1, heads // 2) in places
    assert len(places) == layout.layers * layout.heads
    assert len(found) == len(places) * layout.width * layout.lines
    assert panel.head_at(0, 0) is None and a_map(None, size).head_at(5, 5) is None


class HeadsApp(App[None]):
    """One panel and what it said."""

    def __init__(self, view: HeadsView) -> None:
        super().__init__()
        self.shown = view
        self.said: list[tuple[str, int, int]] = []

    def compose(self) -> ComposeResult:
        yield HeadsMap()

    def on_mount(self) -> None:
        self.query_one(HeadsMap).show(self.shown)

    def on_heads_map_chosen(self, message: HeadsMap.Chosen) -> None:
        self.said.append(("chosen", message.layer, message.head))

    def on_heads_map_opened(self, message: HeadsMap.Opened) -> None:
        self.said.append(("opened", message.layer, message.head))


async def test_arrows_choose_and_enter_opens() -> None:
    """Every key counts, even if several come before the first was drawn; none leads over the edge."""
    app = HeadsApp(a_view(layer=1, head=6))
    async with app.run_test(size=(58, 20)) as pilot:
        app.query_one(HeadsMap).focus()
        await pilot.press("down", "right", "right", "up", "up", "up", "left", "enter")
        await pilot.pause()
        places = [(2, 6), (2, 7), (2, 7), (1, 7), (0, 7), (0, 7), (0, 6)]
        assert app.said == [*(("chosen", *place) for place in places), ("opened", 0, 6)]
        app.query_one(HeadsMap).show(a_view(layer=3, head=2))
        await pilot.press("enter")
        await pilot.pause()
        assert app.said[-1] == ("opened", 3, 2)


async def test_keys_that_come_before_the_maps_count() -> None:
    app = HeadsApp(a_view(layer=1, head=6))
    async with app.run_test(size=(58, 20)) as pilot:
        panel = app.query_one(HeadsMap)
        panel.wait("no maps yet")
        panel.focus()
        await pilot.press("up", "left", "enter")
        assert app.said == []
        panel.show(app.shown)
        await pilot.pause()
        assert app.said == [("chosen", 0, 6), ("chosen", 0, 5), ("opened", 0, 5)]


async def test_a_click_chooses_and_a_double_click_opens() -> None:
    app = HeadsApp(a_view(layer=1, head=6))
    async with app.run_test(size=(58, 20)) as pilot:
        layout = layout_of(app.shown, (56, 18))
        place = layout.column(4, 0) + 2, layout.line(2, 0) + 1  # with the border, the second column and first line
        assert await pilot.click(HeadsMap, place)
        await pilot.pause()
        assert app.said == [("chosen", 2, 4)]
        await pilot.click(HeadsMap, (1, 1))
        await pilot.pause()
        assert app.said == [("chosen", 2, 4)]
        await pilot.double_click(HeadsMap, place)
        await pilot.pause()
        assert app.said[-1] == ("opened", 2, 4)
