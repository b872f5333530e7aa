"""The configurations and tensors of Llama and its kin: every field that changes the mathematics is obeyed or named."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutaway.core import ModelError, load_model
from cutaway.core.checkpoint.config import ModelConfig
from cutaway.core.checkpoint.open import open_checkpoint
from cutaway.core.checkpoint.rope import RopeConfig
from cutaway.core.models.families import FAMILIES, bind, open_folder, read_config
from cutaway.core.models.llama import canonical_name, expected_tensors, minimind_name

Write = Callable[..., Path]
Fields = dict[str, object]

KIN = ["llama", "mistral", "qwen2", "qwen3", "minimind"]


@pytest.fixture
def fields() -> Fields:
    """The config.json of a tiny Llama."""
    return {
        "model_type": "llama",
        "vocab_size": 11,
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 12,
        "max_position_embeddings": 16,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


@pytest.fixture
def write_model(write_config: Write, write_tensors: Write) -> Callable[..., Path]:
    """A function that writes a model of these fields, its tensors full of ones, their names changed by a function."""

    def write(
        fields: Fields,
        rename: Callable[[str], str | None] = lambda name: "model." + name,
        of: Callable[[ModelConfig], ModelConfig] = lambda config: config,
    ) -> Path:
        folder = write_config(fields)
        shapes = expected_tensors(of(read_config(folder)))
        tensors = {}
        for name, shape in shapes.items():
            if renamed := rename(name):
                tensors[renamed] = ("F32", shape, np.ones(shape, "<f4").tobytes())
        write_tensors(folder / "model.safetensors", tensors)
        return folder

    return write


def test_every_field_of_a_real_configuration(model_folder: Callable[[str], Path]) -> None:
    assert read_config(model_folder("qwen3_qknorm")) == ModelConfig(
        family="qwen3",
        layers=2,
        heads=4,
        kv_heads=2,
        head_size=16,
        width=48,
        mlp_width=80,
        positions=256,
        vocabulary=71,
        norm="rms_norm",
        norm_epsilon=1e-6,
        activation="silu",
        position_encoding="rotary",
        scale_attention=True,
        scale_attention_by_layer=False,
        attention_bias=False,
        mlp_bias=False,
        tied_head=True,
        bos_id=1,
        eos_ids=(2,),
        attention_output_bias=True,
        query_key_norm=True,
        rope=RopeConfig(theta=1e6),
        gated_mlp=True,
        post_norm=False,
        final_norm=True,
    )


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("llama", {"kv_heads": 32, "mlp_width": 11008, "positions": 2048, "vocabulary": 32000, "eos_ids": (2,)}),
        ("mistral", {"kv_heads": 8, "mlp_width": 14336, "vocabulary": 32000, "eos_ids": (2,)}),
        ("qwen2", {"kv_heads": 32, "mlp_width": 22016, "positions": 32768, "vocabulary": 151936, "eos_ids": ()}),
        ("qwen3", {"kv_heads": 32, "head_size": 128, "positions": 32768, "query_key_norm": True, "eos_ids": ()}),
    ],
)
def test_absent_fields_mean_what_transformers_means(family: str, expected: Fields, write_config: Write) -> None:
    extra = {"sliding_window": None} if family == "mistral" else {}
    config = read_config(write_config({"model_type": family} | extra))
    common = {"layers": 32, "heads": 32, "width": 4096, "head_size": 128, "norm_epsilon": 1e-6, "tied_head": False}
    for name, value in (common | expected).items():
        assert getattr(config, name) == value, name
    assert config.rope == RopeConfig(theta=10000.0)
    assert (config.attention_bias, config.attention_output_bias) == (family == "qwen2", family != "qwen2")


def test_minimind_assumes_no_sizes_but_a_tied_head(write_config: Write, fields: Fields) -> None:
    bare = {name: value for name, value in fields.items() if name not in ("rope_theta", "bos_token_id", "eos_token_id")}
    config = read_config(write_config(bare | {"model_type": "minimind"}))
    assert config.tied_head and config.rope == RopeConfig(theta=1e6) and (config.bos_id, config.eos_ids) == (1, (2,))
    for name in ("hidden_size", "intermediate_size", "rms_norm_eps", "num_hidden_layers"):
        with pytest.raises(ModelError, match=f"{name} is missing"):
            read_config(write_config({key: value for key, value in bare.items() if key != name} | {
                "model_type": "minimind"}))  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_key_value_heads": None}, {"kv_heads": 4}),
        ({"head_dim": None}, {"head_size": 2}),
        ({"head_dim": 6, "hidden_size": 7}, {"head_size": 6, "width": 7}),
        ({"rms_norm_eps": 1e-3}, {"norm_epsilon": 1e-3}),
        ({"hidden_act": "gelu_pytorch_tanh"}, {"activation": "gelu_tanh"}),
        ({"attention_bias": True}, {"attention_bias": True}),
        ({"mlp_bias": True}, {"mlp_bias": True}),
        ({"tie_word_embeddings": True}, {"tied_head": True}),
        ({"eos_token_id": [2, 5, 400]}, {"eos_ids": [2, 5]}),
        ({"pretraining_tp": 2, "rope_interleaved": False, "partial_rotary_factor": 1.0, "x": [1]}, {}),
        ({"sliding_window": 16}, {}),
    ],
)
def test_fields_are_obeyed(changes: Fields, expected: Fields, write_config: Write, fields: Fields) -> None:
    plain = read_config(write_config(fields)).to_dict()
    assert read_config(write_config(fields | changes)).to_dict() == plain | expected


COUNTS = [
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("intermediate_size", "max_position_embeddings", "head_dim"),
]
WRONG_COUNTS: list[object] = [0, -1, "12", 1.5, True, [3], 2**31, float("nan")]
FLAGS = ["attention_bias", "mlp_bias", "tie_word_embeddings"]
WRONG_FLAGS: list[object] = [0, 1, "no", None, []]
WRONG_NUMBERS: list[object] = [0, -1.0, "1e4", None, True, [1e4], float("nan"), float("inf"), 10**400]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, value) for field in COUNTS for value in WRONG_COUNTS),
        *((field, value) for field in FLAGS for value in WRONG_FLAGS),
        *(("rms_norm_eps", value) for value in WRONG_NUMBERS),
        *(("rope_theta", value) for value in (*WRONG_NUMBERS, 1.0)),
        *(("hidden_act", value) for value in ("gelu_10", "SiLU", None, 1)),
        *(("rope_scaling", value) for value in (1, "linear", ["linear"], True)),
        *(("rope_parameters", value) for value in (1, {"full_attention": {"rope_type": "default"}})),
    ],
)
def test_wrong_values_are_named(field: str, value: object, write_config: Write, fields: Fields) -> None:
    with pytest.raises(ModelError) as caught:
        read_config(write_config(fields | {field: value}))
    assert field in caught.value.what


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": 9}, "hidden_size (9) is not a multiple of num_attention_heads (4)"),
        ({"num_key_value_heads": 3}, "num_attention_heads (4) is not a multiple of num_key_value_heads (3)"),
        ({"head_dim": 5}, "head_dim is 5"),
        ({"hidden_size": 12}, "head_dim is 3"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ({"partial_rotary_factor": 0}, "partial_rotary_factor is 0"),
        ({"rope_interleaved": True}, "rope_interleaved is True"),
        ({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.25}}, "partial_rotary_factor"),
        ({"num_local_experts": 8}, "num_local_experts"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"sliding_window": 15}, "sliding_window is 15"),
    ],
)
def test_what_is_not_implemented_is_refused_by_name(
    changes: Fields, words: str, write_config: Write, fields: Fields
) -> None:
    with pytest.raises(ModelError) as caught:
        read_config(write_config(fields | changes))
    assert words in caught.value.what


# Windows of attention


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"model_type": "mistral"}, None),
        ({"model_type": "mistral", "max_position_embeddings": 4097}, "sliding_window is 4096"),
        ({"model_type": "mistral", "max_position_embeddings": 4097, "sliding_window": None}, None),
        ({"model_type": "mistral", "sliding_window": 8}, "sliding_window is 8"),
        ({"model_type": "qwen2", "sliding_window": 8}, None),
        ({"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": False}, None),
        ({"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": True}, "sliding_window is 8"),
        ({"model_type": "qwen3", "sliding_window": 16, "use_sliding_window": True}, None),
        ({"model_type": "qwen3", "sliding_window": 8, "use_sliding_window": True,
          "layer_types": ["full_attention", "full_attention"]}, None),
        ({"model_type": "qwen3", "sliding_window": 8, "use_sliding_window": True,
          "layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
    ],
)  # fmt: skip
def test_an_active_window_is_refused(changes: Fields, refused: str | None, write_config: Write, fields: Fields) -> None:
    folder = write_config(fields | changes)
    if refused is None:
        read_config(folder)
    else:
        with pytest.raises(ModelError) as caught:
            read_config(folder)
        assert refused in caught.value.what


# Rotation, in both spellings


LLAMA3: Fields = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 4}
READ3 = RopeConfig(
    500.0, "llama3", factor=8.0, original_positions=4, low_frequency_factor=1.0, high_frequency_factor=4.0
)
YARN: Fields = {"factor": 4.0, "original_max_position_embeddings": 4}
ROTATIONS: list[tuple[str, Fields, RopeConfig]] = [
    ("default", {}, RopeConfig(500.0)),
    ("linear", {"factor": 4}, RopeConfig(500.0, "linear", factor=4.0)),
    ("llama3", LLAMA3, READ3),
    ("llama3", {name: LLAMA3[name] for name in list(LLAMA3)[:3]}, replace(READ3, original_positions=16)),
    ("yarn", YARN | {"attention_factor": 1.0}, RopeConfig(500.0, "yarn", 4.0, 4)),
    ("yarn", YARN, RopeConfig(500.0, "yarn", 4.0, 4, attention_factor=0.1 * math.log(4) + 1)),
    (
        "yarn",
        YARN | {"beta_fast": 16, "beta_slow": 2, "truncate": False, "mscale": 0.5, "mscale_all_dim": 1},
        RopeConfig(
            500.0, "yarn", 4.0, 4, beta_fast=16.0, beta_slow=2.0, truncate=False,
            attention_factor=(0.05 * math.log(4) + 1) / (0.1 * math.log(4) + 1),
        ),
    ),
    ("yarn", {"original_max_position_embeddings": 8, "attention_factor": 1}, RopeConfig(500.0, "yarn", 2.0, 8)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "expected"), ROTATIONS)
def test_both_spellings_say_the_same(
    kind: str, values: Fields, expected: RopeConfig, write_config: Write, fields: Fields
) -> None:
    old, new = fields | {"rope_theta": 500.0}, {key: value for key, value in fields.items() if key != "rope_theta"}
    for spelled in (
        old | {"rope_scaling": {"rope_type": kind} | values},
        old | {"rope_scaling": {"type": kind} | values, "rope_parameters": None},
        old | {"rope_parameters": {"rope_type": kind} | values},
        old | {"rope_theta": 7.0, "rope_parameters": {"rope_type": kind, "type": kind, "rope_theta": 500.0} | values},
        new | {"rope_parameters": {"rope_type": kind, "rope_theta": 500} | values},
        new | {"rope_scaling": {"rope_type": kind, "rope_theta": 500} | values},
    ):
        config = read_config(write_config(spelled))
        assert config.rope == expected
        assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize("kind", ["dynamic", "longrope", "su", "mrope", "LINEAR", "", 1, None])
def test_other_rotations_are_named(kind: object, write_config: Write, fields: Fields) -> None:
    for key in ("rope_scaling", "rope_parameters"):
        for name in ("rope_type", "type"):
            with pytest.raises(ModelError, match="type") as caught:
                read_config(write_config(fields | {key: {name: kind, "factor": 2.0}}))
            assert f"{name} {kind!r}" in caught.value.what and "llama3" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("described", "named"),
    [
        ({"rope_type": "linear"}, "factor is missing"),
        ({"rope_type": "linear", "factor": 0}, "factor"),
        ({"rope_type": "linear", "factor": "2"}, "factor"),
        ({"rope_type": "llama3"} | LLAMA3 | {"low_freq_factor": None}, "low_freq_factor"),
        ({"rope_type": "llama3"} | LLAMA3 | {"high_freq_factor": 1.0}, "high_freq_factor"),
        ({"rope_type": "llama3"} | LLAMA3 | {"original_max_position_embeddings": 0}, "original_max_position"),
        ({"rope_type": "yarn"} | YARN | {"beta_fast": "32"}, "beta_fast"),
        ({"rope_type": "yarn"} | YARN | {"truncate": 1}, "truncate"),
        ({"rope_type": "yarn"} | YARN | {"attention_factor": -1}, "attention_factor"),
    ],
)
def test_wrong_values_of_a_rotation_are_named(
    described: Fields, named: str, write_config: Write, fields: Fields
) -> None:
    with pytest.raises(ModelError, match=named):
        read_config(write_config(fields | {"rope_scaling": described}))


def test_two_rotations_that_differ(write_config: Write, fields: Fields) -> None:
    linear: Fields = {"rope_type": "linear", "factor": 2.0}
    both = {"rope_scaling": linear, "rope_parameters": linear}
    assert read_config(write_config(fields | both)).rope == RopeConfig(10000.0, "linear", 2.0)
    with pytest.raises(ModelError, match="rope_scaling and rope_parameters"):
        read_config(write_config(fields | both | {"rope_parameters": linear | {"factor": 3.0}}))


def test_minimind_switches_its_scaling(write_config: Write, fields: Fields) -> None:
    yarn = {"model_type": "minimind", "rope_scaling": {"type": "yarn", "attention_factor": 1.0} | YARN}
    assert read_config(write_config(fields | yarn | {"inference_rope_scaling": True})).rope is not None
    for contradiction in (yarn | {"inference_rope_scaling": False}, {"model_type": "minimind"} | {
        "inference_rope_scaling": True}):  # fmt: skip
        with pytest.raises(ModelError, match="inference_rope_scaling"):
            read_config(write_config(fields | contradiction))


# Recordings


@pytest.mark.parametrize(("field", "value"), [("theta", "x"), ("scaling", "longrope"), ("factor", None), ("theta", 0)])
def test_a_damaged_rotation_is_named(field: str, value: object, write_config: Write, fields: Fields) -> None:
    stored: dict[str, Any] = json.loads(json.dumps(read_config(write_config(fields)).to_dict()))
    with pytest.raises(ModelError, match=rf"rope.*{field}"):
        ModelConfig.from_dict(stored | {"rope": stored["rope"] | {field: value}})


# Tensors


@pytest.mark.parametrize("family", KIN)
@pytest.mark.parametrize("prefix", ["", "model."])
def test_prefixes(family: str, prefix: str, write_model: Callable[..., Path], fields: Fields) -> None:
    folder = write_model(fields | {"model_type": family}, lambda name: prefix + name)
    opened = open_folder(folder)
    assert list(opened.weights) == list(expected_tensors(opened.config))
    assert opened.family is FAMILIES[family]


@pytest.mark.parametrize(
    ("changes", "biases"),
    [
        ({}, set()),
        ({"attention_bias": True}, {"q_proj", "k_proj", "v_proj", "o_proj"}),
        ({"mlp_bias": True}, {"gate_proj", "up_proj", "down_proj"}),
        ({"model_type": "qwen2"}, {"q_proj", "k_proj", "v_proj"}),
        ({"model_type": "qwen2", "attention_bias": False}, {"q_proj", "k_proj", "v_proj"}),
        ({"model_type": "qwen3", "attention_bias": True}, {"q_proj", "k_proj", "v_proj", "o_proj"}),
        ({"model_type": "mistral", "attention_bias": True, "mlp_bias": True}, set()),
    ],
)
def test_which_matrices_have_biases(changes: Fields, biases: set[str], write_config: Write, fields: Fields) -> None:
    names = expected_tensors(read_config(write_config(fields | changes)))
    assert {name.split(".")[-2] for name in names if name.endswith(".bias")} == biases


def test_every_parameter_is_needed(write_model: Callable[..., Path], fields: Fields) -> None:
    given = fields | {"attention_bias": True, "mlp_bias": True, "model_type": "llama"}
    for missing in expected_tensors(read_config(write_model(given))):
        folder = write_model(given, lambda name, missing=missing: None if name == missing else name)
        with pytest.raises(ModelError, match=missing.replace(".", r"\.") + " is missing"):
            open_folder(folder)


@pytest.mark.parametrize(("held", "served"), [(["embed_tokens", "lm_head"], "embed_tokens"), (["lm_head"], "lm_head")])
def test_either_matrix_serves_a_tied_model(
    held: list[str], served: str, write_model: Callable[..., Path], fields: Fields
) -> None:
    untied = write_model(fields, lambda name: name if name.split(".")[0] in (*held, "layers", "norm") else None)
    (untied / "config.json").write_text(json.dumps(fields | {"tie_word_embeddings": True}))
    opened = open_folder(untied)
    assert opened.weights.info("embed_tokens.weight").name == f"{served}.weight"
    assert "lm_head.weight" not in opened.weights


def test_minimind_is_told_by_its_tensors(write_model: Callable[..., Path], fields: Fields) -> None:
    minimind = fields | {"model_type": "minimind"}
    second = open_folder(write_model(minimind)).config
    third = open_folder(write_model(minimind, of=lambda config: replace(config, query_key_norm=True))).config
    first = open_folder(write_model(minimind, lambda name: OLD_NAMES(name))).config
    assert (second.query_key_norm, third.query_key_norm, first.query_key_norm) == (False, True, False)
    rotations = [config.rope.interleaved for config in (second, third, first) if config.rope]
    assert rotations == [False, False, True]


def OLD_NAMES(name: str) -> str:
    """A MiniMind tensor's name before April 2025."""
    for old, new in (
        ("tok_embeddings", "embed_tokens"), ("attention_norm", "input_layernorm"), ("attention.wq", "self_attn.q_proj"),
        ("ffn_norm", "post_attention_layernorm"), ("attention.wk", "self_attn.k_proj"),
        ("attention.wv", "self_attn.v_proj"), ("attention.wo", "self_attn.o_proj"), ("output", "lm_head"),
        ("feed_forward.w1", "mlp.gate_proj"), ("feed_forward.w2", "mlp.down_proj"), ("feed_forward.w3", "mlp.up_proj"),
    ):  # fmt: skip
        name = name.replace(new, old)
    return name


