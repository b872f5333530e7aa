"""What a person may change in a run: silence a head, silence an MLP, put a token of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

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
class ForceToken:
    """Take token *id* at generated step *step*, whatever the draw says; the random number is still used up."""

    step: int
    id: int


Edit = AblateHead | AblateMlp | ForceToken

_KINDS: dict[str, type[Edit]] = {
    "ablate_head": AblateHead,
    "ablate_mlp": AblateMlp,
    "force_token": ForceToken,
}


class Edits:
    """A run's edits, checked against its model and ready to be asked about."""

    def __init__(self, edits: Iterable[Edit], config: ModelConfig) -> None:
        self.all: tuple[Edit, ...] = tuple(edits)
        self._config = config
        self._heads: dict[int, list[int]] = {}
        self._mlps: set[int] = set()
        self._tokens: dict[int, int] = {}
        for edit in self.all:
            _check(edit, config)
            match edit:
                case AblateHead(layer=layer, head=head):
                    self._heads.setdefault(layer, []).append(head)
                case AblateMlp(layer=layer):
                    self._mlps.add(layer)
                case ForceToken(step, id):
                    self._tokens[step] = id

    def active_at(self, step: int) -> Edits:
        """Those that hold while the scores of generated *step* are computed."""
        active = [edit for edit in self.all if isinstance(edit, ForceToken) or edit.since <= step]
        return self if len(active) == len(self.all) else Edits(active, self._config)

    def silent_heads(self, layer: int) -> list[int]:
        """Heads of *layer* whose output is zeroed."""
        return self._heads.get(layer, [])

    def mlp_is_silent(self, layer: int) -> bool:
        """Whether the MLP of *layer* adds nothing."""
        return layer in self._mlps

    def token_at(self, step: int) -> int | None:
        """The token a person put at generated *step*, or None."""
        return self._tokens.get(step)


def parse_ablation(text: str) -> AblateHead | AblateMlp:
    """Read ``L.H`` or ``L.mlp`` as the command line takes it.

    Raises `ModelError` when the text is neither.
    """
    if match := re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})", text):
        return AblateHead(int(match[1]), int(match[2]))
    if match := re.fullmatch(r"([0-9]{1,9})\.mlp", text):
        return AblateMlp(int(match[1]))
    raise ModelError(
        tr("“{text}” names no head and no MLP", text=text),
        where="--ablate",
        hint=tr("write LAYER.HEAD, as in 2.5, or LAYER.mlp, as in 2.mlp"),
    )


def edit_name(edit: Edit) -> str:
    """The edit as the command line writes it, ``L.H`` or ``L.mlp``; a forced token as ``step:id``."""
    match edit:
        case AblateHead(layer=layer, head=head):
            return f"{layer}.{head}"
        case AblateMlp(layer=layer):
            return f"{layer}.mlp"
        case ForceToken(step=step, id=id):
            return f"{step}:{id}"


def edit_to_dict(edit: Edit) -> dict[str, Any]:
    """The edit as recordings keep it: its kind and its fields."""
    kind = next(name for name, cls in _KINDS.items() if type(edit) is cls)
    return {"kind": kind} | {field.name: getattr(edit, field.name) for field in fields(edit)}


def edit_from_dict(data: dict[str, Any]) -> Edit:
    """The reverse of `edit_to_dict`; raises KeyError, TypeError or ValueError on anything else."""
    values = {key: int(value) for key, value in data.items() if key != "kind"}
    return _KINDS[data["kind"]](**values)


def _check(edit: Edit, config: ModelConfig) -> None:
    """Refuse an edit that points outside the model."""
    match edit:
        case AblateHead(layer=layer, head=head, since=step):
            _in_range(tr("this model has no layer {value}", value=layer), layer, config.layers)
            _in_range(tr("this model has no head {value}", value=head), head, config.heads)
        case AblateMlp(layer=layer, since=step):
            _in_range(tr("this model has no layer {value}", value=layer), layer, config.layers)
        case ForceToken(step=step, id=id):
            _in_range(tr("this model has no token id {value}", value=id), id, config.vocabulary)
    if step < 0:
        raise ModelError(tr("step {step} is before the first generated token", step=step))


def _in_range(complaint: str, value: int, count: int) -> None:
    if not 0 <= value < count:
        raise ModelError(complaint, hint=tr("choose from 0 to {last}", last=count - 1))
