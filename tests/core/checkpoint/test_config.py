"""Configurations: every field that changes the mathematics is obeyed, and a wrong one is named."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cutaway.core import ops
from cutaway.core.checkpoint.config import ACTIVATIONS, ModelConfig
from cutaway.core.errors import ModelError
from cutaway.core.models.families import read_config

Write = Callable[..., Path]
Fields = dict[str, object]


def test_every_field_of_a_real_configuration() -> None:
    fable = Path(__file__).parents[3] / "assets" / "models" / "fable"
    assert read_config(fable) == ModelConfig(
        family="gpt2",
        layers=4,
        heads=8,
        kv_heads=8,
        head_size=32,
        width=256,
        mlp_width=1024,
        positions=512,
        vocabulary=4096,
        norm="layer_norm",
        norm_epsilon=1e-5,
        activation="gelu_tanh",
        position_encoding="learned",
        scale_attention=True,
        scale_attention_by_layer=False,
        attention_bias=True,
        mlp_bias=True,
        tied_head=True,
        bos_id=4095,
        eos_ids=(4095,),
    )


def test_absent_fields_mean_what_gpt2_means(write_config: Write) -> None:
    config = read_config(write_config({"model_type": "gpt2"}))
    assert (config.layers, config.heads, config.width, config.mlp_width) == (12, 12, 768, 3072)
    assert (config.positions, config.vocabulary) == (1024, 50257)
    assert (config.activation, config.norm_epsilon, config.tied_head) == ("gelu_tanh", 1e-5, True)
    assert (config.bos_id, config.eos_ids) == (50256, (50256,))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"n_inner": None}, {"mlp_width": 32}),
        ({"n_inner": 5}, {"mlp_width": 5}),
        ({"layer_norm_epsilon": 1e-3}, {"norm_epsilon": 1e-3}),
        ({"layer_norm_epsilon": 1}, {"norm_epsilon": 1.0}),
        ({"scale_attn_weights": False}, {"scale_attention": False}),
        ({"scale_attn_by_inverse_layer_idx": True}, {"scale_attention_by_layer": True}),
        ({"reorder_and_upcast_attn": True}, {}),
        ({"tie_word_embeddings": False}, {"tied_head": False}),
        ({"n_positions": 9, "n_ctx": 3}, {"positions": 9}),
        ({"max_position_embeddings": 16, "hidden_size": 8}, {"positions": 16}),
        ({"a field of tomorrow": [1, {"x": None}], "attn_pdrop": 0.5}, {}),
        ({"quantization_config": None, "sliding_window": None, "num_experts": 0}, {}),
        ({"sliding_window": 16, "layer_types": ["full_attention"] * 2, "pruned_heads": {}}, {}),
        ({"sliding_window": 4, "use_sliding_window": False}, {}),
        ({"num_experts": 4, "use_moe": False}, {}),
    ],
)
def test_fields_are_obeyed(changes: Fields, expected: Fields, write_config: Write, gpt2_fields: Fields) -> None:
    plain = read_config(write_config(gpt2_fields)).to_dict()
    assert read_config(write_config(gpt2_fields | changes)).to_dict() == plain | expected


@pytest.mark.parametrize(
    ("field", "alias", "key"),
    [
        ("n_embd", "hidden_size", "width"),
        ("n_head", "num_attention_heads", "heads"),
        ("n_layer", "num_hidden_layers", "layers"),
        ("n_positions", "max_position_embeddings", "positions"),
        ("n_positions", "n_ctx", "positions"),
    ],
)
def test_other_names_of_a_field(field: str, alias: str, key: str, write_config: Write, gpt2_fields: Fields) -> None:
    renamed = {alias if name == field else name: value for name, value in gpt2_fields.items()}
    assert read_config(write_config(renamed)) == read_config(write_config(gpt2_fields))
    with pytest.raises(ModelError, match=alias):
        read_config(write_config(renamed | {alias: "4"}))


def test_two_names_of_a_field_that_disagree(write_config: Write, gpt2_fields: Fields) -> None:
    with pytest.raises(ModelError, match="n_embd and hidden_size"):
        read_config(write_config(gpt2_fields | {"hidden_size": 16}))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("gelu_new", "gelu_tanh"),
        ("gelu_pytorch_tanh", "gelu_tanh"),
        ("gelu_fast", "gelu_tanh"),
        ("gelu", "gelu"),
        ("gelu_python", "gelu"),
        ("quick_gelu", "gelu_quick"),
        ("relu", "relu"),
        ("silu", "silu"),
        ("swish", "silu"),
        ("tanh", "tanh"),
    ],
)
def test_activations(value: str, expected: str, write_config: Write, gpt2_fields: Fields) -> None:
    config = read_config(write_config(gpt2_fields | {"activation_function": value}))
    assert config.activation == expected


def test_every_activation_can_be_computed() -> None:
    assert set(ACTIVATIONS) == set(ops.ACTIVATIONS)


@pytest.mark.parametrize("value", ["gelu_10", "relu2", "GELU", "", None, 1, ["relu"], True])
def test_unknown_activations_are_named(value: object, write_config: Write, gpt2_fields: Fields) -> None:
    with pytest.raises(ModelError) as caught:
        read_config(write_config(gpt2_fields | {"activation_function": value}))
    assert f"activation_function {value!r}" in caught.value.what
    assert "gelu_new" in (caught.value.hint or "")


COUNTS = ["n_layer", "n_head", "n_embd", "n_positions", "vocab_size", "n_inner"]
FLAGS = [
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
    "reorder_and_upcast_attn",
    "tie_word_embeddings",
    "add_cross_attention",
]
IDS = ["bos_token_id", "eos_token_id"]
WRONG_COUNTS: list[object] = [0, -1, "12", 1.5, 2.0, True, [3], {}, 2**31, 10**40, float("nan"), float("inf")]
WRONG_FLAGS: list[object] = [0, 1, "true", None, [], 1.0]
WRONG_EPSILONS: list[object] = [0, -1e-5, "1e-5", None, True, [1e-5], 2, 1e300, float("nan"), float("inf")]
WRONG_IDS: list[object] = ["0", 0.0, True, [0, "1"], {}]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, value) for field in COUNTS for value in WRONG_COUNTS),
        *((field, None) for field in COUNTS if field != "n_inner"),
        *((field, value) for field in FLAGS for value in WRONG_FLAGS),
        *(("layer_norm_epsilon", value) for value in WRONG_EPSILONS),
        *((field, value) for field in IDS for value in WRONG_IDS),
    ],
)
def test_wrong_values_are_named(field: str, value: object, write_config: Write, gpt2_fields: Fields) -> None:
    with pytest.raises(ModelError) as caught:
        read_config(write_config(gpt2_fields | {field: value}))
    assert field in caught.value.what


def test_heads_have_to_divide_the_width(write_config: Write, gpt2_fields: Fields) -> None:
    with pytest.raises(ModelError, match=r"n_embd \(8\).*n_head \(3\)"):
        read_config(write_config(gpt2_fields | {"n_head": 3}))


@pytest.mark.parametrize(
    "asked",
    [
        {"quantization_config": {"quant_method": "gptq"}},
        {"add_cross_attention": True},
        {"is_encoder_decoder": True},
        {"pruned_heads": {"0": [1]}},
        {"num_experts": 4},
        {"num_local_experts": 8},
        {"use_moe": True},
        {"sliding_window": 4},
        {"sliding_window": "4"},
        {"layer_types": ["full_attention", "sliding_attention"]},
        {"layer_types": "sliding_attention"},
    ],
)
def test_other_mathematics_is_refused_by_name(asked: Fields, write_config: Write, gpt2_fields: Fields) -> None:
    with pytest.raises(ModelError) as caught:
        read_config(write_config(gpt2_fields | asked))
    assert all(field in caught.value.what for field in asked)


@pytest.mark.parametrize("kind", ["bert", "GPT2", "", None, 2, ["gpt2"]])
def test_other_families_are_named(kind: object, write_config: Write, gpt2_fields: Fields) -> None:
    with pytest.raises(ModelError) as caught:
        read_config(write_config(gpt2_fields | {"model_type": kind}))
    assert f"model_type {kind!r}" in caught.value.what
    assert "gpt2" in (caught.value.hint or "")


def test_model_type_is_needed(write_config: Write) -> None:
    with pytest.raises(ModelError, match="model_type is missing"):
        read_config(write_config({"n_layer": 2}))


@pytest.mark.parametrize(
    ("eos", "generation", "expected"),
    [
        (3, None, (3,)),
        ([5, 3], None, (3, 5)),
        (None, None, ()),
        (3, {"eos_token_id": 3}, (3,)),
        (3, {"eos_token_id": [7, 1]}, (1, 3, 7)),
        (None, {"eos_token_id": 4}, (4,)),
        (3, {"eos_token_id": None}, (3,)),
        (50256, None, ()),
        ([-1, 10**30, 10], {"eos_token_id": 11}, (10,)),
    ],
)
def test_end_tokens(
    eos: object, generation: object, expected: tuple[int, ...], write_config: Write, gpt2_fields: Fields
) -> None:
    folder = write_config(gpt2_fields | {"eos_token_id": eos}, generation)
    assert read_config(folder).eos_ids == expected


def test_begin_token(write_config: Write, gpt2_fields: Fields) -> None:
    assert read_config(write_config(gpt2_fields | {"bos_token_id": 4})).bos_id == 4
    assert read_config(write_config(gpt2_fields | {"bos_token_id": None})).bos_id is None
    assert read_config(write_config(gpt2_fields | {"bos_token_id": 11})).bos_id is None
    assert read_config(write_config(gpt2_fields | {"bos_token_id": None}, {"bos_token_id": 2})).bos_id == 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '"gpt2"', "[" * 100_000, "\x00"], ids=lambda text: ascii(text)[:20]
)
def test_broken_files_are_named(text: str, write_config: Write, gpt2_fields: Fields) -> None:
    with pytest.raises(ModelError, match=r"config\.json"):
        read_config(write_config(text))
    with pytest.raises(ModelError, match=r"generation_config\.json"):
        read_config(write_config(gpt2_fields, text))


def test_a_byte_order_mark_is_no_fault(write_config: Write, gpt2_fields: Fields) -> None:
    assert read_config(write_config("\ufeff" + json.dumps(gpt2_fields))).layers == 2


def test_absent_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        read_config(tmp_path)
    (tmp_path / "config.json").mkdir()
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        read_config(tmp_path)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "config.json").open("wb") as stream:
        stream.truncate(10**12)  # nothing but a hole
    with pytest.raises(ModelError, match=r"config\.json is too large"):
        read_config(tmp_path)


def test_a_weights_file_uses_the_configuration_beside_it(write_config: Write, gpt2_fields: Fields) -> None:
    folder = write_config(gpt2_fields)
    (folder / "other.safetensors").touch()
    assert read_config(folder / "other.safetensors") == read_config(folder)


def test_attention_scale(write_config: Write, gpt2_fields: Fields) -> None:
    plain = read_config(write_config(gpt2_fields))
    by_layer = read_config(write_config(gpt2_fields | {"scale_attn_by_inverse_layer_idx": True}))
    unscaled = read_config(write_config(gpt2_fields | {"scale_attn_weights": False}))
    assert [plain.attention_scale(layer) for layer in (0, 1)] == [0.5, 0.5]
    assert [by_layer.attention_scale(layer) for layer in (0, 1)] == [0.5, 0.25]
    assert unscaled.attention_scale(1) == 1


NEWER = ("attention_output_bias", "query_key_norm", "rope", "gated_mlp", "post_norm", "final_norm")
"""Fields that the first recordings did not have."""


def test_recordings_keep_the_configuration(write_config: Write, gpt2_fields: Fields) -> None:
    config = read_config(write_config(gpt2_fields | {"eos_token_id": [1, 2], "bos_token_id": None}))
    stored = json.loads(json.dumps(config.to_dict()))
    assert ModelConfig.from_dict(stored | {"a key of tomorrow": 1}) == config
    for key in stored:
        absent = {other: value for other, value in stored.items() if other != key}
        if key not in ("bos_id", "eos_ids", *NEWER):
            with pytest.raises(ModelError, match=rf"\b{key} is missing"):
                ModelConfig.from_dict(absent)
        with pytest.raises(ModelError, match=rf"\b{key}\b"):
            ModelConfig.from_dict(stored | {key: {}})
    assert ModelConfig.from_dict({key: stored[key] for key in stored if key not in NEWER}) == config
