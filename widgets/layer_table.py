"""What every layer would say next: the model's own head on the residual stream after each of them.

A row is a layer. On the left how long the stream has become and the tokens the layer would pick; on the right what
it gave the token that was drawn in the end. See nostalgebraist 2020, "interpreting GPT: the logit lens".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from ..core.catalogue import mark, tr
from .drawable import cell_width, clip, fit
from .line import Line
from .look import Look, style
from .numbers import PERCENT, bar, percent
from .panel import Panel
from .sentence import centred, wrapped


@dataclass(frozen=True, slots=True)
class LayerRow:
    """The residual stream after one layer, and what the head makes of it."""

    name: str
    norm: float | None
    """Length of the residual stream after it; None while the layer is not reached."""
    best: tuple[tuple[str, float], ...]
    """Drawable tokens with their probabilities, best first; empty where they are not known."""
    drawn: float | None = None
    """Probability of the token that was drawn in the end."""
    rank: int | None = None
    """Its place, from 0."""
    entropy: float | None = None
    """Of the layer's distribution, in bits."""


@dataclass(frozen=True, slots=True)
class LayersView:
    """All layers at one position."""

    rows: tuple[LayerRow, ...]
    """Layer 0 first."""
    output: LayerRow | None
    """The model's own output, which is what the last layer says."""
    layer: int
    """The layer that is looked at."""
    after: str
    """The token at this position, drawable."""
    drawn: str = ""
    """The token that was drawn, drawable."""
    note: str = ""
    """Why nothing is known, where that is so."""


class LayerTable(Panel[LayersView], can_focus=True):
    """Shows a `LayersView`; says which layer the mouse, and in focus the arrows, want to look at."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Somebody wants to look at a layer."""

        layer: int

    def titles(self, view: LayersView | None) -> tuple[str, str]:
        if view is None:
            return tr("layers"), ""
        title = tr("layers · after ‹{token}›", token=clip(view.after, max(self.inner_size.width - 22, 4)))
        window = _Window.of(view, *self.inner_size)
        if window.count == len(view.rows):
            return title, tr("what each layer would say next")
        place = {"first": window.first, "last": window.first + window.count - 1, "count": len(view.rows)}
        return title, tr("layers {first}–{last} of {count}", **place)

    def draw(self, view: LayersView, width: int, height: int) -> list[Strip]:
        if not view.rows:
            return centred(view.note, width, height, self.look)
        columns, window = _Columns.fitting(width, view), _Window.of(view, width, height)
        largest = max((row.norm or 0.0 for row in view.rows), default=0.0)
        rows = [_heading(view, columns, width, self.look)] * window.heading
        rows += [_row(view, layer, largest, columns, width, self.look) for layer in window.layers]
        if window.output and view.output is not None:
            rows.append(_output(view, view.output, columns, width, self.look))
        quiet = style(self.look.quiet, self.look.panel)
        return [*rows, *(Line(width, quiet).gap(1).add(line).strip() for line in window.note)]

    def layer_at(self, y: int) -> int | None:
        """The layer in a line inside the border, or None where there is none."""
        if self.view is None or not self.view.rows:
            return None
        window = _Window.of(self.view, *self.inner_size)
        layer = window.first + y - window.heading
        return layer if layer in window.layers else None

    def on_click(self, event: events.Click) -> None:
        place = self.inner_offset(event)
        if place and (layer := self.layer_at(place[1])) is not None:
            self.post_message(self.Chosen(layer))

    def place_of(self, view: LayersView) -> object:
        return view.layer

    def action_move(self, change: int) -> None:
        """Choose a neighbour of the layer that is looked at, or was last moved to: keys may outrun the screen."""
        if (view := self.view) is None:
            self.once_shown(partial(self.action_move, change))
        elif view.rows:
            layer = view.layer if self._moved is None else self._moved
            self._moved = min(max(layer + change, 0), len(view.rows) - 1)
            self.post_message(self.Chosen(self._moved))


