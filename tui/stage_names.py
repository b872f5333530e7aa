"""What people call the stages of a pass: one name each, wherever it stands on the screen."""

from __future__ import annotations

from ..core.catalogue import mark, tr
from .stages import Stage

NAMES = {
    "tokens": mark("tokenize"),
    "embedding": mark("embed"),
    "qkv": "q k v",
    "scores": mark("scores"),
    "mask": mark("mask"),
    "softmax": "softmax",
    "mix": mark("mix"),
    "projection": mark("projection"),
    "mlp": "MLP",
    "residual": mark("residual"),
    "norm": mark("norm"),
    "logits": mark("logits"),
    "raw": mark("raw"),
    "repetition_penalty": mark("penalty"),
    "temperature": mark("temperature"),
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
    "final": mark("final"),
    "draw": mark("draw"),
}

SHORT = {"temperature": mark("temp.")}
"""Names that are too long for the heading of a column."""


def stage_name(name: str) -> str:
    """The stage called *name* in the code, as people call it."""
    return tr(NAMES[name])


def short_name(name: str) -> str:
    """The same in at most seven columns."""
    return tr(SHORT.get(name, NAMES[name]))


def placed_name(stage: Stage) -> str:
    """A stage with the layer it is in."""
    name = stage_name(stage.name)
    return name if stage.layer is None else tr("layer {layer}, {name}", layer=stage.layer, name=name)
