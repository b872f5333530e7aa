"""Edits as people type them and as recordings keep them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from .catalogue import tr
from .edits import (
    AblateHead,
    AblateMlp,
    Edit,
    ForceToken,
    PatchHead,
    PatchMlp,
    PatchResidual,
    ScaleHead,
    ScaleMlp,
)
from .errors import ModelError
from .part_names import PART, SCALED_PART

_KINDS: dict[str, type[Edit]] = {
    "ablate_head": AblateHead,
    "ablate_mlp": AblateMlp,
    "scale_head": ScaleHead,
    "scale_mlp": ScaleMlp,
    "patch_head": PatchHead,
    "patch_mlp": PatchMlp,
    "patch_residual": PatchResidual,
    "force_token": ForceToken,
}


def parse_ablation(text: str) -> AblateHead | AblateMlp:
    """Read ``L.H`` or ``L.mlp`` as the command line takes it.

    Raises `ModelError` when the text is neither.
    """
    if part := _part(text):
        layer, head = part
        return AblateMlp(layer) if head is None else AblateHead(layer, head)
    raise ModelError(
        tr("“{text}” names no head and no MLP", text=text),
        where="--ablate",
        hint=tr("write LAYER.HEAD, as in 2.5, or LAYER.mlp, as in 2.mlp"),
    )


def parse_scaling(text: str) -> ScaleHead | ScaleMlp:
    """Read ``L.H=FACTOR`` or ``L.mlp=FACTOR`` as the command line takes it.

    Raises `ModelError` when the text is neither.
    """
    match = SCALED_PART.fullmatch(text)
    if match and (part := _part(match[1])):
        (layer, head), factor = part, float(match[4])
        return ScaleMlp(layer, factor) if head is None else ScaleHead(layer, head, factor)
    raise ModelError(
        tr("“{text}” names no head or MLP with a factor", text=text),
        where="--scale",
        hint=tr("write LAYER.HEAD=FACTOR, as in 2.5=0.5, or LAYER.mlp=FACTOR, as in 2.mlp=2"),
    )


def edit_to_dict(edit: Edit) -> dict[str, Any]:
    """The edit as recordings keep it: its kind and its fields."""
    kind = next(name for name, cls in _KINDS.items() if type(edit) is cls)
    return {"kind": kind} | {field.name: getattr(edit, field.name) for field in fields(edit)}


def edit_from_dict(data: dict[str, Any]) -> Edit:
    """The reverse of `edit_to_dict`.

    Raises KeyError for an unknown kind, TypeError for other fields than it has, and `ModelError` for what is no number.
    """
    return _KINDS[data["kind"]](**{name: value for name, value in data.items() if name != "kind"})


def _part(text: str) -> tuple[int, int | None] | None:
    """Layer and head of ``L.H``, no head of ``L.mlp``; None for any other text."""
    if match := PART.fullmatch(text):
        return int(match[1]), None if match[2] == "mlp" else int(match[2])
    return None
