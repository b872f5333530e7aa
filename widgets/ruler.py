"""Numbers along an axis, and a mark over the place that is looked at."""

from __future__ import annotations

from collections.abc import Iterable

from .line import Line
from .look import Look, style

MARK = "▾"


def add_ruler(line: Line, numbers: Iterable[tuple[int, int]], cells: int, at: int | None, look: Look) -> Line:
    """Append a ruler of *cells* columns to *line*: *numbers* as (column, number), and the mark at column *at*.

    A number that the mark would run into gives way, lest it look like another.
    """
    marks = [" "] * cells
    for column, number in numbers:
        text = str(number)
        clear = at is None or at not in range(column - 1, column + len(text) + 1)
        if column + len(text) <= cells and clear:
            marks[column : column + len(text)] = text
    quiet = style(look.quiet, look.panel)
    if at is None:
        return line.add("".join(marks), quiet)
    line.add("".join(marks[:at]), quiet).add(MARK, style(look.here, look.panel, True))
    return line.add("".join(marks[at + 1 :]), quiet)
