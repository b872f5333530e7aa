"""The cache's folders: which ids they stand for, and which of them came down whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutaway.core.checkpoint.hub import cached_models, cached_snapshot, is_hub_id, missing_file, repository


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder, which is not there yet."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def snapshot(hub_id: str, *names: str, commit: str = "c0") -> Path:
    folder = repository(hub_id) / "snapshots" / commit
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("name", ["gpt2", "owner/name", "a.b-c_d/E.f-g_1", "x" * 96])
def test_hub_ids(name: str) -> None:
    assert is_hub_id(name)


@pytest.mark.parametrize("name", ["", ".", "../x", "a/b/c", "a/../b", "a--b", "/a", "a/", "a b", "é", "a\n", "x" * 97])
def test_what_is_no_hub_id(name: str) -> None:
    assert not is_hub_id(name) and cached_snapshot(name) is None


def test_what_is_in_the_cache(cache: Path) -> None:
    assert cached_models() == []
    for hub_id in ("owner/name", "gpt2", "Another/Model-1.5"):
        snapshot(hub_id)
    (cache / "datasets--a--b" / "snapshots" / "c0").mkdir(parents=True)
    (cache / "models--no--snapshot").mkdir()
    (cache / "models").mkdir()
    (cache / "version.txt").touch()
    assert cached_models() == ["Another/Model-1.5", "gpt2", "owner/name"]


@pytest.mark.parametrize(
    "names",
    [["model.safetensors"], ["other.safetensors"], ["pytorch_model.bin"], ["model.safetensors", "config.json"]],
)
def test_a_whole_snapshot(names: list[str]) -> None:
    assert missing_file(snapshot("owner/name", *names)) is None


def test_weights_that_are_missing() -> None:
    assert missing_file(snapshot("owner/name", "config.json", "tokenizer.json")) == "model.safetensors"


def test_a_link_to_a_blob_that_never_came() -> None:
    folder = snapshot("owner/name", "config.json")
    (folder / "model.safetensors").symlink_to("../../blobs/gone")
    assert missing_file(folder) == "model.safetensors"


def test_a_shard_that_is_missing() -> None:
    folder = snapshot("owner/name", "b.safetensors")
    index = {"weight_map": {"x": "c.safetensors", "y": "a.safetensors", "z": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert missing_file(folder) == "a.safetensors"
    (folder / "a.safetensors").touch()
    (folder / "c.safetensors").touch()
    assert missing_file(folder) is None


@pytest.mark.parametrize("index", ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"x": [1]}}'])
def test_a_broken_index_is_told_by_those_who_open_it(index: str) -> None:
    folder = snapshot("owner/name", "a.safetensors")
    (folder / "model.safetensors.index.json").write_text(index)
    assert missing_file(folder) in (None, "[1]")
