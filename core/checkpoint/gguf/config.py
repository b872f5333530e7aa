"""The configuration of a GGUF file, written as the config.json that it was converted from.

Its families read it then as they read their own, with all their checks.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...catalogue import tr
from ...errors import ModelError
from ..fields import Fields
from ..json_text import shown
from .checkpoint import GgufCheckpoint
from .rope import FREQUENCIES, llama3_scaling

ARCHITECTURES = ("gpt2", "llama", "qwen2", "qwen3")
"""Values of ``general.architecture`` that open, each called like its family. Mistral's files say ``llama``."""

_ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")
_SCALES = ("attention.scale", "embedding_scale", "residual_scale", "logit_scale", "attention.clamp_kqv")
"""What llama.cpp multiplies with in relatives of these families."""


def config_fields(stored: GgufCheckpoint) -> dict[str, object]:
    """Return the fields of a config.json that says what the header of *stored* says.

    Raises:
        ModelError: naming an architecture or a field that nothing here computes, one that is missing or wrong, or a
            file that is a part of a model.
    """
    given = Fields(stored.header, str(stored.path))
    _refuse_parts(given)
    architecture = _architecture(given)
    fields = _gpt2(given) if architecture == "gpt2" else _llama(given, architecture, stored)
    for name in _SCALES:
        _refuse(given, f"{architecture}.{name}")
    ends = [token for name in _ENDS for token in given.ids("tokenizer.ggml." + name)]
    return fields | {
        "model_type": architecture,
        "vocab_size": _rows(stored, "token_embd.weight"),
        "tie_word_embeddings": "output.weight" not in stored,
        "bos_token_id": given.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": ends,
    }


def _architecture(given: Fields) -> str:
    """Return the architecture, one that opens."""
    name = given.text("general.architecture")
    if name in ARCHITECTURES:
        return name
    what = tr("the architecture {name} is not supported", name=shown(name))
    hint = tr("these open: {choices}", choices=", ".join(ARCHITECTURES))
    raise ModelError(what, where=given.where, hint=hint)


def _refuse_parts(given: Fields) -> None:
    """Refuse a file that is one of several, or no model but what changes one."""
    count = given.get("split.count")
    if isinstance(count, int) and count > 1:
        what = tr("the file is one of {count} parts of a split model", count=count)
        raise ModelError(what, where=given.where, hint=tr("join the parts with llama-gguf-split --merge"))
    kind = given.get("general.type")
    if kind not in (None, "model"):
        what = tr("the file holds no model, but says it is of type {kind}", kind=shown(kind))
        raise ModelError(what, where=given.where)


def _gpt2(given: Fields) -> dict[str, object]:
    """Return the fields of a GPT-2, whose activation no header mentions."""
    size = max(given.count("gpt2.embedding_length") // given.count("gpt2.attention.head_count"), 1)
    for other in ("key_length", "value_length"):
        _refuse_other(given, f"gpt2.attention.{other}", size)
    return {
        "n_layer": given.count("gpt2.block_count"),
        "n_head": given.count("gpt2.attention.head_count"),
        "n_embd": given.count("gpt2.embedding_length"),
        "n_inner": given.count("gpt2.feed_forward_length"),
        "n_positions": given.count("gpt2.context_length"),
        "layer_norm_epsilon": given.fraction("gpt2.attention.layer_norm_epsilon"),
    }


def _llama(given: Fields, name: str, stored: GgufCheckpoint) -> dict[str, object]:
    """Return the fields of a Llama or its kin; *name* is what theirs begin with."""
    heads, width = given.count(f"{name}.attention.head_count"), given.count(f"{name}.embedding_length")
    told = given.get(f"{name}.attention.key_length")
    size = max(width // heads, 1) if told is None else given.count(f"{name}.attention.key_length")
    for other in ("attention.value_length", "rope.dimension_count"):
        _refuse_other(given, f"{name}.{other}", size)
    return {
        "num_hidden_layers": given.count(f"{name}.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": given.count(f"{name}.attention.head_count_kv", heads),
        "head_dim": told,
        "hidden_size": width,
        "intermediate_size": given.count(f"{name}.feed_forward_length"),
        "max_position_embeddings": given.count(f"{name}.context_length"),
        "rms_norm_eps": given.fraction(f"{name}.attention.layer_norm_rms_epsilon"),
        "rope_theta": given.positive(f"{name}.rope.freq_base", 10000.0),
        "attention_bias": "blk.0.attn_q.bias" in stored,
        "mlp_bias": "blk.0.ffn_up.bias" in stored,
        "num_experts": given.get(f"{name}.expert_count"),
        "sliding_window": given.get(f"{name}.attention.sliding_window"),
        "use_sliding_window": bool(given.get(f"{name}.attention.sliding_window")),
        "rope_scaling": _scaling(given, name, size, stored),
    }


def _scaling(given: Fields, name: str, size: int, stored: GgufCheckpoint) -> Mapping[str, object] | None:
    """Return how positions are stretched: told by fields, or (llama3) by a tensor of factors."""
    key = f"{name}.rope.scaling."
    factor = given.get(key + "factor") or given.get(f"{name}.rope.scale_linear")
    if name == "llama" and FREQUENCIES in stored:
        if factor not in (None, 1):
            what = tr("positions are scaled twice, by {one} and by {other}", one=key + "factor", other=FREQUENCIES)
            raise ModelError(what, where=given.where)
        theta = given.positive("llama.rope.freq_base", 10000.0)
        factors = stored.array(FREQUENCIES).astype(np.float64).reshape(-1)
        return llama3_scaling(factors, theta, size, where=given.where)
    kind = given.get(key + "type") or ("linear" if factor else "none")
    for unused in ("attn_factor", "yarn_ext_factor", "yarn_attn_factor"):
        if given.get(key + unused) not in (None, 1):
            _refuse(given, key + unused)
    if kind == "none" or (kind == "linear" and factor in (None, 1)):
        return None
    scaling = {
        "rope_type": kind,
        "factor": given.positive(key + "factor") if kind == "yarn" else factor,
        "original_max_position_embeddings": given.get(key + "original_context_length"),
        "beta_fast": given.get(key + "yarn_beta_fast"),
        "beta_slow": given.get(key + "yarn_beta_slow"),
    }
    return {field: value for field, value in scaling.items() if value is not None}


def _refuse(given: Fields, name: str) -> None:
    """Raise `ModelError` where field *name* is there and not zero."""
    if given.get(name):
        what = tr("{field} is {value}, which is not supported", field=name, value=shown(given.get(name)))
        raise ModelError(what, where=given.where)


def _refuse_other(given: Fields, name: str, size: int) -> None:
    """Raise `ModelError` where field *name* is there and not the *size* of a head."""
    if given.get(name) is not None and given.count(name) != size:
        _refuse(given, name)


def _rows(stored: GgufCheckpoint, name: str) -> int:
    """Return the number of rows of the matrix *name*."""
    if name not in stored:
        raise ModelError(tr("tensor {name} is missing", name=name), where=str(stored.path))
    return stored[name].shape[0]
