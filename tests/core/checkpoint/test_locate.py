"""Names of models: a path before an embedded model before the Hugging Face cache."""

import os
from pathlib import Path

import pytest

from cutaway.core.checkpoint.locate import embedded_models, locate
from cutaway.core.errors import ModelError


@pytest.fixture(autouse=True)
def away_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file and no cache of the developer's is found by accident."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def make_snapshot(hub: Path, folder: str, commit: str, *, main: str | None = None) -> Path:
    """Put a snapshot into a cache, and let refs/main say *main* if that is given."""
    snapshot = hub / folder / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").touch()
    if main is not None:
        (hub / folder / "refs").mkdir(exist_ok=True)
        (hub / folder / "refs" / "main").write_text(main)
    return snapshot


def test_the_embedded_model_is_found_by_name() -> None:
    assert "fable" in embedded_models()
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(os.listdir(locate("fable")))


def test_an_existing_path_wins_over_a_name() -> None:
    Path("fable").mkdir()
    assert locate("fable") == Path("fable")


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "weights.safetensors"
    file.touch()
    Path("model.gguf").touch()
    (tmp_path / "home" / "model").mkdir(parents=True)
    assert locate(file) == file
    assert locate("model.gguf") == Path("model.gguf")
    assert locate(str(tmp_path)) == tmp_path
    assert locate("~/model") == tmp_path / "home" / "model"


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.PTH", "last.ckpt"])
def test_pickles_are_refused(name: str) -> None:
    Path(name).write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(ModelError, match=r"pickle.*any code.*safetensors") as caught:
        locate(name)
    assert name in caught.value.what


def test_other_files_are_refused() -> None:
    Path("notes.txt").touch()
    with pytest.raises(ModelError, match=r"notes\.txt is not a model"):
        locate("notes.txt")


def test_the_cache_is_found_through_its_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = make_snapshot(tmp_path / "home/.cache/huggingface/hub", "models--o--n", "c0", main="c0")
    monkeypatch.delenv("HF_HOME")
    assert locate("o/n") == expected
    for variable, value, hub in (
        ("XDG_CACHE_HOME", "xdg", "xdg/huggingface/hub"),
        ("HF_HOME", "hf", "hf/hub"),
        ("HF_HUB_CACHE", "hub", "hub"),
    ):
        expected = make_snapshot(tmp_path / hub, "models--o--n", "c0", main="c0")
        monkeypatch.setenv(variable, str(tmp_path / value))
        assert locate("o/n") == expected


def test_main_says_which_snapshot(tmp_path: Path) -> None:
    hub = tmp_path / "hf" / "hub"
    make_snapshot(hub, "models--owner--name", "aaaa")
    expected = make_snapshot(hub, "models--owner--name", "bbbb", main="bbbb\n")
    make_snapshot(hub, "models--owner--name", "cccc")
    assert locate("owner/name") == expected


@pytest.mark.parametrize("main", [None, "gone", "../../..", "", "\x00", "é"])
def test_without_a_usable_main_the_last_snapshot_is_taken(main: str | None, tmp_path: Path) -> None:
    hub = tmp_path / "hf" / "hub"
    old = make_snapshot(hub, "models--owner--name", "zzzz", main=main)
    expected = make_snapshot(hub, "models--owner--name", "aaaa")
    os.utime(old, (1, 1))
    assert locate("owner/name") == expected


def test_ids_without_an_owner(tmp_path: Path) -> None:
    expected = make_snapshot(tmp_path / "hf" / "hub", "models--gpt2", "c0", main="c0")
    assert locate("gpt2") == expected


UNKNOWN = [
    "nothing",
    "owner/name",
    "a/b/c",
    "../x",
    "owner/..",
    "",
    " ",
    "a\0b",
    "x" * 5000,
    "\x1b[31m",
    "\udc80",
]


@pytest.mark.parametrize("name", UNKNOWN, ids=lambda name: ascii(name)[:20])
def test_unknown_names_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "hf" / "hub" / "models--owner--name" / "snapshots").mkdir(parents=True)
    with pytest.raises(ModelError, match="fable") as caught:
        locate(name)
    assert caught.value.what.isprintable()
    assert str(tmp_path / "hf" / "hub") in str(caught.value)
