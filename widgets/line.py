"""A row of cells, put together piece by piece and always exactly as wide as it should be."""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from .drawable import cell_width, clip


class Line:
    """Pieces of drawable text, each with its style, at known columns.

    Texts must have gone through `drawable`: nothing here looks at what they hold but their width.
    """

    def __init__(self, cells: int, fill: Style) -> None:
        self.cells = cells
        self.fill = fill
        self.used = 0
        self._segments: list[Segment] = []

    @property
    def room(self) -> int:
        """Columns still free."""
        return self.cells - self.used

    def add(self, text: str, style: Style | None = None) -> Line:
        """Append *text*, clipped to the room there is."""
        if (cells := cell_width(text)) > self.room:
            text = clip(text, self.room)
            cells = cell_width(text)
        if cells:
            self._segments.append(Segment(text, style or self.fill))
            self.used += cells
        return self

    def paint(self, segments: Iterable[Segment]) -> Line:
        """Append ready *segments*; they must fit."""
        for segment in segments:
            self._segments.append(segment)
            self.used += segment.cell_length
        return self

    def gap(self, cells: int) -> Line:
        """Append *cells* empty columns."""
        return self.add(" " * min(cells, self.room))

    def to(self, column: int) -> Line:
        """Leave empty columns up to *column*."""
        return self.gap(max(column - self.used, 0))

    def right(self, text: str, style: Style | None = None) -> Line:
        """Put *text* at the right edge, where it fits whole; else leave it out."""
        if cell_width(text) <= self.room:
            self.to(self.cells - cell_width(text)).add(text, style)
        return self

    def strip(self) -> Strip:
        """The finished row."""
        self.gap(self.room)
        return Strip(self._segments, self.cells)
