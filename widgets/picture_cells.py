"""What every picture of a screen is made from: rows of segments, cut into pieces and freed of what could break it."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.cells import split_graphemes
from rich.color import Color, blend_rgb
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual.content import Content

from .drawable import cell_width, drawable, fit
from .svg_glyphs import BLOCKS, LINES

Row = Iterable[Segment]
"""A row of the screen; a ``Strip`` is one."""

_COMMON = re.compile("[ -~\u00a1-\u00ac\u00ae-\u017f\u0391-\u03c9\u0410-\u044f]")
"""Characters that all usual fonts have. Any other may come from a fallback font with a width of its own."""

_UNSEEN = "\u200d\ufe0e\ufe0f"
"""What joins and varies emoji, and has no glyph of its own."""

_UNCOMMON = ("alone", "wide", "emoji", "rtl")
"""The kinds of text that a fallback font may draw."""

_SINGLE = ("alone", "wide", "emoji", "box")
"""The kinds of which no two share a piece."""


class Piece(NamedTuple):
    """Neighbouring characters that are drawn as one.

    Its kind is the name of what is geometry (``▀``, ``─``), or one of these:

    * ``plain`` letters are drawn together, since all fonts have them;
    * ``rtl``, right-to-left letters, are drawn together, so that the viewer orders and joins them, and within
      their own columns, so that they move no others;
    * ``alone``, ``wide``, ``emoji``: one character, since a fallback font may draw it;
    * ``box``: one character that no font can draw.
    """

    text: str
    cells: int
    kind: str


class Paint(NamedTuple):
    """What a style comes to on a page: colours of ink and cell, as ``#rrggbb``, and the shape of letters."""

    ink: str
    ground: str
    bold: bool
    italic: bool
    underline: bool
    strike: bool


class Palette:
    """The paints of a page that has an ink and a ground of its own, for styles that name none."""

    def __init__(self, foreground: str, background: str) -> None:
        self._colors = Color.parse(foreground).get_truecolor(), Color.parse(background).get_truecolor()
        self._paints: dict[Style, Paint] = {}
        self.ink, self.ground = (color.hex for color in self._colors)
        self.quiet = Style(color=Color.from_triplet(blend_rgb(*self._colors, cross_fade=0.4)))
        """How a caption is written."""

    def paint(self, style: Style) -> Paint:
        """Return what *style* comes to: with its reversal and its dimming done."""
        if (paint := self._paints.get(style)) is None:
            ink, ground = map(_triplet, (style.color, style.bgcolor), self._colors)
            if style.reverse:
                ink, ground = ground, ink
            if style.dim:
                ink = blend_rgb(ink, ground)
            shape = map(bool, (style.bold, style.italic, style.underline, style.strike))
            self._paints[style] = paint = Paint(ink.hex, ground.hex, *shape)
        return paint


def shown(row: Row, width: int) -> list[tuple[str, Style]]:
    """Return the texts of *row* and their styles: no controls, and nothing beyond *width* columns."""
    segments = list(Segment.simplify(segment for segment in row if not segment.control))
    cut = Segment.adjust_line_length(segments, width, pad=False)
    return [(text, style or Style.null()) for text, style, _ in cut]


def caption_rows(caption: str, width: int) -> list[str]:
    """Return *caption* in as many rows of *width* columns as it takes, fit to draw."""
    return [row.plain.rstrip() for row in Content(drawable(caption, spaces=False)).wrap(width)] if caption else []


def fallbacks(lines: Sequence[Row], width: int) -> set[str]:
    """Return the characters of *lines* that not every font has."""
    texts = (text for line in lines for text, _ in shown(line, width))
    uncommon = (piece.text for text in texts for piece in pieces(text) if piece.kind in _UNCOMMON)
    return set().union(*uncommon) - set(_UNSEEN)


@lru_cache(1 << 12)
def pieces(text: str, boxed: frozenset[str] = frozenset()) -> tuple[Piece, ...]:
    """Cut *text* into pieces as long as can be without one glyph pushing another.

    Two blanks follow each other in none that holds anything else, since viewers take them for one. What holds a
    character of *boxed* is a box.
    """
    cut: list[Piece] = []
    for start, end, cells in split_graphemes(text)[0]:
        cluster = _fit_to_draw(text[start:end], cells)
        kind = _kind(cluster, cells) if boxed.isdisjoint(cluster) else "box"
        if cut and _joins(cut[-1], cluster, kind):
            cut[-1] = Piece(cut[-1].text + cluster, cut[-1].cells + cells, kind)
        elif cells:
            cut.append(Piece(cluster, cells, kind))
    return tuple(cut)


def _joins(piece: Piece, cluster: str, kind: str) -> bool:
    """Whether *cluster* can be drawn together with the *piece* before it."""
    if kind != piece.kind or kind in _SINGLE:
        return False
    return cluster != " " or piece.text[-1] != " " or piece.text.isspace()


def _fit_to_draw(cluster: str, cells: int) -> str:
    """Return *cluster* without what could break the picture, or U+FFFD for all of it, in as many *cells*.

    Drawable text comes out as it is.
    """
    if cluster.isprintable():
        return cluster
    if cluster.isspace():
        return " " * cells
    kept = "".join(character for character in cluster if character.isprintable() or character == "\u200d")
    return kept if cell_width(kept) == cells else fit("\ufffd", cells)


def _kind(cluster: str, cells: int) -> str:
    if cluster in BLOCKS or cluster in LINES:
        return cluster
    if _COMMON.fullmatch(cluster):
        return "plain"
    if cells == 2:
        return "emoji" if _is_emoji(cluster[0]) else "wide"
    return "rtl" if cluster and unicodedata.bidirectional(cluster[0]) in ("R", "AL") else "alone"


def _is_emoji(character: str) -> bool:
    """Whether a character of two columns is a symbol: all others are of East Asian scripts."""
    return character < "\u2e80" or "\U0001f000" <= character < "\U00020000"


def _triplet(color: Color | None, default: ColorTriplet) -> ColorTriplet:
    return default if color is None or color.is_default else color.get_truecolor()
