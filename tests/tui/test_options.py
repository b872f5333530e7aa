"""Where options come from, and where the prompt does."""

from __future__ import annotations

import argparse
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from cutaway.core import CutawayError
from cutaway.tui.options import DEFAULTS, add_app_options, add_model_options, read_prompt, read_source, resolve
from cutaway.tui.settings import settings_path

Pipe = Callable[[bytes], None]


def typed(*arguments: str) -> Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_model_options(parser)
    add_app_options(parser)
    return parser.parse_args(arguments)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this person's settings file is, empty so far."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    path = settings_path()
    path.parent.mkdir(parents=True)
    path.write_text("")
    return path


def test_defaults_hold_where_nobody_says_anything() -> None:
    assert vars(resolve(typed(), {})) == DEFAULTS


def test_what_is_typed_goes_over_the_environment_over_the_settings(settings: Path) -> None:
    settings.write_text("model = 'from-settings'\ntemperature = 0.1\ntop_k = 7\n")
    assert resolve(typed(), {}).model == "from-settings"
    assert resolve(typed(), {"CUTAWAY_MODEL": "from-environment"}).model == "from-environment"
    assert resolve(typed("--model", "typed"), {"CUTAWAY_MODEL": "from-environment"}).model == "typed"
    assert resolve(typed("--model", "typed"), {}).model == "typed"
    assert resolve(typed(), {"CUTAWAY_MODEL": ""}).model == "from-settings"
    options = resolve(typed("--temperature", "0.9"), {})
    assert (options.temperature, options.top_k, options.top_p) == (0.9, 7, 0.95)


def test_the_environment_is_looked_at_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTAWAY_MODEL", "from-environment")
    assert resolve(typed()).model == "from-environment"


def test_typing_a_default_counts(settings: Path) -> None:
    settings.write_text("temperature = 0.1\ngreedy = true\n")
    assert resolve(typed("--temperature", "0.8"), {}).temperature == 0.8


def test_every_option_can_be_typed() -> None:
    options = resolve(
        typed(
            *"--model M --download --prompt-ids 1,2,3 --scale 2.5=0.5 --chat --system S --max-new-tokens 5".split(),
            *"--ignore-eos --ablate 1.2 --ablate 3.mlp --threads 2 --greedy --temperature 1.5 --top-k 3".split(),
            *"--top-p 0.5 --min-p 0.1 --repetition-penalty 1.2 --seed 7 --step --fps 12 --theme light".split(),
            *"--colormap grey --lang de --output-dir D".split(),
        ),
        {},
    )
    assert options.prompt_ids == [1, 2, 3] and options.ablate == ["1.2", "3.mlp"]
    assert options.scale == ["2.5=0.5"]
    assert options.chat and options.ignore_eos and options.greedy and options.step and options.download
    same = {name for name in DEFAULTS if getattr(options, name) == DEFAULTS[name]}
    assert same == {"prompt", "prompt_file", "keys"}
    assert resolve(typed("--prompt", "P"), {}).prompt == "P"
    assert resolve(typed("--prompt-file", "F"), {}).prompt_file == "F"


def test_a_flag_of_the_settings_can_be_taken_back(settings: Path) -> None:
    settings.write_text("greedy = true\nignore_eos = true\n")
    options = resolve(typed("--no-greedy"), {})
    assert not options.greedy and options.ignore_eos


@pytest.mark.parametrize(
    "arguments",
    [
        "--max-new-tokens 0", "--max-new-tokens -1", "--max-new-tokens x", "--threads 0", "--fps 0", "--fps ²",
        "--prompt-ids 1,x", "--prompt-ids 1,,2", "--prompt-ids ²", "--temperature hot", "--temperature -0.1",
        "--temperature inf", "--top-k 1.5", "--top-k -1", "--top-p 1.1", "--min-p nan", "--repetition-penalty 0",
        "--seed 1.5", "--ablate x", "--ablate 1.2.3", "--scale 1.2", "--scale 1.2=x", "--prompt A --prompt-ids 1",
    ],
)  # fmt: skip
def test_values_that_make_no_sense_are_wrong_usage(arguments: str) -> None:
    with pytest.raises(argparse.ArgumentError):
        typed(*arguments.split())


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Pipe:
    """A function that pipes bytes into standard input."""

    def pipe(data: bytes) -> None:
        reader, writer = os.pipe()
        os.write(writer, data)
        os.close(writer)
        monkeypatch.setattr(sys, "stdin", open(reader, encoding="utf-8"))

    return pipe


def prompt_of(**options: object) -> str | None:
    return read_prompt(Namespace(**(DEFAULTS | options)))


def test_a_typed_prompt_is_taken_as_it_is() -> None:
    assert prompt_of(prompt="two words\n") == "two words\n"
    assert prompt_of(prompt="") == ""


@pytest.mark.parametrize(
    ("data", "prompt"),
    [
        (b"hi\n", "hi"),
        (b"hi", "hi"),
        (b"hi\n\n", "hi\n"),
        (b"hi\r\n", "hi"),
        (b"hi\r", "hi\r"),
        (b"", ""),
        (b"\n", ""),
        ("漢字 😀\n".encode(), "漢字 😀"),
        (b"\x1b]0;evil\x07\x00\n", "\x1b]0;evil\x07\x00"),
        (b" a\tb ", " a\tb "),
    ],
)
def test_a_prompt_from_a_pipe_or_a_file_loses_one_newline(
    piped: Pipe, tmp_path: Path, data: bytes, prompt: str
) -> None:
    piped(data)
    assert prompt_of(prompt_file="-") == prompt
    piped(data)
    assert prompt_of() == (prompt if data else None)  # an empty pipe says nothing
    (tmp_path / "prompt.txt").write_bytes(data)
    assert prompt_of(prompt_file=str(tmp_path / "prompt.txt")) == prompt


def test_a_pipe_is_read_only_where_the_prompt_is_not_given_otherwise(piped: Pipe) -> None:
    piped(b"piped")
    assert prompt_of(prompt="typed") == "typed"
    assert read_source(Namespace(**(DEFAULTS | {"prompt_ids": [1, 2]}))) == (1, 2)
    assert read_source(Namespace(**DEFAULTS), piped=False) is None
    assert read_source(Namespace(**DEFAULTS)) == "piped"


@pytest.mark.parametrize("where", ["standard input", "prompt.txt"])
def test_what_is_not_utf8_is_one_sentence(piped: Pipe, tmp_path: Path, where: str) -> None:
    piped(b"ok \xff\xfe")
    (tmp_path / "prompt.txt").write_bytes(b"ok \xff\xfe")
    options = {} if where == "standard input" else {"prompt_file": str(tmp_path / "prompt.txt")}
    with pytest.raises(CutawayError, match="the prompt is not UTF-8: byte 0xff at offset 3") as caught:
        prompt_of(**options)
    assert where in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(CutawayError, match="the prompt cannot be read") as caught:
            prompt_of(prompt_file=str(path))
        assert str(path) in str(caught.value)


def test_a_terminal_or_nothing_is_no_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    for stdin in (None, open(os.devnull, encoding="utf-8")):
        monkeypatch.setattr(sys, "stdin", stdin)
        assert prompt_of() is None
