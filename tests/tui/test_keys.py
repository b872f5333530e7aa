"""Keys: every one that is promised is bound, every one that is bound does something."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from textual.keys import _character_to_key

from cutaway.core.errors import UsageError
from cutaway.tui.app import CutawayApp
from cutaway.tui.keys import KEYS, bindings, footer, help_rows, hidden_views, remapped, written
from cutaway.tui.layout import PANELS
from cutaway.tui.main_screen import MainScreen
from cutaway.tui.options import DEFAULTS
from cutaway.widgets.key_line import KeysView

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp

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
    "l": "next_layer",
    "L": "previous_layer",
    ".": "next_stage",
    ",": "previous_stage",
    "tab": "app.focus_next",
    "shift+tab": "app.focus_previous",
    "escape": "leave_panel",
    "z": "zoom",
    "1": "view('text')",
    "2": "view('attention')",
    "3": "view('candidates')",
    "4": "view('heads')",
    "5": "view('layers')",
    "6": "view('embedding')",
    "7": "view('sampling')",
    "0": "view('')",
    "t": "sampling",
    "w": "walk(1)",
    "W": "walk(-1)",
    "e": "edit_prompt",
    "r": "restart",
    "s": "save_picture(False)",
    "S": "save_picture(True)",
    "?": "help",
    "ctrl+p": "app.command_palette",
    "q": "quit",
}
"""Keys of the contract, and what they do."""


def bound() -> dict[str, str]:
    return {key: binding.action for binding in bindings() for key in binding.key.split(",")}


@pytest.mark.parametrize(("key", "action"), PROMISED.items())
def test_promised_keys_are_bound(key: str, action: str) -> None:
    name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
    assert bound()[name] == action


def test_no_key_is_bound_twice() -> None:
    keys = Counter(key for binding in bindings() for key in binding.key.split(","))
    assert [key for key, count in keys.items() if count > 1] == []


def test_every_panel_has_the_key_its_title_says() -> None:
    for number, name in enumerate(PANELS, 1):
        assert bound()[str(number)] == f"view('{name}')"


def test_every_binding_has_the_name_that_settings_use() -> None:
    assert [binding.id for binding in bindings()] == [key.name for key in KEYS]
    assert len({key.name for key in KEYS}) == len(KEYS)


@pytest.mark.parametrize("action", [key.action for key in KEYS])
def test_every_action_exists(action: str) -> None:
    name, _, arguments = action.removesuffix(")").partition("(")
    owner = CutawayApp if name.startswith("app.") else MainScreen
    method = getattr(owner, f"action_{name.removeprefix('app.')}")
    assert len(inspect.signature(method).parameters) - 1 == bool(arguments)


def keys_of(view: KeysView) -> list[tuple[str, str]]:
    """Every key of the hints, and what it does."""
    return [key for hint in (*view.hints, *view.last) for key in hint.keys]


def test_every_hint_of_the_footer_is_a_key_of_the_help() -> None:
    view = footer()
    shown = {key.shown: key.action for key in KEYS}
    assert all(shown[key] == action for key, action in keys_of(view))
    assert [hint.label for hint in view.last] == ["help", "quit"]
    assert all(hint.label for hint in view.hints)
    helped = {word for keys, _ in help_rows() for word in keys.split()}
    assert {key for key, _ in keys_of(view)} <= helped
    assert len(keys_of(view)) == len(set(keys_of(view)))


def test_views_that_are_hidden_are_offered_by_their_keys() -> None:
    view = hidden_views(frozenset({"text", "attention", "candidates"}), "")
    assert [(hint.keys[0][0], hint.label) for hint in view.hints] == [
        ("4", "heads"), ("5", "layers"), ("6", "embedding"), ("7", "sampling")
    ]  # fmt: skip
    assert [hint.label for hint in view.last] == ["zoom"]
    alone = hidden_views(frozenset({"heads"}), "heads")
    assert [hint.label for hint in alone.hints] == [word for name, word in PANELS.items() if name != "heads"]
    assert [(hint.keys, hint.label) for hint in alone.last] == [((("0", "view('')"),), "all")]
    for each in (view, alone):
        assert all(action in bound().values() for _, action in keys_of(each))
    assert hidden_views(frozenset(PANELS), "").hints == ()


CHANGES = {"run": "p", "next_token": "j,right", "previous_stage": ";", "view_heads": "h"}


def test_keys_can_be_changed_and_are_shown_as_they_are_then() -> None:
    keys = remapped(CHANGES)
    assert [(key.name, key.action, key.help) for key in keys] == [(key.name, key.action, key.help) for key in KEYS]
    now = {key.name: key.keys for key in keys}
    assert now == {key.name: key.keys for key in KEYS} | CHANGES | {"previous_stage": "semicolon"}
    assert {"p", "j", "l", "."} <= {key for key, _ in keys_of(footer(keys))}
    assert not {"space", "→"} & {key for key, _ in keys_of(footer(keys))}
    assert "h" in dict(keys_of(hidden_views(frozenset({"text"}), "", keys)))
    helped = [words.split()[0] for words, _ in help_rows(keys)]
    assert helped == [key.shown for key in keys] and {"p", "j", ";"} <= set(helped)
    assert remapped({}) == KEYS


@pytest.mark.parametrize("key", [".", ",", "[", "]", "+", "-", "?", "/", ";", ":", "=", "_", "<", ">", "!"])
def test_signs_may_be_written_as_they_are(key: str) -> None:
    free = {each.name: chr(0x100 + number) for number, each in enumerate(KEYS)}
    [run] = [each for each in remapped(free | {"run": key}) if each.name == "run"]
    assert run.keys == _character_to_key(key) and run.shown == key
    [run] = [each for each in remapped(free | {"run": f"x, {key}"}) if each.name == "run"] if key != "," else [run]
    assert _character_to_key(key) in run.keys.split(",")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run": "n"}, "the key n would do two things (keys); choose another for run or next_token"),
        ({"quit": "?"}, "the key ? would do two things"),
        ({"zoom": "x", "help": "x,f1"}, "the key x would do two things (keys); choose another for zoom or help"),
    ],
)
def test_a_key_for_two_things_is_refused(changes: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        remapped(changes, "keys")
    assert said in str(caught.value)


@pytest.mark.parametrize("keys", ["f25", "spcae", "hyper+x", "ab", "ctrl+", "x,nothing"])
def test_a_key_that_is_none_is_refused(keys: str) -> None:
    with pytest.raises(UsageError, match="there is no key"):
        remapped({"run": keys})


def test_two_names_may_swap_their_keys() -> None:
    keys = {key.name: key.keys for key in remapped({"next_layer": "L", "previous_layer": "l"})}
    assert (keys["next_layer"], keys["previous_layer"]) == ("L", "l")


def test_spaces_empty_places_and_repetitions_change_nothing() -> None:
    assert remapped({"run": " p , ,p,x "})[0].keys == "p,p,x"


def test_keys_that_clash_open_no_app() -> None:
    with pytest.raises(UsageError):
        CutawayApp(Namespace(**(DEFAULTS | {"keys": {"run": "n"}})))


async def test_changed_keys_do_what_they_say(open_app: OpenApp) -> None:
    async with open_app("A dog", step=True, size=(120, 40), keys=CHANGES) as person:
        assert "p run" in person.rows[-1] and "j token" in person.rows[-1]
        await person.press("n", "space")
        await person.press("j")
        await person.has_steps(1)
        assert person.moment.steps == 1 and not person.screen.runner.gate.running
        await person.press("right")
        await person.has_steps(2)
        await person.press("semicolon")
        assert person.screen.place is not None and person.screen.place.stage < person.moment.stages.last
        await person.press("h")
        assert person.screen.alone == "heads"
        await person.press("p")
        await person.has_steps(3)


def test_help_is_in_sentences() -> None:
    assert all(sentence[0].isupper() and sentence.endswith((".", "…")) for _, sentence in help_rows())


def test_keys_are_written_as_people_write_them() -> None:
    assert [written(key) for key in ("right", "full_stop", "escape", "f1", "x")] == ["→", ".", "esc", "f1", "x"]
