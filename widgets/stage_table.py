"""The sampling stages as a table: what each left, what it took out, and which token is the likeliest after it."""

from __future__ import annotations

from dataclasses import dataclass

from textual.strip import Strip

from ..core.catalogue import tr
from .drawable import cell_width, fit
from .line import Line
from .look import Look, style
from .numbers import PERCENT, bar, percent


@dataclass(frozen=True, slots=True)
class StageRow:
    """What one stage did."""

    name: str
    active: bool
    left: int
    """Tokens still in after it."""
    removed: int
    """Tokens it took out."""
    removed_mass: float
    """Their probability together, in the distribution before it."""
    best: str
    """The likeliest token after it, drawable."""
    best_share: float
    """Its probability there."""


def stage_table(stages: tuple[StageRow, ...], cells: int, rows: int, look: Look) -> list[Strip]:
    """A heading and a line for each of the *stages*, in at most so many *rows*; those that are off give way first."""
    if not rows:
        return []
    columns, shown = _Columns.fitting(cells, stages), list(stages)
    while len(shown) >= rows:
        shown.remove(next((row for row in shown if not row.active), shown[0]))
    return [_heading(columns, cells, look), *(_row(row, columns, cells, look) for row in shown)]


TOKEN = 9
"""Columns of a token beside a stage at least."""
WIDEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of the stages; 0 where one is left out for want of room."""

    name: int
    count: int
    """Columns of how many tokens are left; one more for how many went."""
    mass: int
    share: int
    token: int
    removed: int
    bar: int

    @classmethod
    def fitting(cls, cells: int, stages: tuple[StageRow, ...]) -> _Columns:
        count = max([4, *(len(f"{row.left:,}") for row in stages)])
        name = min(max([6, *(cell_width(row.name) for row in stages)]), max(cells - count - 14, 6))
        room, shown = cells - name - count - 4, []
        costs = {"mass": PERCENT + 1, "share": PERCENT + 1, "token": TOKEN + 2, "removed": count + 2, "bar": 6}
        for part, cost in costs.items():
            if cost > room:
                break
            shown.append(part)
            room -= cost
        wider = min(max(room, 0), WIDEST_TOKEN - TOKEN) if "token" in shown else 0
        return cls(
            name=name,
            count=count,
            mass=PERCENT if "mass" in shown else 0,
            share=PERCENT if "share" in shown else 0,
            token=TOKEN + wider if "token" in shown else 0,
            removed=count + 1 if "removed" in shown else 0,
            bar=min(5 + room - wider, 24) if "bar" in shown else 0,
        )


def _heading(columns: _Columns, cells: int, look: Look) -> Strip:
    line = Line(cells, style(look.quiet, look.panel)).gap(1).add(fit(tr("stage"), columns.name))
    line.gap(2).add(fit(tr("left"), columns.count, "right"))
    if columns.removed:
        line.gap(1).add(fit(tr("out"), columns.removed, "right"))
    if columns.mass:
        line.gap(1).add(fit(tr("cut off"), columns.mass, "right"))
    if columns.token:
        line.gap(2).add(fit(tr("likeliest"), columns.token))
    if columns.share:
        line.gap(1).add(fit("" if columns.token else tr("best"), columns.share, "right"))
    return line.strip()


def _row(row: StageRow, columns: _Columns, cells: int, look: Look) -> Strip:
    quiet, plain, what = (style(colour, look.panel) for colour in (look.quiet, look.text, look.what))
    line = Line(cells, plain).gap(1).add(fit(row.name, columns.name), plain if row.active else quiet).gap(2)
    if not row.active:
        return line.add(fit(tr("off"), columns.count, "right"), quiet).strip()
    line.add(fit(f"{row.left:,}", columns.count, "right"))
    if columns.removed:
        line.gap(1).add(fit(f"−{row.removed:,}" if row.removed else "–", columns.removed, "right"), quiet)
    if columns.mass:
        line.gap(1).add(fit(percent(row.removed_mass) if row.removed else "–", columns.mass, "right"), quiet)
    if columns.token:
        line.gap(2).add(fit(row.best, columns.token), what)
    if columns.share:
        line.gap(1).add(fit(percent(row.best_share), columns.share, "right"))
    if columns.bar:
        line.gap(1).add(bar(row.best_share, columns.bar), what)
    return line.strip()
