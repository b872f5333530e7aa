"""``cutaway inspect`` on every family: parameters by part add up, and headers are all that is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cutaway.core.checkpoint.tensors import Checkpoint
from cutaway.tui.commands.inspect import inspect

MODELS = Path(__file__).resolve().parents[1] / "data" / "models"
NAMES = ["fable", "tinymind", "verse", *sorted(folder.name for folder in MODELS.iterdir())]


@pytest.mark.parametrize("name", NAMES)
def test_every_family(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> np.ndarray:
        raise AssertionError("weights were read")

    monkeypatch.setattr(Checkpoint, "array", read)
    report = inspect(str(MODELS / name) if (MODELS / name).is_dir() else name)
    stored = {tensor["name"]: int(np.prod(tensor["shape"])) for tensor in report.tensors}
    buffers = sum(count for tensor, count in stored.items() if tensor.endswith((".attn.bias", "masked_bias")))
    assert sum(report.parameters.values()) == sum(stored.values()) - buffers
    assert sum(tensor["share"] for tensor in report.tensors) == pytest.approx(1)
    filled = {part for part, count in report.parameters.items() if count}
    assert filled >= {"embedding", "attention", "mlp"}
    assert ("norms" in filled) == (report.config["norm"] != "layer_norm_plain")
    assert ("head" in filled) == (not report.config["tied_head"])


@pytest.mark.parametrize(
    ("name", "title", "parts"),
    [
        ("verse", "verse: Llama, 4 layers", {"embedding": 1638400, "attention": 655360, "mlp": 2162688, "norms": 2304}),
        ("tinymind", "tinymind: tinymind, 1 layer ×", {"embedding": 480, "attention": 1024, "mlp": 2048, "head": 480}),
    ],
)
def test_the_parts_of_the_embedded_models(name: str, title: str, parts: dict[str, int]) -> None:
    report = inspect(name)
    assert {part: count for part, count in report.parameters.items() if count} == parts
    assert report.to_text().startswith(title)
