"""Edits at work: what a run's edits change in the arrays of a pass.

Shapes: n positions in a pass, D width, H query heads, d head size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .checkpoint.config import ModelConfig
from .edits import (
    AblateHead,
    AblateMlp,
    Edit,
    ForceToken,
    Lasting,
    Patch,
    PatchHead,
    PatchMlp,
    PatchResidual,
    ScaleHead,
    ScaleMlp,
    check_edit,
)

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Change:
    """What an edit does to rows of an array: multiply them, or put values in their place."""

    begin: int
    """The first position it is about."""
    end: float
    """The first position it is no longer about."""
    put: Floats | None = None
    """Values [d] or [D], or one for all of them []."""
    factor: np.float32 = np.float32(1)
    head: int = 0

    def apply(self, rows: Floats, start: int) -> None:
        """Change *rows* [n, …], the first of which stands at position *start*."""
        here = rows[max(self.begin - start, 0) : max(int(min(self.end - start, len(rows))), 0)]
        if self.put is None:
            here *= self.factor
        else:
            here[:] = self.put


class Edits:
    """A run's edits, checked against its model and ready to change what a pass computes."""

    def __init__(self, edits: Iterable[Edit], config: ModelConfig, prompt_length: int) -> None:
        """Raises `ModelError` where one of *edits* points outside the model."""
        self.all: tuple[Edit, ...] = tuple(edits)
        self._prompt_length = prompt_length
        self._heads: dict[int, list[_Change]] = {}
        self._mlps: dict[int, list[_Change]] = {}
        self._streams: dict[int, list[_Change]] = {}
        self._tokens: dict[int, int] = {}
        for edit in self.all:
            check_edit(edit, config)
            if isinstance(edit, ForceToken):
                self._tokens[edit.step] = edit.id
            else:
                self._changed_by(edit).setdefault(edit.layer, []).append(self._change(edit))

    def change_heads(self, layer: int, mixed: Floats, start: int) -> None:
        """Change what the heads of *layer* have gathered, *mixed* [H, n, d], from position *start* on, in place."""
        for change in self._heads.get(layer, ()):
            change.apply(mixed[change.head], start)

    def change_mlp(self, layer: int, output: Floats, start: int) -> None:
        """Change what the MLP of *layer* adds, *output* [n, D], from position *start* on, in place."""
        for change in self._mlps.get(layer, ()):
            change.apply(output, start)

    def change_residual(self, layer: int, residual: Floats, start: int) -> None:
        """Change the stream after *layer*, *residual* [n, D], from position *start* on, in place."""
        for change in self._streams.get(layer, ()):
            change.apply(residual, start)

    def touch_head(self, layer: int, head: int) -> bool:
        """Whether any edit is about that head."""
        return any(change.head == head for change in self._heads.get(layer, ()))

    def silent_heads(self, position: int) -> frozenset[tuple[int, int]]:
        """Layer and head of those of which nothing is left at *position*."""
        heads = {(layer, change.head) for layer, changes in self._heads.items() for change in changes}
        return frozenset((layer, head) for layer, head in heads if self._is_silent(layer, head, position))

    def _is_silent(self, layer: int, head: int, position: int) -> bool:
        left = 1.0  # of the head, after all its edits in their order
        for change in self._heads[layer]:
            if change.head == head and change.begin <= position < change.end:
                left = left * float(change.factor) if change.put is None else float(np.any(change.put))
        return left == 0.0

    def token_at(self, step: int) -> int | None:
        """The token a person put at generated *step*, or None."""
        return self._tokens.get(step)

    def _changed_by(self, edit: Lasting | Patch) -> dict[int, list[_Change]]:
        match edit:
            case AblateHead() | ScaleHead() | PatchHead():
                return self._heads
            case AblateMlp() | ScaleMlp() | PatchMlp():
                return self._mlps
            case PatchResidual():
                return self._streams

    def _change(self, edit: Lasting | Patch) -> _Change:
        head = edit.head if isinstance(edit, AblateHead | ScaleHead | PatchHead) else 0
        if isinstance(edit, Patch):
            return _Change(edit.position, edit.position + 1, np.array(edit.values, np.float32), head=head)
        begin = first_position(self._prompt_length, edit.since)
        if isinstance(edit, AblateHead | AblateMlp):
            return _Change(begin, math.inf, np.zeros((), np.float32), head=head)
        return _Change(begin, math.inf, factor=np.float32(edit.factor), head=head)


def first_position(prompt_length: int, step: int) -> int:
    """The first position of the pass that the scores of generated *step* come from."""
    return prompt_length + step - 1 if step else 0
