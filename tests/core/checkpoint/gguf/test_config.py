"""The configuration out of a GGUF header: everything that changes the mathematics is obeyed or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutaway.core import ModelError
from cutaway.core.checkpoint.config import ModelConfig
from cutaway.core.checkpoint.gguf.rope import llama3_scaling
from cutaway.core.checkpoint.rope import RopeConfig
from cutaway.core.models.families import open_folder

Small = Callable[[str], ModelConfig]
OpenWith = Callable[..., ModelConfig]


@pytest.fixture
def open_with(small: Small, random_weights: Callable[..., Any], convert: Callable[..., Path]) -> OpenWith:
    """A function that writes a small model with changes to its header, and reads its configuration."""

    def read(family: str, changes: dict[str, object], **more: Any) -> ModelConfig:
        config = small(family)
        return open_folder(convert(config, random_weights(config), changes=changes, **more)).config

    return read


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2", "qwen3"])
def test_nothing_is_lost(family: str, small: Small, open_with: OpenWith) -> None:
    assert open_with(family, {}) == small(family)


REQUIRED = {
    "gpt2": ("block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
             "attention.layer_norm_epsilon"),
    "llama": ("block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
              "attention.layer_norm_rms_epsilon"),
}  # fmt: skip


@pytest.mark.parametrize("name", [f"{family}.{name}" for family, names in REQUIRED.items() for name in names])
def test_fields_that_have_to_be_there(name: str, open_with: OpenWith) -> None:
    family = name.partition(".")[0]
    with pytest.raises(ModelError, match=f"{name} is missing"):
        open_with(family, {name: None})
    for wrong in ("x", [2, 2], 0):
        with pytest.raises(ModelError, match=name):
            open_with(family, {name: wrong})


def test_what_absent_fields_stand_for(open_with: OpenWith, small: Small) -> None:
    ours = ("attention.key_length", "attention.value_length", "rope.dimension_count", "rope.freq_base")
    absent = dict.fromkeys(
        [f"llama.{name}" for name in ours] + [f"tokenizer.ggml.{end}_token_id" for end in ("bos", "eos")]
    )
    assert open_with("llama", absent) == replace(small("llama"), bos_id=None, eos_ids=())
    with pytest.raises(ModelError, match=r"attn_k\.weight"):  # then each query head has keys of its own
        open_with("llama", {"llama.attention.head_count_kv": None})


def test_all_end_tokens_count(open_with: OpenWith) -> None:
    ends = {"tokenizer.ggml.eot_token_id": 7, "tokenizer.ggml.eom_token_id": 5}
    assert open_with("llama", ends).eos_ids == (2, 5, 7)
    assert open_with("llama", {"tokenizer.ggml.eos_token_id": 4000}).eos_ids == ()


REFUSED: dict[str, tuple[str, dict[str, object], str]] = {
    "architecture": ("llama", {"general.architecture": "bert"}, "architecture 'bert'.*gpt2, llama, qwen2, qwen3"),
    "moe": ("llama", {"llama.expert_count": 8}, "num_experts is 8"),
    "window": ("llama", {"llama.attention.sliding_window": 16}, "sliding_window is 16"),
    "window of qwen2": ("qwen2", {"qwen2.attention.sliding_window": 16}, "sliding_window is 16"),
    "split": ("llama", {"split.count": 3}, "one of 3 parts.*llama-gguf-split --merge"),
    "adapter": ("llama", {"general.type": "adapter"}, "type 'adapter'"),
    "partial rotation": ("llama", {"llama.rope.dimension_count": 8}, "llama.rope.dimension_count is 8"),
    "values of another size": ("qwen3", {"qwen3.attention.value_length": 8}, "qwen3.attention.value_length is 8"),
    "values of another size than keys": ("llama", {"llama.attention.key_length": 8}, "attention.value_length is 16"),
    "values of GPT-2": ("gpt2", {"gpt2.attention.value_length": 4}, "gpt2.attention.value_length is 4"),
    "heads by layer": ("llama", {"llama.attention.head_count_kv": [2, 2]}, "llama.attention.head_count_kv"),
    "scaled scores": ("llama", {"llama.attention.scale": 0.5}, r"llama.attention.scale is 0\.5"),
    "scaled logits": ("llama", {"llama.logit_scale": 0.5}, r"llama.logit_scale is 0\.5"),
    "rotation": ("llama", {"llama.rope.scaling.type": "longrope", "llama.rope.scaling.factor": 2.0}, "'longrope'"),
    "no factor": ("llama", {"llama.rope.scaling.type": "yarn"}, "rope.scaling.factor is missing"),
    "yarn": ("llama", {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 2.0,
                       "llama.rope.scaling.attn_factor": 0.5}, "attn_factor"),
}  # fmt: skip


@pytest.mark.parametrize(("family", "changes", "match"), REFUSED.values(), ids=REFUSED)
def test_what_nothing_here_computes(family: str, changes: dict[str, object], match: str, open_with: OpenWith) -> None:
    with pytest.raises(ModelError, match=match) as caught:
        open_with(family, changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["llama.rope.dimension_count", "qwen3.attention.value_length", "llama.attention.key_length",
     "gpt2.attention.key_length", "gpt2.attention.value_length"],
)  # fmt: skip
@pytest.mark.parametrize("wrong", [0, "16", [16], 1.5, True])
def test_sizes_of_heads_that_cannot_be(name: str, wrong: object, open_with: OpenWith) -> None:
    with pytest.raises(ModelError, match=f"{name} should be a whole number from 1"):
        open_with(name.partition(".")[0], {name: wrong})


def test_harmless_fields(open_with: OpenWith, small: Small) -> None:
    changes = {"llama.expert_count": 0, "llama.attention.sliding_window": 32, "split.count": 1, "general.type": "model",
               "llama.rope.scaling.type": "none", "llama.rope.scaling.attn_factor": 1.0}  # fmt: skip
    assert open_with("llama", changes) == small("llama")


def test_scalings_told_by_fields(open_with: OpenWith, small: Small) -> None:
    plain = RopeConfig(10000.0)
    linear = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    assert open_with("llama", linear).rope == replace(plain, scaling="linear", factor=4.0)
    assert open_with("llama", {"llama.rope.scale_linear": 4.0}).rope == replace(plain, scaling="linear", factor=4.0)
    for nothing in (1.0, None):
        assert open_with("llama", linear | {"llama.rope.scaling.factor": nothing}).rope == plain
    yarn = {"qwen3.rope.scaling.type": "yarn", "qwen3.rope.scaling.factor": 4.0,
            "qwen3.rope.scaling.original_context_length": 16}  # fmt: skip
    rope = open_with("qwen3", yarn).rope
    assert rope is not None
    assert (rope.scaling, rope.factor, rope.original_positions, rope.beta_fast) == ("yarn", 4.0, 16, 32.0)
    del yarn["qwen3.rope.scaling.original_context_length"]
    assert open_with("qwen3", yarn).rope == replace(rope, original_positions=32)
    assert rope.attention_factor == pytest.approx(0.1 * np.log(4) + 1)


LLAMA3 = [(32.0, 8192, 500000.0, 64), (8.0, 8192, 500000.0, 128), (8.0, 64, 500000.0, 16), (4.0, 100, 10000.0, 96)]


@pytest.mark.parametrize(("factor", "original", "theta", "size"), LLAMA3)
def test_llama3_is_found_again_in_its_factors(factor: float, original: int, theta: float, size: int) -> None:
    factors = llama3_factors(factor, original, theta, size)
    assert llama3_scaling(factors, theta, size, where="x") == {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": original,
    }


def llama3_factors(factor: float, original: int, theta: float, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    wavelengths = 2 * np.pi * theta ** (np.arange(0, size, 2) / size)
    smooth = np.clip((original / wavelengths - 1) / 3, 0, 1)
    return (1 / ((1 - smooth) / factor + smooth)).astype(np.float32).astype(np.float64)


def test_llama3_without_a_pair_in_between() -> None:
    """Any context between the pairs does the same."""
    theta, size = 500000.0, 4
    factors = llama3_factors(8.0, 256, theta, size)
    assert set(factors) == {1.0, 8.0}
    found = llama3_scaling(factors, theta, size, where="x")
    assert found is not None
    original = found["original_max_position_embeddings"]
    assert isinstance(original, int)
    np.testing.assert_array_equal(llama3_factors(8.0, original, theta, size), factors)


def test_factors_of_another_rule(open_with: OpenWith) -> None:
    assert llama3_scaling(np.ones(8), 1e4, 16, where="x") is None
    good = llama3_factors(8.0, 64, 500000.0, 16)
    for bad in (good[:-1], good[::-1], good * 0.5, np.full(8, np.nan), np.array([1, 1, 1, 3, 2, 8, 8, 8.0])):
        with pytest.raises(ModelError, match="rope_freqs.weight"):
            llama3_scaling(bad, 500000.0, 16, where="x")
    with pytest.raises(ModelError, match="rope_freqs.weight"):
        open_with("llama", {}, more={"rope_freqs.weight": np.arange(1, 9, dtype=np.float32)})
    twice = {"rope_freqs.weight": np.ones(8, np.float32)}
    with pytest.raises(ModelError, match="scaled twice"):
        open_with("llama", {"llama.rope.scaling.factor": 2.0}, more=twice)
    assert open_with("llama", {}, more=twice).rope == RopeConfig(10000.0)


def test_a_file_without_an_embedding(write_gguf: Callable[..., Path]) -> None:
    fields = {"llama.block_count": 1, "llama.context_length": 8, "llama.embedding_length": 8,
              "llama.feed_forward_length": 8, "llama.attention.head_count": 1,
              "llama.attention.layer_norm_rms_epsilon": 1e-5, "general.architecture": "llama"}  # fmt: skip
    with pytest.raises(ModelError, match="token_embd.weight is missing"):
        open_folder(write_gguf(fields, {"x": np.ones(4, np.float32)}))
