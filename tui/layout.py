"""Which panels have room on a terminal of a size, and which one is shown alone."""

from __future__ import annotations

from ..core.catalogue import mark

SMALLEST = (60, 18)
"""Columns and rows below which nothing could be read."""

PANELS = {
    "text": mark("text"),
    "attention": mark("attention"),
    "candidates": mark("next token"),
    "heads": mark("heads"),
    "layers": mark("layers"),
    "embedding": mark("embedding"),
    "sampling": mark("sampling"),
}
"""The panels and how people call them, in the order of the keys 1, 2, 3 …"""

UPPER, LOWER = ("attention", "candidates"), ("heads", "layers", "embedding", "sampling")
"""The two rows of panels under the text."""

TWO_ROWS = 34
"""Lines from which two rows of panels are legible."""
THREE_COLUMNS = 160
"""Columns from which three panels are legible side by side."""


def shown_panels(columns: int, rows: int, alone: str = "", sampling: bool = False) -> frozenset[str]:
    """The panels to show: the one *alone*, or all that have room; *sampling* is one somebody has asked for."""
    if alone:
        return frozenset({alone})
    if rows < TWO_ROWS:
        return frozenset({"text", "sampling"} if sampling else {"text", "attention", "candidates"})
    shown = {"text", "attention", "candidates", "heads", "layers"}
    if columns >= THREE_COLUMNS:
        shown |= {"embedding"}
    return frozenset((shown - {"heads", "layers", "embedding"}) | {"sampling"} if sampling else shown)
