"""tinymind: a whole model on one page, for teaching. One layer of one head, width 16, 30 characters.

It is built as Vaswani et al. 2017 (arXiv:1706.03762) have it: sinusoidal positions, norms after the sums, ReLU. Its
weights are not trained but made, by a generator that a JavaScript program has (`made_weights`); trained ones of the
same names may lie in its folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..checkpoint.config import ModelConfig
from ..checkpoint.fields import Fields
from ..checkpoint.layout import Layout
from ..checkpoint.open import holds_weights, open_checkpoint
from ..checkpoint.tensors import Checkpoint
from ..ops import ACTIVATIONS
from ..tokenizer import Tokenizer
from .attention import Attention, SeparateProjection
from .block import PostNormBlock
from .characters import CharacterTokenizer
from .decoder import Decoder
from .family import Family, Parameters
from .parts import Embedding, LayerNorm, Linear, Mlp

ALPHABET = "abcdefghijklmnopqrstuvwxyz ,."
END = "<eos>"
SEED = 42

_D, _F, _V = 16, 64, len(ALPHABET) + 1
_SHAPES = {
    "embedding": ((_V, _D), 0.8),
    "Wq": ((_D, _D), 0.5),
    "Wk": ((_D, _D), 0.5),
    "Wv": ((_D, _D), 0.5),
    "Wo": ((_D, _D), 0.5),
    "W1": ((_D, _F), 0.5),
    "W2": ((_F, _D), 0.2),
    "Wlm": ((_D, _V), 0.5),
}
"""Shape and scale of every matrix, in the order they are made in; all lie as ``[in, out]``."""


def generator(seed: int) -> Iterator[float]:
    """Numbers in [0, 1]: s ← (s·1103515245 + 12345) AND 0x7fffffff, then s / 0x7fffffff.

    Products are doubles, as in JavaScript: digits beyond 53 bits are lost before the lowest 31 bits are taken.
    """
    state = seed
    while True:
        state = int(state * 1103515245.0 + 12345.0) & 0x7FFFFFFF
        yield state / 0x7FFFFFFF


def made_weights(seed: int = SEED) -> dict[str, NDArray[np.float64]]:
    """Every matrix, entry by entry (output − 0.5)·scale."""
    numbers = generator(seed)
    return {
        name: np.array([(next(numbers) - 0.5) * scale for _ in range(rows * columns)]).reshape(rows, columns)
        for name, ((rows, columns), scale) in _SHAPES.items()
    }


def sinusoids(count: int) -> NDArray[np.float32]:
    """Position vectors [count, D]: sin in even columns, cos in odd ones, of position / 10000^(2⌊i/2⌋/D)."""
    columns = np.arange(_D)
    angles = np.arange(count)[:, None] / 10000.0 ** (columns // 2 * 2 / _D)  # [count, D]
    return np.where(columns % 2, np.cos(angles), np.sin(angles)).astype(np.float32)


def _read(fields: Fields) -> ModelConfig:
    return ModelConfig(
        family="tinymind",
        layers=1,
        heads=1,
        kv_heads=1,
        head_size=_D,
        width=_D,
        mlp_width=_F,
        positions=fields.count("max_position_embeddings", 512, most=100_000),
        vocabulary=_V,
        norm="layer_norm_plain",
        norm_epsilon=1e-5,
        activation="relu",
        position_encoding="sinusoidal",
        scale_attention=True,
        scale_attention_by_layer=False,
        attention_bias=False,
        mlp_bias=False,
        tied_head=False,
        bos_id=None,
        eos_ids=(),
        post_norm=True,
        final_norm=False,
    )


def _open(path: Path) -> Checkpoint:
    """The weights that lie at *path*, or else those that are made."""
    return open_checkpoint(path) if holds_weights(path) else Checkpoint.made("tinymind", made_weights())


def _tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    return CharacterTokenizer(ALPHABET, END)


def build_tinymind(config: ModelConfig, weights: Parameters) -> Decoder:
    """The decoder of a tinymind from its matrices, shapes already checked."""

    def linear(name: str) -> Linear:
        return Linear(weights[name], None)

    norm = LayerNorm(np.ones(_D, np.float32), np.zeros(_D, np.float32), config.norm_epsilon)
    block = PostNormBlock(
        attention_norm=norm,
        attention=Attention(
            project=SeparateProjection(linear("Wq"), linear("Wk"), linear("Wv"), head_size=_D),
            output=linear("Wo"),
            scale=config.attention_scale(0),
        ),
        mlp_norm=norm,
        mlp=Mlp(up=linear("W1"), activation=ACTIVATIONS[config.activation], down=linear("W2")),
    )
    return Decoder(
        embedding=Embedding(weights["embedding"], sinusoids(config.positions)),
        blocks=(block,),
        final_norm=None,
        head=weights["Wlm"].T,
    )


_PARTS = {"embedding": "embedding", "W1": "mlp", "W2": "mlp", "Wlm": "head"}

TINYMIND = Family(
    name="tinymind",
    title="tinymind",
    read=_read,
    layout=Layout(
        canonical=lambda name: name,
        expected=lambda config: {name: shape for name, (shape, _) in _SHAPES.items()},
        embedding="embedding",
        head="Wlm",
        part=lambda name: _PARTS.get(name, "attention"),
    ),
    build=build_tinymind,
    defaults={"eos_token_id": len(ALPHABET)},
    open=_open,
    tokenizer=_tokenizer,
)