def test_names_of_every_age(write_config: Write, fields: Fields) -> None:
    for name in expected_tensors(read_config(write_config(fields | {"attention_bias": True}))):
        assert minimind_name(name) == minimind_name("model." + name) == canonical_name("model." + name) == name
        if not name.endswith(".bias"):
            assert minimind_name(OLD_NAMES(name)) == name


def test_fields_of_the_first_minimind(write_config: Write, fields: Fields) -> None:
    names = {
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "num_key_value_heads": "n_kv_heads",
        "intermediate_size": "hidden_dim",
        "rms_norm_eps": "norm_eps",
        "max_position_embeddings": "max_seq_len",
    }
    today = fields | {"model_type": "minimind"}
    config = read_config(write_config(today))
    assert read_config(write_config({names.get(key, key): value for key, value in today.items()})) == config
    with pytest.raises(ModelError, match="hidden_size and dim"):
        read_config(write_config(today | {"dim": 16}))
    with pytest.raises(ModelError, match="n_heads"):
        read_config(write_config({names.get(key, key): value for key, value in today.items()} | {"n_heads": 0}))


def test_a_mixture_of_experts_is_refused(model_folder: Callable[[str], Path]) -> None:
    with pytest.raises(ModelError, match="use_moe is True"):
        load_model(model_folder("opt_minimind3_moe"))


def test_shards_and_buffers(model_folder: Callable[[str], Path]) -> None:
    folder = model_folder("llama_headdim_mqa")
    checkpoint = open_checkpoint(folder)
    weights = bind(checkpoint, read_config(folder))
    assert len(checkpoint.files) == 2 and weights["lm_head.weight"].shape == (79, 42)
    assert sum(math.prod(weights.info(name).shape) for name in weights) == 39102


def test_parts_of_the_model(write_config: Write, fields: Fields) -> None:
    layout = FAMILIES["qwen3"].layout
    names = expected_tensors(read_config(write_config(fields | {"model_type": "qwen3"})))
    parts = {layout.part(name): name for name in names}
    assert set(parts) == {"embedding", "attention", "mlp", "norms", "head"}
    assert layout.part("layers.0.self_attn.q_norm.weight") == layout.part("norm.weight") == "norms"
    assert layout.part("layers.1.self_attn.o_proj.bias") == "attention"
