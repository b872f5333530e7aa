"""From scores to a token: the settings, what each stage left of the vocabulary, and where the random number fell.

The settings stand on the left and the stages on the right, or one under the other where the panel is narrow; at the
bottom a ruler from 0 to 1 shows the shares the number was thrown at, and a sentence says what came out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from ..core.catalogue import tr
from .drawable import cell_width, fit
from .line import Line
from .look import Look, style
from .panel import Panel
from .sentence import centred, wrapped
from .share_ruler import Share as Share
from .share_ruler import ruler
from .stage_table import StageRow as StageRow
from .stage_table import stage_table


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting, as it is shown."""

    name: str
    value: str
    action: str = ""
    """What changes it; empty where nothing can."""
    off: bool = False
    """Whether it lets its stage do nothing."""


@dataclass(frozen=True, slots=True)
class SamplingView:
    """One draw."""

    settings: tuple[SettingRow, ...]
    selected: int
    """Index of the setting that keys change."""
    stages: tuple[StageRow, ...]
    """In the order they run."""
    shares: tuple[Share, ...]
    """The larger ones by ascending id; between them lie many small tokens."""
    uniform: float | None
    """The random number in [0, 1); None before it is drawn."""
    outcome: str
    """A drawable sentence: what the number fell on."""
    changed: bool
    """Whether the settings differ from those the token was drawn under, so that all this is a preview."""
    editable: bool = True
    """Whether the settings may be changed."""
    note: str = ""
    """Why there is not more to see, or to try, where that is so."""


