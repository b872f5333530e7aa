"""Writing a prompt: its tokens are there while it is written, and whatever is pasted comes through as it is."""

from __future__ import annotations

import threading
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Static, TextArea

from cutaway.tui.prompt_screen import PromptScreen
from cutaway.widgets.token_stream import TokenStream
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person

SENT = "\x1b]0;evil\x07 \x1b[2J\x1b[31m \u009b2J \u202eabc\u202c \x00\x7f\r\t"
"""What a page could have put on somebody's clipboard."""

STRANGE = [
    SENT,
    "line one\nline two\n\nline four\n",
    "carriage\r\nreturns\rand\x0bvertical\x0cfeeds\x85\u2028\u2029",
    "nerd fonts \U000f0001\U000f1af0 \ue0b0 \U00100000\U0010ffff",
    "tags \U000e0041\U000e0001 and 🇫🇷 👍🏽 👩\u200d👧 ❤\ufe0f",
    "e\u0301 \u0301 हिन्दी שלום 漢字 \u3000\u00a0\ufeff\ufffe",
    "[/INST] [@click=app.quit]x[/] <|endoftext|> [bold]",
]


def tokens_of(editor: PromptScreen) -> str:
    return str(editor.query_one("#tokens", Static).content)


def count_of(editor: PromptScreen) -> str:
    return str(editor.query_one("#count", Static).content)


async def run_it(person: Person) -> None:
    """Enter, and wait for the run that follows."""
    before = person.trace
    await person.press("enter")
    await person.until(lambda: person.trace is not before)