@dataclass(frozen=True, slots=True)
class _Window:
    """What stands in the lines of a panel: the layers around the one that is looked at."""

    heading: int
    """Lines of the heading, 1 or 0."""
    first: int
    """The first layer in sight."""
    count: int
    """Layers in sight."""
    note: tuple[str, ...]
    """Lines under the layers."""
    output: int
    """Lines for the model's output, 1 or 0; kept free until there is one."""

    @property
    def layers(self) -> range:
        return range(self.first, self.first + self.count)

    @classmethod
    def of(cls, view: LayersView, columns: int, rows: int) -> _Window:
        note = tuple(wrapped(view.note, columns - 2, max(rows // 3, 1))) if view.note else ()
        heading, output = int(rows >= 4), int(rows >= 4)
        room = max(rows - heading - output - len(note), 1)
        count = min(room, len(view.rows))
        first = min(max(view.layer - (count - 1) // 2, 0), len(view.rows) - count)
        return cls(heading, first, count, note, output)


NORM, NORM_BAR, BAR, RANK, ENTROPY = 6, 5, 6, 6, 7
"""Columns of a length and of its bar, of a probability's bar at least, of a rank, of an entropy."""
WIDEST_TOKEN = 14
"""Columns that a token gets at most."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a panel; they depend on its width and the number of layers, so that nothing jumps."""

    name: int
    token: int
    others: int
    """How many tokens stand beside the best one."""
    bar: int
    """Columns of the best token's bar; 0 where it is left out, as with the next."""
    norm: int
    norm_bar: int
    drawn: int
    rank: int
    entropy: int

    @classmethod
    def fitting(cls, cells: int, view: LayersView) -> _Columns:
        """The columns that *cells* have room for, in the order of `_BY_IMPORTANCE`."""
        name = max([3, *(cell_width(row.name) for row in view.rows)])
        token = 7 if cells < 40 else 8 if cells < 110 else 10
        costs = {"drawn": 2 + PERCENT, "norm": 1 + NORM, "rank": 1 + RANK, "bar": 1 + BAR, "norm_bar": 1 + NORM_BAR}
        costs |= {"other": 2 + token + 1 + PERCENT, "entropy": 1 + ENTROPY}
        room, shown = cells - name - token - PERCENT - 4, []
        for part in _BY_IMPORTANCE:
            if costs[part] > room:
                break
            shown.append(part)
            room -= costs[part]
        others = shown.count("other")
        wider = min(max(room, 0) // (1 + others), WIDEST_TOKEN - token)
        room -= wider * (1 + others)
        heading = min(room, WIDEST_TOKEN + 2 - PERCENT) if "drawn" in shown and others == MOST_OTHERS else 0
        room -= heading
        return cls(
            name=name,
            token=token + wider,
            others=others,
            bar=BAR + room if "bar" in shown else 0,
            norm=NORM if "norm" in shown else 0,
            norm_bar=NORM_BAR if "norm_bar" in shown else 0,
            drawn=PERCENT + heading if "drawn" in shown else 0,
            rank=RANK if "rank" in shown else 0,
            entropy=ENTROPY if "entropy" in shown else 0,
        )

    @property
    def left(self) -> int:
        """The column the best token begins at."""
        return 1 + self.name + 1 + sum(part + 1 for part in (self.norm, self.norm_bar) if part)

    @property
    def right(self) -> int:
        """How many columns the drawn token's numbers take, and the one before the border."""
        return 1 + sum(part + 1 for part in (self.drawn, self.rank, self.entropy) if part)


_PLACES = (mark("second"), mark("third"), mark("fourth"), mark("fifth"))
"""Headings of the tokens beside the best one."""

MOST_OTHERS = len(_PLACES)

_BY_IMPORTANCE = ("drawn", "norm", "rank", "bar", "norm_bar", "other", "entropy", *["other"] * (MOST_OTHERS - 1))


def _heading(view: LayersView, columns: _Columns, cells: int, look: Look) -> Strip:
    quiet = style(look.quiet, look.panel)
    line = Line(cells, quiet).to(2 + columns.name)
    if columns.norm:
        line.add(fit(tr("length"), columns.norm, "right"))
    line.to(columns.left).add(clip(tr("likeliest next"), columns.token + 1 + PERCENT))
    line.to(columns.left + columns.token + 1 + PERCENT + (columns.bar and columns.bar + 1))
    for place in _PLACES[: columns.others]:
        line.gap(2).add(fit(tr(place), columns.token + 1 + PERCENT))
    line.to(cells - columns.right)
    if columns.drawn:
        token = f"‹{clip(view.drawn, columns.drawn - 2)}›" if view.drawn else ""
        line.gap(1).add(fit(token, columns.drawn, "right"), style(look.here, look.panel))
    if columns.rank:
        line.gap(1).add(fit(tr("rank"), columns.rank, "right"))
    if columns.entropy:
        line.gap(1).add(fit(tr("entropy"), columns.entropy, "right"))
    return line.strip()


def _row(view: LayersView, layer: int, largest: float, columns: _Columns, cells: int, look: Look) -> Strip:
    row, here = view.rows[layer], layer == view.layer
    quiet, plain, mark = style(look.quiet, look.panel), style(look.text, look.panel), style(look.here, look.panel, True)
    line = Line(cells, plain).add("▸" if here else " ", mark)
    line.add(fit(row.name, columns.name), mark if here else plain if row.norm is not None else quiet).gap(1)
    if columns.norm:
        line.add(fit(_length(row.norm), columns.norm, "right"), quiet)
    if columns.norm_bar:
        share = (row.norm or 0.0) / largest if largest else 0.0
        line.gap(1).add(bar(share, columns.norm_bar), style(look.line, look.panel))
    _say(line.to(columns.left), row, view.drawn, columns, look)
    return line.strip()


def _output(view: LayersView, row: LayerRow, columns: _Columns, cells: int, look: Look) -> Strip:
    """The last row: it says again what the last layer says, since that is what the model says."""
    quiet = style(look.quiet, look.panel)
    names = (tr("= model's output"), f"= {row.name}", "=")
    name = next((name for name in names if cell_width(name) <= columns.left - 2), "")
    line = Line(cells, style(look.text, look.panel)).gap(1).add(name, quiet)
    _say(line.to(columns.left), row, view.drawn, columns, look)
    return line.strip()


def _say(line: Line, row: LayerRow, drawn: str, columns: _Columns, look: Look) -> None:
    """What a layer would say: its best tokens on the left, the drawn one's numbers on the right."""
    quiet, plain = style(look.quiet, look.panel), style(look.text, look.panel)
    if not row.best:
        line.add("·", quiet)
        return
    for place, (token, share) in enumerate(row.best[: 1 + columns.others]):
        tone = _tone(token == drawn, place, look)
        line.gap(2 if place else 0).add(fit(token, columns.token), tone)
        line.gap(1).add(fit(percent(share), PERCENT, "right"), quiet if place else plain)
        if columns.bar and not place:
            line.gap(1).add(fit(bar(share, columns.bar), columns.bar), tone)
    line.to(line.cells - columns.right)
    if columns.drawn:
        share_text = "" if row.drawn is None else percent(row.drawn)
        line.gap(1).add(
            fit(share_text, columns.drawn, "right"), style(look.here, look.panel) if not row.rank else plain
        )
    if columns.rank:
        line.gap(1).add(fit("" if row.rank is None else f"{row.rank:,}", columns.rank, "right"), quiet)
    if columns.entropy:
        line.gap(1).add(fit("" if row.entropy is None else f"{row.entropy:.2f}", columns.entropy, "right"), quiet)


def _tone(is_drawn: bool, place: int, look: Look) -> Style:
    """The style of a token: the drawn one wherever it stands, the best one, or one that comes after it."""
    colour = look.here if is_drawn else look.quiet if place else look.what
    return style(colour, look.panel, is_drawn and not place)


def _length(norm: float | None) -> str:
    """A length in at most `NORM` columns."""
    if norm is None:
        return "·"
    return (
        f"{norm:.2f}"
        if norm < 100
        else f"{norm:.1f}"
        if norm < 1000
        else f"{norm:.0f}"
        if norm < 1e6
        else f"{norm:.0e}"
    )
