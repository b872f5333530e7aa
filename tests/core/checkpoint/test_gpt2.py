"""GPT-2's tensors: found under any prefix, complete, and of the shapes that the configuration asks for."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cutaway.core.checkpoint.config import ModelConfig
from cutaway.core.checkpoint.locate import locate
from cutaway.core.checkpoint.open import open_checkpoint
from cutaway.core.errors import ModelError
from cutaway.core.models.families import bind, read_config
from cutaway.core.models.gpt2 import canonical_name, expected_tensors

Write = Callable[..., Path]
Shapes = dict[str, tuple[int, ...]]


@pytest.fixture
def config(write_config: Write, gpt2_fields: dict[str, object]) -> ModelConfig:
    return read_config(write_config(gpt2_fields))


@pytest.fixture
def write_shapes(write_tensors: Write, tmp_path: Path) -> Callable[..., Path]:
    """A function that writes tensors of the given shapes, each full of its own number 0, 1, 2 …"""

    def write(shapes: Shapes, dtypes: dict[str, str] | None = None) -> Path:
        kinds = {"F32": "<f4", "I8": "i1"}
        tensors = {}
        for number, (name, shape) in enumerate(shapes.items()):
            dtype = (dtypes or {}).get(name, "F32")
            tensors[name] = (dtype, shape, np.full(shape, number, kinds[dtype]).tobytes())
        return write_tensors(tmp_path / "x.safetensors", tensors)

    return write


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("wte.weight", "wte.weight"),
        ("transformer.wte.weight", "wte.weight"),
        ("transformer.transformer.h.0.ln_1.bias", "h.0.ln_1.bias"),
        ("transformer.h.11.attn.c_attn.bias", "h.11.attn.c_attn.bias"),
        ("lm_head.weight", "lm_head.weight"),
        ("transformer.h.0.attn.bias", None),
        ("h.11.attn.masked_bias", None),
    ],
)
def test_canonical_names(name: str, canonical: str | None) -> None:
    assert canonical_name(name) == canonical


def test_expected_tensors_count_the_parameters_of_gpt2(write_config: Write) -> None:
    config = read_config(write_config({"model_type": "gpt2"}))
    shapes = expected_tensors(config)
    assert len(shapes) == 148
    assert sum(math.prod(shape) for shape in shapes.values()) == 124_439_808
    assert "lm_head.weight" not in shapes
    assert expected_tensors(replace(config, tied_head=False))["lm_head.weight"] == (50257, 768)


@pytest.mark.parametrize("prefix", ["", "transformer.", "transformer.transformer."])
def test_prefixes_and_buffers(prefix: str, config: ModelConfig, write_shapes: Callable[..., Path]) -> None:
    expected = expected_tensors(config)
    shapes = {prefix + name: shape for name, shape in expected.items()}
    buffers = {f"{prefix}h.0.attn.bias": (1, 1, 16, 16), f"{prefix}h.0.attn.masked_bias": ()}
    weights = bind(open_checkpoint(write_shapes(shapes | buffers)), config)
    assert list(weights) == list(expected)
    for number, (name, shape) in enumerate(expected.items()):
        assert weights[name].shape == weights.info(name).shape == shape
        assert (weights[name] == number).all()
    assert np.shares_memory(weights["wte.weight"], weights["wte.weight"])


@pytest.mark.parametrize(("held", "served"), [(["wte", "lm_head"], "wte"), (["wte"], "wte"), (["lm_head"], "lm_head")])
def test_either_matrix_serves_a_tied_model(
    held: list[str], served: str, config: ModelConfig, write_shapes: Callable[..., Path]
) -> None:
    shapes: Shapes = {f"{name}.weight": (11, 8) for name in ("wte", "lm_head")} | expected_tensors(config)
    for name in {"wte", "lm_head"} - set(held):
        del shapes[f"{name}.weight"]
    weights = bind(open_checkpoint(write_shapes(shapes)), config)
    assert weights.info("wte.weight").name == f"{served}.weight"
    assert "lm_head.weight" not in weights


def test_an_untied_head_is_needed(config: ModelConfig, write_shapes: Callable[..., Path]) -> None:
    untied = replace(config, tied_head=False)
    checkpoint = open_checkpoint(write_shapes(expected_tensors(config)))
    with pytest.raises(ModelError, match=r"lm_head\.weight is missing, .*tie"):
        bind(checkpoint, untied)
    checkpoint = open_checkpoint(write_shapes(expected_tensors(untied)))
    assert bind(checkpoint, untied)["lm_head.weight"].shape == (11, 8)


def test_every_parameter_is_needed(config: ModelConfig, write_shapes: Callable[..., Path]) -> None:
    expected = expected_tensors(config)
    for name in expected:
        checkpoint = open_checkpoint(write_shapes({key: expected[key] for key in expected if key != name}))
        with pytest.raises(ModelError, match="missing") as caught:
            bind(checkpoint, config)
        assert name in caught.value.what


def test_every_shape_is_checked(config: ModelConfig, write_shapes: Callable[..., Path]) -> None:
    expected = expected_tensors(config)
    for name, shape in expected.items():
        other = (*shape[:-1], shape[-1] + 1)
        with pytest.raises(ModelError, match="shape") as caught:
            bind(open_checkpoint(write_shapes(expected | {name: other})), config)
        assert all(part in caught.value.what for part in (name, str(list(other)), str(list(shape))))


def test_matrices_that_lie_the_other_way_round(config: ModelConfig, write_shapes: Callable[..., Path]) -> None:
    name = "h.0.attn.c_attn.weight"
    turned = {name: expected_tensors(config)[name][::-1]}
    with pytest.raises(ModelError, match=r"c_attn.*shape \[24, 8\].*\[8, 24\]"):
        bind(open_checkpoint(write_shapes(expected_tensors(config) | turned)), config)


def test_integers_are_not_parameters(config: ModelConfig, write_shapes: Callable[..., Path]) -> None:
    file = write_shapes(expected_tensors(config), {"h.1.mlp.c_fc.weight": "I8"})
    with pytest.raises(ModelError, match=r"h\.1\.mlp\.c_fc\.weight.*dtype I8"):
        bind(open_checkpoint(file), config)


def test_one_parameter_under_two_names(config: ModelConfig, write_shapes: Callable[..., Path]) -> None:
    shapes = expected_tensors(config) | {"transformer.wte.weight": (11, 8)}
    with pytest.raises(ModelError, match=r"wte\.weight.*same parameter"):
        bind(open_checkpoint(write_shapes(shapes)), config)


def test_a_configuration_of_many_layers_is_refused_at_once(
    write_config: Write,
    gpt2_fields: dict[str, object],
    write_shapes: Callable[..., Path],
    config: ModelConfig,
) -> None:
    deep = read_config(write_config(gpt2_fields | {"n_layer": 10_000}))
    with pytest.raises(ModelError, match=r"h\.2\.ln_1\.weight is missing"):
        bind(open_checkpoint(write_shapes(expected_tensors(config))), deep)


@pytest.mark.parametrize(
    "name",
    [
        "gpt2_base",
        "gpt2_bf16_sharded",
        "gpt2_ctx16",
        "gpt2_layer_scale",
        "gpt2_legacy_buffers",
        "gpt2_mini_scaled",
        "gpt2_noprefix_f16",
        "gpt2_relu_oddheads",
        "gpt2_untied_gelu",
    ],
)
def test_reference_models_open(name: str, model_folder: Callable[[str], Path]) -> None:
    folder = model_folder(name)
    config = read_config(folder)
    weights = bind(open_checkpoint(folder), config)
    with np.load(folder / "expected.npz") as expected:
        ids = expected["input_ids"].ravel()
        embedded = weights["wte.weight"][ids] + weights["wpe.weight"][: len(ids)]
        np.testing.assert_allclose(embedded, expected["embed"].reshape(embedded.shape), atol=1e-6)
    assert all(weights[tensor].dtype == np.float32 for tensor in weights)


def test_the_embedded_model_opens() -> None:
    folder = locate("fable")
    weights = bind(open_checkpoint(folder), read_config(folder))
    assert sum(math.prod(weights.info(name).shape) for name in weights) == 4_339_200
    assert {weights.info(name).dtype for name in weights} == {"F16"}
    assert all(np.isfinite(weights[name]).all() for name in weights)
