"""Every key and what it does, once: bindings, the footer, the help and the palette all read this table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from textual.binding import Binding

from ..core.catalogue import tr
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
    Key("toggle_run", "space", "space", tr("run/pause"), tr("Run, or pause at the next token.")),
    Key("next_token", "right,n", "→", tr("token"), tr("Go to the next token; at the end, compute one more.")),
    Key(
        "previous_token",
        "left,b",
        "←",
        tr("back"),
        tr("Go back one token; the picture is the one of that moment."),
    ),
    Key("layer(-1)", "up", "↑↓", tr("layer"), tr("Look at the layer above (↓: below).")),
    Key("layer(1)", "down", "↓", "", ""),
    Key("head(-1)", "left_square_bracket", "[ ]", tr("head"), tr("Look at the previous head (]: the next).")),
    Key("head(1)", "right_square_bracket", "]", "", ""),
    Key("edit_prompt", "e", "e", tr("prompt"), tr("Write another prompt.")),
    Key("save_picture", "s", "s", tr("picture"), tr("Save a picture of the screen as SVG.")),
    Key("restart", "r", "r", tr("restart"), tr("Run the same prompt again from the start.")),
    Key(
        "speed(1)",
        "plus",
        "+ -",
        tr("speed"),
        tr("Go faster (-: slower), from one token every two seconds up."),
    ),
    Key("speed(-1)", "minus", "-", "", ""),
    Key("first_token", "home", "home", "", tr("Go to the first generated token.")),
    Key("last_token", "end", "end", "", tr("Go to the newest token and follow it.")),
    Key("app.focus_next", "tab", "tab", "", tr("Enter the attention panel; the arrows then move from cell to cell.")),
    Key("leave_panel", "escape", "esc", "", tr("Leave the panel.")),
    Key("app.command_palette", "ctrl+p", "ctrl+p", "", tr("Find a command by its name.")),
    Key("help", "question_mark,f1", "?", tr("help"), tr("Show this list.")),
    Key("quit", "q,ctrl+c,ctrl+q", "q", tr("quit"), tr("Leave.")),
)


def bindings() -> list[Binding]:
    """The keys as Textual binds them."""
    return [Binding(key.keys, key.action, key.help or key.action, id=key.action, show=False) for key in KEYS]


def footer() -> KeysView:
    """The keys as the last line of the screen shows them."""
    hints = [KeyHint(key.shown, key.label, key.action) for key in KEYS if key.label]
    return KeysView(tuple(hints[:-2]), tuple(hints[-2:]))


def help_rows() -> Iterator[tuple[str, str]]:
    """Keys and sentences, for the help."""
    for key in KEYS:
        if key.help:
            yield key.shown, key.help
