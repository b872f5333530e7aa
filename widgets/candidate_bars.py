"""What could come next: the likeliest tokens with their probabilities, and what took the others out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from ..core.catalogue import tr, trn
from .drawable import fit
from .line import Line
from .look import style
from .numbers import PERCENT, bar, percent
from .panel import Panel

UNDERLINED = Style(underline=True)


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate."""

    id: int
    """The token."""
    rank: int
    """Place by raw score, from 0."""
    text: str
    """Drawable."""
    raw: float
    """Probability before any stage."""
    share: float
    """Probability after the stage that is shown."""
    removed_by: str | None
    """The stage that took it out, in words, or None."""


@dataclass(frozen=True, slots=True)
class CandidatesView:
    """One draw: its candidates by rank, the rest in one line, and which was taken."""

    step: int
    """The generated token they are candidates for."""
    rows: tuple[CandidateRow, ...]
    stage: str
    """The stage whose shares stand beside the raw ones, as it heads their column."""
    drawn: int | None
    """Index of the row that was taken; None before the draw."""
    how: str
    """How it came about, in a word: ``drawn``, ``best``, ``yours``."""
    others: int
    """Tokens not listed."""
    others_raw: float
    """Their raw probability together."""
    others_share: float
    """Their probability together after the stage that is shown."""
    settings: str
    """The sampling settings, in words."""
    pointed: int = 0
    """Index of the row that keys are at."""
    changed: bool = False
    """Whether the settings are only tried."""


class CandidateBars(Panel[CandidatesView], can_focus=True):
    """Shows a `CandidatesView`. A full bar is 100 %, always: a sure model and an unsure one look different."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("enter", "take", show=False),
    ]

    @dataclass
    class Pointed(Message):
        """Somebody points at a row."""

        row: int

    @dataclass
    class Taken(Message):
        """Somebody wants a token to be the generated one at *step*."""

        step: int
        id: int

    def visible_rows(self) -> int:
        """How many candidates fit between the heading and the line for the others."""
        return max(self.inner_size.height - 2, 1)

    def titles(self, view: CandidatesView | None) -> tuple[str, str]:
        title = tr("next token · preview") if view and view.changed else tr("next token")
        if view and self.in_focus:
            return title, tr("enter takes it · esc leaves")
        return title, view.settings if view else ""

    def draw(self, view: CandidatesView, width: int, height: int) -> list[Strip]:
        columns = _Columns.fitting(width, view)
        rows = [self._heading(view, columns, width)]
        rows += [self._row(view, index, columns, width) for index in range(len(view.rows))]
        return [*rows[: height - 1], self._others(view, columns, width)]

    def place_of(self, view: CandidatesView) -> object:
        return view.pointed

    def action_move(self, change: int) -> None:
        """Point at a neighbour of the row that is pointed at, or was last moved to: keys may outrun the screen."""
        if view := self.view:
            self._moved = min(max(self._row_of_keys(view) + change, 0), len(view.rows) - 1)
            self.post_message(self.Pointed(self._moved))

    def action_take(self) -> None:
        if view := self.view:
            self.post_message(self.Taken(view.step, view.rows[self._row_of_keys(view)].id))

    def _row_of_keys(self, view: CandidatesView) -> int:
        return view.pointed if self._moved is None else min(self._moved, len(view.rows) - 1)

    def on_click(self, event: events.Click) -> None:
        place = self.inner_offset(event)
        if self.view and place and 0 <= place[1] - 1 < len(self.view.rows):
            row = place[1] - 1
            taken = self.Taken(self.view.step, self.view.rows[row].id)
            self.post_message(taken if event.chain == 2 else self.Pointed(row))

    def _line(self, cells: int) -> Line:
        return Line(cells, style(self.look.text, self.look.panel)).gap(1)

    def _heading(self, view: CandidatesView, columns: _Columns, cells: int) -> Strip:
        quiet = style(self.look.quiet, self.look.panel)
        line = self._line(cells).gap(columns.rank + 1).add(fit(tr("token"), columns.token), quiet)
        if columns.raw:
            line.gap(1).add(fit(tr("raw"), PERCENT, "right"), quiet)
        return line.gap(1).add(fit(view.stage, PERCENT, "right"), quiet).strip()

    def _row(self, view: CandidatesView, index: int, columns: _Columns, cells: int) -> Strip:
        row, drawn, look = view.rows[index], index == view.drawn, self.look
        out = row.removed_by is not None
        quiet, plain = style(look.quiet, look.panel), style(look.text, look.panel)
        name = style(look.here, look.panel, True) if drawn else quiet if out else plain
        pointed = self.in_focus and index == view.pointed
        line = Line(cells, plain).add("▸" if pointed else " ", style(look.here, look.panel, True))
        line.add(fit(str(row.rank), columns.rank, "right"), quiet).gap(1)
        line.add(fit(row.text, columns.token), name + UNDERLINED if pointed else name)
        if columns.raw:
            line.gap(1).add(fit(percent(row.raw), PERCENT, "right"), quiet)
        final = name if drawn else quiet if out else plain
        line.gap(1).add(fit("–" if out else percent(row.share), PERCENT, "right"), final)
        note = f"◂ {view.how}" if drawn else row.removed_by or ""
        line.gap(1).add(fit(note, NOTE), style(look.here, look.panel) if drawn else quiet).gap(1)
        colour = look.here if drawn else look.line if out else look.what
        return line.add(bar(row.raw if out else row.share, line.room - 1), style(colour, look.panel)).strip()

    def _others(self, view: CandidatesView, columns: _Columns, cells: int) -> Strip:
        """The tokens that are not listed, their shares in the same columns."""
        quiet = style(self.look.quiet, self.look.panel)
        text = trn("1 other", "{count} others", view.others)
        line = self._line(cells).add(fit(text, columns.rank + 1 + columns.token, "right"), quiet)
        if columns.raw:
            line.gap(1).add(fit(percent(view.others_raw), PERCENT, "right"), quiet)
        share = percent(view.others_share) if view.others_share else "–"
        return line.gap(1).add(fit(share, PERCENT, "right"), quiet).strip()


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
