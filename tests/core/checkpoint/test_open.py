"""Opening folders: one file, several shards, and folders that hold something else."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cutaway.core.checkpoint.open import open_checkpoint
from cutaway.core.errors import ModelError

Write = Callable[..., Path]

ONE = ("F32", (1,), np.float32(1).tobytes())
TWO = ("F32", (1,), np.float32(2).tobytes())


def write_index(folder: Path, weight_map: object) -> None:
    """Write the index of a sharded checkpoint."""
    text = weight_map if isinstance(weight_map, str) else json.dumps({"weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(text, "utf-8")


def test_single_file_of_any_name(write_tensors: Write, tmp_path: Path) -> None:
    write_tensors(tmp_path / "weights.safetensors", {"a": ONE})
    assert list(open_checkpoint(tmp_path)) == ["a"]
    assert list(open_checkpoint(tmp_path / "weights.safetensors")) == ["a"]


def test_the_usual_name_wins(write_tensors: Write, tmp_path: Path) -> None:
    write_tensors(tmp_path / "another.safetensors", {"a": TWO})
    write_tensors(tmp_path / "model.safetensors", {"a": ONE})
    write_index(tmp_path, {"a": "another.safetensors"})
    assert open_checkpoint(tmp_path).array("a") == 1


def test_shards_are_joined_as_the_index_says(write_tensors: Write, tmp_path: Path) -> None:
    second = write_tensors(tmp_path / "two.safetensors", {"b": TWO, "a": TWO})
    first = write_tensors(tmp_path / "one.safetensors", {"a": ONE})
    write_index(tmp_path, {"b": "two.safetensors", "a": "one.safetensors"})
    checkpoint = open_checkpoint(tmp_path)
    assert {name: checkpoint.array(name).item() for name in checkpoint} == {"a": 1, "b": 2}
    assert checkpoint.files == (first, second)
    assert checkpoint.digest() == hashlib.sha256(first.read_bytes() + second.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "shard",
    [
        "../one.safetensors",
        "..",
        "sub/one.safetensors",
        "/etc/one.safetensors",
        "..\\one.safetensors",
        "C:one.safetensors",
        "one\0.safetensors",
        "pytorch_model.bin",
        "",
        3,
        None,
    ],
)
def test_shards_outside_the_folder_are_refused(shard: object, write_tensors: Write, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    for place in (tmp_path, folder, folder / "sub"):
        write_tensors(place / "one.safetensors", {"a": ONE})
    write_index(folder, {"a": shard})
    with pytest.raises(ModelError, match="path") as caught:
        open_checkpoint(folder)
    assert repr(shard) in caught.value.what


@pytest.mark.parametrize(
    ("weight_map", "words"),
    [
        ("{", ["model.safetensors.index.json", "JSON"]),
        ("[]", ["model.safetensors.index.json", "object"]),
        ("{}", ["weight_map"]),
        ({}, ["weight_map"]),
        (["one.safetensors"], ["weight_map"]),
        ({"a": "one.safetensors", "b": "two.safetensors"}, ["two.safetensors", "missing"]),
        ({"a": "one.safetensors", "b": "one.safetensors"}, ["'b'", "one.safetensors", "missing"]),
    ],
)
def test_broken_indexes_are_refused(weight_map: object, words: list[str], write_tensors: Write, tmp_path: Path) -> None:
    write_tensors(tmp_path / "one.safetensors", {"a": ONE})
    write_index(tmp_path, weight_map)
    with pytest.raises(ModelError) as caught:
        open_checkpoint(tmp_path)
    assert all(word in caught.value.what for word in words), caught.value


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["pytorch_model.bin"], ["pytorch_model.bin", "pickle", "safetensors"]),
        (["model.pt"], ["model.pt", "pickle", "safetensors"]),
        (["model-Q8_0.gguf"], ["model-Q8_0.gguf", "GGUF"]),
        (["notes.txt"], ["model.safetensors", "missing"]),
        (["a.safetensors", "b.safetensors"], ["2 safetensors files", "index"]),
    ],
)
def test_folders_without_usable_weights_are_refused(names: list[str], words: list[str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(ModelError) as caught:
        open_checkpoint(tmp_path)
    assert all(word in str(caught.value).replace(str(tmp_path), "") for word in words), caught.value


def test_an_absent_folder_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        open_checkpoint(tmp_path / "nowhere")


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(ModelError, match=r"pytorch_model\.bin is a pickle"):
        open_checkpoint(tmp_path / "pytorch_model.bin")
