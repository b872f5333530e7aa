"""Forward passes as plain as they can be: float64, one head after the other, nothing kept, nothing shared.

They read config.json's fields and the files' tensors, and use none of the engine. What they compute is what Hugging
Face transformers does (and, for a ``model_type`` of minimind, what MiniMind's own code does).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Fields = Mapping[str, Any]
Doubles = NDArray[np.float64]
Weights = Callable[[str], Doubles]


def logits(fields: Fields, tensors: Mapping[str, NDArray[Any]], ids: Sequence[int], *, in_pairs: bool) -> Doubles:
    """The scores [T, V] after each of *ids*; *in_pairs* says that rotary positions turn neighbours."""

    def weights(name: str) -> Doubles:
        return tensors[name].astype(np.float32).astype(np.float64)

    if fields["model_type"] == "gpt2":
        return _gpt2(fields, weights, ids)
    has_norms = "model.layers.0.self_attn.q_norm.weight" in tensors
    return _llama(fields, weights, ids, in_pairs=in_pairs, has_norms=has_norms)


def _gpt2(fields: Fields, weights: Weights, ids: Sequence[int]) -> Doubles:
    epsilon = fields.get("layer_norm_epsilon", 1e-5)
    heads, width = fields["n_head"], fields["n_embd"]
    size = width // heads
    table = weights("wte.weight")
    x = np.array([table[id] + weights("wpe.weight")[position] for position, id in enumerate(ids)])

    def linear(x: Doubles, name: str) -> Doubles:
        return x @ weights(name + ".weight") + weights(name + ".bias")

    def norm(x: Doubles, name: str) -> Doubles:
        centred = x - x.mean(1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + epsilon)
        normed: Doubles = scaled * weights(name + ".weight") + weights(name + ".bias")
        return normed

    for layer in range(fields["n_layer"]):
        here = f"h.{layer}."
        joined = linear(norm(x, here + "ln_1"), here + "attn.c_attn")
        queries, keys, values = joined[:, :width], joined[:, width : 2 * width], joined[:, 2 * width :]
        divisor = math.sqrt(size) if fields.get("scale_attn_weights", True) else 1.0
        if fields.get("scale_attn_by_inverse_layer_idx", False):
            divisor *= layer + 1
        mixed = [
            _attend(queries[:, part], keys[:, part], values[:, part], divisor)
            for part in (slice(head * size, (head + 1) * size) for head in range(heads))
        ]
        x = x + linear(np.concatenate(mixed, axis=1), here + "attn.c_proj")
        hidden = _activated(linear(norm(x, here + "ln_2"), here + "mlp.c_fc"), fields.get("activation_function"))
        x = x + linear(hidden, here + "mlp.c_proj")
    head = table if fields.get("tie_word_embeddings", True) else weights("lm_head.weight")
    return norm(x, "ln_f") @ head.T


def _llama(fields: Fields, weights: Weights, ids: Sequence[int], *, in_pairs: bool, has_norms: bool) -> Doubles:
    family, epsilon, heads = fields["model_type"], fields["rms_norm_eps"], fields["num_attention_heads"]
    group = heads // fields["num_key_value_heads"]
    size = fields.get("head_dim") or fields["hidden_size"] // heads
    speeds, stretch = _turning(fields, size)
    table = weights("model.embed_tokens.weight")
    x = table[list(ids)]
    biased = family == "qwen2" or fields.get("attention_bias", False)

    def linear(x: Doubles, name: str, has_bias: bool) -> Doubles:
        y = x @ weights(name + ".weight").T
        return y + weights(name + ".bias") if has_bias else y

    def norm(x: Doubles, name: str) -> Doubles:
        normed: Doubles = x / np.sqrt((x**2).mean(1, keepdims=True) + epsilon) * weights(name + ".weight")
        return normed

    for layer in range(fields["num_hidden_layers"]):
        here = f"model.layers.{layer}."
        y = norm(x, here + "input_layernorm")
        queries, keys, values = (linear(y, f"{here}self_attn.{name}_proj", biased) for name in "qkv")
        mixed = []
        for head in range(heads):
            mine, shared = (slice(each * size, (each + 1) * size) for each in (head, head // group))
            query, key = queries[:, mine], keys[:, shared]
            if has_norms:
                query, key = norm(query, here + "self_attn.q_norm"), norm(key, here + "self_attn.k_norm")
            query, key = (_turned(rows, speeds, in_pairs) * stretch for rows in (query, key))
            mixed.append(_attend(query, key, values[:, shared], math.sqrt(size)))
        has_bias = biased and family != "qwen2"
        x = x + linear(np.concatenate(mixed, axis=1), here + "self_attn.o_proj", has_bias)
        y, has_bias = norm(x, here + "post_attention_layernorm"), fields.get("mlp_bias", False)
        gate = _activated(linear(y, here + "mlp.gate_proj", has_bias), fields.get("hidden_act", "silu"))
        x = x + linear(gate * linear(y, here + "mlp.up_proj", has_bias), here + "mlp.down_proj", has_bias)
    tied = fields.get("tie_word_embeddings", family == "minimind")
    return norm(x, "model.norm") @ (table if tied else weights("lm_head.weight")).T


def _attend(query: Doubles, key: Doubles, value: Doubles, divisor: float) -> Doubles:
    """One head: every position looks at itself and at those before it."""
    rows = []
    for position in range(len(query)):
        scores = key[: position + 1] @ query[position] / divisor
        weights = np.exp(scores - scores.max())
        rows.append(weights @ value[: position + 1] / weights.sum())
    return np.array(rows)


def _activated(x: Doubles, name: str | None) -> Doubles:
    formulas: dict[str | None, Callable[[float], float]] = {
        "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
        "quick_gelu": lambda x: x * _sigmoid(1.702 * x),
        "relu": lambda x: max(x, 0.0),
        "silu": lambda x: x * _sigmoid(x),
        "tanh": math.tanh,
    }
    activated: Doubles = np.vectorize(formulas.get(name, _gelu_new), otypes=[float])(x)
    return activated


def _gelu_new(x: float) -> float:
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _turned(rows: Doubles, speeds: Sequence[float], in_pairs: bool) -> Doubles:
    """Rows [T, d], each pair of numbers turned by its angle: as complex numbers."""
    half = rows.shape[1] // 2
    turned = rows.copy()
    for pair, speed in enumerate(speeds):
        a, b = (2 * pair, 2 * pair + 1) if in_pairs else (pair, pair + half)
        spun = (rows[:, a] + 1j * rows[:, b]) * np.exp(1j * speed * np.arange(len(rows)))
        turned[:, a], turned[:, b] = spun.real, spun.imag
    return turned


def _turning(fields: Fields, size: int) -> tuple[list[float], float]:
    """Radians from one position to the next, for each pair; and what queries and keys are multiplied with."""
    theta = fields["rope_theta"]
    rope: Fields = fields.get("rope_scaling") or {}
    positions = fields["max_position_embeddings"]
    kind = rope.get("rope_type", rope.get("type", "default"))
    original = rope.get("original_max_position_embeddings", positions)
    speeds = [theta ** (-2 * pair / size) for pair in range(size // 2)]
    if kind == "linear":
        return [speed / rope["factor"] for speed in speeds], 1.0
    if kind == "llama3":
        return [_llama3(speed, rope, original) for speed in speeds], 1.0
    is_own = fields["model_type"] == "minimind"
    if kind != "yarn" or (is_own and positions <= original):  # MiniMind scales only what is longer
        return speeds, 1.0
    factor = rope.get("factor", positions / original)
    stretch = rope.get("attention_factor")
    if stretch is None:
        stretch = 1.0 if is_own else _yarn_stretch(rope, factor)
    return _yarn(speeds, rope, factor, original, theta, size), stretch


def _llama3(speed: float, rope: Fields, original: int) -> float:
    wavelength, low, high = 2 * math.pi / speed, rope["low_freq_factor"], rope["high_freq_factor"]
    if wavelength < original / high:
        return speed
    if wavelength > original / low:
        return float(speed / rope["factor"])
    smooth = (original / wavelength - low) / (high - low)
    return float((1 - smooth) * speed / rope["factor"] + smooth * speed)


def _yarn(speeds: list[float], rope: Fields, factor: float, original: int, theta: float, size: int) -> list[float]:
    def place(turns: float) -> float:
        return size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = place(rope.get("beta_fast") or 32), place(rope.get("beta_slow") or 1)
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    if low == high:
        high += 0.001
    ramp = [min(max((pair - low) / (high - low), 0), 1) for pair in range(len(speeds))]
    return [speed / factor * slow + speed * (1 - slow) for speed, slow in zip(speeds, ramp, strict=True)]


def _yarn_stretch(rope: Fields, factor: float) -> float:
    def grown(scale: float) -> float:
        return 0.1 * scale * math.log(factor) + 1 if factor > 1 else 1.0

    if rope.get("mscale") and rope.get("mscale_all_dim"):
        return grown(rope["mscale"]) / grown(rope["mscale_all_dim"])
    return grown(1.0)
