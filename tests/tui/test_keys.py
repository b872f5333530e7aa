"""Keys: every one that is promised is bound, every one that is bound does something."""

from __future__ import annotations

import inspect
from collections import Counter

import pytest
from textual.keys import _character_to_key

from cutaway.tui.app import CutawayApp
from cutaway.tui.keys import KEYS, bindings, footer, help_rows
from cutaway.tui.screen import MainScreen

PROMISED = {
    "space": "toggle_run",
    "right": "next_token",
    "n": "next_token",
    "left": "previous_token",
    "b": "previous_token",
    "home": "first_token",
    "end": "last_token",
    "+": "speed(1)",
    "-": "speed(-1)",
    "up": "layer(-1)",
    "down": "layer(1)",
    "[": "head(-1)",
    "]": "head(1)",
    "tab": "app.focus_next",
    "escape": "leave_panel",
    "e": "edit_prompt",
    "r": "restart",
    "s": "save_picture",
    "?": "help",
    "ctrl+p": "app.command_palette",
    "q": "quit",
}
"""Keys of the contract that this version has; the others come with what they act on."""


def bound() -> dict[str, str]:
    return {key: binding.action for binding in bindings() for key in binding.key.split(",")}


@pytest.mark.parametrize(("key", "action"), PROMISED.items())
def test_promised_keys_are_bound(key: str, action: str) -> None:
    name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
    assert bound()[name] == action


def test_no_key_is_bound_twice() -> None:
    keys = Counter(key for binding in bindings() for key in binding.key.split(","))
    assert [key for key, count in keys.items() if count > 1] == []


def test_ids_can_be_remapped() -> None:
    ids = [binding.id for binding in bindings()]
    assert None not in ids and len(set(ids)) == len(ids)


@pytest.mark.parametrize("action", [key.action for key in KEYS])
def test_every_action_exists(action: str) -> None:
    name, _, arguments = action.removesuffix(")").partition("(")
    owner = CutawayApp if name.startswith("app.") else MainScreen
    method = getattr(owner, f"action_{name.removeprefix('app.')}")
    assert len(inspect.signature(method).parameters) - 1 == bool(arguments)


def test_every_hint_of_the_footer_is_a_key_of_the_help() -> None:
    view = footer()
    shown = {keys for keys, _ in help_rows()}
    hints = [*view.hints, *view.last]
    keys = [key for hint in hints for key in hint.keys]
    assert {key for key, _ in keys} <= shown
    assert [hint.label for hint in view.last] == ["help", "quit"]
    assert all(hint.label for hint in hints)
    assert all(action in bound().values() for _, action in keys)


def test_help_is_in_sentences() -> None:
    assert all(sentence[0].isupper() and sentence.endswith(".") for _, sentence in help_rows())
