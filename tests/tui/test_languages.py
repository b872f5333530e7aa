"""Every word on the screen goes through the catalogue: in a made-up language none is left in English.

The language is chosen after everything is imported, as a person's settings are read late; a message translated
when its module was imported would stay English here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cutaway.core.catalogue import tr
from cutaway.tui.cli import COMMANDS, main
from cutaway.tui.commands.export import VIEWS
from cutaway.tui.help_screen import HelpScreen
from cutaway.tui.keys import KEYS
from cutaway.tui.stages import Stages
from cutaway.widgets.stage_strip import StageStrip
from cutaway.widgets.title_line import TitleLine

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person

ENGLISH = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
FOREIGN = "абцдефгхийклмнопярстувшхузАБЦДЕФГХИЙКЛМНОПЯРСТУВШХУЗ"
"""Letters of the same width, so that the screen keeps its layout."""

NAMES = {
    "cutaway", "GPT", "Cutaway", "SVG", "MLP", "softmax",
    "top", "min", "k", "p", "s", "T", "u", "L", "H", "v", "d",
    "space", "home", "end", "tab", "shift", "esc", "ctrl", "enter",
    "b", "c", "e", "f", "l", "n", "q", "r", "t", "w", "z", "S", "W", "j",
}  # fmt: skip
"""What stays as it is: names, symbols, keys."""

Speak = Callable[[Callable[[str], str]], None]


def made_up(message: str) -> str:
    """*message* in the made-up language, its gaps left alone."""
    parts = re.split(r"(\{[^{}]*\})", message)
    return "".join(part if part.startswith("{") else part.translate(str.maketrans(ENGLISH, FOREIGN)) for part in parts)


def english_in(text: str, *also: str) -> set[str]:
    """Words of *text* that are in no foreign letters and are no names."""
    return set(re.findall("[A-Za-z]+", text)) - NAMES - set(also)


@pytest.fixture(autouse=True)
def foreign(speak: Speak) -> None:
    speak(made_up)


def test_the_made_up_language() -> None:
    assert len(ENGLISH) == len(FOREIGN)
    assert tr("token {at} of {count}", at=3, count="x") == "токен 3 оф x"


async def no_english_is_seen(person: Person, what: str) -> None:
    """Fail where something on the screen is in English."""
    await person.sees()
    name = ("gpt", "base", "ba")  # of the model, and what a box over it leaves of it
    assert english_in(person.text, *name) == set(), f"{what}:\n{person.text}"


async def test_everything_on_the_screen(open_app: OpenApp, tiny: Path) -> None:
    """Of a model without a tokenizer, whose tokens are all numbers."""
    options = {"model": str(tiny), "prompt_ids": [1, 2, 3], "max_new_tokens": 5, "ignore_eos": True, "min_p": 0.01}
    async with open_app(size=(120, 40), step=True, speed=8.0, repetition_penalty=1.1, **options) as person:
        await no_english_is_seen(person, "before the first token")
        await person.press("n")
        await person.has_steps(1)
        await no_english_is_seen(person, "one token")
        await person.press("n")
        await person.has_steps(2)
        for key in ["full_stop"] * 50:
            await person.press(key)
            await no_english_is_seen(person, "a stage further")
        for key in ("comma", "L", "z", *"1234567", "0", "tab", "z", "z", "escape", "t", "down", "right", "escape", "t"):
            await person.press(key)
            await no_english_is_seen(person, f"after {key}")
        for key in ("end", "n", "w", "plus", "left", "space", "up"):
            await person.press(key)
            await no_english_is_seen(person, f"after {key}")
        await person.until(lambda: "■" in person.title)
        await no_english_is_seen(person, "the end")
        await person.press("question_mark")
        await person.until(lambda: isinstance(person.app.screen, HelpScreen))
        await no_english_is_seen(person, "help")
        await person.press("escape")
        await person.opens_editor()
        await person.until(lambda: "старт токен" in person.text)
        await no_english_is_seen(person, "the editor")
        await person.paste(" 1" * 99)
        await person.until(lambda: "35 море" in person.text)
        await no_english_is_seen(person, "too long a prompt")
        await person.press("escape")
        await person.press("s")
        await person.until(lambda: person.notice.startswith("савед "))
        await person.pilot.resize_terminal(50, 10)
        await person.until(lambda: "60 × 18" in person.text)
        await no_english_is_seen(person, "too small a terminal")


async def test_a_greedy_run(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(
        size=(120, 40), model=str(tiny), prompt_ids=[1, 2], greedy=True, max_new_tokens=2, ignore_eos=True
    ) as person:
        await person.until(lambda: "■" in person.title)
        await no_english_is_seen(person, "the end of a greedy run")
        await person.press("left")
        await no_english_is_seen(person, "a moment of a greedy run")


async def test_a_run_that_fails(open_app: OpenApp, broken: Path) -> None:
    async with open_app(size=(120, 40), model=str(broken), prompt_ids=[1, 2], ignore_eos=True) as person:
        await person.until(lambda: "NaN" in person.notice or "НаН" in person.notice)
        assert english_in(person.notice, "NaN") == set()


async def test_what_is_said_of_an_embedded_model(open_app: OpenApp) -> None:
    async with open_app(size=(120, 40), max_new_tokens=2) as person:
        await person.until(lambda: "■" in person.title)
        assert english_in(person.line(TitleLine), "fable") == set()
        assert english_in(person.line(StageStrip)) == set()


async def test_the_palette(open_app: OpenApp) -> None:
    async with open_app(max_new_tokens=1) as person:
        await person.until(lambda: "■" in person.title)
        for command in person.app.get_system_commands(person.screen):
            assert english_in(f"{command.title} {command.help}", *[key.shown for key in KEYS]) == set()


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_help_of_commands(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All but the words that argparse says itself."""
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    told = capsys.readouterr().out
    told = re.sub(r"--?[a-z-]+|\b[A-Z]+\b|RUN\.cutaway|\{default,all\}", "", told)
    own = {"usage", "options", "show", "this", "help", "message", "and", "exit", "positional", "arguments"}
    names = {*COMMANDS, "fable", "lagoon", "viridis", "cividis", "grey", "dark", "light", "en"}
    names |= {word for view in VIEWS for word in view.split("-")}
    names |= {word for stage in Stages(1).all for word in stage.name.split("_")}
    assert english_in(told, *own, *names, "WxH", "mlp") == set()


def test_the_lines_of_commands(capsys: pytest.CaptureFixture[str], tiny: Path, empty_home: Path) -> None:
    assert main(["inspect", str(tiny)]) == 0
    told, _, tensors = capsys.readouterr().out.partition("transformer.")
    assert english_in(told, "gpt", "base", "B", "kB", "MB") == set()
    assert main(["inspect", "/nowhere"]) == 1
    names = ("fable", "verse", "tinymind", "nowhere", "huggingface", "hub", "config", "model", "safetensors")
    told = capsys.readouterr().err.replace(str(empty_home), "")
    assert english_in(told, *names, "error", "cache", "json") == set()
