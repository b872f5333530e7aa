"""Characters that are geometry: blocks fill their part of a cell exactly, lines meet at its edges.

Fonts draw them too, but no two agree on where a cell ends: half blocks show seams and borders show gaps.
Lengths are in a cell of 8 × 16, where half a cell is a square and an eighth of it a whole number.
"""

from collections.abc import Iterator
from typing import NamedTuple

CELL_WIDTH = 8
CELL_HEIGHT = 16

Rect = tuple[int, int, int, int]
"""x, y, width and height within a cell."""

Stroke = tuple[float, float, str]
"""Where in a cell a stroke begins, and how it goes on from there in relative path commands."""


class Line(NamedTuple):
    """A box-drawing character."""

    thickness: int
    strokes: tuple[Stroke, ...]


def _blocks() -> Iterator[tuple[str, tuple[Rect, ...]]]:
    """Every block element, U+2580–U+259F, with the parts of the cell it fills."""
    for eighths, character in enumerate("▁▂▃▄▅▆▇█", 1):
        yield character, ((0, CELL_HEIGHT - 2 * eighths, CELL_WIDTH, 2 * eighths),)
    for eighths, character in enumerate("▏▎▍▌▋▊▉", 1):
        yield character, ((0, 0, eighths, CELL_HEIGHT),)
    for character in OPACITY:
        yield character, ((0, 0, CELL_WIDTH, CELL_HEIGHT),)
    yield "▀", ((0, 0, 8, 8),)
    yield "▐", ((4, 0, 4, 16),)
    yield "▔", ((0, 0, 8, 2),)
    yield "▕", ((7, 0, 1, 16),)
    quadrants = {"▘": "0", "▝": "1", "▖": "2", "▗": "3", "▚": "03", "▞": "12"}
    quadrants |= {"▛": "012", "▜": "013", "▙": "023", "▟": "123"}
    for character, corners in quadrants.items():
        yield character, tuple((4 * (corner % 2), 8 * (corner // 2), 4, 8) for corner in map(int, corners))


OPACITY = {"░": 0.25, "▒": 0.5, "▓": 0.75}
"""How much of its colour a shade shows."""

BLOCKS = dict(_blocks())
"""The rectangles that each block element fills."""

_STRAIGHT = {
    ("─", "━"): "0 {y} h8",
    ("│", "┃"): "{x} 0 v16",
    ("┌", "┏"): "{x} 16 v-{d}h{r}",
    ("┐", "┓"): "{x} 16 v-{d}h-{l}",
    ("└", "┗"): "{x} 0 v{u}h{r}",
    ("┘", "┛"): "{x} 0 v{u}h-{l}",
    ("├", "┣"): "{x} 0 v16 | {x} {y} h{r}",
    ("┤", "┫"): "{x} 0 v16 | 0 {y} h{l}",
    ("┬", "┳"): "0 {y} h8 | {x} {y} v{d}",
    ("┴", "┻"): "0 {y} h8 | {x} 0 v{u}",
    ("┼", "╋"): "0 {y} h8 | {x} 0 v16",
    ("╴", "╸"): "0 {y} h{l}",
    ("╵", "╹"): "{x} 0 v{u}",
    ("╶", "╺"): "{x} {y} h{r}",
    ("╷", "╻"): "{x} {y} v{d}",
}
"""A light character and its heavy twin, through a centre (x, y) that is l, r, u and d away from the edges."""

_ROUND = {
    "╭": "4.5 16 v-4a3.5 3.5 0 0 1 3.5-3.5",
    "╮": "4.5 16 v-4a3.5 3.5 0 0 0-3.5-3.5h-1",
    "╯": "4.5 0 v5a3.5 3.5 0 0 1-3.5 3.5h-1",
    "╰": "4.5 0 v5a3.5 3.5 0 0 0 3.5 3.5",
}

_DOUBLE = {
    "═": "0 6.5 h8 | 0 9.5 h8",
    "║": "2.5 0 v16 | 5.5 0 v16",
    "╔": "2.5 16 v-9.5h5.5 | 5.5 16 v-6.5h2.5",
    "╗": "5.5 16 v-9.5h-5.5 | 2.5 16 v-6.5h-2.5",
    "╚": "2.5 0 v9.5h5.5 | 5.5 0 v6.5h2.5",
    "╝": "5.5 0 v9.5h-5.5 | 2.5 0 v6.5h-2.5",
    "╠": "2.5 0 v16 | 5.5 0 v6.5h2.5 | 5.5 16 v-6.5h2.5",
    "╣": "5.5 0 v16 | 2.5 0 v6.5h-2.5 | 2.5 16 v-6.5h-2.5",
    "╦": "0 6.5 h8 | 2.5 16 v-6.5h-2.5 | 5.5 16 v-6.5h2.5",
    "╩": "0 9.5 h8 | 2.5 0 v6.5h-2.5 | 5.5 0 v6.5h2.5",
    "╬": "2.5 0 v6.5h-2.5 | 5.5 0 v6.5h2.5 | 2.5 16 v-6.5h-2.5 | 5.5 16 v-6.5h2.5",
}


def _strokes(paths: str) -> tuple[Stroke, ...]:
    """Read one line of the tables above."""
    parts = (path.split(maxsplit=2) for path in paths.split("|"))
    return tuple((float(x), float(y), path.strip()) for x, y, path in parts)


def _lines() -> Iterator[tuple[str, Line]]:
    """Every box-drawing character that is drawn here.

    A thin line runs along the middle of a pixel and a thick one between two, so that both come out sharp.
    """
    for (light, heavy), paths in _STRAIGHT.items():
        yield light, Line(1, _strokes(paths.format(x=4.5, y=8.5, l=4.5, r=3.5, u=8.5, d=7.5)))
        yield heavy, Line(2, _strokes(paths.format(x=4, y=8, l=4, r=4, u=8, d=8)))
    for character, paths in (_ROUND | _DOUBLE).items():
        yield character, Line(1, _strokes(paths))


LINES = dict(_lines())
"""Box-drawing characters by name; dashes, diagonals and mixed weights are left to the font."""


def rect_path(x: int, y: int, width: int, height: int) -> str:
    """Return a rectangle as path data."""
    return f"M{x} {y}h{width}v{height}h-{width}z"


def block_path(character: str, x: int, y: int, cells: int) -> str:
    """Return the outline of a row of *cells* equal block elements, its upper left corner at (x, y)."""
    path = ""
    for left, top, width, height in BLOCKS[character]:
        if width == CELL_WIDTH:
            path += rect_path(x, y + top, width * cells, height)
        else:
            columns = range(x + left, x + cells * CELL_WIDTH, CELL_WIDTH)
            path += "".join(rect_path(column, y + top, width, height) for column in columns)
    return path


def line_path(character: str, x: int, y: int, cells: int) -> str:
    """Return the strokes of a row of *cells* equal lines, its upper left corner at (x, y)."""
    path = ""
    for left, top, stroke in LINES[character].strokes:
        if stroke == f"h{CELL_WIDTH}":
            path += f"M{x} {y + top:g}h{CELL_WIDTH * cells}"
        else:
            columns = (x + left + CELL_WIDTH * cell for cell in range(cells))
            path += "".join(f"M{column:g} {y + top:g}{stroke}" for column in columns)
    return path


def box_path(x: int, y: int, cells: int) -> str:
    """Return the outline of a box that stands for a character of *cells*, its cells' upper left corner at (x, y)."""
    return f"M{x + 0.5:g} {y + 2.5:g}h{CELL_WIDTH * cells - 1}v{CELL_HEIGHT - 5}h-{CELL_WIDTH * cells - 1}z"
