"""The settings file: what it may say, and what is said about what it may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutaway.core import CutawayError
from cutaway.tui.keys import KEYS
from cutaway.tui.options import DEFAULTS
from cutaway.tui.settings import read_settings, settings_path


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "settings.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def complaint(folder: Path, text: str | bytes) -> str:
    with pytest.raises(CutawayError) as caught:
        read_settings(DEFAULTS, write(folder, text))
    return str(caught.value)


def test_no_file_changes_nothing(tmp_path: Path) -> None:
    assert read_settings(DEFAULTS, tmp_path / "none.toml") == {}


def test_every_setting_may_be_set(tmp_path: Path) -> None:
    settings = {
        "model": "verse",
        "max_new_tokens": 9,
        "greedy": True,
        "temperature": 0.5,
        "top_k": 0,
        "top_p": 1,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "seed": 0,
        "ignore_eos": False,
        "threads": 2,
        "fps": 30,
        "theme": "light",
        "colormap": "grey",
        "lang": "en",
        "output_dir": "/tmp",
    }
    keys = {"run": "p", "next_token": "right,j"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    lines += ["[keys]", *(f"{name} = {json.dumps(value)}" for name, value in keys.items())]
    assert read_settings(DEFAULTS, write(tmp_path, "# mine\n" + "\n".join(lines))) == settings | {"keys": keys}
    one_run = {"chat", "system", "prompt", "prompt_file", "prompt_ids", "ablate", "scale", "step", "download"}
    assert set(DEFAULTS) - set(settings) - {"keys"} == one_run


def test_every_key_may_be_changed(tmp_path: Path) -> None:
    lines = ["[keys]", *(f'{key.name} = "{key.keys}"' for key in KEYS)]
    assert read_settings(DEFAULTS, write(tmp_path, "\n".join(lines))) == {"keys": {key.name: key.keys for key in KEYS}}
    assert read_settings(DEFAULTS, write(tmp_path, "[keys]")) == {"keys": {}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[keys]\nnext_tokn = 'j'", "no key called next_tokn … did you mean next_token?"),
        ("[keys]\ntoggle_run = 'p'", "no key called toggle_run"),
        ("[keys]\nrun = 3", "the setting keys.run is 3 … it must be keys in quotes"),
        ("[keys]\nrun = ''", "keys.run is ''"),
        ("[keys]\nrun = ['p']", "keys.run is ['p']"),
        ("keys = 'p'", "the setting keys is 'p' … it must be a table"),
        ("keys = ['p']", "it must be a table"),
    ],
)
def test_a_key_that_makes_no_sense_is_named(tmp_path: Path, text: str, expected: str) -> None:
    said = complaint(tmp_path, text)
    assert all(part in said for part in expected.split(" … ")) and "settings.toml" in said


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("tempreature = 1.0", "temperature"), ("topk = 3", "top_k"), ("[theme]\nname = 'x'", ""), ("prompt = 'hi'", "")],
)
def test_an_unknown_key_is_named_with_the_nearest_one(tmp_path: Path, text: str, nearest: str) -> None:
    said = complaint(tmp_path, text)
    assert str(tmp_path / "settings.toml") in said
    assert text.split(" ")[0].strip("[]").split("]")[0] in said
    assert nearest in said


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("temperature = 'hot'", "a number"),
        ("temperature = true", "a number"),
        ("greedy = 1", "true or false"),
        ("theme = 3", "text in quotes"),
        ("top_k = -1", "0 or more"),
        ("top_k = 2.5", "whole number"),
        ("max_new_tokens = 0", "1 or more"),
        ("threads = true", "whole number"),
        ("fps = 0", "1 or more"),
        ("seed = [1]", "whole number"),
        ("model = ['a']", "text"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(tmp_path: Path, line: str, expected: str) -> None:
    said = complaint(tmp_path, line)
    assert line.split(" ")[0] in said and expected in said and "settings.toml" in said


@pytest.mark.parametrize("text", ["temperature = ", "a = 1\na = 2", b"\xff\xfe", "x" * 10_000])
def test_what_is_no_toml_is_one_sentence(tmp_path: Path, text: str | bytes) -> None:
    said = complaint(tmp_path, text)
    assert "the settings cannot be read" in said and "settings.toml" in said


def test_a_folder_in_its_place_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CutawayError, match="cannot be read"):
        read_settings(DEFAULTS, tmp_path)


def test_it_is_looked_for_in_the_platform_s_place(empty_home: Path) -> None:
    assert settings_path().name == "settings.toml"
    assert settings_path().is_relative_to(empty_home)
