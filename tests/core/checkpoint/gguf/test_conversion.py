"""A GGUF file computes what the folder does that it was converted from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, ModelError, SamplingConfig, load_model
from cutaway.core.checkpoint.config import ModelConfig
from cutaway.core.checkpoint.gguf.conversion import canonical_name, in_halves
from cutaway.core.events import LogitsReady
from cutaway.core.models.families import open_folder
from cutaway.core.models.llama import build_llama
from cutaway.core.models.model import Model

Floats = NDArray[np.float32]
Convert = Callable[..., Path]
Small = Callable[[str], ModelConfig]
MakeWeights = Callable[[ModelConfig], dict[str, Floats]]

ARCHITECTURES = ("gpt2", "llama", "qwen2", "qwen3")
REFERENCES = (
    *("gpt2_base", "llama_headdim_mqa", "llama_linear_biases", "qwen2_bias", "qwen3_qknorm"),
    *("llama_gqa_tied", "llama_rope_llama3", "smollm2_shape"),
)
QUANTISED = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")


def logits(model: Model, ids: list[int]) -> Floats:
    """The scores of every position of *ids*, and of five cached steps after them."""
    run = Generation(model, ids, SamplingConfig(greedy=True), max_new_tokens=5, ignore_eos=True, capture="all")
    return np.concatenate([event.logits for event in run if isinstance(event, LogitsReady)])


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_model_is_the_same_in_both_formats(
    name: str, model_folder: Callable[[str], Path], convert: Convert
) -> None:
    folder = open_folder(model_folder(name))
    path = convert(folder.config, folder.weights)
    file = open_folder(path)
    assert file.config == folder.config
    for canonical, array in folder.weights.items():
        np.testing.assert_array_equal(file.weights[canonical], array)
        assert file.weights.info(canonical).shape == array.shape
    ids = [5, 3, 60, 7, 7, 12, 33, 1, 2, 40]
    found, expected = logits(load_model(path), ids), logits(load_model(model_folder(name)), ids)
    if folder.config.family == "gpt2":  # its matrices lie the other way round, which BLAS adds up in another order
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", QUANTISED)
@pytest.mark.parametrize("family", ARCHITECTURES)
def test_quantised_weights_are_what_the_package_makes_of_them(
    family: str, kind: str, small: Small, random_weights: MakeWeights, convert: Convert
) -> None:
    config = small(family)
    weights = random_weights(config)
    opened = open_folder(convert(config, weights, kind))
    assert {info.dtype for info in opened.checkpoint.values()} == {"F32", kind}
    for canonical, array in weights.items():
        is_turned = family == "gpt2" and ".c_" in canonical
        rounded = _rounded(array.T if is_turned else array, kind)
        np.testing.assert_array_equal(opened.weights[canonical], rounded.T if is_turned else rounded)


def _rounded(array: Floats, kind: str) -> Floats:
    """What is left of *array* [out, in] after quantising; rows of queries and keys may be in any order."""
    if array.ndim == 1:
        return array
    quantisation = gguf.GGMLQuantizationType[kind]
    stored = gguf.quantize(np.ascontiguousarray(array), quantisation)
    return gguf.dequantize(stored, quantisation).reshape(array.shape)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_a_quantised_model_computes_with_its_rounded_weights(
    kind: str, small: Small, random_weights: MakeWeights, convert: Convert
) -> None:
    config = small("llama")
    weights = random_weights(config)
    model = load_model(convert(config, weights, kind))
    rounded = {name: _rounded(array, kind) for name, array in weights.items()}
    expected = replace(model, decoder=build_llama(config, rounded))
    ids = [3, 1, 4, 1, 5, 9, 2, 6]
    np.testing.assert_array_equal(logits(model, ids), logits(expected, ids))
    exact = replace(model, decoder=build_llama(config, weights))
    assert np.abs(logits(model, ids) - logits(exact, ids)).max() > 1e-3


def test_rows_of_queries_and_keys_are_put_back(small: Small, random_weights: MakeWeights, convert: Convert) -> None:
    """The file has pairs as neighbours for llama, and for no other architecture."""
    for family, reordered in (("llama", True), ("qwen2", False)):
        config = small(family)
        weights = random_weights(config)
        opened = open_folder(convert(config, weights))
        assert np.array_equal(opened.checkpoint.array("blk.1.attn_q.weight"), opened.weights[
            "layers.1.self_attn.q_proj.weight"]) != reordered  # fmt: skip
        assert np.array_equal(
            opened.checkpoint.array("blk.1.attn_v.weight"), opened.weights["layers.1.self_attn.v_proj.weight"]
        )
    np.testing.assert_array_equal(in_halves(np.arange(12), heads=2), [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11])


def test_a_tied_head_has_no_tensor(small: Small, random_weights: MakeWeights, convert: Convert) -> None:
    config = replace(small("llama"), tied_head=True)
    opened = open_folder(convert(config, random_weights(config)))
    assert opened.config == config
    assert "output.weight" not in opened.checkpoint


def test_a_gpt2_may_repeat_its_embedding_as_the_head(
    small: Small, random_weights: MakeWeights, convert: Convert
) -> None:
    """Older conversions did."""
    config = replace(small("gpt2"), tied_head=False)
    opened = open_folder(convert(config, random_weights(config)))
    assert opened.config == config
    assert opened.weights.info("lm_head.weight").name == "output.weight"


@pytest.mark.parametrize("name", ["blk.0.attn_sinks.weight", "blk.7.attn_q.weight", "blk.0.attn_output.bias", "cls"])
def test_tensors_that_would_be_left_out_are_refused(
    name: str, small: Small, random_weights: MakeWeights, convert: Convert
) -> None:
    config = small("qwen2")
    path = convert(config, random_weights(config), more={name: np.ones(64, np.float32)})
    with pytest.raises(ModelError, match=rf"{name}.*no part of a qwen2"):
        open_folder(path)


def test_a_missing_tensor_and_a_wrong_shape_are_named(
    small: Small, random_weights: MakeWeights, convert: Convert
) -> None:
    config = small("llama")
    weights = random_weights(config)
    missing = {name: array for name, array in weights.items() if name != "layers.1.mlp.up_proj.weight"}
    with pytest.raises(ModelError, match=r"layers\.1\.mlp\.up_proj\.weight is missing"):
        open_folder(convert(config, missing))
    with pytest.raises(ModelError, match=r"blk\.0\.ffn_gate\.weight.*\[96, 64\].*\[80, 64\]"):
        open_folder(convert(config, weights, changes={"llama.feed_forward_length": 80}))


def test_integers_are_no_parameters(small: Small, random_weights: MakeWeights, convert: Convert) -> None:
    config = small("llama")
    path = convert(config, random_weights(config), more={"output_norm.weight": np.ones(64, np.int8)})
    with pytest.raises(ModelError, match="dtype I8"):
        open_folder(path)


def test_names_that_no_family_has() -> None:
    assert canonical_name("blk.3.attn_k.bias", "llama") == "layers.3.self_attn.k_proj.bias"
    assert canonical_name("blk.3.attn_qkv.bias", "gpt2") == "h.3.attn.c_attn.bias"
    for name in ("blk.3.attn_qkv.weight", "blk.x.attn_k.weight", "token_embd", "token_embd.weight.weight", ""):
        assert canonical_name(name, "llama") is None