def assert_safe(text: str) -> None:
    assert not [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn")], ascii(text)


async def test_tokens_are_there_while_one_writes(open_app: OpenApp) -> None:
    async with open_app("A dog", max_new_tokens=2) as person:
        await person.has_ended()
        editor = await person.opens_editor()
        await person.until(lambda: tokens_of(editor) == "A·dog")
        assert editor.text == "A dog"
        assert "prompt · type another, → keeps this one" in person.text
        for written in (" ", "r", "a", "n"):
            await person.press(written if written != " " else "space")
        await person.until(lambda: tokens_of(editor) == "A·dog·ran")
        assert "3 tokens · 509 of 512 positions left" in person.text
        await run_it(person)
        await person.has_ended()
        assert person.trace.prompt == "A dog ran"
        assert len(person.trace.steps) == 2


async def test_typing_replaces_the_old_prompt(open_app: OpenApp) -> None:
    async with open_app("A dog", max_new_tokens=2) as person:
        await person.has_ended()
        editor = await person.opens_editor(keeping=False)
        await person.press("h", "i")
        assert editor.text == "hi"


async def test_opening_the_editor_pauses(open_app: OpenApp) -> None:
    async with open_app(speed=8.0, max_new_tokens=400) as person:
        await person.has_steps(1)
        await person.opens_editor()
        assert not person.screen.runner.gate.running


async def test_escape_keeps_the_old_prompt(open_app: OpenApp) -> None:
    async with open_app("A dog", max_new_tokens=2) as person:
        await person.has_ended()
        before = person.trace
        await person.opens_editor()
        await person.press("x", "escape")
        await person.until(lambda: person.app.screen is person.screen)
        assert person.trace is before and before.prompt == "A dog"


async def test_a_new_line(open_app: OpenApp) -> None:
    async with open_app("A", max_new_tokens=1) as person:
        await person.has_ended()
        editor = await person.opens_editor()
        await person.press("ctrl+j", "B")
        await person.until(lambda: tokens_of(editor) == "A⏎B")
        await run_it(person)
        assert person.trace.prompt == "A\nB"


async def test_too_long_a_prompt_is_refused_with_how_much_is_too_much(open_app: OpenApp) -> None:
    async with open_app("A dog", max_new_tokens=2) as person:
        await person.has_ended()
        before = person.trace
        editor = await person.opens_editor()
        await person.paste(" ran" * 600)
        await person.until(lambda: "602 tokens" in count_of(editor))
        assert "90 more than the 512 that fit" in person.text
        await person.press("enter")
        assert person.app.screen is editor
        await person.closes()
        assert person.trace is before


async def test_enter_waits_until_the_prompt_is_known_to_fit(open_app: OpenApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_app("A dog", max_new_tokens=2) as person:
        await person.has_ended()
        before = person.trace
        editor = await person.opens_editor()
        await person.until(lambda: count_of(editor))
        counted = threading.Event()
        count = editor.count

        def count_late(text: str) -> list[int]:
            assert counted.wait(PATIENCE)
            return count(text)

        editor.count = count_late
        await person.paste(" ran" * 600)
        await person.press("enter")
        assert person.app.screen is editor
        counted.set()
        await person.until(lambda: "602 tokens" in count_of(editor))
        assert person.app.screen is editor and person.trace is before
        counted.clear()
        editor.query_one(TextArea).clear()
        await person.press("h", "i", "enter")
        assert person.app.screen is editor
        counted.set()
        await person.until(lambda: person.trace is not before)
        assert person.trace.prompt == "hi"


async def test_what_is_pasted_steers_nothing_and_comes_through_as_it_is(open_app: OpenApp) -> None:
    async with open_app("A", max_new_tokens=1) as person:
        await person.has_ended()
        written = "A"
        for text in STRANGE:
            editor = await person.opens_editor()
            assert editor.text == written
            editor.query_one(TextArea).clear()
            await person.paste(text)
            written = text
            assert editor.text == written
            await person.until(lambda: "tokens ·" in person.text)
            assert_safe(person.text)
            await run_it(person)
            assert person.trace.prompt == written
            await person.has_ended()
            assert_safe(person.text)


async def test_a_hostile_prompt_is_safe_on_the_screen(open_app: OpenApp) -> None:
    async with open_app(SENT, max_new_tokens=2) as person:
        await person.has_ended()
        assert_safe(person.text)
        assert "␛]0;evil␇" in "".join(person.panel(TokenStream))


async def test_an_empty_prompt_starts_from_the_start_token(open_app: OpenApp) -> None:
    async with open_app("A", max_new_tokens=2) as person:
        await person.has_ended()
        editor = await person.opens_editor()
        await person.press("backspace")
        await person.until(lambda: editor.text == "" and "start token" in count_of(editor))
        await run_it(person)
        await person.has_ended()
        first = person.stream.tokens[0]
        assert (first.text, first.kind) == ("<|endoftext|>", "added")
        assert person.trace.prompt_ids == (4095,)
        assert person.panel(TokenStream)[1].startswith("│ <|endoftext|>")


async def test_an_empty_prompt_from_outside_too(open_app: OpenApp) -> None:
    async with open_app("", max_new_tokens=2) as person:
        await person.has_ended()
        assert person.trace.prompt_ids == (4095,) and person.trace.added == (0,)


async def test_the_name_of_the_end_token_is_ordinary_text(open_app: OpenApp) -> None:
    async with open_app("a <|endoftext|> b", max_new_tokens=1) as person:
        await person.has_ended()
        assert 4095 not in person.trace.prompt_ids
        assert all(cell.kind != "added" for cell in person.stream.tokens)


async def test_a_model_without_a_tokenizer_takes_ids(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(model=str(tiny), prompt_ids=[1], max_new_tokens=1, ignore_eos=True) as person:
        await person.has_ended()
        editor = await person.opens_editor()
        await person.paste("4, 5 6")
        await person.until(lambda: tokens_of(editor) == "#4#5#6")
        await run_it(person)
        assert person.trace.prompt_ids == (4, 5, 6)


async def test_words_for_a_model_without_a_tokenizer_are_refused(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(model=str(tiny), prompt_ids=[1], max_new_tokens=1, ignore_eos=True) as person:
        await person.has_ended()
        before = person.trace
        editor = await person.opens_editor()
        await person.paste("words")
        await person.press("enter")
        await person.until(lambda: "no tokenizer" in count_of(editor))
        assert person.app.screen is editor and person.trace is before


async def test_a_very_long_prompt_does_not_stop_the_keys(open_app: OpenApp) -> None:
    async with open_app("A", max_new_tokens=1) as person:
        await person.has_ended()
        editor = await person.opens_editor()
        await person.paste("word " * 20_000)
        await person.press("x")
        assert editor.query_one(TextArea).text.endswith("x")
        await person.until(lambda: "more than the 512 that fit" in count_of(editor))
        assert len(tokens_of(editor)) < 4000
