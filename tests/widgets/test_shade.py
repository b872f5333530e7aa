"""Numbers as cells: more looks like more, absent is no number, signs and marks can be told in every look."""

from itertools import groupby, product

import numpy as np
import pytest
from rich.segment import Segment

from cutaway.widgets.look import COLORMAPS, LEVELS, MIDDLE, THEMES, Depth, Look, contrast, look, style
from cutaway.widgets.shade import (
    ABSENT,
    GLYPHS,
    SIGNED_GLYPHS,
    ink_on,
    levels_of,
    paint,
    paint_halves,
    scale,
    signed_levels_of,
)

LOOKS = [look(theme, "lagoon", depth) for theme, depth in product(THEMES, ("truecolor", "256"))]
EMPTY = np.array([], np.uint8)


def text(segments: list[Segment]) -> str:
    return "".join(segment.text for segment in segments)


def grounds(segments: list[Segment]) -> list[str]:
    """The colour behind every column."""
    found = []
    for segment in segments:
        assert segment.style and segment.style.bgcolor and segment.style.bgcolor.triplet
        found += [segment.style.bgcolor.triplet.hex] * segment.cell_length
    return found


def halves(segments: list[Segment]) -> list[tuple[str, str]]:
    """The colours of the upper and the lower half of every column."""
    found = []
    for segment in segments:
        assert segment.style and segment.style.color and segment.style.color.triplet
        for character, ground in zip(segment.text, grounds([segment]), strict=True):
            found.append((segment.style.color.triplet.hex if character == "▀" else ground, ground))
    return found


def test_levels_go_from_0_to_63_and_no_further() -> None:
    values = [0.0, 1.0, 0.5, 1 / 63, 0.4 / 63, -3.0, 7.0, np.inf, -np.inf, np.nan]
    assert levels_of(values).tolist() == [0, 63, 32, 1, 0, 0, 63, 63, 0, 0]
    assert levels_of(np.float32(0.25)).dtype == np.uint8
    assert levels_of(np.zeros((2, 3))).shape == (2, 3)
    assert levels_of([]).tolist() == []


def test_signed_levels_have_zero_in_the_middle() -> None:
    values = [-2.0, 2.0, 0.0, -0.0, -9.0, 9.0, np.nan]
    assert signed_levels_of(values, 2.0).tolist() == [0, 63, MIDDLE, MIDDLE, 0, 63, MIDDLE]
    assert signed_levels_of([-1.0, 1.0], 2.0).tolist() == [16, 47]
    assert signed_levels_of([1.0, -1.0], 0.0).tolist() == [MIDDLE, MIDDLE]
    for seed in range(20):
        ordered = np.sort(np.random.default_rng(seed).normal(size=50)).astype(np.float32)
        assert (np.diff(signed_levels_of(ordered, 2.0).astype(int)) >= 0).all()


@pytest.mark.parametrize("colours", LOOKS)
@pytest.mark.parametrize("signed", [False, True])
def test_each_level_gets_its_columns_and_its_colour(colours: Look, signed: bool) -> None:
    levels = np.random.default_rng(0).integers(0, LEVELS, 40).astype(np.uint8)
    levels[10:14] = ABSENT
    steps = colours.signed_levels if signed else colours.levels
    for cell in (1, 2, 5):
        painted = paint(levels, cell, colours, signed=signed)
        assert text(painted) == " " * (40 * cell)
        expected = [colours.panel if level == ABSENT else steps[level] for level in levels for _ in range(cell)]
        assert grounds(painted) == expected
    assert paint(EMPTY, 2, colours, signed=signed) == []


@pytest.mark.parametrize("colours", LOOKS)
def test_neighbours_of_one_colour_are_one_segment(colours: Look) -> None:
    levels = np.repeat(np.arange(LEVELS, dtype=np.uint8), 3)
    painted = paint(levels, 2, colours)
    assert len(painted) == len(list(groupby(colours.levels)))
    assert painted[0].style is paint(levels[:1], 1, colours)[0].style


