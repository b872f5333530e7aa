"""Vectors as blocks of cells: every number has its cell or a share of one, zero is the middle, lengths are exact."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from textual.strip import Strip

from cutaway.widgets.look import LEVELS, MIDDLE, Look, look
from cutaway.widgets.shade import paint, signed_levels_of
from cutaway.widgets.vector_blocks import LEGEND_ROWS, BlockLayout, VectorsView, draw_blocks, pooled_signed

Check = Callable[[Sequence[Strip], int], None]

T = 9
LABELS = tuple(f"·word{position}" for position in range(T))
SIZES = [26, 33, 46, 60, 80, 118, 200]


def vectors(n: int, d: int, seed: int = 1) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def a_view(n: int = 5, sizes: Sequence[int] = (8, 8, 8), query: int = T - 1, note: str = "") -> VectorsView:
    blocks = tuple(
        (name, vectors(n, d, d + number)) for number, (name, d) in enumerate(zip("qkv", sizes, strict=False))
    )
    return VectorsView(1, 2, "q k v", blocks, T - n, LABELS, query, note)


def drawn(view: VectorsView, width: int, height: int = 14, colours: Look | None = None) -> list[Strip]:
    return draw_blocks(view, width, height, colours or look())


def cells_of(row: Strip, layout: BlockLayout) -> list[list[str]]:
    """The colours of each block's columns in *row*."""
    grounds = [
        str(segment.style.bgcolor.name) for segment in row for _ in range(segment.cell_length)
        if segment.style and segment.style.bgcolor
    ]  # fmt: skip
    column, blocks = layout.label + 2, []
    for cells in layout.cells:
        blocks.append(grounds[column : column + cells * layout.cell])
        column += cells * layout.cell + 2
    return blocks


@pytest.mark.parametrize("sizes", [(8,), (8, 8), (8, 8, 8), (64, 64, 64), (256,), (1, 1, 1), (12, 12)])
def test_blocks_stand_side_by_side_in_the_room_there_is(sizes: tuple[int, ...]) -> None:
    for columns in range(26, 240):
        layout = BlockLayout.of(sizes, columns)
        used = layout.label + 2 + sum(cells * layout.cell for cells in layout.cells) + 2 * (len(sizes) - 1)
        assert used <= columns and 1 <= layout.cell <= 4
        for size, cells, pool in zip(sizes, layout.cells, layout.pools, strict=True):
            assert (cells - 1) * pool < size <= cells * pool
            assert layout.cell == 1 or pool == 1
    assert BlockLayout.of(sizes, 4000).pools == (1,) * len(sizes)


