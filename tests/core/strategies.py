"""What hypothesis draws for the engine's tests: models of any shape, sampling settings, scores, JSON, texts.

Fields and tensors are those that model folders hold. Nothing here asks the engine what they should be, so that a
mistake it makes is not made twice.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import save_file

from cutaway.core import SamplingConfig, load_model
from cutaway.core.models.model import Model

Fields = dict[str, Any]
Tensors = dict[str, NDArray[Any]]

MINIMINDS = ("minimind", "minimind of 2024", "minimind with norms")
"""Its layouts, which no field tells apart: today's, the one before, and one whose queries and keys are normalised."""

FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", *MINIMINDS)
"""Every ``model_type`` whose sizes a config.json decides."""

ACTIVATIONS = ("gelu_new", "gelu", "quick_gelu", "relu", "silu", "tanh")
EPSILONS = (1e-12, 1e-6, 1e-5, 1e-3, 0.5)

# Models


@dataclass(frozen=True)
class Drawn:
    """A model as its folder has it."""

    family: str
    """One of `FAMILIES`."""
    fields: Fields = field(repr=False)
    """Its config.json, by the names that files of today have."""
    seed: int
    """Its weights, with the spread and the type they are stored as."""
    spread: float
    dtype: str

    def __repr__(self) -> str:
        return f"Drawn({self.family!r}, {self.fields!r}, {self.seed}, {self.spread}, {self.dtype!r})"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor's shape, by the names that files of today have."""
        if self.family == "gpt2":
            return gpt2_shapes(self.fields)
        return llama_shapes(self.fields, has_norms=self.family in ("qwen3", "minimind with norms"))

    @property
    def tensors(self) -> Tensors:
        """The weights by the same names: the norms' around 1, all others around 0."""
        random = np.random.default_rng(self.seed)
        return {
            name: (random.standard_normal(shape) * self.spread + _is_gain(name)).astype(self.dtype)
            for name, shape in self.shapes.items()
        }

    def write(self, folder: Path) -> None:
        """Put config.json and model.safetensors into *folder*, in this family's own spelling."""
        old = self.family == "minimind of 2024"
        fields = {_OLD_FIELDS.get(name, name) if old else name: value for name, value in self.fields.items()}
        tensors = {_old_name(name) if old else name: array for name, array in self.tensors.items()}
        (folder / "config.json").write_text(json.dumps(fields), "utf-8")
        save_file(tensors, folder / "model.safetensors")

    def open(self) -> Model:
        """The model, read from a folder that is no more."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder))
            model = load_model(folder)
            assert model.digest  # while the file is there
            return model


_OLD_FIELDS = {
    "hidden_size": "dim",
    "intermediate_size": "hidden_dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "max_position_embeddings": "max_seq_len",
    "rms_norm_eps": "norm_eps",
}
_OLD_TENSORS = {
    "model.": "",
    "embed_tokens": "tok_embeddings",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attention_norm",
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
    "lm_head": "output",
}


def _old_name(name: str) -> str:
    for new, old in _OLD_TENSORS.items():
        name = name.replace(new, old)
    return name


def _is_gain(name: str) -> bool:
    return name.endswith(".weight") and ("norm" in name or ".ln_" in f".{name}")


def gpt2_shapes(fields: Fields) -> dict[str, tuple[int, ...]]:
    """The tensors of a GPT-2; its matrices lie as ``[in, out]``."""
    D, V, F = fields["n_embd"], fields["vocab_size"], fields.get("n_inner") or 4 * fields["n_embd"]
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (V, D), "wpe.weight": (fields["n_positions"], D)}
    for layer in range(fields["n_layer"]):
        for name, into, out in (
            ("attn.c_attn", D, 3 * D),
            ("attn.c_proj", D, D),
            ("mlp.c_fc", D, F),
            ("mlp.c_proj", F, D),
        ):
            shapes |= {f"h.{layer}.{name}.weight": (into, out), f"h.{layer}.{name}.bias": (out,)}
        for name in ("ln_1", "ln_2"):
            shapes |= {f"h.{layer}.{name}.weight": (D,), f"h.{layer}.{name}.bias": (D,)}
    shapes |= {"ln_f.weight": (D,), "ln_f.bias": (D,)}
    return shapes if fields.get("tie_word_embeddings", True) else shapes | {"lm_head.weight": (V, D)}


def llama_shapes(fields: Fields, *, has_norms: bool) -> dict[str, tuple[int, ...]]:
    """The tensors of a Llama or its kin; their matrices lie as ``[out, in]``."""
    family, D, V, F = (fields[name] for name in ("model_type", "hidden_size", "vocab_size", "intermediate_size"))
    H, K = fields["num_attention_heads"], fields["num_key_value_heads"]
    d = fields.get("head_dim") or D // H
    biased = family == "qwen2" or bool(fields.get("attention_bias"))
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (V, D)}
    for layer in range(fields["num_hidden_layers"]):
        here = f"model.layers.{layer}."
        for name, out, into, has_bias in (
            ("self_attn.q_proj", H * d, D, biased),
            ("self_attn.k_proj", K * d, D, biased),
            ("self_attn.v_proj", K * d, D, biased),
            ("self_attn.o_proj", D, H * d, biased and family != "qwen2"),
            ("mlp.gate_proj", F, D, bool(fields.get("mlp_bias"))),
            ("mlp.up_proj", F, D, bool(fields.get("mlp_bias"))),
            ("mlp.down_proj", D, F, bool(fields.get("mlp_bias"))),
        ):
            shapes[f"{here}{name}.weight"] = (out, into)
            if has_bias:
                shapes[f"{here}{name}.bias"] = (out,)
        if has_norms:
            shapes |= {f"{here}self_attn.{name}_norm.weight": (d,) for name in "qk"}
        shapes |= {f"{here}{name}_layernorm.weight": (D,) for name in ("input", "post_attention")}
    shapes["model.norm.weight"] = (D,)
    tied = fields.get("tie_word_embeddings", family == "minimind")
    return shapes if tied else shapes | {"lm_head.weight": (V, D)}


def drawn_models(family: str) -> st.SearchStrategy[Drawn]:
    """Models of *family*: 1 to 3 layers, 1 to 5 heads, a context of 1 to 20, two tokens or a few more."""
    return st.builds(
        Drawn,
        st.just(family),
        gpt2_fields() if family == "gpt2" else llama_fields(family.split()[0]),
        st.integers(0, 2**32 - 1),
        st.sampled_from((0.1, 0.5, 1.0)),
        st.sampled_from(("float32", "float16", "float64")),
    )


def _given_or_absent(draw: st.DrawFn, fields: Fields, **values: st.SearchStrategy[Any]) -> None:
    """Add fields to *fields*, or leave them out."""
    for name, strategy in values.items():
        if draw(st.booleans()):
            fields[name] = draw(strategy)


@st.composite
def gpt2_fields(draw: st.DrawFn) -> Fields:
    """The config.json of a GPT-2; heads may be of odd sizes."""
    heads = draw(st.integers(1, 5))
    fields: Fields = {
        "model_type": "gpt2",
        "n_layer": draw(st.integers(1, 3)),
        "n_head": heads,
        "n_embd": heads * draw(st.integers(1, 5)),
        "n_positions": draw(st.integers(1, 20)),
        "vocab_size": draw(st.integers(2, 40)),
    }
    _given_or_absent(
        draw,
        fields,
        n_inner=st.none() | st.integers(1, 13),
        activation_function=st.sampled_from(ACTIVATIONS),
        layer_norm_epsilon=st.sampled_from(EPSILONS),
        scale_attn_weights=st.booleans(),
        scale_attn_by_inverse_layer_idx=st.booleans(),
        reorder_and_upcast_attn=st.booleans(),
        tie_word_embeddings=st.booleans(),
        eos_token_id=st.integers(0, 45) | st.lists(st.integers(0, 3), max_size=2),
    )
    return fields


@st.composite
def llama_fields(draw: st.DrawFn, family: str) -> Fields:
    """The config.json of a Llama or its kin; a head's size is even, and need not be the width's share."""
    kv_heads = draw(st.integers(1, 3))
    heads = kv_heads * draw(st.integers(1, 5 // kv_heads))
    size = 2 * draw(st.integers(1, 4))
    has_size = family == "qwen3" or draw(st.booleans())
    fields: Fields = {
        "model_type": family,
        "num_hidden_layers": draw(st.integers(1, 3)),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "hidden_size": draw(st.integers(1, 13)) if has_size else heads * size,
        "intermediate_size": draw(st.integers(1, 13)),
        "max_position_embeddings": draw(st.integers(1, 20)),
        "vocab_size": draw(st.integers(2, 40)),
        "rms_norm_eps": draw(st.sampled_from(EPSILONS)),
        "rope_theta": draw(st.sampled_from((1.5, 100.0, 10000.0, 1e6))),
    }
    if has_size:
        fields["head_dim"] = size
    if family == "mistral":
        fields["sliding_window"] = draw(st.sampled_from((None, 20, 4096)))
    _given_or_absent(
        draw,
        fields,
        hidden_act=st.sampled_from(ACTIVATIONS),
        tie_word_embeddings=st.booleans(),
        eos_token_id=st.integers(0, 45) | st.lists(st.integers(0, 3), max_size=2),
    )
    if (scaling := draw(rope_scalings())) is not None or draw(st.booleans()):
        fields["rope_scaling"] = scaling
    if family in ("llama", "qwen3"):
        _given_or_absent(draw, fields, attention_bias=st.booleans())
    if family == "llama":
        _given_or_absent(draw, fields, mlp_bias=st.booleans())
    return fields


@st.composite
def rope_scalings(draw: st.DrawFn) -> Fields | None:
    """How positions are scaled: none, or one of each kind."""
    kind = draw(st.sampled_from((None, "default", "linear", "llama3", "llama3", "yarn", "yarn", "yarn")))
    if kind is None:
        return None
    factors = st.sampled_from((0.5, 1.0, 2.0, 8.0))
    fields: Fields = {draw(st.sampled_from(("rope_type", "type"))): kind}
    if kind in ("linear", "llama3") or (kind == "yarn" and draw(st.booleans())):
        fields["factor"] = draw(factors)
    if kind == "llama3":
        low = draw(st.sampled_from((0.01, 0.2, 1.0)))
        fields |= {"low_freq_factor": low, "high_freq_factor": low * draw(st.sampled_from((1.5, 4.0)))}
        _given_or_absent(draw, fields, original_max_position_embeddings=st.integers(1, 1000))
    if kind == "yarn":
        _given_or_absent(
            draw,
            fields,
            original_max_position_embeddings=st.integers(1, 1000),
            beta_fast=st.sampled_from((0, 2.0, 32)),
            beta_slow=st.sampled_from((0, 0.1, 1)),
            truncate=st.booleans(),
            attention_factor=st.none() | st.sampled_from((0.5, 1.3)),
            mscale=st.sampled_from((0, 1, 0.7)),
            mscale_all_dim=st.sampled_from((0, 1.0, 0.4)),
        )
    return fields


# Sampling


def scores(most: int = 60) -> st.SearchStrategy[NDArray[np.float64]]:
    """Scores [V] that can be sampled from: with ties, with −inf, or nearly as far apart as numbers are."""
    number = st.floats(-1e300, 1e300)  # a penalty takes none of them beyond
    one = st.one_of(
        st.sampled_from((-1.5, 0.0, 1.0, 4.0, -np.inf)),
        st.integers(-20, 20).map(float),
        st.floats(-30, 30),
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        number,
        st.just(-np.inf),
    )
    several = one.flatmap(lambda first: st.lists(one | st.just(first), max_size=most - 1))
    return st.builds(
        lambda others, finite, place: np.array([*others[:place], finite, *others[place:]]),
        several,
        st.sampled_from((-1.5, 0.0, 4.0)) | number,
        st.integers(0, most - 1),
    )


def sampling_settings(most_ids: int = 60) -> st.SearchStrategy[SamplingConfig]:
    """Settings that are allowed, each of them off or on, and some at the very edge."""
    return st.builds(
        SamplingConfig,
        temperature=st.sampled_from((0.0, 0.7, 1.0)) | st.floats(0, 1e300),
        top_k=st.integers(0, most_ids + 2) | st.just(10**30),
        top_p=st.sampled_from((1.0, 0.5, 0.0)) | st.floats(0, 1),
        min_p=st.sampled_from((0.0, 0.05, 1.0)) | st.floats(0, 1),
        repetition_penalty=st.sampled_from((1.0, 1.3, 0.6)) | st.floats(0.01, 100),
        greedy=st.sampled_from((False, False, False, True)),
        seed=st.none() | st.integers(0, 2**70),
    )


# Files


def json_values() -> st.SearchStrategy[Any]:
    """Whatever a JSON file can hold where something else belongs; NaN and infinities too, as Python writes them."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 20),
        st.sampled_from((2**31 - 1, 2**31, 10**12, 2**63, -(2**63), 10**30, 10**400, 10000, 1e999, -0.0, 0.5)),
        st.integers(),
        st.floats(),
        st.sampled_from(("", "12", "gelu", "default", "yarn", "true", "line\nbreak", "{field}", "%s", "\x1b[31m")),
        st.text(max_size=8),
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    )


def texts() -> st.SearchStrategy[str]:
    """Any text there can be in a Python string, lone surrogates included, and what tokenizers treat apart."""
    pieces = st.one_of(
        st.text(max_size=12),
        st.text(st.characters(codec=None), max_size=6),
        st.text(st.characters(categories=["Cs"]), max_size=2),
        st.text(" \t\n\r\u00a0\u3000'sdlltre0123456789,.", max_size=10),
        st.sampled_from(("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_", "I'll", "明月", "\0", "İ")),
        st.sampled_from(("e\u0301", "\U0001f469\u200d\U0001f467", "\ufeff", "\ud83d", "\ude00")),
    )
    return st.lists(pieces, max_size=6).map("".join)


def without_field(values: Mapping[str, Any], name: str) -> Fields:
    """*values* without *name*."""
    return {other: value for other, value in values.items() if other != name}
