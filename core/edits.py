"""What a person may change in a run: silence, scale or replace what a part computes, put a token of their own.

What each does is in `editing.py`. D width, d head size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .catalogue import tr
from .checkpoint.config import ModelConfig
from .errors import ModelError


@dataclass(frozen=True, slots=True)
class AblateHead:
    """Zero one head's output before the output projection; its pattern is still computed and recorded."""

    layer: int
    head: int
    since: int = 0
    """The first generated step whose scores are computed without it."""


@dataclass(frozen=True, slots=True)
class AblateMlp:
    """Zero what one layer's MLP adds to the residual stream."""

    layer: int
    since: int = 0
    """The first generated step whose scores are computed without it."""


@dataclass(frozen=True, slots=True)
class ScaleHead:
    """Multiply one head's output by a factor before the output projection."""

    layer: int
    head: int
    factor: float
    since: int = 0
    """The first generated step whose scores are computed with it."""


@dataclass(frozen=True, slots=True)
class ScaleMlp:
    """Multiply what one layer's MLP adds to the residual stream by a factor."""

    layer: int
    factor: float
    since: int = 0
    """The first generated step whose scores are computed with it."""


@dataclass(frozen=True, slots=True)
class PatchHead:
    """Put other values in the place of one head's output at one position, before the output projection."""

    layer: int
    head: int
    position: int
    values: tuple[float, ...]
    """[d]"""


@dataclass(frozen=True, slots=True)
class PatchMlp:
    """Put other values in the place of what one layer's MLP adds to the residual stream at one position."""

    layer: int
    position: int
    values: tuple[float, ...]
    """[D]"""


@dataclass(frozen=True, slots=True)
class PatchResidual:
    """Put other values in the place of the residual stream after one layer at one position."""

    layer: int
    position: int
    values: tuple[float, ...]
    """[D]"""


@dataclass(frozen=True, slots=True)
class ForceToken:
    """Take token *id* at generated step *step*, whatever the draw says; the random number is still used up."""

    step: int
    id: int


Lasting = AblateHead | AblateMlp | ScaleHead | ScaleMlp
"""Edits that hold from some step on."""
Patch = PatchHead | PatchMlp | PatchResidual
"""Edits of one position (Meng et al. 2022, arXiv:2202.05262); `patching.py` takes the values from another trace."""
Edit = Lasting | Patch | ForceToken


_LARGEST = float(np.finfo(np.float32).max)


def silences(edit: Edit, layer: int, head: int, step: int) -> bool:
    """Whether *edit* leaves nothing of that head while the scores of generated *step* are computed."""
    match edit:
        case AblateHead() | ScaleHead(factor=0.0):
            return (edit.layer, edit.head) == (layer, head) and edit.since <= step
    return False


def check_edit(edit: Edit, config: ModelConfig) -> None:
    """Raises `ModelError` where *edit* points outside the model."""
    if isinstance(edit, ForceToken):
        _in_range(tr("this model has no token id {value}", value=edit.id), edit.id, config.vocabulary)
    else:
        _in_range(tr("this model has no layer {value}", value=edit.layer), edit.layer, config.layers)
    if isinstance(edit, AblateHead | ScaleHead | PatchHead):
        _in_range(tr("this model has no head {value}", value=edit.head), edit.head, config.heads)
    if isinstance(edit, Patch):
        _in_range(tr("this model has no position {value}", value=edit.position), edit.position, config.positions)
        _check_values(edit.values, config.head_size if isinstance(edit, PatchHead) else config.width)
    elif (step := edit.step if isinstance(edit, ForceToken) else edit.since) < 0:
        raise ModelError(tr("step {step} is before the first generated token", step=step))
    if isinstance(edit, ScaleHead | ScaleMlp) and not abs(edit.factor) <= _LARGEST:
        raise ModelError(tr("{factor} is no factor to scale with", factor=edit.factor))


def _check_values(values: tuple[float, ...], size: int) -> None:
    """Refuse values that are no vector of that size."""
    if len(values) != size:
        raise ModelError(
            tr("a patch of {count} values does not fit this model", count=len(values)),
            hint=tr("it takes {size} there", size=size),
        )
    if not all(abs(value) <= _LARGEST for value in values):  # nor is NaN
        raise ModelError(tr("a patch holds values that are not finite"))


def _in_range(complaint: str, value: int, count: int) -> None:
    if not 0 <= value < count:
        raise ModelError(complaint, hint=tr("choose from 0 to {last}", last=count - 1))
