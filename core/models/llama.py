"""Llama and its kin (Touvron et al. 2023, arXiv:2302.13971): RMS norm first, rotary positions, a gated MLP.

Mistral (arXiv:2310.06825), Qwen2 (arXiv:2407.10671), Qwen3 (arXiv:2505.09388) and MiniMind differ in a few fields
and biases only. Their files keep every matrix as [out, in]. Defaults are those of the configuration classes in
Hugging Face transformers, and of MiniMind's own.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ..catalogue import tr
from ..checkpoint.activations import ACTIVATIONS_IN_FILES
from ..checkpoint.config import MOST_LAYERS, ModelConfig
from ..checkpoint.fields import Fields
from ..checkpoint.layout import Layout
from ..checkpoint.rope import RopeConfig, read_rope
from ..checkpoint.tensors import Checkpoint
from ..errors import ModelError
from ..ops import ACTIVATIONS
from .attention import Attention, SeparateProjection
from .block import Block
from .decoder import Decoder
from .family import Family, Parameters
from .parts import Embedding, GatedMlp, Linear, RmsNorm
from .rotary import Rotary

_MINIMIND_1 = {
    "tok_embeddings": "embed_tokens",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w3": "mlp.up_proj",
    "feed_forward.w2": "mlp.down_proj",
    "output": "lm_head",
}
"""MiniMind's names of tensors before April 2025, when it also turned neighbouring pairs, and those it has since."""

_ALIASES = {
    "hidden_size": ("dim",),
    "intermediate_size": ("hidden_dim",),
    "num_hidden_layers": ("n_layers",),
    "num_attention_heads": ("n_heads",),
    "num_key_value_heads": ("n_kv_heads",),
    "max_position_embeddings": ("max_seq_len",),
    "rms_norm_eps": ("norm_eps",),
}
"""MiniMind's names of fields of that time."""


def read_llama(fields: Fields) -> ModelConfig:
    """Return what the config.json of Llama or its kin says, without its begin and end tokens.

    Raises:
        ModelError: naming the field with a value that is wrong or that nothing here computes.
    """
    family = fields.text("model_type")
    old = _ALIASES if family == "minimind" else dict.fromkeys(_ALIASES, ())
    name = {field: fields.spelling(field, *others) for field, others in old.items()}
    width, heads = fields.count(name["hidden_size"]), fields.count(name["num_attention_heads"])
    kv_heads = heads if fields.get(name["num_key_value_heads"]) is None else fields.count(name["num_key_value_heads"])
    if heads % kv_heads:
        what = tr("{name} ({heads}) is not a multiple of {other} ({kv_heads})", heads=heads, kv_heads=kv_heads,
                  name=name["num_attention_heads"], other=name["num_key_value_heads"])  # fmt: skip
        raise ModelError(what, where=fields.where)
    positions = fields.count(name["max_position_embeddings"])
    return ModelConfig(
        family=family,
        layers=fields.count(name["num_hidden_layers"], most=MOST_LAYERS),
        heads=heads,
        kv_heads=kv_heads,
        head_size=_head_size(fields, width, heads),
        width=width,
        mlp_width=fields.count(name["intermediate_size"]),
        positions=positions,
        vocabulary=fields.count("vocab_size"),
        norm="rms_norm",
        norm_epsilon=fields.fraction(name["rms_norm_eps"]),
        activation=fields.one_of("hidden_act", ACTIVATIONS_IN_FILES, "silu"),
        position_encoding="rotary",
        scale_attention=True,
        scale_attention_by_layer=False,
        attention_bias=family == "qwen2" or (family in ("llama", "qwen3") and fields.flag("attention_bias", False)),
        mlp_bias=family == "llama" and fields.flag("mlp_bias", False),
        tied_head=fields.flag("tie_word_embeddings"),
        bos_id=None,
        eos_ids=(),
        attention_output_bias=family != "qwen2",
        query_key_norm=family == "qwen3",
        rope=read_rope(fields, positions),
        gated_mlp=True,
    )


