"""A picture of a screen as text: the characters alone, or with the colours that a terminal shows them in."""

from collections.abc import Sequence

from rich.color import Color
from rich.segment import Segment

from .drawable import cell_width, drawable
from .picture_cells import Paint, Palette, Row, pieces, shown

_RESET = "\x1b[0m"


def to_text(lines: Sequence[Row], *, width: int, title: str = "") -> str:
    """Return the characters of *lines* without the blanks at their ends, below *title*, if any, in one row."""
    rows = ["".join(_clean(text) for text, _ in shown(line, width)) for line in lines]
    caption = [_clean(drawable(title, spaces=False))] if title else []
    return "".join(f"{row.rstrip()}\n" for row in caption + rows)


def to_ansi(lines: Sequence[Row], *, width: int, foreground: str, background: str, title: str = "") -> str:
    """Return *lines* for a terminal of 24-bit colour, below *title*, if any, in one row.

    All it holds beside characters are colours and the shape of letters, and each row ends with the terminal's own.
    """
    palette = Palette(foreground, background)
    rows = [_styled(line, width, palette) for line in lines]
    if title:
        caption = drawable(title, spaces=False)
        rows.insert(0, _styled([Segment(caption, palette.quiet)], cell_width(caption), palette))
    return "".join(f"{row}{_RESET}\n" for row in rows)


def _styled(row: Row, width: int, palette: Palette) -> str:
    return "".join(_sgr(palette.paint(style)) + _clean(text) for text, style in shown(row, width))


def _clean(text: str) -> str:
    """Return *text* without what steers a terminal, column by column the same."""
    return "".join(piece.text for piece in pieces(text))


def _sgr(paint: Paint) -> str:
    """Return the code that sets *paint*, whatever was set before."""
    shape = {"1": paint.bold, "3": paint.italic, "4": paint.underline, "9": paint.strike}
    codes = ["0", *(code for code, on in shape.items() if on)]
    for layer, color in (("38", paint.ink), ("48", paint.ground)):
        codes += [layer, "2", *map(str, Color.parse(color).get_truecolor())]
    return f"\x1b[{';'.join(codes)}m"
