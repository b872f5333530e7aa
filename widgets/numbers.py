"""Numbers as people read them: bars, percentages, minus signs."""

from __future__ import annotations

from math import isfinite

EIGHTHS = " ▏▎▍▌▋▊▉█"

PERCENT = 7
"""Columns of a percentage, as wide as ``100.0 %``."""


def bar(share: float, cells: int) -> str:
    """A bar of *share* (0 to 1) of *cells* columns, to an eighth of a column; never nothing for something."""
    if not isfinite(share):  # a damaged model, or a recording of one
        return ""
    eighths = max(round(min(share, 1.0) * cells * 8), 1 if share > 0 and cells else 0)
    full, rest = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def percent(share: float) -> str:
    """A probability as people read it: ``31.2 %``, ``0.04 %``, ``<0.01 %``."""
    if 0 < share < 0.0001:
        return "<0.01 %"
    return f"{share:.1%}".replace("%", " %") if share >= 0.1 else f"{share:.2%}".replace("%", " %")


class Number(float):
    """A number that is written as people write it: a minus as wide as a plus, and none before a zero."""

    def __format__(self, form: str) -> str:
        text = super().__format__(form)
        if not text.strip(" -+0.,e"):
            return format(abs(float(self)), form)
        return text.replace("-", "−")
