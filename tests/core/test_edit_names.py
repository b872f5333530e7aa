"""Edits as people type them, and as recordings keep them."""

from __future__ import annotations

import json

import pytest

from cutaway.core import ModelError
from cutaway.core.edit_names import edit_from_dict, edit_to_dict, parse_ablation, parse_scaling
from cutaway.core.edits import (
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

EDITS: list[Edit] = [
    AblateHead(1, 2),
    AblateMlp(0, since=3),
    ScaleHead(1, 2, 0.5),
    ScaleMlp(11, -2.0, since=1),
    PatchHead(1, 2, 7, (0.1, 1e-30)),
    PatchMlp(0, 0, (0.25,)),
    PatchResidual(3, 5, (-0.0, 1.0)),
    ForceToken(3, 7),
]


def test_ablations_as_they_are_typed() -> None:
    assert parse_ablation("2.5") == AblateHead(2, 5)
    assert parse_ablation("0.0") == AblateHead(0, 0)
    assert parse_ablation("11.mlp") == AblateMlp(11)


NAMELESS = ["", "1", "1.", ".1", "1.x", "a.b", "-1.2", "1.-2", "1.2.3", "1.mlp.2", "1.MLP", " 1.2", "1.2\n", "٣.٢"]


@pytest.mark.parametrize("text", [*NAMELESS, pytest.param("9" * 6000 + ".1", id="long")])
def test_ablations_that_name_nothing(text: str) -> None:
    with pytest.raises(ModelError, match=r"\(--ablate\); write LAYER\.HEAD"):
        parse_ablation(text)


def test_scalings_as_they_are_typed() -> None:
    assert parse_scaling("2.5=0.5") == ScaleHead(2, 5, 0.5)
    assert parse_scaling("2.5=-3") == ScaleHead(2, 5, -3.0)
    assert parse_scaling("11.mlp=2.") == ScaleMlp(11, 2.0)


@pytest.mark.parametrize("text", [*NAMELESS, "1.2", "1.2=", "1.2=x", "1.2=nan", "1.2=inf", "1.2=1e9", "=2", "1.2==2"])
def test_scalings_that_say_nothing(text: str) -> None:
    with pytest.raises(ModelError, match=r"\(--scale\); write LAYER\.HEAD=FACTOR"):
        parse_scaling(text)


@pytest.mark.parametrize("edit", EDITS)
def test_edits_as_recordings_keep_them(edit: Edit) -> None:
    kept = edit_to_dict(edit)
    assert set(kept) == {"kind", *type(edit).__slots__}
    assert edit_from_dict(json.loads(json.dumps(kept))) == edit


@pytest.mark.parametrize(
    "kept",
    [
        {"kind": "unheard_of", "layer": 1},
        {"kind": "scale_head", "layer": 1, "head": 0},
        {"kind": "scale_head", "layer": 1, "head": 0, "factor": "x"},
        {"kind": "patch_mlp", "layer": 1, "position": 0, "values": 3},
        {"kind": "patch_mlp", "layer": 1, "position": 0, "values": [None]},
        {"kind": "ablate_mlp", "layer": 1, "values": [1.0]},
        {"kind": "ablate_mlp", "layer": 1.9},
        {"kind": "ablate_mlp", "layer": True},
        {"kind": "scale_mlp", "layer": 1, "factor": "0.5"},
        {"kind": "scale_mlp", "layer": 1, "factor": 10**400},
        {"kind": "patch_mlp", "layer": 1, "position": 0, "values": "123"},
        {"kind": "patch_mlp", "layer": 1, "position": 0, "values": [True]},
    ],
)
def test_what_is_no_edit(kept: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ModelError)):
        edit_from_dict(kept)
