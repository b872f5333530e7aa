"""Where the small maps of all heads stand: as large as lets all be in sight, or as many as fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil

WIDEST, NARROWEST = 24, 3
"""Columns of a small map."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where small maps stand in a panel. Depends on the model and the panel, not on the text."""

    label: int
    """Columns of the layers' labels."""
    header: int
    """Lines over the maps for the heads' numbers, and for their groups where there are any and there is room."""
    width: int
    """Columns of a map."""
    lines: int
    """Lines of a map."""
    gap: int
    """Empty lines under a map. Without any, its last line holds one row instead of two."""
    layers: int
    """Layers in sight."""
    heads: int
    """Heads in sight."""
    group: int
    """Heads that stand together, as they share keys and values."""

    @classmethod
    def of(cls, layers: int, heads: int, kv_heads: int, columns: int, rows: int, halves: bool = True) -> Layout:
        """The largest maps with which all heads are in sight, or else as many small ones as fit; the same downwards.

        Without *halves* a line cannot show two rows, nor half of one as a gap.
        """
        label, group = len(str(layers - 1)) + 1, heads // kv_heads
        for width in range(WIDEST, NARROWEST - 1, -1):
            room = columns - label - 2
            if (shown := _heads_across(heads, group, width, room)) == heads and width < room:
                break
        downwards = partial(_lines_down, layers, width, halves=halves)
        header, spare = 1, rows - 2  # a line for the scale, unless it costs a layer
        if downwards(spare)[2] < downwards(rows - 1)[2]:
            spare = rows - 1
        lines, gap, seen = downwards(spare)
        if group > 1 and downwards(spare - 1) == (lines, gap, seen):
            header = 2
        return cls(label, header, width, lines, gap, seen, shown, group)

    @property
    def rows(self) -> int:
        """Rows of cells in a map."""
        return 2 * self.lines - (self.gap == 0 and self.layers > 1)

    @property
    def bottom(self) -> int:
        """The line under the last map, and under what frames it."""
        return self.header + self.layers * (self.lines + self.gap)

    def column(self, head: int, first: int) -> int:
        """Where the maps of *head* begin when *first* is the first in sight."""
        groups = head // self.group - first // self.group if self.group > 1 else 0
        return self.label + 2 + (head - first) * (self.width + 1) + groups

    def line(self, layer: int, first: int) -> int:
        """Where the maps of *layer* begin when *first* is the first in sight."""
        return self.header + (layer - first) * (self.lines + self.gap)


def _heads_across(heads: int, group: int, width: int, columns: int) -> int:
    """How many of *heads* fit side by side, a column behind each and one more between groups."""
    for shown in range(heads, 1, -1):
        between = ceil((shown - 1) / group) if group > 1 else 0
        if shown * (width + 1) + between <= columns:
            return shown
    return 1


def _lines_down(layers: int, width: int, rows: int, halves: bool) -> tuple[int, int, int]:
    """Lines of a map, empty lines under it, and how many of *layers* fit."""
    tallest = (width + 1) // 2  # two rows in a line make a square of as many columns
    if (lines := rows // layers - 1) >= 2:
        return min(lines, tallest), 1, layers
    if not halves:
        return min(max(rows, 1), 2), 1, max(rows // 3, 1)
    if (lines := rows // layers) >= 2:
        return min(lines, tallest + 1), 0, layers
    return min(max(rows, 1), 2), 0, max(rows // 2, 1)