def _head_size(fields: Fields, width: int, heads: int) -> int:
    """Return the size of a head: given, or the width in as many parts; pairs of numbers turn, so it is even."""
    if fields.get("head_dim") is not None:
        size = fields.count("head_dim")
    elif width % heads == 0:
        size = width // heads
    else:
        what = tr(
            "hidden_size ({width}) is not a multiple of num_attention_heads ({heads}), and there is no head_dim",
            width=width,
            heads=heads,
        )
        raise ModelError(what, where=fields.where)
    if size % 2:
        what = tr("head_dim is {size}, and rotary positions turn pairs: it should be even", size=size)
        raise ModelError(what, where=fields.where)
    return size


def canonical_name(name: str) -> str | None:
    """Return the name of a tensor without its prefix."""
    return name.removeprefix("model.")


def minimind_name(name: str) -> str | None:
    """Return the name of a MiniMind's tensor as its files of today have it, whatever their age."""

    def renamed(match: re.Match[str]) -> str:
        return (match[1] or "") + _MINIMIND_1.get(match[2], match[2]) + (match[3] or "")

    return re.sub(r"^(layers\.\d+\.)?(.+?)(\.weight)?$", renamed, name.removeprefix("model."))


def expected_tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the canonical name and the shape of every parameter of a Llama. Its matrices lie as ``[out, in]``."""
    width, hidden, size = config.width, config.mlp_width, config.head_size
    queries, keys = config.heads * size, config.kv_heads * size
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (config.vocabulary, width)}
    for layer in range(config.layers):
        here = f"layers.{layer}."
        shapes[here + "input_layernorm.weight"] = (width,)
        for name, out, into, biased in (
            ("self_attn.q_proj", queries, width, config.attention_bias),
            ("self_attn.k_proj", keys, width, config.attention_bias),
            ("self_attn.v_proj", keys, width, config.attention_bias),
            ("self_attn.o_proj", width, queries, config.attention_bias and config.attention_output_bias),
            ("mlp.gate_proj", hidden, width, config.mlp_bias),
            ("mlp.up_proj", hidden, width, config.mlp_bias),
            ("mlp.down_proj", width, hidden, config.mlp_bias),
        ):
            shapes[f"{here}{name}.weight"] = (out, into)
            if biased:
                shapes[f"{here}{name}.bias"] = (out,)
        if config.query_key_norm:
            shapes |= {f"{here}self_attn.{name}_norm.weight": (size,) for name in "qk"}
        shapes[here + "post_attention_layernorm.weight"] = (width,)
    shapes["norm.weight"] = (width,)
    if not config.tied_head:
        shapes["lm_head.weight"] = (config.vocabulary, width)
    return shapes


def part(canonical: str) -> str:
    """Return the part of the model that the tensor of this canonical name belongs to."""
    if canonical.startswith("embed_tokens"):
        return "embedding"
    if canonical.startswith("lm_head"):
        return "head"
    if canonical.endswith("norm.weight"):
        return "norms"
    return "mlp" if ".mlp." in canonical else "attention"


def build_llama(config: ModelConfig, weights: Parameters) -> Decoder:
    """The decoder of a Llama from its canonical tensors, shapes already checked."""
    assert config.rope is not None
    rotary = Rotary(config.rope, config.head_size, config.positions)
    token = weights["embed_tokens.weight"]  # [V, D]
    return Decoder(
        embedding=Embedding(token, None),
        blocks=tuple(_block(config, weights, layer, rotary) for layer in range(config.layers)),
        final_norm=RmsNorm(weights["norm.weight"], config.norm_epsilon),
        head=token if config.tied_head else weights["lm_head.weight"],
    )


def _block(config: ModelConfig, weights: Parameters, layer: int, rotary: Rotary) -> Block:
    def linear(name: str) -> Linear:
        return Linear(weights[f"layers.{layer}.{name}.weight"].T, weights.get(f"layers.{layer}.{name}.bias"))

    def norm(name: str) -> RmsNorm:
        return RmsNorm(weights[f"layers.{layer}.{name}.weight"], config.norm_epsilon)

    return Block(
        attention_norm=norm("input_layernorm"),
        attention=Attention(
            project=SeparateProjection(
                query=linear("self_attn.q_proj"),
                key=linear("self_attn.k_proj"),
                value=linear("self_attn.v_proj"),
                head_size=config.head_size,
                query_norm=norm("self_attn.q_norm") if config.query_key_norm else None,
                key_norm=norm("self_attn.k_norm") if config.query_key_norm else None,
                rotary=rotary,
            ),
            output=linear("self_attn.o_proj"),
            scale=config.attention_scale(layer),
        ),
        mlp_norm=norm("post_attention_layernorm"),
        mlp=GatedMlp(
            gate=linear("mlp.gate_proj"),
            up=linear("mlp.up_proj"),
            activation=ACTIVATIONS[config.activation],
            down=linear("mlp.down_proj"),
        ),
    )


def _minimind_by_its_tensors(config: ModelConfig, checkpoint: Checkpoint) -> ModelConfig:
    """Tell MiniMind's three layouts apart: all have one ``model_type``, and no field says which it is."""
    assert config.rope is not None
    names = {minimind_name(name) for name in checkpoint}
    is_first = any(name.endswith("attention.wq.weight") for name in checkpoint)
    return replace(
        config,
        query_key_norm="layers.0.self_attn.q_norm.weight" in names,
        rope=replace(config.rope, interleaved=is_first),
    )


