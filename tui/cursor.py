"""Where you look: which moment, which layer, which head, which cell."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .stages import Place


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a trace. Moving it gives another one; nothing else about a run changes."""

    place: Place | None = None
    """The token, and the stage of its pass, that is looked at; None follows the newest token."""
    layer: int = 0
    head: int = 0
    cell: tuple[int, int] | None = None
    """Query and key that somebody pointed at; None is the newest query and the key it looks at most."""
    candidate: int = 0
    """Row of the next token that somebody pointed at."""
    dimension: int | None = None
    """Number of the residual stream that somebody pointed at."""

    def to_place(self, place: Place | None) -> Cursor:
        """At *place*, or following the newest token; inside a layer, in that layer."""
        if place == self.place:
            return self
        return replace(self, place=place, cell=None, candidate=0)

    def to_layer(self, layer: int, layers: int) -> Cursor:
        """In *layer*, kept within the model."""
        return replace(self, layer=min(max(layer, 0), layers - 1))

    def to_head(self, head: int, heads: int) -> Cursor:
        """At *head*, round and round."""
        return replace(self, head=head % heads)

    def to_cell(self, cell: tuple[int, int] | None) -> Cursor:
        """At a query and a key, or at none in particular."""
        return replace(self, cell=cell)

    def to_candidate(self, candidate: int) -> Cursor:
        """At a row of the next token."""
        return replace(self, candidate=max(candidate, 0))

    def to_dimension(self, dimension: int | None) -> Cursor:
        """At one number of the residual stream, or at none in particular."""
        return replace(self, dimension=dimension)
