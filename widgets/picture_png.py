"""A picture of a screen as a PNG: the SVG, drawn here, so that it looks the same where no SVG is shown."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.segment import Segment

from .picture import to_svg
from .picture_cells import Row, caption_rows, fallbacks
from .picture_fonts import render, without_font


class Png(NamedTuple):
    """A PNG, and the characters that stand in it as boxes since no font here has them."""

    data: bytes
    boxed: frozenset[str]


def to_png(lines: Sequence[Row], *, width: int, foreground: str, background: str, title: str = "") -> Png:
    """Return *lines*, below *title* if there is one, at twice the size of `to_svg`.

    The fonts of the system, slow to find and no two alike, are asked only for what the own font lacks.
    """
    caption = [[Segment(row)] for row in caption_rows(title, width)]
    foreign = without_font(fallbacks([*caption, *lines], width), system_fonts=False)
    boxed = without_font(foreign, system_fonts=True) if foreign else foreign
    svg = to_svg(lines, width=width, foreground=foreground, background=background, title=title, boxed=boxed)
    return Png(render(svg, system_fonts=foreign != boxed), boxed)
