"""What a Llama's config.json says, where several spellings or the code of its kin decide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutaway.core.checkpoint.config import ModelConfig
from cutaway.core.errors import ModelError
from cutaway.core.models.families import read_config

SMALL: dict[str, object] = {
    "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 24, "vocab_size": 11,
    "max_position_embeddings": 64, "rope_theta": 10000.0, "num_key_value_heads": 2, "rms_norm_eps": 1e-6,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0}


def read(folder: Path, model_type: str = "llama", **fields: object) -> ModelConfig:
    (folder / "config.json").write_text(json.dumps({"model_type": model_type, **SMALL, **fields}), "utf-8")
    return read_config(folder)


@pytest.mark.parametrize("kind", ["yarn", "llama3"])
def test_the_original_context_beside_the_scaling_counts(tmp_path: Path, kind: str) -> None:
    scaling = {"rope_type": kind, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    beside = read(tmp_path, rope_scaling=scaling, original_max_position_embeddings=16)
    both = read(
        tmp_path, rope_scaling=scaling | {"original_max_position_embeddings": 32}, original_max_position_embeddings=16
    )
    inside = read(tmp_path, rope_scaling=scaling | {"original_max_position_embeddings": 32})
    assert beside.rope and both.rope and inside.rope
    assert [config.rope.original_positions for config in (beside, both, inside) if config.rope] == [16, 16, 32]


def test_names_of_another_family_are_unknown_fields(tmp_path: Path) -> None:
    config = read(tmp_path, dim=999, max_seq_len=7, n_layers=9, norm_eps=0.5)
    assert (config.width, config.positions, config.layers) == (16, 64, 2)


def test_a_window_that_no_layer_has_is_no_window(tmp_path: Path) -> None:
    window = {"sliding_window": 8, "use_sliding_window": True}
    read(tmp_path, "qwen2", **window, max_window_layers=2)
    with pytest.raises(ModelError, match="sliding_window"):
        read(tmp_path, "qwen2", **window, max_window_layers=1)
    with pytest.raises(ModelError, match="sliding_window"):
        read(tmp_path, "mistral", sliding_window=8)


def test_minimind_sharpens_nothing_unless_told_and_scales_only_longer_contexts(tmp_path: Path) -> None:
    """As its own code does: an absent attention_factor is 1, and a context that is not longer is left alone."""
    scaled = {"inference_rope_scaling": True}
    long = read(tmp_path, "minimind", **scaled, rope_scaling=YARN | {"original_max_position_embeddings": 16})
    told = YARN | {"original_max_position_embeddings": 16, "attention_factor": 1.2}
    assert long.rope and (long.rope.scaling, long.rope.attention_factor) == ("yarn", 1.0)
    sharp = read(tmp_path, "minimind", **scaled, rope_scaling=told)
    assert sharp.rope and sharp.rope.attention_factor == 1.2
    short = read(tmp_path, "minimind", **scaled, rope_scaling=YARN | {"original_max_position_embeddings": 64})
    assert short.rope and short.rope.scaling == "default"
    other = read(tmp_path, "llama", rope_scaling=YARN | {"original_max_position_embeddings": 16})
    assert other.rope and other.rope.attention_factor > 1.1
