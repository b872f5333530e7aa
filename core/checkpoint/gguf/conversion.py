"""The tensors of a GGUF file as the family's own files name and lay them.

Conversion to GGUF renamed every tensor, wrote GPT-2's matrices as [out, in], and reordered the rows of Llama's queries
and keys, whose pairs it turns as neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from ...catalogue import tr
from ...errors import ModelError
from ..config import ModelConfig
from ..json_text import shown
from ..layout import Layout
from ..safetensors import ITEM_SIZE, TensorInfo
from ..tensors import Checkpoint
from .checkpoint import GgufCheckpoint
from .rope import FREQUENCIES

_GPT2 = {
    "token_embd": "wte",
    "position_embd": "wpe",
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
    "output_norm": "ln_f",
    "output": "lm_head",
}
_LLAMA = {
    "token_embd": "embed_tokens",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "output_norm": "norm",
    "output": "lm_head",
}
_NAME = re.compile(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", re.ASCII)
_BUFFER = re.compile(rf"{re.escape(FREQUENCIES)}|blk\.\d+\.attn_rot_embd(\.weight)?", re.ASCII)
"""Tensors that are no parameters: what the configuration says of rotations, in numbers."""


class Converted(Checkpoint):
    """The tensors of a GGUF file by their canonical names, of the shapes that the family's own files have."""

    def __init__(self, stored: GgufCheckpoint, names: Mapping[str, str], config: ModelConfig) -> None:
        """Give each tensor of *stored* that *names* lists the name it is listed under."""
        self._stored = stored
        self._names = names
        self._config = config
        tensors = {name: self._converted(name, stored[given]) for name, given in names.items()}
        super().__init__(tensors, metadata=stored.metadata, files=stored.files)

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return tensor *name* as a read-only array, dequantised; see `GgufCheckpoint.array`."""
        array = self._stored.array(self._names[name])
        if self._is_turned(name):
            return array.T
        if heads := self._reordered_heads(name):
            array = in_halves(array, heads)
            array.flags.writeable = False
        return array

    def digest(self) -> str:
        return self._stored.digest()

    def _converted(self, name: str, info: TensorInfo) -> TensorInfo:
        """Return what is true of tensor *name* here, its name in messages still being the file's."""
        dtype = info.dtype if info.dtype in ITEM_SIZE else "F32"
        return replace(info, dtype=dtype, shape=info.shape[::-1] if self._is_turned(name) else info.shape)

    def _is_turned(self, name: str) -> bool:
        return self._config.family == "gpt2" and bool(re.search(r"\.c_\w+\.weight$", name))

    def _reordered_heads(self, name: str) -> int:
        """Return how many heads the rows of tensor *name* belong to, 0 if they lie as they should."""
        if self._config.family != "llama":
            return 0
        is_query, is_key = ".q_proj." in name, ".k_proj." in name
        return self._config.heads if is_query else self._config.kv_heads if is_key else 0


def converted(stored: GgufCheckpoint, layout: Layout, config: ModelConfig) -> Converted:
    """Return the tensors of *stored* as a family of that *layout* has them.

    Raises:
        ModelError: naming a tensor that is no part of the model, so that leaving it out would change the result.
    """
    expected = {*layout.expected(config), layout.head}
    names = {}
    for given in stored:
        if _BUFFER.fullmatch(given):
            continue
        name = canonical_name(given, config.family)
        if name not in expected:
            what = tr("tensor {name} is no part of a {family}", name=shown(given), family=config.family)
            raise ModelError(what, where=str(stored.path))
        names[name] = given
    return Converted(stored, names, config)


def canonical_name(name: str, family: str) -> str | None:
    """Return what *family* calls the tensor of that *name*, None if it knows none."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    layer, part, kind = match.groups()
    known = (_GPT2 if family == "gpt2" else _LLAMA).get(part)
    if known is None:
        return None
    blocks = "h" if family == "gpt2" else "layers"
    return f"{known}.{kind}" if layer is None else f"{blocks}.{layer}.{known}.{kind}"


def in_halves(rows: npt.NDArray[Any], heads: int) -> npt.NDArray[Any]:
    """Return *rows* [heads · d, …] with each head's pairs (2i, 2i + 1) apart again, as (i, i + d/2)."""
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)
