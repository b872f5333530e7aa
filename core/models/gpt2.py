"""GPT-2 (Radford et al. 2019): learned positions, layer norm first, fused query-key-value, one MLP a block.

Its files keep every matrix as [in, out], so that x·W needs no transpose; the head is the token table itself
unless the configuration unties it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..checkpoint.config import ModelConfig
from ..ops import ACTIVATIONS
from .decoder import Attention, Block, Decoder, Embedding, FusedProjection, LayerNorm, Linear, Mlp

Weights = Mapping[str, NDArray[np.float32]]


def build_gpt2(config: ModelConfig, weights: Weights) -> Decoder:
    """The decoder of a GPT-2 from its canonical tensors, shapes already checked."""
    token = weights["wte.weight"]  # [V, D]
    return Decoder(
        embedding=Embedding(token, weights["wpe.weight"]),
        blocks=tuple(_block(config, weights, layer) for layer in range(config.layers)),
        final_norm=_norm(config, weights, "ln_f"),
        head=token if config.tied_head else weights["lm_head.weight"],
    )


def _block(config: ModelConfig, weights: Weights, layer: int) -> Block:
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


def _norm(config: ModelConfig, weights: Weights, name: str) -> LayerNorm:
    return LayerNorm(weights[name + ".weight"], weights[name + ".bias"], config.norm_epsilon)


def _linear(weights: Weights, name: str) -> Linear:
    return Linear(weights[name + ".weight"], weights[name + ".bias"])
