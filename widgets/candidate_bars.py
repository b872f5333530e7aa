"""What could come next: the likeliest tokens with their probabilities, and what took the others out."""

from __future__ import annotations

from dataclasses import dataclass

from textual.strip import Strip

from ..core.catalogue import tr
from .drawable import cell_width, fit
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
    """How it came about, in words: ``u = 0.41``, ``best``, ``chosen``."""
    others: int
    """Tokens not listed."""
    others_raw: float
    """Their raw probability together."""
    settings: str
    """The sampling settings, in words."""


class CandidateBars(Panel[CandidatesView]):
    """Shows a `CandidatesView`."""

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
        line = self._line(cells).gap(columns.rank + 1).add(fit(tr("token"), columns.token + 1), quiet)
        if columns.raw:
            line.add(fit(tr("raw"), columns.raw, "right"), quiet).gap(2)
        return line.add(fit(tr("final"), 7, "right"), quiet).strip()

    def _row(self, view: CandidatesView, index: int, columns: _Columns, cells: int) -> Strip:
        row, drawn, look = view.rows[index], index == view.drawn, self.look
        out = row.removed_by is not None
        quiet, plain = style(look.quiet, look.panel), style(look.text, look.panel)
        name = style(look.here, look.panel, True) if drawn else quiet if out else plain
        line = self._line(cells).add(fit(str(row.rank), columns.rank, "right"), quiet).gap(1)
        line.add(fit(row.text, columns.token), name).gap(1)
        if columns.raw:
            line.add(fit(_percent(row.raw), columns.raw, "right"), quiet).gap(2)
        line.add(fit("–" if out else _percent(row.final), 7, "right"), name if drawn else quiet if out else plain).gap(
            1
        )
        note = _note(view, index, columns.room)
        best = max((each.final for each in view.rows), default=1.0) or 1.0
        share = row.raw if out else row.final
        colour = look.here if drawn else look.line if out else look.what
        fits = columns.bar + _with_gap(note) <= columns.room
        line.add(bar(share / best, columns.bar) if fits else "", style(colour, look.panel))
        if note:
            line.gap(1 if fits else 0).add(note, style(look.here, look.panel) if drawn else quiet)
        return line.strip()

    def _others(self, view: CandidatesView, columns: _Columns, cells: int) -> Strip:
        quiet = style(self.look.quiet, self.look.panel)
        values = {"count": f"{view.others:,}", "share": _percent(view.others_raw)}
        text = tr("other {count} tokens {share} raw", **values)
        if cell_width(text) > cells - columns.rank - 2:
            text = tr("{count} others {share}", **values)
        return self._line(cells).gap(columns.rank + 1).add(text, quiet).strip()


@dataclass(frozen=True, slots=True)
class _Columns:
    rank: int
    token: int
    raw: int
    """0 where there is no room for it."""
    room: int
    """Columns for the bar and the note beside it."""
    bar: int
    """Columns of a full bar, the same in every row: two bars compare only so."""

    @classmethod
    def fitting(cls, cells: int, view: CandidatesView) -> _Columns:
        """The token column takes what its texts need, as far as numbers and bars leave it room."""
        raw = 8 if cells >= 46 else 0
        rank = max([2, *(len(str(row.rank)) for row in view.rows)])
        widest = max((cell_width(row.text) for row in view.rows), default=5)
        token = min(max(widest, 10), max(cells // 3, 5))
        room = max(cells - rank - token - (raw + 2 if raw else 0) - 12, 0)
        notes = max((_with_gap(_note(view, index, room)) for index in range(len(view.rows))), default=0)
        return cls(rank, token, raw, room, room - notes if room - notes >= 6 else max(room - 2, 0))


def _note(view: CandidatesView, index: int, room: int) -> str:
    """What stands beside a row's bar."""
    if index == view.drawn:
        return f"◂ {view.how}" if room >= 22 else "◂"
    return view.rows[index].removed_by or ""


def _with_gap(note: str) -> int:
    return cell_width(note) + 1 if note else 0


def bar(share: float, cells: int) -> str:
    """A bar of *share* (0 to 1) of *cells* columns, to an eighth of a column; never nothing for something."""
    eighths = max(round(min(share, 1.0) * cells * 8), 1 if share > 0 and cells else 0)
    full, rest = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def _percent(share: float) -> str:
    """A probability as people read it: ``31.2 %``, ``0.04 %``, ``<0.01 %``."""
    if 0 < share < 0.0001:
        return "<0.01 %"
    return f"{share:.1%}".replace("%", " %") if share >= 0.1 else f"{share:.2%}".replace("%", " %")