def _read_minimind(fields: Fields) -> ModelConfig:
    """Return what MiniMind's config.json says; its own switch for a scaling has to agree with the scaling."""
    config = read_llama(fields)
    assert config.rope is not None
    is_scaled = config.rope.scaling != "default"
    if fields.flag("inference_rope_scaling", is_scaled) != is_scaled:
        what = tr("inference_rope_scaling and rope_scaling contradict each other")
        raise ModelError(what, where=fields.where)
    if config.positions <= config.rope.original_positions and config.rope.scaling == "yarn":
        return replace(config, rope=RopeConfig(config.rope.theta))  # its own code scales only longer contexts
    if config.rope.scaling == "yarn" and not _says(fields, "attention_factor"):
        return replace(config, rope=replace(config.rope, attention_factor=1.0))
    return config


def _says(fields: Fields, name: str) -> bool:
    """Whether the scaling of *fields* gives *name*."""
    rope = fields.get("rope_scaling") or fields.get("rope_parameters")
    return isinstance(rope, dict) and rope.get(name) is not None


def _defaults(**fields: object) -> dict[str, object]:
    """What transformers takes for absent fields of a Llama, changed where its kin differ."""
    llama = {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
    }
    return llama | fields


_LAYOUT = Layout(canonical_name, expected_tensors, embedding="embed_tokens.weight", head="lm_head.weight", part=part)

_QWEN = _defaults(
    vocab_size=151936,
    intermediate_size=22016,
    num_key_value_heads=32,
    max_position_embeddings=32768,
    use_sliding_window=False,
)

LLAMA = Family(
    name="llama",
    title="Llama",
    read=read_llama,
    layout=_LAYOUT,
    build=build_llama,
    defaults=_defaults(bos_token_id=1, eos_token_id=2),
)
MISTRAL = replace(
    LLAMA,
    name="mistral",
    title="Mistral",
    defaults=_defaults(
        intermediate_size=14336,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        sliding_window=4096,
        bos_token_id=1,
        eos_token_id=2,
    ),
)
QWEN2 = replace(LLAMA, name="qwen2", title="Qwen2", defaults=_QWEN)
QWEN3 = replace(LLAMA, name="qwen3", title="Qwen3", defaults=_QWEN | {"head_dim": 128})
MINIMIND = replace(
    LLAMA,
    name="minimind",
    title="MiniMind",
    read=_read_minimind,
    layout=replace(_LAYOUT, canonical=minimind_name),
    # Sizes differ from version to version, so there are none to assume.
    defaults={"rope_theta": 1e6, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2},
    told_by_tensors=_minimind_by_its_tensors,
)
