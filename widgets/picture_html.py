"""A picture of a screen as a page of its own, with text that can be selected, found and read aloud.

What is seen is the SVG, whose columns keep their places in any font. What is selected is the same text, laid
over it without ink.
"""

from collections.abc import Sequence
from html import escape
from itertools import groupby

from .picture import CAPTION_GAP, FONT_SIZE, FONTS, MARGIN, to_svg
from .picture_cells import Piece, Row, caption_rows, pieces
from .picture_text import to_text
from .svg_glyphs import CELL_HEIGHT, CELL_WIDTH


def to_html(lines: Sequence[Row], *, width: int, foreground: str, background: str, title: str = "") -> str:
    """Return *lines*, below *title* if there is one, as a page that refers to nothing outside itself."""
    svg = to_svg(lines, width=width, foreground=foreground, background=background, title=title)
    caption = caption_rows(title, width)
    top = MARGIN + (len(caption) * CELL_HEIGHT + CAPTION_GAP if caption else 0)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html><head><meta charset="utf-8">',
            f"<title>{escape(' '.join(caption), quote=False) or 'cutaway'}</title>",
            f"<style>\n{_style(background)}\n</style></head>",
            f'<body><main><div aria-hidden="true">\n{svg}</div>',
            *([_layer(MARGIN, "".join(f"{row}\n" for row in caption))] if caption else []),
            _layer(top, to_text(lines, width=width)),
            "</main></body></html>\n",
        ]
    )


def _layer(top: int, text: str) -> str:
    """Return a layer of selectable text; a page takes no notice of a line end right behind ``<pre>``."""
    rows = "".join(f"{_selectable(row)}\n" for row in text.splitlines())
    return f'<pre style="top: {top}px">\n{rows}</pre>'


def _selectable(row: str) -> str:
    """Return *row* with East Asian characters marked: they are as wide as their font is high."""
    parts = ((wide, "".join(piece.text for piece in group)) for wide, group in groupby(pieces(row), _is_wide))
    return "".join(f"<span>{escape(text)}</span>" if wide else escape(text, quote=False) for wide, text in parts)


def _is_wide(piece: Piece) -> bool:
    return piece.kind == "wide"


def _style(background: str) -> str:
    advance = CELL_WIDTH / FONT_SIZE
    return "\n".join(
        [
            f"html {{ background: {background}; }}",
            "body { margin: 0; }",
            "main { position: relative; width: max-content; }",
            "svg { display: block; user-select: none; -webkit-user-select: none; }",
            f"pre {{ position: absolute; left: {MARGIN}px; margin: 0; color: transparent; unicode-bidi: bidi-override;",
            f"  font: {FONT_SIZE}px/{CELL_HEIGHT}px {FONTS}; font-size-adjust: ch-width {advance:.4f}; }}",
            f"pre span {{ font-size: {2 * CELL_WIDTH}px; font-size-adjust: none; }}",
            "::selection { color: transparent; background: rgb(90 140 255 / 40%); }",
        ]
    )