class SamplingStages(Panel[SamplingView], can_focus=True):
    """Shows a `SamplingView`; says which setting somebody selects or changes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "select(-1)", show=False),
        Binding("down", "select(1)", show=False),
        Binding("left", "change(-1)", show=False),
        Binding("right", "change(1)", show=False),
        Binding("enter", "apply", show=False),
    ]

    @dataclass
    class Selected(Message):
        """Somebody selects a setting."""

        index: int

    @dataclass
    class Changed(Message):
        """Somebody wants a setting one step up (1) or down (−1)."""

        action: str
        change: int

    @dataclass
    class Applied(Message):
        """Somebody wants to go on under these settings."""

    def titles(self, view: SamplingView | None) -> tuple[str, str]:
        if view is None:
            return tr("sampling"), ""
        title = tr("sampling · preview") if view.changed else tr("sampling")
        if not (self.in_focus and view.editable):
            return title, tr("each stage sees what those before it left")
        hints = tr("← → change · enter applies · esc leaves"), tr("← → change · enter applies")
        return title, next((hint for hint in hints if cell_width(hint) + 4 <= self.inner_size.width), "")

    def draw(self, view: SamplingView, width: int, height: int) -> list[Strip]:
        layout = Layout.of(view, width, height)
        settings = [self._setting(view, index, layout) for index in layout.in_sight]
        if not view.stages:
            return [*settings, *centred(view.note, width, max(height - len(settings), 0), self.look)]
        cells = width - (layout.settings if layout.beside else 0)
        stages = stage_table(view.stages, cells, layout.stages, self.look)
        rows = (
            _side_by_side(settings, stages, layout, self.look)
            if layout.beside
            else _stacked(settings, stages, layout, self.look)
        )
        drawn = ruler(view.shares, view.uniform, width, self.look)[: layout.ruler] if view.shares else []
        plain, quiet = (style(colour, self.look.panel) for colour in (self.look.text, self.look.quiet))
        outcome = [(line, plain) for line in wrapped(view.outcome, width - 2, layout.outcome)]
        outcome += [(line, quiet) for line in layout.note]
        return [*rows, *drawn, *(Line(width, tone).gap(1).add(line).strip() for line, tone in outcome)]

    def _setting(self, view: SamplingView, index: int, layout: Layout) -> Strip:
        """A setting with the arrows that change it."""
        row, look = view.settings[index], self.look
        here = self.in_focus and index == view.selected
        quiet, mark = style(look.quiet, look.panel), style(look.here, look.panel, True)
        tone = mark if here else quiet if row.off else style(look.text, look.panel)
        arrows = mark if here else quiet
        more_above, more_below = index == layout.first > 0, index == layout.in_sight[-1] < len(view.settings) - 1
        edge = "▌" if here else "▴" if more_above else "▾" if more_below else " "
        line = Line(layout.settings, tone).add(edge, arrows).add(fit(row.name, layout.name))
        can_change = bool(row.action) and view.editable
        line.to(layout.less).add("◂" if can_change else " ", arrows)
        line.gap(1).add(fit(row.value, VALUE, "right"))
        return line.to(layout.more).add("▸" if can_change else " ", arrows).strip()

    def setting_at(self, x: int, y: int) -> tuple[int, int] | None:
        """The setting at a place inside the border, and −1 or 1 on one of its arrows, else 0."""
        if self.view is None:
            return None
        layout = Layout.of(self.view, *self.inner_size)
        index = layout.first + y
        if y < 0 or index not in layout.in_sight or not 0 <= x < layout.settings:
            return None
        return index, -1 if abs(x - layout.less) <= 1 else 1 if abs(x - layout.more) <= 1 else 0

    def on_click(self, event: events.Click) -> None:
        place = self.inner_offset(event)
        if place and (found := self.setting_at(*place)):
            index, change = found
            self.post_message(self.Selected(index))
            if change:
                self._change(index, change)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, change: int) -> None:
        place = self.inner_offset(event)
        if place and (found := self.setting_at(*place)):
            event.stop()
            self._change(found[0], change)

    def place_of(self, view: SamplingView) -> object:
        return view.selected

    def action_select(self, change: int) -> None:
        """Select a neighbour of the setting that is selected, or was last selected: keys may outrun the screen."""
        if (view := self.view) and view.settings:
            self._moved = min(max(self._selected(view) + change, 0), len(view.settings) - 1)
            self.post_message(self.Selected(self._moved))

    def action_change(self, change: int) -> None:
        if (view := self.view) and view.settings:
            self._change(self._selected(view), change)

    def action_apply(self) -> None:
        if self.view and self.view.editable:
            self.post_message(self.Applied())

    def _selected(self, view: SamplingView) -> int:
        return view.selected if self._moved is None else self._moved

    def _change(self, index: int, change: int) -> None:
        """Ask for a change of a setting, if it can be changed."""
        if (view := self.view) and view.editable and (action := view.settings[index].action):
            self.post_message(self.Changed(action, change))


VALUE = 10
"""Columns of a setting's value, enough for any seed of 32 bits."""
NARROWEST = 56
"""Columns from which settings and stages may stand side by side; they do where there are few lines."""
ROOMY = 70
"""Columns from which they always do."""
FEWEST = 3
"""Settings that stay in sight where stages need the lines; also the lines that stages need at least."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything stands. Depends on the panel's size and on names, not on what the stages did."""

    columns: int
    beside: bool
    """Whether the stages stand beside the settings; else under them."""
    name: int
    """Columns of the settings' names."""
    first: int
    """The first setting in sight."""
    visible: int
    """Settings in sight."""
    stages: int
    """Lines for the stages and their heading."""
    gap: int
    """Empty lines between the blocks, 1 or 0."""
    ruler: int
    """Lines of the ruler, from its top: 3, 2 without its numbers, or 0."""
    outcome: int
    """Lines of the sentence at most."""
    note: tuple[str, ...]
    """Lines at the bottom."""

    @classmethod
    def of(cls, view: SamplingView, columns: int, rows: int) -> Layout:
        """The layout of *view* in a panel of *columns* and *rows*."""
        settings, lines = len(view.settings), len(view.stages) + 1 if view.stages else 0
        note = tuple(wrapped(view.note, columns - 2, 2)) if view.stages and view.note and rows >= 8 else ()
        drawn = 0 if rows < 5 or not view.shares else 2 if rows < 14 else 3
        outcome = int(rows > 1) if rows < 14 or columns >= 80 else 2
        outcome = outcome if view.stages else 0
        room = max(rows - drawn - outcome - len(note), 1)
        beside = lines > 0 and columns >= (ROOMY if room >= settings + lines else NARROWEST)
        visible, stages = _shared_lines(settings, lines, room, beside)
        taken, blocks = (max(visible, stages), 1) if beside else (visible + stages, 1 + (stages > 0))
        gap = int(room - taken >= blocks)
        return cls(
            columns=columns,
            beside=beside,
            name=min(max([6, *(cell_width(row.name) for row in view.settings)]), columns - VALUE - 7),
            first=min(max(view.selected - (visible - 1) // 2, 0), settings - visible),
            visible=visible,
            stages=stages,
            gap=gap,
            ruler=drawn,
            outcome=outcome + room - taken - gap * blocks,
            note=note,
        )

    @property
    def settings(self) -> int:
        """Columns of the settings."""
        return self.more + 2 if self.beside else self.columns

    @property
    def in_sight(self) -> range:
        """The settings in sight."""
        return range(self.first, self.first + self.visible)

    @property
    def less(self) -> int:
        """The column of the arrow that makes a value smaller."""
        return 1 + self.name + 1

    @property
    def more(self) -> int:
        """The column of the arrow that makes a value larger."""
        return self.less + 2 + VALUE + 1


def _shared_lines(settings: int, lines: int, room: int, beside: bool) -> tuple[int, int]:
    """How many settings, and how many lines of stages, stand in *room* lines."""
    if beside:
        return min(settings, room), min(lines, room)
    visible = min(settings, max(room - lines, FEWEST), room)
    stages = min(lines, room - visible)
    return (visible, stages) if stages >= FEWEST else (min(settings, room), 0)


def _side_by_side(settings: list[Strip], stages: list[Strip], layout: Layout, look: Look) -> list[Strip]:
    plain = style(look.text, look.panel)
    rows = []
    for row in range(max(len(settings), len(stages)) + layout.gap):
        left = settings[row] if row < len(settings) else Strip.blank(layout.settings, plain)
        right = stages[row] if row < len(stages) else Strip.blank(layout.columns - layout.settings, plain)
        rows.append(Strip([*left, *right], layout.columns))
    return rows


def _stacked(settings: list[Strip], stages: list[Strip], layout: Layout, look: Look) -> list[Strip]:
    blank = [Strip.blank(layout.columns, style(look.text, look.panel))] * layout.gap
    return [*settings, *blank, *stages, *(blank if stages else [])]
