"""Patches: what one trace computed, to be put into another run.

The usual experiment takes two prompts that differ in a word, and puts one activation of the first run into the
second: what the answer then changes, that place carries (Meng et al. 2022, arXiv:2202.05262).
"""

from __future__ import annotations

import numpy as np

from .attention_stages import edited_mix, mlp_output
from .cache import Floats
from .catalogue import tr
from .edits import PatchHead, PatchMlp, PatchResidual, check_range
from .trace import Trace


def patch_head(source: Trace, layer: int, head: int, position: int, *, at: int | None = None) -> PatchHead:
    """Put what *head* gave the output projection in *source* at *position* into a run, there or *at* another position.

    Raises `ModelError` when *source* has no such place.
    """
    _check_place(source, layer, position, head)
    values = edited_mix(source, layer, position, position + 1)[head, 0]  # [d]
    return PatchHead(layer, head, position if at is None else at, _numbers(values))


def patch_mlp(source: Trace, layer: int, position: int, *, at: int | None = None) -> PatchMlp:
    """The same with what the MLP of *layer* added to the stream; raises as well where it needs weights."""
    _check_place(source, layer, position)
    values = mlp_output(source, layer, position, position + 1)[0]  # [D]
    return PatchMlp(layer, position if at is None else at, _numbers(values))


def patch_residual(source: Trace, layer: int, position: int, *, at: int | None = None) -> PatchResidual:
    """The same with the residual stream after *layer*."""
    _check_place(source, layer, position)
    values = source.residual(layer)[position]  # [D]
    return PatchResidual(layer, position if at is None else at, _numbers(values))


def _check_place(source: Trace, layer: int, position: int, head: int = 0) -> None:
    """Refuse a place that *source* has not been to."""
    config = source.model.config
    check_range(tr("this trace has no layer {value}", value=layer), layer, config.layers)
    check_range(tr("this trace has no head {value}", value=head), head, config.heads)
    check_range(tr("this trace has no position {value}", value=position), position, source.positions)


def _numbers(values: Floats) -> tuple[float, ...]:
    """The values [m], none of their digits lost."""
    return tuple(np.asarray(values, np.float64).tolist())
