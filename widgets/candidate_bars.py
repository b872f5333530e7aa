"""What could come next: the likeliest tokens with their probabilities, and what took the others out."""

from __future__ import annotations

from dataclasses import dataclass

from textual.strip import Strip

from ..core.catalogue import tr
from .drawable import fit
from .line import Line
from .look import style
from .panel import Panel

EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate."""

    rank: int
    """Place by raw score, from 0."""
    text: str
    """Drawable."""
    raw: float
    """Probability before any stage."""
    final: float
    """Probability after all of them."""
    removed_by: str | None
    """The stage that took it out, in words, or None."""


@dataclass(frozen=True, slots=True)
class CandidatesView:
    """One draw: its candidates by rank, the rest in one line, and which was taken."""

    rows: tuple[CandidateRow, ...]
    drawn: int
    """Index of the row that was taken."""
    how: str
    """How it came about, in a word: ``drawn``, ``best``, ``yours``."""
    others: int
    """Tokens not listed."""
    others_raw: float
    """Their raw probability together."""
    others_final: float
    """Their final probability together."""
    settings: str
    """The sampling settings, in words."""


class CandidateBars(Panel[CandidatesView]):
    """Shows a `CandidatesView`. A full bar is 100 %, always: a sure model and an unsure one look different."""

    def visible_rows(self) -> int:
        """How many candidates fit between the heading and the line for the others."""
        return max(self.inner_size.height - 2, 1)

    def titles(self, view: CandidatesView | None) -> tuple[str, str]:
        return tr("next token"), view.settings if view else ""

    def draw(self, view: CandidatesView, width: int, height: int) -> list[Strip]:
        columns = _Columns.fitting(width, view)
        rows = [self._heading(columns, width)]
        rows += [self._row(view, index, columns, width) for index in range(len(view.rows))]
        return [*rows[: height - 1], self._others(view, columns, width)]

    def _line(self, cells: int) -> Line:
        return Line(cells, style(self.look.text, self.look.panel)).gap(1)

    def _heading(self, columns: _Columns, cells: int) -> Strip:
        quiet = style(self.look.quiet, self.look.panel)
        line = self._line(cells).gap(columns.rank + 1).add(fit(tr("token"), columns.token), quiet)
        if columns.raw:
            line.gap(1).add(fit(tr("raw"), PERCENT, "right"), quiet)
        return line.gap(1).add(fit(tr("final"), PERCENT, "right"), quiet).strip()

    def _row(self, view: CandidatesView, index: int, columns: _Columns, cells: int) -> Strip:
        row, drawn, look = view.rows[index], index == view.drawn, self.look
        out = row.removed_by is not None
        quiet, plain = style(look.quiet, look.panel), style(look.text, look.panel)
        name = style(look.here, look.panel, True) if drawn else quiet if out else plain
        line = self._line(cells).add(fit(str(row.rank), columns.rank, "right"), quiet).gap(1)
        line.add(fit(row.text, columns.token), name)
        if columns.raw:
            line.gap(1).add(fit(percent(row.raw), PERCENT, "right"), quiet)
        final = name if drawn else quiet if out else plain
        line.gap(1).add(fit("–" if out else percent(row.final), PERCENT, "right"), final)
        note = f"◂ {view.how}" if drawn else row.removed_by or ""
        line.gap(1).add(fit(note, NOTE), style(look.here, look.panel) if drawn else quiet).gap(1)
        colour = look.here if drawn else look.line if out else look.what
        return line.add(bar(row.raw if out else row.final, line.room - 1), style(colour, look.panel)).strip()

    def _others(self, view: CandidatesView, columns: _Columns, cells: int) -> Strip:
        """The tokens that are not listed, their shares in the same columns."""
        quiet = style(self.look.quiet, self.look.panel)
        text = tr("{count} others", count=f"{view.others:,}")
        line = self._line(cells).add(fit(text, columns.rank + 1 + columns.token, "right"), quiet)
        if columns.raw:
            line.gap(1).add(fit(percent(view.others_raw), PERCENT, "right"), quiet)
        return line.gap(1).add(fit(percent(view.others_final), PERCENT, "right"), quiet).strip()


PERCENT = 7
"""Columns of a percentage, as wide as ``100.0 %``."""
NOTE = 7
"""Columns of what is said beside a candidate: drawn, or the stage that removed it."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a panel; they depend on its width, hardly on what it shows, so that nothing jumps."""

    rank: int
    token: int
    raw: bool
    """Whether there is room for raw probabilities."""

    @classmethod
    def fitting(cls, cells: int, view: CandidatesView) -> _Columns:
        rank = max([2, *(len(str(row.rank)) for row in view.rows)])
        return cls(rank, 18 if cells >= 70 else 12 if cells >= 50 else min(max(cells - 22, 5), 10), cells >= 50)


def bar(share: float, cells: int) -> str:
    """A bar of *share* (0 to 1) of *cells* columns, to an eighth of a column; never nothing for something."""
    eighths = max(round(min(share, 1.0) * cells * 8), 1 if share > 0 and cells else 0)
    full, rest = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def percent(share: float) -> str:
    """A probability as people read it: ``31.2 %``, ``0.04 %``, ``<0.01 %``."""
    if 0 < share < 0.0001:
        return "<0.01 %"
    return f"{share:.1%}".replace("%", " %") if share >= 0.1 else f"{share:.2%}".replace("%", " %")
