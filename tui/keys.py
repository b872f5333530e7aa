"""Every key and what it does, once: bindings, the footer, the help and the palette all read this table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from textual.binding import Binding

from ..core.catalogue import mark, tr
from ..widgets.bars import KeyHint, KeysView


@dataclass(frozen=True, slots=True)
class Key:
    """One thing the app can be asked to do."""

    action: str
    """Name of the screen's action; also the key's id in settings."""
    keys: str
    """Keys as Textual names them, separated by commas."""
    shown: str
    """How the keys are written on screen."""
    label: str
    """What it does, in a word or two; empty where it does not stand in the footer."""
    help: str
    """What it does, in a sentence."""


KEYS = (
    Key("toggle_run", "space", "space", mark("run/pause"), mark("Run, or pause at the next token.")),
    Key("next_token", "right,n", "→", mark("token"), mark("Go to the next token; at the end, compute one more.")),
    Key(
        "previous_token",
        "left,b",
        "←",
        mark("back"),
        mark("Go back one token; the picture is the one of that moment."),
    ),
    Key("layer(-1)", "up", "↑↓", mark("layer"), mark("Look at the layer above (↓: below).")),
    Key("layer(1)", "down", "↓", "", ""),
    Key("head(-1)", "left_square_bracket", "[ ]", mark("head"), mark("Look at the previous head (]: the next).")),
    Key("head(1)", "right_square_bracket", "]", "", ""),
    Key("edit_prompt", "e", "e", mark("prompt"), mark("Write another prompt.")),
    Key("save_picture", "s", "s", mark("picture"), mark("Save a picture of the screen as SVG.")),
    Key("restart", "r", "r", mark("restart"), mark("Run the same prompt again from the start.")),
    Key(
        "speed(1)",
        "plus",
        "+ -",
        mark("speed"),
        mark("Go faster (-: slower), from one token every two seconds up."),
    ),
    Key("speed(-1)", "minus", "-", "", ""),
    Key("first_token", "home", "home", "", mark("Go to the first generated token.")),
    Key("last_token", "end", "end", "", mark("Go to the newest token and follow it.")),
    Key("app.focus_next", "tab", "tab", "", mark("Enter the attention panel; the arrows then move from cell to cell.")),
    Key("leave_panel", "escape", "esc", "", mark("Leave the panel.")),
    Key("app.command_palette", "ctrl+p", "ctrl+p", "", mark("Find a command by its name.")),
    Key("help", "question_mark,f1", "?", mark("help"), mark("Show this list.")),
    Key("quit", "q,ctrl+c,ctrl+q", "q", mark("quit"), mark("Leave.")),
)


def bindings() -> list[Binding]:
    """The keys as Textual binds them."""
    return [Binding(key.keys, key.action, key.help or key.action, id=key.action, show=False) for key in KEYS]


def footer() -> KeysView:
    """The keys as the last line of the screen shows them."""
    hints = [KeyHint(key.shown, tr(key.label), key.action) for key in KEYS if key.label]
    return KeysView(tuple(hints[:-2]), tuple(hints[-2:]))


def help_rows() -> Iterator[tuple[str, str]]:
    """Keys and sentences, for the help."""
    for key in KEYS:
        if key.help:
            yield key.shown, tr(key.help)