@pytest.mark.parametrize("pool", [1, 2, 3, 7, 8, 20])
def test_a_cell_of_many_numbers_has_the_one_of_largest_magnitude(pool: int) -> None:
    values = vectors(6, 17)
    pooled = pooled_signed(values, pool)
    assert pooled.shape == (6, -(-17 // pool))
    for row, cell in product(range(6), range(pooled.shape[1])):
        part = values[row, cell * pool : (cell + 1) * pool]
        assert pooled[row, cell] == part[np.abs(part).argmax()]


@pytest.mark.parametrize("width", SIZES)
def test_every_row_is_as_wide_as_the_panel(width: int, check_rows: Check) -> None:
    for height, sizes in product((4, 7, 12, 30), ((8, 8, 8), (64, 64, 64), (256,), (12, 12))):
        for colours in (look(), look("light"), look(depth="none")):
            rows = drawn(a_view(sizes=sizes), width, height, colours)
            assert len(rows) == height
            check_rows(rows, width)


@pytest.mark.parametrize("width", SIZES)
def test_every_number_is_a_cell_of_its_colour(width: int) -> None:
    view, colours = a_view(), look()
    layout = BlockLayout.of((8, 8, 8), width)
    limit = max(float(np.abs(values).max()) for _, values in view.blocks)
    rows = drawn(view, width)[1:6]
    for row, strip in enumerate(rows):
        for (_, values), pool, cells in zip(view.blocks, layout.pools, cells_of(strip, layout), strict=True):
            levels = signed_levels_of(pooled_signed(values[row : row + 1], pool)[0], limit)
            expected = [
                str(segment.style.bgcolor.name)
                for segment in paint(levels, layout.cell, colours, signed=True)
                for _ in range(segment.cell_length)
                if segment.style and segment.style.bgcolor
            ]
            assert cells == expected


def test_zero_is_the_middle_and_the_largest_number_an_end() -> None:
    values = np.array([[0.0, 2.0, -2.0, 1.0]], np.float32)
    view = VectorsView(0, 0, "mix", (("v", values),), T - 1, LABELS, T - 1)
    colours = look()
    [cells] = cells_of(drawn(view, 60)[1], layout := BlockLayout.of((4,), 60))
    tones = colours.signed_levels
    assert cells[:: layout.cell] == [
        tones[MIDDLE], tones[-1], tones[0], tones[int(signed_levels_of([0.5], 1.0)[0])]
    ]  # fmt: skip
    assert len(tones) == LEVELS


def test_one_scale_holds_for_all_blocks() -> None:
    """A value block ten times as large is drawn stronger, not the same."""
    small, large = np.full((1, 4), 0.1, np.float32), np.full((1, 4), 1.0, np.float32)
    view = VectorsView(0, 0, "mix", (("v", small), ("weights · v", large)), T - 1, LABELS, T - 1)
    faint, strong = cells_of(drawn(view, 80)[1], BlockLayout.of((4, 4), 80))
    assert set(strong) == {look().signed_levels[-1]} and set(faint).isdisjoint(strong)


def test_blocks_are_named_with_their_sizes() -> None:
    names = drawn(a_view(), 80)[0]
    assert names.text.split() == "q [8] k [8] v [8]".split()
    layout = BlockLayout.of((8, 8, 8), 80)
    begins = [layout.label + 2 + place * (8 * layout.cell + 2) for place in range(3)]
    assert [names.text.index(f"{name} [8]") for name in "qkv"] == begins


@pytest.mark.parametrize("query", range(4, T))
def test_the_row_that_is_looked_at_is_lit_and_its_lengths_are_said(query: int) -> None:
    view = a_view(query=query)
    rows = drawn(view, 80)
    for position, row in enumerate(rows[1:6], 4):
        [label] = [segment for segment in row if segment.text.strip() == LABELS[position]]
        assert label.style is not None and bool(label.style.bold) == (position == query)
    lengths = [f"‖{name}‖ {np.linalg.norm(values[query - 4]):.3f}" for name, values in view.blocks]
    assert rows[-1].text.split("  ")[: 1 + len(lengths)] == [f" {LABELS[query]}", *lengths]


def test_the_scale_names_its_ends_and_what_a_cell_holds() -> None:
    view = a_view(sizes=(64, 64, 64))
    limit = max(float(np.abs(values).max()) for _, values in view.blocks)
    for width in (60, 80, 118):
        legend = drawn(view, width)[-LEGEND_ROWS].text
        assert legend.startswith(f" −{limit:.2f} ") and f" {limit:.2f} " in legend
        pool = max(BlockLayout.of((64, 64, 64), width).pools)
        assert f"1 cell = {pool} numbers, the largest" in legend
    assert "numbers" not in drawn(a_view(), 80)[-LEGEND_ROWS].text


def test_lengths_that_do_not_fit_are_left_out_whole(check_rows: Check) -> None:
    for width in range(26, 80):
        last = drawn(a_view(), width)[-1]
        check_rows([last], width)
        assert last.text.count("‖") % 2 == 0 and "…" not in last.text


def test_nothing_but_zeros_is_drawn_as_zeros(check_rows: Check) -> None:
    view = VectorsView(0, 0, "mix", (("v", np.zeros((2, 6), np.float32)),), T - 2, LABELS, T - 1)
    rows = drawn(view, 60)
    check_rows(rows, 60)
    [cells] = cells_of(rows[1], BlockLayout.of((6,), 60))
    assert set(cells) == {look().signed_levels[MIDDLE]}
    assert "‖v‖ 0.000" in rows[-1].text


def test_numbers_that_are_none_break_nothing(check_rows: Check) -> None:
    values = np.array([[np.nan, np.inf, -np.inf, 1.0]] * 2, np.float32)
    view = VectorsView(0, 0, "mix", (("v", values),), T - 2, LABELS, T - 1)
    check_rows(drawn(view, 60), 60)


def test_where_there_are_no_blocks_it_says_why(check_rows: Check) -> None:
    rows = drawn(VectorsView(0, 0, "projection", (), 4, LABELS, T - 1, "this needs the weights of fable"), 60)
    check_rows(rows, 60)
    assert " ".join(row.text.strip() for row in rows).strip() == "this needs the weights of fable"


def test_labels_of_any_kind(hostile_tokens: list[str], check_rows: Check) -> None:
    for start in range(0, 400, 9):
        labels = tuple(hostile_tokens[start : start + 9])
        view = VectorsView(0, 0, "q k v", (("q", vectors(9, 8)),), 0, labels, 8)
        for width in (26, 60):
            check_rows(drawn(view, width), width)
