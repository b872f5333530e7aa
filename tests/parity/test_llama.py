"""Llama written down once more: float64, no cache, files read by safetensors itself.

It is run against the embedded verse, and against models of any shape.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.checkpoint.locate import locate
from cutaway.core.models.families import read_config
from cutaway.core.models.llama import expected_tensors
from tests.parity.comparison import assert_same

Doubles = NDArray[np.float64]


def forward(folder: Path, ids: list[int]) -> tuple[list[Doubles], list[Doubles], Doubles]:
    """Residuals [n, D] and attention [H, n, n] of every layer, and the logits [n, V]; for unscaled rotations."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    stored = load_file(folder / "model.safetensors")
    w = {name.removeprefix("model."): array.astype(np.float64) for name, array in stored.items()}
    n, H = len(ids), config["num_attention_heads"]
    K = config.get("num_key_value_heads", H)
    d = config.get("head_dim") or config["hidden_size"] // H
    theta = (config.get("rope_parameters") or config)["rope_theta"]
    future = np.triu(np.ones((n, n), bool), 1)

    def norm(x: Doubles, name: str) -> Doubles:
        scaled: Doubles = x / np.sqrt((x**2).mean(-1, keepdims=True) + config["rms_norm_eps"])
        return scaled * w[name + ".weight"]

    def linear(x: Doubles, name: str) -> Doubles:
        y: Doubles = x @ w[name + ".weight"].T + w.get(name + ".bias", 0.0)
        return y

    def turned(x: Doubles) -> Doubles:
        """Pair (j, j + d/2) of row t as a complex number, turned by t·theta^(−2j/d)."""
        angles = np.arange(n)[:, None] * theta ** -(np.arange(d // 2) * 2 / d)
        pairs = (x[:, : d // 2] + 1j * x[:, d // 2 :]) * np.exp(1j * angles)
        return np.concatenate([pairs.real, pairs.imag], axis=-1)

    def heads(x: Doubles, here: str, kind: str) -> list[Doubles]:
        rows = [linear(x, f"{here}{kind}_proj")[:, i : i + d] for i in range(0, (H if kind == "q" else K) * d, d)]
        if f"{here}{kind}_norm.weight" in w:
            rows = [norm(row, f"{here}{kind}_norm") for row in rows]
        return rows if kind == "v" else [turned(row) for row in rows]

    x = w["embed_tokens.weight"][ids]
    residuals, maps = [], []
    for layer in range(config["num_hidden_layers"]):
        here = f"layers.{layer}."
        normed = norm(x, here + "input_layernorm")
        q, k, v = (heads(normed, here + "self_attn.", kind) for kind in "qkv")
        mixed, weights = [], []
        for h in range(H):
            group = h // (H // K)
            scores = np.where(future, -np.inf, q[h] @ k[group].T / np.sqrt(d))
            exponentials = np.exp(scores - scores.max(-1, keepdims=True))
            weights.append(exponentials / exponentials.sum(-1, keepdims=True))
            mixed.append(weights[-1] @ v[group])
        x = x + linear(np.concatenate(mixed, axis=-1), here + "self_attn.o_proj")
        normed = norm(x, here + "post_attention_layernorm")
        gate = linear(normed, here + "mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(normed, here + "mlp.up_proj"), here + "mlp.down_proj")
        residuals.append(x)
        maps.append(np.stack(weights))
    return residuals, maps, norm(x, "norm") @ w.get("lm_head.weight", w["embed_tokens.weight"]).T


# 写一首五言绝句，里面有“明月” in the chat template
VERSE = [
    *(1, 87, 85, 71, 84, 201, 1527, 1883, 5234, 1414, 261, 439, 924, 338, 161, 225, 253, 1475, 161, 225, 254, 2, 201),
    *(1, 67, 85, 85, 75, 85, 86, 67, 80, 86, 201),
]


@pytest.mark.parametrize("capture", ["default", "all"])
def test_verse_against_another_llama(capture: Any) -> None:
    model = load_model("verse")
    run = Generation(model, VERSE, SamplingConfig(greedy=True), max_new_tokens=24, ignore_eos=True, capture=capture)
    events = list(run)
    truth = forward(locate("verse"), run.trace.token_ids[:-1])
    np.testing.assert_array_equal(truth[2][len(VERSE) - 1 :].argmax(-1), [step.id for step in run.trace.steps])
    assert assert_same(events, truth) == run.trace.positions


def random_shape(random: np.random.Generator) -> dict[str, Any]:
    """A config.json of a small Llama: one layer or head, one key head for all, heads of 2, 6 or 10, odd widths."""
    kv_heads, group = (int(random.integers(1, 4)) for _ in range(2))
    family = str(random.choice(["llama", "qwen2", "qwen3", "mistral"]))
    return {
        "model_type": family,
        "vocab_size": int(random.integers(2, 40)),
        "hidden_size": int(random.integers(1, 30)),
        "num_hidden_layers": int(random.integers(1, 4)),
        "num_attention_heads": kv_heads * group,
        "num_key_value_heads": kv_heads,
        "head_dim": int(random.choice([2, 4, 6, 10, 16])),
        "intermediate_size": int(random.integers(1, 40)),
        "max_position_embeddings": int(random.integers(1, 24)),
        "rms_norm_eps": float(random.choice([1e-6, 1e-5, 1e-2])),
        "rope_theta": float(random.choice([10.0, 1e4, 1e6])),
        "tie_word_embeddings": bool(random.integers(2)),
        "attention_bias": family in ("llama", "qwen3") and bool(random.integers(2)),
        "mlp_bias": family == "llama" and bool(random.integers(2)),
        "sliding_window": None,
    }


def write_random(folder: Path, fields: dict[str, Any], random: np.random.Generator) -> None:
    """A model of these fields with random weights."""
    (folder / "config.json").write_text(json.dumps(fields))
    prefix = str(random.choice(["", "model."]))
    shapes = expected_tensors(read_config(folder)).items()
    tensors = {
        name if name.startswith("lm_head") else prefix + name: random.standard_normal(shape, np.float32) * 0.5
        for name, shape in shapes
    }
    save_file({name: array.astype(np.float32) for name, array in tensors.items()}, folder / "model.safetensors")


@pytest.mark.parametrize("seed", range(40))
def test_models_of_any_shape(seed: int, tmp_path: Path) -> None:
    """From prompts of one token to ones that fill the context, each run until the context is full."""
    random = np.random.default_rng(seed)
    fields = random_shape(random)
    write_random(tmp_path, fields, random)
    model, positions = load_model(tmp_path), fields["max_position_embeddings"]
    for length in sorted({1, int(random.integers(1, positions + 1)), positions}):
        prompt = random.integers(0, fields["vocab_size"], length).tolist()
        run = Generation(model, prompt, SamplingConfig(seed=seed), max_new_tokens=99, ignore_eos=True, capture="all")
        events = list(run)
        assert run.trace.finish_reason == "context" and len(run.trace.steps) == positions - length + 1
        truth = forward(tmp_path, run.trace.token_ids[:positions])
        assert assert_same(events, truth) == run.trace.positions == positions
