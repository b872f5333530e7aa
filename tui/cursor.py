"""Where you look: which moment, which layer, which head, which cell."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a trace. Moving it gives another one; nothing else about a run changes."""

    step: int | None = None
    """The generated token that is looked at; None follows the newest."""
    layer: int = 0
    head: int = 0
    cell: tuple[int, int] | None = None
    """Query and key that somebody pointed at; None is the newest query and the key it looks at most."""

    def at_step(self, steps: int) -> int:
        """The step looked at when there are *steps*; −1 before the first."""
        return steps - 1 if self.step is None else min(self.step, steps - 1)

    def moved_by(self, change: int, steps: int) -> Cursor:
        """*change* tokens further; the newest of *steps* is followed from then on."""
        step = max(self.at_step(steps) + change, 0)
        return replace(self, step=None if step >= steps - 1 else step, cell=None)

    def to_step(self, step: int | None) -> Cursor:
        """At generated *step*, or following the newest."""
        return replace(self, step=step, cell=None)

    def to_layer(self, layer: int, layers: int) -> Cursor:
        """In *layer*, kept within the model."""
        return replace(self, layer=min(max(layer, 0), layers - 1))

    def to_head(self, head: int, heads: int) -> Cursor:
        """At *head*, round and round."""
        return replace(self, head=head % heads)

    def to_cell(self, cell: tuple[int, int] | None) -> Cursor:
        """At a query and a key, or at none in particular."""
        return replace(self, cell=cell)
