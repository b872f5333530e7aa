"""GPT-2's files: what the fields of its config.json mean, and how its tensors are named and shaped.

Defaults are those of ``GPT2Config`` in Hugging Face transformers, whose files these are.
"""

import re

from ..catalogue import tr
from ..errors import ModelError
from .config import MOST_LAYERS, ModelConfig
from .fields import Fields
from .layout import Layout

BOS_ID = EOS_ID = 50256
"""What an absent ``bos_token_id`` or ``eos_token_id`` stands for."""

# Transformers has several names for one function. gelu_fast only writes sqrt(2 / pi) with fewer digits than
# float32 tells apart; gelu_10, which clips, is another function and not here.
_ACTIVATIONS = {
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh"), "gelu_tanh"),
    **dict.fromkeys(("gelu_accurate", "gelu_fast"), "gelu_tanh"),
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("silu", "swish"), "silu"),
    **{"quick_gelu": "gelu_quick", "relu": "relu", "tanh": "tanh"},
}

_ALIASES = {
    "n_embd": ("hidden_size",),
    "n_head": ("num_attention_heads",),
    "n_layer": ("num_hidden_layers",),
    "n_positions": ("max_position_embeddings", "n_ctx"),
}
"""Other names of a field: those transformers takes for it, and one that old files have."""

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
        activation=fields.one_of("activation_function", _ACTIVATIONS, "gelu_new"),
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
    """Return what this file calls field *name*; two names for it must not contradict each other."""
    used = [one for one in (name, *_ALIASES[name]) if one in fields.values]
    for other in used[1:]:
        if other != "n_ctx" and fields.get(other) != fields.get(used[0]):
            what = tr("{name} and {other} are one field with two values", name=used[0], other=other)
            raise ModelError(what, where=fields.where)
    return used[0] if used else name


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


GPT2 = Layout(canonical_name, expected_tensors, embedding="wte.weight", head="lm_head.weight")
