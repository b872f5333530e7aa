"""Whatever a model's files say instead of what they should: it opens and is right in shape, or a line says why not."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors.numpy import save

from cutaway.core import Generation, ModelError, load_model
from cutaway.core.events import AttentionDone, Embedded, LogitsReady, MlpDone
from cutaway.core.models.model import Model
from tests.core.strategies import Drawn, Fields, Tensors, json_values, without_field

GPT2 = {
    "model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 8, "n_positions": 9, "n_inner": 5, "vocab_size": 7,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False, "reorder_and_upcast_attn": False, "tie_word_embeddings": True,
    "bos_token_id": 0, "eos_token_id": 6, "add_cross_attention": False,
}  # fmt: skip
LLAMA = {
    "vocab_size": 7, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 5, "max_position_embeddings": 9, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "head_dim": 2,
    "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": [1, 2],
    "attention_bias": False, "mlp_bias": False, "sliding_window": None, "rope_scaling": None,
}  # fmt: skip
CONFIGS: dict[str, Fields] = {
    "gpt2": GPT2,
    **{family: LLAMA | {"model_type": family} for family in ("llama", "mistral", "qwen2", "qwen3", "minimind")},
}
OTHERS = (
    "hidden_size", "n_ctx", "dim", "n_layers", "quantization_config", "compression_config", "is_encoder_decoder",
    "pruned_heads", "use_moe", "num_experts", "num_local_experts", "n_routed_experts", "layer_types",
    "use_sliding_window", "max_window_layers", "partial_rotary_factor", "rope_interleaved", "rope_parameters",
    "original_max_position_embeddings", "inference_rope_scaling", "a field of tomorrow",
)  # fmt: skip
"""Fields that mean something in some file, and one that means nothing."""

SCALINGS: tuple[Fields, ...] = (
    {"rope_type": "linear", "factor": 2.0},
    {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 4,
    },
    {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4, "beta_fast": 32.0, "beta_slow": 1.0,
        "truncate": True, "attention_factor": None, "mscale": 1.0, "mscale_all_dim": 1.0,
    },
)  # fmt: skip


def tensors_of(fields: Fields) -> Tensors:
    """The weights that *fields* ask for."""
    return Drawn(str(fields["model_type"]), fields, 1, 0.5, "float32").tensors


STORED = {family: save(tensors_of(fields)) for family, fields in CONFIGS.items()}


def outcome(family: str, fields: object, weights: bytes | None = None, generation: object = None) -> Model | str:
    """The model, run for two tokens and right in shape; or the one line that refuses it. Nothing is warned of."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("error")
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps(fields), "utf-8")
        if generation is not None:
            (folder / "generation_config.json").write_text(json.dumps(generation), "utf-8")
        (folder / "model.safetensors").write_bytes(STORED[family] if weights is None else weights)
        try:
            model = load_model(folder)
        except ModelError as error:
            line = str(error).replace(name, "")
            assert line.isprintable() and len(line) < 1000
            return line
        check_shapes(model)
        return model


def check_shapes(model: Model) -> None:
    c = model.config
    assert c.heads % c.kv_heads == 0 and all(0 <= id < c.vocabulary for id in c.eos_ids)
    for event in Generation(model, [3], max_new_tokens=2, ignore_eos=True):
        match event:
            case Embedded():
                assert event.sum.shape == (1, c.width)
            case AttentionDone():
                assert event.query.shape == (c.heads, 1, c.head_size) and event.value.shape[0] == c.kv_heads
                assert event.pattern.shape[:2] == (c.heads, 1)
                np.testing.assert_allclose(event.pattern.sum(-1), 1, atol=1e-5)
            case MlpDone():
                assert event.hidden.shape == (1, c.mlp_width)
            case LogitsReady():
                assert event.logits.shape == (1, c.vocabulary) and np.isfinite(event.logits).all()


families = pytest.mark.parametrize("family", CONFIGS)


@families
def test_the_configurations_here_open(family: str) -> None:
    assert isinstance(outcome(family, CONFIGS[family]), Model)


@families
@given(data=st.data())
def test_any_value_of_any_field(family: str, data: st.DataObject) -> None:
    fields = CONFIGS[family]
    name = data.draw(st.sampled_from([*fields, *OTHERS]))
    refused = outcome(family, fields | {name: data.draw(json_values())})
    assert isinstance(refused, Model) or names(refused, name)


def names(refused: str, field: str) -> bool:
    """Whether the line tells of *field*, or of a tensor that is not as it says."""
    return field in refused or "config.json asks for" in refused or "tensor " in refused