@pytest.mark.parametrize("colours", LOOKS)
@pytest.mark.parametrize("signed", [False, True])
def test_halves_hold_two_rows(colours: Look, signed: bool) -> None:
    rng = np.random.default_rng(1)
    upper, lower = rng.choice([0, 5, 30, 63, ABSENT], (2, 200)).astype(np.uint8)
    steps = colours.signed_levels if signed else colours.levels
    tone = {ABSENT: colours.panel, **dict(enumerate(steps))}
    painted = paint_halves(upper, lower, colours, signed=signed)
    assert halves(painted) == [(tone[int(u)], tone[int(w)]) for u, w in zip(upper, lower, strict=True)]
    alone = paint_halves(upper, None, colours, signed=signed)
    assert halves(alone) == [(tone[int(u)], colours.panel) for u in upper]
    assert paint_halves(EMPTY, EMPTY, colours) == []


def test_halves_of_one_colour_show_no_seam() -> None:
    assert text(paint_halves([7, 7, ABSENT], [7, 8, ABSENT], look())) == " ▀ "


@pytest.mark.parametrize("theme", THEMES)
def test_glyphs_say_it_without_colour(theme: str) -> None:
    colours = look(theme, depth="none")
    levels = [*range(LEVELS), ABSENT]
    painted = paint(levels, 2, colours)
    order = [GLYPHS.index(glyph) for glyph in text(painted)[:-2:2]]
    assert order == sorted(order) and set(order) == set(range(len(GLYPHS)))
    assert text(painted)[-2:] == "  " and " " not in text(painted)[:-2]
    assert set(grounds(painted)) == {colours.panel}
    assert text(paint([0, 63], 3, colours)) == "···███"


def test_glyphs_tell_the_sign() -> None:
    colours = look(depth="none")
    painted = text(paint(range(LEVELS), 1, colours, signed=True))
    order = [SIGNED_GLYPHS.index(glyph) for glyph in painted]
    assert order == sorted(order) and set(order) == set(range(len(SIGNED_GLYPHS)))
    assert painted[MIDDLE] == painted[MIDDLE - 1] == "·"
    assert text(paint(signed_levels_of([-1, -0.6, 0, 0.6, 1], 1), 1, colours, signed=True)) == "≡=·▒█"


def test_one_glyph_for_two_rows_is_that_of_the_stronger() -> None:
    colours = look(depth="none")
    assert text(paint_halves([0, 63, ABSENT, 0, ABSENT], [63, 0, 0, ABSENT, ABSENT], colours)) == "██·· "
    assert text(paint_halves([0, 40, MIDDLE], [40, 0, ABSENT], colours, signed=True)) == "≡≡·"
    assert text(paint_halves([63, ABSENT], None, colours)) == "█ "


@pytest.mark.parametrize(("theme", "colormap"), product(THEMES, COLORMAPS))
@pytest.mark.parametrize("depth", ["truecolor", "256"])
@pytest.mark.parametrize("signed", [False, True])
def test_a_mark_reads_on_every_level(theme: str, colormap: str, depth: Depth, signed: bool) -> None:
    colours = look(theme, colormap, depth)
    for level in (*range(LEVELS), ABSENT):
        mark = ink_on(level, colours, signed=signed)
        ground = paint([level], 1, colours, signed=signed)[0].style
        assert mark.bold and ground and mark.bgcolor == ground.bgcolor
        assert mark.color and mark.color.triplet and mark.bgcolor and mark.bgcolor.triplet
        assert contrast(mark.color.triplet.hex, mark.bgcolor.triplet.hex) >= 4.5


def test_a_mark_without_colour_is_reversed() -> None:
    colours = look(depth="none")
    mark = ink_on(0, colours)
    assert mark.reverse and mark.bold and mark is ink_on(63, colours)
    assert not style(colours.text, colours.panel).reverse


@pytest.mark.parametrize("colours", [*LOOKS, look(depth="none")])
@pytest.mark.parametrize("cells", [1, 2, 7, 16, 100])
def test_a_legend_goes_from_end_to_end(colours: Look, cells: int) -> None:
    for signed in (False, True):
        strip = scale(cells, colours, signed=signed)
        assert sum(segment.cell_length for segment in strip) == cells
        assert strip[0].style == paint([0], 1, colours, signed=signed)[0].style
        if cells > 1:
            assert strip[-1].text[-1] == text(paint([63], 1, colours, signed=signed))
            assert strip[-1].style == paint([63], 1, colours, signed=signed)[0].style
