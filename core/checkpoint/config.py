"""The configuration of a model in normalised keys, the same for every family."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ..catalogue import tr
from .fields import Fields
from .json_text import shown
from .rope import RopeConfig

ACTIVATIONS = ("gelu_tanh", "gelu", "gelu_quick", "relu", "silu", "tanh")
"""The functions an MLP may have between its matrices, each once, under one name."""

MOST_LAYERS = 10_000
"""A model of more is a mistake in its configuration, and its tensors need not be listed."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What decides how a model computes, whichever family it is of and however its files spell it.

    A recording stores it as JSON (``to_dict``). A family that needs more adds fields with defaults that
    mean what the families before it do, so that older recordings stay readable.
    """

    family: str
    """Which parts the model is made of, by the ``model_type`` of its config.json: ``gpt2``, ``llama`` …"""
    layers: int
    heads: int
    """Query heads of a layer."""
    kv_heads: int
    """Key and value heads of a layer; divides ``heads``."""
    head_size: int
    """Numbers in one head's query, key or value."""
    width: int
    """Numbers in the residual stream at one position."""
    mlp_width: int
    """Numbers in the hidden layer of an MLP."""
    positions: int
    """The context: how many tokens the model can look at."""
    vocabulary: int
    """Token ids are below this."""
    norm: str
    """``layer_norm``, ``layer_norm_plain`` (no scale, no shift) or ``rms_norm``."""
    norm_epsilon: float
    """Added to the variance (or to the mean square), inside the root."""
    activation: str
    """One of ``ACTIVATIONS``."""
    position_encoding: str
    """``learned`` or ``sinusoidal``: a vector for each position, added to the token's; ``rotary``: queries and keys
    are turned by their position."""
    scale_attention: bool
    """Attention scores are divided by the square root of ``head_size``."""
    scale_attention_by_layer: bool
    """Attention scores of layer l are divided by l + 1 as well."""
    attention_bias: bool
    """The projections of attention add biases."""
    mlp_bias: bool
    """The matrices of the MLP add biases."""
    tied_head: bool
    """Logits are products with the token embedding; else the head has its own matrix."""
    bos_id: int | None
    """The token a text begins with, where there is one."""
    eos_ids: tuple[int, ...]
    """The tokens that end a text, ascending."""
    attention_output_bias: bool = True
    """Where attention adds biases, its output projection adds one too."""
    query_key_norm: bool = False
    """The queries and keys of each head are normalised before they are turned."""
    rope: RopeConfig | None = None
    """How far ``rotary`` positions turn queries and keys; None for other encodings."""
    gated_mlp: bool = False
    """The hidden layer of an MLP is a product: activation(x·W_gate) · x·W_up."""
    post_norm: bool = False
    """Norms come after the sums of the residual stream; else before attention and MLP."""
    final_norm: bool = True
    """There is a norm between the last block and the head."""

    def attention_scale(self, layer: int) -> float:
        """Return what the products of queries and keys in *layer* are multiplied with before the softmax."""
        scale = 1 / math.sqrt(self.head_size) if self.scale_attention else 1.0
        return scale / (layer + 1) if self.scale_attention_by_layer else scale

    def to_dict(self) -> dict[str, object]:
        """Return the fields as JSON can hold them."""
        return asdict(self) | {"eos_ids": list(self.eos_ids)}

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> "ModelConfig":
        """Return the configuration that ``to_dict`` wrote; keys of later versions are ignored.

        Raises:
            ModelError: naming a field that is missing or has no possible value.
        """
        fields = Fields(values, "config")
        return cls(
            family=fields.text("family"),
            layers=fields.count("layers", most=MOST_LAYERS),
            heads=fields.count("heads"),
            kv_heads=fields.count("kv_heads"),
            head_size=fields.count("head_size"),
            width=fields.count("width"),
            mlp_width=fields.count("mlp_width"),
            positions=fields.count("positions"),
            vocabulary=fields.count("vocabulary"),
            norm=fields.text("norm"),
            norm_epsilon=fields.fraction("norm_epsilon"),
            activation=fields.one_of("activation", {name: name for name in ACTIVATIONS}),
            position_encoding=fields.text("position_encoding"),
            scale_attention=fields.flag("scale_attention"),
            scale_attention_by_layer=fields.flag("scale_attention_by_layer"),
            attention_bias=fields.flag("attention_bias"),
            mlp_bias=fields.flag("mlp_bias"),
            tied_head=fields.flag("tied_head"),
            bos_id=next(iter(fields.ids("bos_id")), None),
            eos_ids=fields.ids("eos_ids"),
            attention_output_bias=fields.flag("attention_output_bias", True),
            query_key_norm=fields.flag("query_key_norm", False),
            rope=_rope(fields),
            gated_mlp=fields.flag("gated_mlp", False),
            post_norm=fields.flag("post_norm", False),
            final_norm=fields.flag("final_norm", True),
        )


def _rope(fields: Fields) -> RopeConfig | None:
    """Return the rotation that a recording keeps, None where it has none or is older than rotations."""
    value = fields.get("rope")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise fields.wrong("rope", tr("rope should be an object, but is {value}", value=shown(value)))
    return RopeConfig.from_dict(value)