@families
@given(data=st.data())
def test_any_field_may_be_absent(family: str, data: st.DataObject) -> None:
    """Its default then fits the tensors, or it is refused."""
    name = data.draw(st.sampled_from(list(CONFIGS[family])))
    refused = outcome(family, without_field(CONFIGS[family], name))
    assert isinstance(refused, Model) or names(refused, name)


@given(
    st.sampled_from(SCALINGS),
    st.sampled_from(sorted({name for scaling in SCALINGS for name in scaling})),
    json_values() | st.floats(0, 1e300),
    st.sampled_from(("rope_scaling", "rope_parameters")),
)
@example(SCALINGS[0], "factor", 5e-324, "rope_scaling")
@example(SCALINGS[1], "factor", 1e-310, "rope_parameters")
@example(SCALINGS[2], "beta_fast", 5e-324, "rope_scaling")
@example(SCALINGS[2], "beta_slow", 1e-310, "rope_scaling")
@example(SCALINGS[2], "attention_factor", 1e20, "rope_scaling")
@example(SCALINGS[2], "mscale", 1e20, "rope_scaling")
def test_any_value_of_any_field_of_a_scaling(scaling: Fields, name: str, value: object, place: str) -> None:
    refused = outcome("llama", CONFIGS["llama"] | {place: scaling | {name: value}})
    assert isinstance(refused, Model) or name in refused or place in refused


@pytest.mark.parametrize("epsilon", [1e-46, 5e-324])
def test_an_epsilon_that_is_nothing_in_float32_is_refused(epsilon: float) -> None:
    """A stream of width 1 has no variance, and would be divided by nothing."""
    fields = GPT2 | {"n_embd": 1, "n_head": 1, "layer_norm_epsilon": epsilon}
    refused = outcome("gpt2", fields, save(tensors_of(fields)))
    assert isinstance(refused, str) and "layer_norm_epsilon" in refused


@given(json_values(), json_values())
def test_any_generation_config(begin: object, end: object) -> None:
    refused = outcome("gpt2", GPT2, generation={"bos_token_id": begin, "eos_token_id": end})
    assert isinstance(refused, Model) or "generation_config.json" in refused


@given(json_values())
def test_any_value_instead_of_an_object(value: object) -> None:
    for fields, generation in ((value, None), (GPT2, value)):
        refused = outcome("gpt2", fields, generation=generation)
        assert isinstance(refused, Model) or "config.json" in refused


# Tensors


@families
@given(data=st.data())
def test_a_tensor_that_is_missing_or_of_another_shape_is_named(family: str, data: st.DataObject) -> None:
    tensors = tensors_of(CONFIGS[family])
    name = data.draw(st.sampled_from(sorted(tensors)))
    shape = tuple(data.draw(st.lists(st.integers(0, 9), max_size=3)))
    changed = data.draw(st.none() | st.just(np.zeros(shape, np.float32)))
    if changed is not None and shape == tensors[name].shape:
        changed = None
    weights = {other: array for other, array in tensors.items() if other != name}
    refused = outcome(family, CONFIGS[family], save(weights if changed is None else weights | {name: changed}))
    assert isinstance(refused, str) and name.removeprefix("model.") in refused


@families
@given(name=st.text(max_size=20), dtype=st.sampled_from(("float32", "int64", "uint8", "float16")))
@example("h.0.attn.bias", "uint8")
@example("model.layers.0.self_attn.rotary_emb.inv_freq", "float32")
def test_tensors_that_nobody_needs_are_left_alone(family: str, name: str, dtype: str) -> None:
    tensors = tensors_of(CONFIGS[family])
    if name in ("__metadata__", *tensors):
        name += "!"
    model = outcome(family, CONFIGS[family], save(tensors | {name: np.ones((2, 3), dtype)}))
    assert isinstance(model, Model)


@given(place=st.sampled_from(("dtype", "shape", "data_offsets", None)), data=st.data())
def test_any_value_in_a_header(place: str | None, data: st.DataObject) -> None:
    stored = STORED["gpt2"]
    length = int.from_bytes(stored[:8], "little")
    header = json.loads(stored[8 : 8 + length])
    name = data.draw(st.sampled_from(sorted(header)))
    value = data.draw(json_values() | st.lists(st.integers(0, 300), max_size=3))
    if place is None:
        header[name] = value
    else:
        header[name][place] = value
    raw = json.dumps(header).encode()
    refused = outcome("gpt2", GPT2, len(raw).to_bytes(8, "little") + raw + stored[8 + length :])
    assert isinstance(refused, Model) or name in refused or "model.safetensors" in refused
