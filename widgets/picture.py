"""A picture of a screen: rows of styled segments as a standalone SVG that looks the same everywhere.

The picture is laid on the terminal's grid. Cell backgrounds, blocks and borders are geometry, and each piece
of text is pinned to its own columns, so whatever font the viewer has, nothing shifts and nothing shows a
seam. It refers to nothing outside itself, and it is valid XML whatever the segments hold.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import Any

from rich.segment import Segment
from textual._context import visible_screen_stack
from textual.screen import Screen
from textual.strip import Strip

from .picture_cells import Paint, Palette, Piece, Row, caption_rows, pieces, shown
from .svg_glyphs import BLOCKS, CELL_HEIGHT, CELL_WIDTH, LINES, OPACITY, block_path, box_path, line_path, rect_path

FONT_SIZE = 13.3
"""At this size a character of DejaVu Sans Mono, 0.602 em, is as wide as a cell."""

FONTS = "'DejaVu Sans Mono', Menlo, Consolas, monospace"

_BASELINE = 12

# A character of two cells is squarer than a letter: it stands lower and larger, in a font that has it.
_WIDE_FONT_SIZE = 14.5
_WIDE_BASELINE = 13
_WIDE_FONTS = {
    "wide": "'Noto Sans Mono CJK SC', 'PingFang SC', 'Microsoft YaHei', monospace",
    "emoji": "'Noto Color Emoji', 'Apple Color Emoji', 'Segoe UI Emoji', monospace",
}

MARGIN = 8
"""Pixels around a screen and its caption."""

CAPTION_GAP = 8
"""Pixels between the two."""


def screen_lines(screen: Screen[Any]) -> list[Strip]:
    """Return every row of *screen* as it is shown now: all its layers, and what a modal leaves visible."""
    # Textual composes for its own screenshots in this way; it has no public name for it.
    visible_screen_stack.set(screen.app._background_screens)
    return screen._compositor.render_strips()


def to_svg(
    lines: Sequence[Row],
    *,
    width: int,
    foreground: str,
    background: str,
    title: str = "",
    font_size: float = FONT_SIZE,
    boxed: frozenset[str] = frozenset(),
) -> str:
    """Return *lines* as an SVG of *width* columns.

    Args:
        lines: Rows of segments from the top; what is beyond *width* is left out.
        width: Columns of the screen.
        foreground: Colour of text that has none, ``#rrggbb``.
        background: Colour of the page and of cells that have none, ``#rrggbb``.
        title: A caption above the screen, if any.
        font_size: How large letters come out at the picture's natural size, in pixels.
        boxed: Characters to draw as boxes, since who draws the SVG has no font for them.
    """
    page = _Page(width, Palette(foreground, background), boxed)
    caption = caption_rows(title, width)
    above = len(caption) * CELL_HEIGHT + CAPTION_GAP if caption else 0
    for row, text in enumerate(caption):
        page.draw_row(row * CELL_HEIGHT - above, [Segment(text, page.palette.quiet)])
    for row, line in enumerate(lines):
        page.draw_row(row * CELL_HEIGHT, line)
    return page.svg(len(lines), above, " ".join(caption), font_size / FONT_SIZE)


_Shapes = defaultdict[str, list[str]]
"""Path data by the attributes it is painted with."""


class _Page:
    """The shapes and texts of a picture in the making; the corner of the screen is at 0, 0.

    Shapes that are painted alike become one path, which takes a third of the room of an element for each.
    """

    def __init__(self, width: int, palette: Palette, boxed: frozenset[str]) -> None:
        self.width = width
        self.palette = palette
        self.boxed = boxed
        self.grounds: _Shapes = defaultdict(list)
        self.blocks: _Shapes = defaultdict(list)
        self.lines: _Shapes = defaultdict(list)
        self.texts: list[str] = []
        self.wide_texts: dict[str, list[str]] = {kind: [] for kind in _WIDE_FONTS}

    def draw_row(self, y: int, row: Row) -> None:
        """Add a row of the screen, *y* below its top."""
        spans = []
        x = 0
        for text, style in shown(row, self.width):
            paint = self.palette.paint(style)
            start = x
            for piece in pieces(text, self.boxed):
                self._draw_piece(x, y, piece, paint)
                x += piece.cells * CELL_WIDTH
            self._draw_bars(start, y, x - start, paint)
            spans.append((paint.ground, start, x))
        self._draw_grounds(y, spans)

    def svg(self, rows: int, above: int, title: str, scale: float) -> str:
        """Put the picture together: *rows* of the screen, and *above* them so many pixels of caption."""
        left, top = -MARGIN, -MARGIN - above
        width, height = self.width * CELL_WIDTH + 2 * MARGIN, rows * CELL_HEIGHT + above + 2 * MARGIN
        ink, ground = self.palette.ink, self.palette.ground
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left} {top} {width} {height}"'
                f' width="{width * scale:g}" height="{height * scale:g}"'
                f' font-family="{FONTS}" font-size="{FONT_SIZE}">',
                *([f"<title>{escape(title, quote=False)}</title>"] if title else []),
                f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="{ground}"/>',
                *_group('shape-rendering="crispEdges"', [*_paths(self.grounds), *_paths(self.blocks)]),
                *_group('fill="none"', _paths(self.lines)),
                *_group(f'fill="{ink}"', self.texts),
                *_group(f'fill="{ink}" {_wide_font("wide")}', self.wide_texts["wide"]),
                *_group(f'fill="{ink}" {_wide_font("emoji")}', self.wide_texts["emoji"]),
                "</svg>\n",
            ]
        )

    def _draw_grounds(self, y: int, spans: Iterable[tuple[str, int, int]]) -> None:
        """Fill the cells behind a row, from x to x; neighbours of one colour become one rectangle."""
        for ground, group in groupby(spans, key=itemgetter(0)):
            (_, left, right), *others = group
            if ground != self.palette.ground:
                end = others[-1][2] if others else right
                self.grounds[f'fill="{ground}"'].append(rect_path(left, y, end - left, CELL_HEIGHT))

    def _draw_piece(self, x: int, y: int, piece: Piece, paint: Paint) -> None:
        text, cells, kind = piece
        if kind in BLOCKS:
            opacity = f' fill-opacity="{OPACITY[kind]}"' if kind in OPACITY else ""
            self.blocks[f'fill="{paint.ink}"{opacity}'].append(block_path(kind, x, y, cells))
        elif kind in LINES:
            self.lines[_stroke(paint, LINES[kind].thickness)].append(line_path(kind, x, y, cells))
        elif kind == "box":
            self.lines[_stroke(paint, 1)].append(box_path(x, y, cells))
        elif not text.isspace():
            self._draw_text(x, y, piece, paint)

    def _draw_text(self, x: int, y: int, piece: Piece, paint: Paint) -> None:
        fill = f' fill="{paint.ink}"' if paint.ink != self.palette.ink else ""
        own = fill + ' font-weight="bold"' * paint.bold + ' font-style="italic"' * paint.italic
        if piece.kind in self.wide_texts:
            self.wide_texts[piece.kind].append(_text(x, y + _WIDE_BASELINE, piece, own))
        else:
            self.texts.append(_text(x, y + _BASELINE, piece, own))

    def _draw_bars(self, x: int, y: int, width: int, paint: Paint) -> None:
        """Draw the lines under and through text, blanks and all."""
        if paint.underline:
            self.blocks[f'fill="{paint.ink}"'].append(rect_path(x, y + _BASELINE + 2, width, 1))
        if paint.strike:
            self.blocks[f'fill="{paint.ink}"'].append(rect_path(x, y + CELL_HEIGHT // 2, width, 1))


def _text(x: int, y: int, piece: Piece, attributes: str) -> str:
    """Return a text element that fills its cells exactly, with no blanks at its ends."""
    text = piece.text.strip(" ")
    x += piece.text.index(text) * CELL_WIDTH
    cells = piece.cells - (len(piece.text) - len(text))
    length = f' textLength="{cells * CELL_WIDTH}" lengthAdjust="spacingAndGlyphs"'
    if piece.kind == "plain" and cells == 1:
        length = ""
    return f'<text x="{x}" y="{y}"{attributes}{length}>{escape(text, quote=False)}</text>'


def _stroke(paint: Paint, thickness: int) -> str:
    return f'stroke="{paint.ink}" stroke-width="{thickness}"'


def _wide_font(kind: str) -> str:
    return f'font-family="{_WIDE_FONTS[kind]}" font-size="{_WIDE_FONT_SIZE}"'


def _paths(shapes: _Shapes) -> list[str]:
    return [f'<path {paint} d="{"".join(path)}"/>' for paint, path in shapes.items()]


def _group(attributes: str, elements: list[str]) -> list[str]:
    return [f"<g {attributes}>", *elements, "</g>"] if elements else []
