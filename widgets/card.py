"""A few words over the screen: keys on the left, what they do on the right."""

from __future__ import annotations

from dataclasses import dataclass

from textual.strip import Strip

from .drawable import cell_width
from .line import Line
from .look import style
from .panel import Panel


@dataclass(frozen=True, slots=True)
class CardView:
    """Rows of a key and a sentence, both drawable; a row without a key is a heading."""

    title: str
    rows: tuple[tuple[str, str], ...]

    @property
    def key_cells(self) -> int:
        """Columns of the widest key."""
        return max((cell_width(key) for key, _ in self.rows), default=0)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows that it takes, the border and a blank on each side included."""
        cells = (cell_width(text) + (self.key_cells + 2 if key else 0) for key, text in self.rows)
        return max(cells, default=0) + 4, len(self.rows) + 2


class Card(Panel[CardView]):
    """Shows a `CardView`."""

    DEFAULT_CSS = "Card { position: absolute; layer: notice; display: none; }"

    def titles(self, view: CardView | None) -> tuple[str, str]:
        return view.title if view else "", ""

    def draw(self, view: CardView, width: int, height: int) -> list[Strip]:
        look = self.look
        rows = []
        for key, text in view.rows:
            line = Line(width, style(look.text, look.panel)).gap(1)
            if key:
                line.add(key, style(look.here, look.panel, True)).to(view.key_cells + 3).add(text)
            else:
                line.add(text, style(look.text, look.panel, True))
            rows.append(line.strip())
        return rows
