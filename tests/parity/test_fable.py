"""The embedded model against GPT-2 written down once more: float64, no cache, its file read by safetensors itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.checkpoint.locate import locate
from tests.parity.comparison import assert_same

Doubles = NDArray[np.float64]

PROMPT = [610, 573, 258, 440, 11, 421, 293, 258, 401, 1486, 520]  # Once upon a time, there was a little fox who


def forward(folder: Path, ids: list[int]) -> tuple[list[Doubles], list[Doubles], Doubles]:
    """Residuals [n, D] and attention [H, n, n] of every layer, and the logits [n, V]."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    stored = load_file(folder / "model.safetensors")
    w = {name.removeprefix("transformer."): array.astype(np.float64) for name, array in stored.items()}
    n, H, epsilon = len(ids), config["n_head"], config["layer_norm_epsilon"]
    future = np.triu(np.ones((n, n), bool), 1)

    def norm(x: Doubles, name: str) -> Doubles:
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)
        normalised: Doubles = scaled * w[name + ".weight"] + w[name + ".bias"]
        return normalised

    def linear(x: Doubles, name: str) -> Doubles:
        y: Doubles = x @ w[name + ".weight"] + w[name + ".bias"]
        return y

    def gelu(x: Doubles) -> Doubles:
        y: Doubles = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        return y

    x = w["wte.weight"][ids] + w["wpe.weight"][:n]
    residuals, maps = [], []
    for layer in range(config["n_layer"]):
        here = f"h.{layer}."
        q, k, v = np.split(linear(norm(x, here + "ln_1"), here + "attn.c_attn"), 3, axis=-1)
        heads, weights = [], []
        for head in np.split(np.arange(x.shape[1]), H):
            scores = np.where(future, -np.inf, q[:, head] @ k[:, head].T / np.sqrt(len(head)))
            exponentials = np.exp(scores - scores.max(-1, keepdims=True))
            weights.append(exponentials / exponentials.sum(-1, keepdims=True))
            heads.append(weights[-1] @ v[:, head])
        x = x + linear(np.concatenate(heads, axis=-1), here + "attn.c_proj")
        x = x + linear(gelu(linear(norm(x, here + "ln_2"), here + "mlp.c_fc")), here + "mlp.c_proj")
        residuals.append(x)
        maps.append(np.stack(weights))
    return residuals, maps, norm(x, "ln_f") @ w["wte.weight"].T


@pytest.mark.parametrize("capture", ["default", "all"])
def test_fable_against_another_gpt2(capture: Any) -> None:
    run = Generation(
        load_model("fable"), PROMPT, SamplingConfig(greedy=True), max_new_tokens=20, ignore_eos=True, capture=capture
    )
    events = list(run)
    truth = forward(locate("fable"), run.trace.token_ids[:-1])
    logits = truth[2]
    np.testing.assert_array_equal(logits[len(PROMPT) - 1 :].argmax(-1), [step.id for step in run.trace.steps])
    assert assert_same(events, truth) == run.trace.positions == len(logits)
