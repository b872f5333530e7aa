"""GGUF files to open, written by the package's own writer as conversion from a model's folder would write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core.checkpoint.config import ModelConfig
from cutaway.core.models.families import FAMILIES

Floats = NDArray[np.float32]
Field = object
"""A value of a header; its type is the Python type's, unless it comes as (value, type)."""

_TYPES = {bool: gguf.GGUFValueType.BOOL, int: gguf.GGUFValueType.UINT32, float: gguf.GGUFValueType.FLOAT32,
          str: gguf.GGUFValueType.STRING, list: gguf.GGUFValueType.ARRAY}  # fmt: skip


@pytest.fixture
def write_gguf(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a file of any fields and any tensors, each of a type of its own or of one for all."""

    def write(
        fields: Mapping[str, Field],
        tensors: Mapping[str, NDArray[Any]],
        kind: str = "F32",
        name: str = "model.gguf",
    ) -> Path:
        path = tmp_path / name
        writer = gguf.GGUFWriter(path, str(fields.get("general.architecture", "none")))
        for key, value in fields.items():
            if key != "general.architecture":
                value, type_ = value if isinstance(value, tuple) else (value, _TYPES[type(value)])
                writer.add_key_value(key, value, type_)
        for key, array in tensors.items():
            stored, stored_as = quantised(array, kind)
            writer.add_tensor(key, stored, raw_dtype=stored_as)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


def quantised(array: NDArray[Any], kind: str) -> tuple[NDArray[Any], gguf.GGMLQuantizationType | None]:
    """*array* as conversion stores it: vectors, and rows that are no whole blocks, stay as they are."""
    stored_as = gguf.GGMLQuantizationType[kind]
    if array.dtype != np.float32 or array.ndim == 1 or array.shape[-1] % gguf.GGML_QUANT_SIZES[stored_as][0]:
        return array, None
    return gguf.quantize(array, stored_as), stored_as


def header(config: ModelConfig) -> dict[str, Field]:
    """The fields that conversion writes for a model of this configuration."""
    arch = "llama" if config.family == "mistral" else config.family
    fields: dict[str, Field] = {
        "general.architecture": arch,
        f"{arch}.block_count": config.layers,
        f"{arch}.context_length": config.positions,
        f"{arch}.embedding_length": config.width,
        f"{arch}.feed_forward_length": config.mlp_width,
        f"{arch}.attention.head_count": config.heads,
    }
    if config.bos_id is not None:
        fields["tokenizer.ggml.bos_token_id"] = config.bos_id
    if config.eos_ids:
        fields["tokenizer.ggml.eos_token_id"] = config.eos_ids[0]
    if config.rope is None:
        return fields | {f"{arch}.attention.layer_norm_epsilon": config.norm_epsilon}
    fields |= {
        f"{arch}.attention.head_count_kv": config.kv_heads,
        f"{arch}.attention.layer_norm_rms_epsilon": config.norm_epsilon,
        f"{arch}.attention.key_length": config.head_size,
        f"{arch}.attention.value_length": config.head_size,
        f"{arch}.rope.dimension_count": config.head_size,
        f"{arch}.rope.freq_base": config.rope.theta,
    }
    if config.rope.scaling in ("linear", "yarn"):
        fields |= {f"{arch}.rope.scaling.type": config.rope.scaling, f"{arch}.rope.scaling.factor": config.rope.factor}
    if config.rope.scaling == "yarn":
        fields |= {f"{arch}.rope.scaling.original_context_length": config.rope.original_positions}
    return fields


def tensors(config: ModelConfig, weights: Mapping[str, Floats]) -> dict[str, Floats]:
    """The tensors of a model as conversion names and lays them (``convert_hf_to_gguf.py`` of llama.cpp)."""
    arch = "llama" if config.family == "mistral" else config.family
    architecture = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == arch)
    names = gguf.get_tensor_name_map(architecture, config.layers)
    result = {}
    for canonical in weights:
        outside = "" if canonical.startswith("lm_head") else "transformer." if arch == "gpt2" else "model."
        name = names.get_name(outside + canonical, try_suffixes=(".weight", ".bias"))
        assert name is not None, canonical
        array = weights[canonical]
        if arch == "gpt2" and ".c_" in canonical and array.ndim == 2:
            array = array.T
        if arch == "llama" and "q_proj" in canonical:
            array = _permuted(array, config.heads)
        if arch == "llama" and "k_proj" in canonical:
            array = _permuted(array, config.kv_heads)
        result[name] = np.ascontiguousarray(array)
    if config.rope is not None and config.rope.scaling == "llama3":
        result["rope_freqs.weight"] = _llama3_factors(config)
    return result


def _permuted(weights: Floats, heads: int) -> Floats:
    """`LlamaModel.permute` of the conversion script, word by word."""
    return (
        weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])
        .swapaxes(1, 2)
        .reshape(weights.shape)
    )


def _llama3_factors(config: ModelConfig) -> Floats:
    """`LlamaModel.generate_extra_tensors` of the conversion script."""
    rope = config.rope
    assert rope is not None
    factors = []
    for frequency in 1.0 / (rope.theta ** (np.arange(0, config.head_size, 2, dtype=np.float32) / config.head_size)):
        wavelength = 2 * np.pi / frequency
        if wavelength < rope.original_positions / rope.high_frequency_factor:
            factors.append(1.0)
        elif wavelength > rope.original_positions / rope.low_frequency_factor:
            factors.append(rope.factor)
        else:
            smooth = (rope.original_positions / wavelength - rope.low_frequency_factor) / (
                rope.high_frequency_factor - rope.low_frequency_factor
            )
            factors.append(1 / ((1 - smooth) / rope.factor + smooth))
    return np.array(factors, np.float32)


@pytest.fixture
def random_weights() -> Callable[[ModelConfig], dict[str, Floats]]:
    """A function that makes the weights of a configuration up."""

    def make(config: ModelConfig) -> dict[str, Floats]:
        numbers = np.random.default_rng(11)
        shapes = FAMILIES[config.family].layout.expected(config).items()
        return {name: (numbers.standard_normal(shape) * 0.2).astype(np.float32) for name, shape in shapes}

    return make


@pytest.fixture
def convert(write_gguf: Callable[..., Path]) -> Callable[..., Path]:
    """A function that writes a configuration and its weights.

    *changes* to the header (None: left out) and *more* tensors, by their names in the file, come last.
    """

    def write(
        config: ModelConfig,
        weights: Mapping[str, Floats],
        kind: str = "F32",
        *,
        changes: Mapping[str, Field] | None = None,
        more: Mapping[str, NDArray[Any]] | None = None,
    ) -> Path:
        fields = header(config) | dict(changes or {})
        kept = {key: value for key, value in fields.items() if value is not None}
        return write_gguf(kept, {**tensors(config, weights), **(more or {})}, kind)

    return write


@pytest.fixture
def small() -> Callable[..., ModelConfig]:
    """A function that gives the configuration of a small model of a family, its rows whole blocks of 32."""

    def make(family: str) -> ModelConfig:
        fields: dict[str, object] = {
            "layers": 2, "heads": 4, "kv_heads": 2, "head_size": 16, "width": 64, "mlp_width": 96, "positions": 32,
            "vocabulary": 40, "norm": "rms_norm", "norm_epsilon": 1e-5, "activation": "silu",
            "position_encoding": "rotary", "scale_attention": True, "scale_attention_by_layer": False,
            "attention_bias": family == "qwen2", "mlp_bias": False, "tied_head": False, "bos_id": 1, "eos_ids": [2],
            "attention_output_bias": family != "qwen2", "query_key_norm": family == "qwen3", "gated_mlp": True,
            "rope": {"theta": 10000.0, "scaling": "default", "factor": 1.0, "original_positions": 1,
                     "low_frequency_factor": 1.0, "high_frequency_factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
                     "truncate": True, "attention_factor": 1.0, "interleaved": False},
        }  # fmt: skip
        gpt2 = {"kv_heads": 4, "norm": "layer_norm", "activation": "gelu_tanh", "position_encoding": "learned",
                "attention_bias": True, "mlp_bias": True, "tied_head": True, "gated_mlp": False, "rope": None,
                "attention_output_bias": True}  # fmt: skip
        return ModelConfig.from_dict({"family": family} | fields | (gpt2 if family == "gpt2" else {}))

    return make
