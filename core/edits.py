"""What a person may change in a run: silence, scale or replace what a part computes, put a token of their own.

What each does is in `editing.py`. D width, d head size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .catalogue import tr
from .checkpoint.config import ModelConfig
from .errors import ModelError
from .plain_numbers import make_plain, written


class _Plain:
    """An edit whose numbers are Python's own, so that any recording can hold it."""

    __slots__ = ()

    def __post_init__(self) -> None:
        make_plain(self, ModelError)


@dataclass(frozen=True, slots=True)
class AblateHead(_Plain):
    """Zero one head's output before the output projection; its pattern is still computed and recorded."""

    layer: int
    head: int
    since: int = 0
    """The first generated step whose scores are computed without it."""


@dataclass(frozen=True, slots=True)
class AblateMlp(_Plain):
    """Zero what one layer's MLP adds to the residual stream."""

    layer: int
    since: int = 0
    """The first generated step whose scores are computed without it."""


@dataclass(frozen=True, slots=True)
class ScaleHead(_Plain):
    """Multiply one head's output by a factor before the output projection."""

    layer: int
    head: int
    factor: float
    since: int = 0
    """The first generated step whose scores are computed with it."""


@dataclass(frozen=True, slots=True)
class ScaleMlp(_Plain):
    """Multiply what one layer's MLP adds to the residual stream by a factor."""

    layer: int
    factor: float
    since: int = 0
    """The first generated step whose scores are computed with it."""


@dataclass(frozen=True, slots=True)
class PatchHead(_Plain):
    """Put other values in the place of one head's output at one position, before the output projection."""

    layer: int
    head: int
    position: int
    values: tuple[float, ...]
    """[d]"""


@dataclass(frozen=True, slots=True)
class PatchMlp(_Plain):
    """Put other values in the place of what one layer's MLP adds to the residual stream at one position."""

    layer: int
    position: int
    values: tuple[float, ...]
    """[D]"""


@dataclass(frozen=True, slots=True)
class PatchResidual(_Plain):
    """Put other values in the place of the residual stream after one layer at one position."""

    layer: int
    position: int
    values: tuple[float, ...]
    """[D]"""


@dataclass(frozen=True, slots=True)
class ForceToken(_Plain):
    """Take token *id* at generated step *step*, whatever the draw says; the random number is still used up."""

    step: int
    id: int


Ablation = AblateHead | AblateMlp
Scaling = ScaleHead | ScaleMlp
OfHead = AblateHead | ScaleHead | PatchHead
OfMlp = AblateMlp | ScaleMlp | PatchMlp
Lasting = Ablation | Scaling
"""Edits that hold from some step on."""
Patch = PatchHead | PatchMlp | PatchResidual
"""Edits of one position (Meng et al. 2022, arXiv:2202.05262); `patching.py` takes the values from another trace."""
Edit = Lasting | Patch | ForceToken


LARGEST_FACTOR = 1e6
"""A stronger one would only drive the scores beyond float32."""
LARGEST_VALUE = 1e12


def next_turn(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """*edits* as a next turn takes them over: those of the model, and from the beginning on."""
    kept = (edit for edit in edits if not isinstance(edit, ForceToken))
    return tuple(replace(edit, since=0) if isinstance(edit, Lasting) else edit for edit in kept)


def check_edit(edit: Edit, config: ModelConfig) -> None:
    """Raises `ModelError` where *edit* points outside the model."""
    if isinstance(edit, ForceToken):
        check_range(tr("this model has no token id {value}", value=written(edit.id)), edit.id, config.vocabulary)
    else:
        check_range(tr("this model has no layer {value}", value=written(edit.layer)), edit.layer, config.layers)
    if isinstance(edit, OfHead):
        check_range(tr("this model has no head {value}", value=written(edit.head)), edit.head, config.heads)
    if isinstance(edit, Patch):
        check_range(
            tr("this model has no position {value}", value=written(edit.position)), edit.position, config.positions
        )
        _check_values(edit.values, config.head_size if isinstance(edit, PatchHead) else config.width)
    else:  # the first scores an edit may hold for are those of a branch, at the end of the longest text too
        step, beyond = (edit.step, 0) if isinstance(edit, ForceToken) else (edit.since, 1)
        complaint = tr("no text of this model has a generated token {value}", value=written(step))
        check_range(complaint, step, config.positions + beyond)
    if isinstance(edit, Scaling) and not abs(edit.factor) <= LARGEST_FACTOR:
        raise ModelError(
            tr("{factor} is no factor to scale with", factor=edit.factor),
            hint=tr("choose from −{most:,.0f} to {most:,.0f}", most=LARGEST_FACTOR),
        )


def _check_values(values: tuple[float, ...], size: int) -> None:
    """Refuse values that are no vector of that size."""
    if len(values) != size:
        raise ModelError(
            tr("a patch of {count} values does not fit this model", count=len(values)),
            hint=tr("it takes {size} there", size=size),
        )
    if not all(abs(value) <= LARGEST_VALUE for value in values):  # nor is NaN
        raise ModelError(tr("a patch holds values that no activation has"))


def check_range(complaint: str, value: int, count: int) -> None:
    """Raises `ModelError` with *complaint* unless *value* is one of *count* things."""
    if not 0 <= value < count:
        raise ModelError(complaint, hint=tr("choose from 0 to {last}", last=count - 1))
