"""A picture of a screen: rows of styled segments as a standalone SVG that looks the same everywhere.

The picture is laid on the terminal's grid. Cell backgrounds, blocks and borders are geometry, and each piece
of text is pinned to its own columns, so whatever font the viewer has, nothing shifts and nothing shows a
seam. It refers to nothing outside itself, and it is valid XML whatever the segments hold.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from rich.cells import split_graphemes
from rich.color import Color, blend_rgb
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual._context import visible_screen_stack
from textual.screen import Screen
from textual.strip import Strip

from .drawable import clip, drawable
from .svg_glyphs import BLOCKS, CELL_HEIGHT, CELL_WIDTH, LINES, OPACITY, block_path, line_path, rect_path

FONT_SIZE = 13.3
"""At this size a character of DejaVu Sans Mono, 0.602 em, is as wide as a cell."""

_BASELINE = 12
_FONTS = "'DejaVu Sans Mono', Menlo, Consolas, monospace"

# A character of two cells is squarer than a letter: it stands lower and larger, in a font that has it.
_WIDE_FONT_SIZE = 14.5
_WIDE_BASELINE = 13
_WIDE_FONTS = "'Noto Sans Mono CJK SC', 'PingFang SC', 'Microsoft YaHei', monospace"

_MARGIN = 8
_CAPTION = 24

_COMMON = re.compile("[ -~\u00a1-\u00ac\u00ae-\u017f\u0391-\u03c9\u0410-\u044f]")
"""Characters that all these fonts have. Any other may come from a fallback font with a width of its own."""


def screen_lines(screen: Screen[Any]) -> list[Strip]:
    """Return every row of *screen* as it is shown now: all its layers, and what a modal leaves visible."""
    # Textual composes for its own screenshots in this way; it has no public name for it.
    visible_screen_stack.set(screen.app._background_screens)
    return screen._compositor.render_strips()


def to_svg(
    lines: Sequence[Iterable[Segment]],
    *,
    width: int,
    foreground: str,
    background: str,
    title: str = "",
    font_size: float = FONT_SIZE,
) -> str:
    """Return *lines* as an SVG of *width* columns.

    Args:
        lines: Rows of segments from the top (a ``Strip`` is one); what is beyond *width* is left out.
        width: Columns of the screen.
        foreground: Colour of text that has none, ``#rrggbb``.
        background: Colour of the page and of cells that have none, ``#rrggbb``.
        title: A caption above the screen, if any.
        font_size: How large letters come out at the picture's natural size, in pixels.
    """
    page = _Page(width, Color.parse(foreground).get_truecolor(), Color.parse(background).get_truecolor())
    for row, line in enumerate(lines):
        page.draw_row(row * CELL_HEIGHT, line)
    return page.svg(len(lines), title, font_size / FONT_SIZE)


_Shapes = defaultdict[str, list[str]]
"""Path data by the attributes it is painted with."""


class _Look(NamedTuple):
    """What a style comes to: colours of ink and cell, attributes of the font, lines through the text."""

    ink: str
    ground: str
    font: str
    underline: bool
    strike: bool


class _Piece(NamedTuple):
    """Neighbouring characters that one element draws."""

    text: str
    cells: int
    kind: str


class _Page:
    """The shapes and texts of a picture in the making; the corner of the screen is at 0, 0.

    Shapes that are painted alike become one path, which takes a third of the room of an element for each.
    """

    def __init__(self, width: int, ink: ColorTriplet, ground: ColorTriplet) -> None:
        self.width = width
        self.colors = ink, ground
        self.ink, self.ground = ink.hex, ground.hex
        self.looks: dict[Style, _Look] = {}
        self.grounds: _Shapes = defaultdict(list)
        self.blocks: _Shapes = defaultdict(list)
        self.lines: _Shapes = defaultdict(list)
        self.texts: list[str] = []
        self.wide_texts: list[str] = []

    def draw_row(self, y: int, row: Iterable[Segment]) -> None:
        """Add a row of the screen, *y* below its top."""
        shown = list(Segment.simplify(segment for segment in row if not segment.control))
        spans = []
        x = 0
        for text, style, _ in Segment.adjust_line_length(shown, self.width, pad=False):
            look = self._look(style or Style.null())
            start = x
            for piece in _pieces(text):
                self._draw_piece(x, y, piece, look)
                x += piece.cells * CELL_WIDTH
            self._draw_bars(start, y, x - start, look)
            spans.append((look.ground, start, x))
        self._draw_grounds(y, spans)

    def svg(self, rows: int, title: str, scale: float) -> str:
        """Put the picture together."""
        above = _MARGIN + (_CAPTION if title else 0)
        width, height = self.width * CELL_WIDTH + 2 * _MARGIN, rows * CELL_HEIGHT + above + _MARGIN
        wide_font = f'font-family="{_WIDE_FONTS}" font-size="{_WIDE_FONT_SIZE}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-_MARGIN} {-above} {width} {height}"'
                f' width="{width * scale:g}" height="{height * scale:g}" xml:space="preserve"'
                f' font-family="{_FONTS}" font-size="{FONT_SIZE}">',
                f'<rect x="{-_MARGIN}" y="{-above}" width="{width}" height="{height}" fill="{self.ground}"/>',
                *self._caption(title),
                *_group('shape-rendering="crispEdges"', [*_paths(self.grounds), *_paths(self.blocks)]),
                *_group('fill="none"', _paths(self.lines)),
                *_group(f'fill="{self.ink}"', self.texts),
                *_group(f'fill="{self.ink}" {wide_font}', self.wide_texts),
                "</svg>\n",
            ]
        )

    def _caption(self, title: str) -> list[str]:
        if not title:
            return []
        caption = escape(clip(drawable(title, spaces=False), self.width), quote=False)
        quiet = blend_rgb(*self.colors).hex
        return [
            f"<title>{caption}</title>",
            f'<text x="0" y="{-2 * _MARGIN}" fill="{quiet}">{caption}</text>',
        ]

    def _look(self, style: Style) -> _Look:
        if (look := self.looks.get(style)) is None:
            ink, ground = map(_triplet, (style.color, style.bgcolor), self.colors)
            if style.reverse:
                ink, ground = ground, ink
            if style.dim:
                ink = blend_rgb(ink, ground)
            font = ' font-weight="bold"' * bool(style.bold) + ' font-style="italic"' * bool(style.italic)
            look = _Look(ink.hex, ground.hex, font, bool(style.underline), bool(style.strike))
            self.looks[style] = look
        return look

    def _draw_grounds(self, y: int, spans: Iterable[tuple[str, int, int]]) -> None:
        """Fill the cells behind a row, from x to x; neighbours of one colour become one rectangle."""
        for ground, group in groupby(spans, key=itemgetter(0)):
            (_, left, right), *others = group
            if ground != self.ground:
                end = others[-1][2] if others else right
                self.grounds[f'fill="{ground}"'].append(rect_path(left, y, end - left, CELL_HEIGHT))

    def _draw_piece(self, x: int, y: int, piece: _Piece, look: _Look) -> None:
        text, cells, kind = piece
        if kind in BLOCKS:
            opacity = f' fill-opacity="{OPACITY[kind]}"' if kind in OPACITY else ""
            self.blocks[f'fill="{look.ink}"{opacity}'].append(block_path(kind, x, y, cells))
        elif kind in LINES:
            stroke = f'stroke="{look.ink}" stroke-width="{LINES[kind].thickness}"'
            self.lines[stroke].append(line_path(kind, x, y, cells))
        elif not text.isspace():
            own = look.font if look.ink == self.ink else f' fill="{look.ink}"{look.font}'
            if kind == "wide":
                self.wide_texts.append(_text(x, y + _WIDE_BASELINE, piece, own))
            else:
                self.texts.append(_text(x, y + _BASELINE, piece, own))

    def _draw_bars(self, x: int, y: int, width: int, look: _Look) -> None:
        """Draw the lines under and through text, blanks and all."""
        if look.underline:
            self.blocks[f'fill="{look.ink}"'].append(rect_path(x, y + _BASELINE + 2, width, 1))
        if look.strike:
            self.blocks[f'fill="{look.ink}"'].append(rect_path(x, y + CELL_HEIGHT // 2, width, 1))


@lru_cache(1 << 12)
def _pieces(text: str) -> tuple[_Piece, ...]:
    """Cut *text* into pieces as long as can be without one glyph pushing another."""
    pieces: list[_Piece] = []
    for start, end, cells in split_graphemes(text)[0]:
        cluster = _fit_to_draw(text[start:end])
        kind = _kind(cluster, cells)
        if pieces and kind == pieces[-1].kind and kind not in ("alone", "wide"):
            pieces[-1] = _Piece(pieces[-1].text + cluster, pieces[-1].cells + cells, kind)
        elif cells:
            pieces.append(_Piece(cluster, cells, kind))
    return tuple(pieces)


def _fit_to_draw(cluster: str) -> str:
    """Return *cluster*, or U+FFFD in its place if it could break the picture. Drawable text never does."""
    fit = cluster.replace("\u200d", "").isprintable() or cluster.isspace()
    return cluster if fit else "\ufffd"


def _kind(cluster: str, cells: int) -> str:
    """How *cluster* is drawn: as geometry of its own name, or as one of four kinds of text.

    ``plain`` letters are drawn together, since all fonts have them; a character that may come from a fallback
    font stands ``alone``, or is ``wide``. Right-to-left letters (``rtl``) are drawn together, so that the
    viewer orders and joins them, and within their own columns, so that it moves no others.
    """
    if cluster in BLOCKS or cluster in LINES:
        return cluster
    if _COMMON.fullmatch(cluster):
        return "plain"
    if cells == 2:
        return "wide"
    return "rtl" if unicodedata.bidirectional(cluster[0]) in ("R", "AL") else "alone"


def _text(x: int, y: int, piece: _Piece, attributes: str) -> str:
    """Return a text element that fills its cells exactly, with no blanks at its ends."""
    text = piece.text.strip(" ")
    x += piece.text.index(text) * CELL_WIDTH
    cells = piece.cells - (len(piece.text) - len(text))
    length = f' textLength="{cells * CELL_WIDTH}" lengthAdjust="spacingAndGlyphs"'
    if piece.kind == "plain" and cells == 1:
        length = ""
    return f'<text x="{x}" y="{y}"{attributes}{length}>{escape(text, quote=False)}</text>'


def _paths(shapes: _Shapes) -> list[str]:
    return [f'<path {paint} d="{"".join(path)}"/>' for paint, path in shapes.items()]


def _group(attributes: str, elements: list[str]) -> list[str]:
    return [f"<g {attributes}>", *elements, "</g>"] if elements else []


def _triplet(color: Color | None, default: ColorTriplet) -> ColorTriplet:
    return default if color is None or color.is_default else color.get_truecolor()
