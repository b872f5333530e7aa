"""GPT-2 (Radford et al. 2019): learned positions, layer norm first, fused query-key-value, one MLP a block.

Its files keep every matrix as [in, out], so that x·W needs no transpose; the head is the token table itself
unless the configuration unties it. Defaults are those of ``GPT2Config`` in Hugging Face transformers, whose files
these are.
"""

from __future__ import annotations

import re

from ..catalogue import tr
from ..checkpoint.activations import ACTIVATIONS_IN_FILES
from ..checkpoint.config import MOST_LAYERS, ModelConfig
from ..checkpoint.fields import Fields
from ..checkpoint.layout import Layout
from ..errors import ModelError
from ..ops import ACTIVATIONS
from .attention import Attention, FusedProjection
from .block import Block
from .decoder import Decoder
from .family import Family, Parameters
from .parts import Embedding, LayerNorm, Linear, Mlp

_ALIASES = {
    "n_embd": ("hidden_size",),
    "n_head": ("num_attention_heads",),
    "n_layer": ("num_hidden_layers",),
    "n_positions": ("max_position_embeddings",),
}
"""Other names that transformers takes for a field."""

_PREFIX = re.compile(r"(transformer\.)+")
_BUFFER = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")


def read_gpt2(fields: Fields) -> ModelConfig:
    """Return what GPT-2's config.json says, without its begin and end tokens.

    Raises:
        ModelError: naming the field with a value that is wrong or that nothing here computes.
    """
    width = fields.count(_spelling(fields, "n_embd"), 768)
    heads = fields.count(_spelling(fields, "n_head"), 12)
    if width % heads:
        what = tr("n_embd ({width}) is not a multiple of n_head ({heads})", width=width, heads=heads)
        raise ModelError(what, where=fields.where)
    has_mlp_width = fields.get("n_inner") is not None
    fields.flag("reorder_and_upcast_attn", False)  # a matter of half precision, nothing to do in float32
    return ModelConfig(
        family="gpt2",
        layers=fields.count(_spelling(fields, "n_layer"), 12, most=MOST_LAYERS),
        heads=heads,
        kv_heads=heads,
        head_size=width // heads,
        width=width,
        mlp_width=fields.count("n_inner") if has_mlp_width else 4 * width,
        positions=fields.count(_spelling(fields, "n_positions"), 1024),
        vocabulary=fields.count("vocab_size", 50257),
        norm="layer_norm",
        norm_epsilon=fields.fraction("layer_norm_epsilon", 1e-5),
        activation=fields.one_of("activation_function", ACTIVATIONS_IN_FILES, "gelu_new"),
        position_encoding="learned",
        scale_attention=fields.flag("scale_attn_weights", True),
        scale_attention_by_layer=fields.flag("scale_attn_by_inverse_layer_idx", False),
        attention_bias=True,
        mlp_bias=True,
        tied_head=fields.flag("tie_word_embeddings", True),
        bos_id=None,
        eos_ids=(),
    )


def _spelling(fields: Fields, name: str) -> str:
    """Return what this file calls field *name*; very old files have their context as ``n_ctx`` alone."""
    used = fields.spelling(name, *_ALIASES[name])
    return "n_ctx" if name == "n_positions" and used not in fields.values and "n_ctx" in fields.values else used


def canonical_name(name: str) -> str | None:
    """Return the name of a GPT-2 tensor without its prefix, or None for a buffer.

    ``attn.bias`` and ``attn.masked_bias`` are the causal mask, which old files carry along.
    """
    bare = _PREFIX.sub("", name, count=1) if name.startswith("transformer.") else name
    return None if _BUFFER.fullmatch(bare) else bare


def expected_tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the canonical name and the shape of every parameter of a GPT-2.

    Its matrices lie as ``[in, out]``: a row of activations is multiplied from the left.
    """
    width, hidden = config.width, config.mlp_width
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (config.vocabulary, width),
        "wpe.weight": (config.positions, width),
    }
    for layer in range(config.layers):
        shapes |= {
            f"h.{layer}.ln_1.weight": (width,),
            f"h.{layer}.ln_1.bias": (width,),
            f"h.{layer}.attn.c_attn.weight": (width, 3 * width),  # queries, keys, values side by side
            f"h.{layer}.attn.c_attn.bias": (3 * width,),
            f"h.{layer}.attn.c_proj.weight": (width, width),
            f"h.{layer}.attn.c_proj.bias": (width,),
            f"h.{layer}.ln_2.weight": (width,),
            f"h.{layer}.ln_2.bias": (width,),
            f"h.{layer}.mlp.c_fc.weight": (width, hidden),
            f"h.{layer}.mlp.c_fc.bias": (hidden,),
            f"h.{layer}.mlp.c_proj.weight": (hidden, width),
            f"h.{layer}.mlp.c_proj.bias": (width,),
        }
    shapes |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    if not config.tied_head:
        shapes["lm_head.weight"] = (config.vocabulary, width)
    return shapes


def part(canonical: str) -> str:
    """Return the part of the model that the tensor of this canonical name belongs to."""
    if canonical.startswith(("wte", "wpe")):
        return "embedding"
    if canonical.startswith("lm_head"):
        return "head"
    if ".attn." in canonical:
        return "attention"
    return "mlp" if ".mlp." in canonical else "norms"


def build_gpt2(config: ModelConfig, weights: Parameters) -> Decoder:
    """The decoder of a GPT-2 from its canonical tensors, shapes already checked."""
    token = weights["wte.weight"]  # [V, D]
    return Decoder(
        embedding=Embedding(token, weights["wpe.weight"]),
        blocks=tuple(_block(config, weights, layer) for layer in range(config.layers)),
        final_norm=_norm(config, weights, "ln_f"),
        head=token if config.tied_head else weights["lm_head.weight"],
    )


def _block(config: ModelConfig, weights: Parameters, layer: int) -> Block:
    here = f"h.{layer}."
    return Block(
        attention_norm=_norm(config, weights, here + "ln_1"),
        attention=Attention(
            project=FusedProjection(_linear(weights, here + "attn.c_attn"), config.heads),
            output=_linear(weights, here + "attn.c_proj"),
            scale=config.attention_scale(layer),
        ),
        mlp_norm=_norm(config, weights, here + "ln_2"),
        mlp=Mlp(
            up=_linear(weights, here + "mlp.c_fc"),
            activation=ACTIVATIONS[config.activation],
            down=_linear(weights, here + "mlp.c_proj"),
        ),
    )


def _norm(config: ModelConfig, weights: Parameters, name: str) -> LayerNorm:
    return LayerNorm(weights[name + ".weight"], weights[name + ".bias"], config.norm_epsilon)


def _linear(weights: Parameters, name: str) -> Linear:
    return Linear(weights[name + ".weight"], weights[name + ".bias"])


GPT2 = Family(
    name="gpt2",
    title="GPT-2",
    read=read_gpt2,
    layout=Layout(canonical_name, expected_tensors, embedding="wte.weight", head="lm_head.weight", part=part),
    build=build_gpt2,
    defaults={"bos_token_id": 50256, "eos_token_id": 50256},
)
