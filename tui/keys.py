"""Every key and what it does, once: bindings, the footer, the help and the palette all read this table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from textual.binding import Binding

from ..core.catalogue import mark, tr
from ..widgets.key_line import KeyHint, KeysView


@dataclass(frozen=True, slots=True)
class Key:
    """One thing the app can be asked to do. Words are translated when they are shown."""

    action: str
    """Name of the screen's action; also the key's id in settings."""
    keys: str
    """Keys as Textual names them, separated by commas."""
    shown: str
    """How the key is written on screen."""
    title: str
    """What it does, in a word or two, as the palette lists it."""
    help: str
    """What it does, in a sentence."""


KEYS = (
    Key("toggle_run", "space", "space", mark("run or pause"), mark("Run, or pause at the next token.")),
    Key("next_token", "right,n", "→", mark("next token"), mark("Go to the next token; at the end, compute one more.")),
    Key("previous_token", "left,b", "←", mark("back"), mark("Go back one token, to the picture of that moment.")),
    Key("first_token", "home", "home", mark("first token"), mark("Go to the first generated token.")),
    Key("last_token", "end", "end", mark("newest token"), mark("Go to the newest token and follow it.")),
    Key("layer(-1)", "up", "↑", mark("layer before"), mark("Look at the layer before this one.")),
    Key("layer(1)", "down", "↓", mark("layer after"), mark("Look at the layer after this one.")),
    Key("head(-1)", "left_square_bracket", "[", mark("head before"), mark("Look at the head before this one.")),
    Key("head(1)", "right_square_bracket", "]", mark("head after"), mark("Look at the head after this one.")),
    Key("speed(1)", "plus", "+", mark("faster"), mark("Go faster, up to as fast as it goes.")),
    Key("speed(-1)", "minus", "-", mark("slower"), mark("Go slower, down to a token every two seconds.")),
    Key("edit_prompt", "e", "e", mark("prompt"), mark("Write another prompt.")),
    Key("restart", "r", "r", mark("restart"), mark("Run the same prompt again from the start.")),
    Key("save_picture", "s", "s", mark("picture"), mark("Save a picture of the screen as SVG.")),
    Key("app.focus_next", "tab", "tab", mark("attention"), mark("Enter the attention panel; arrows move the cell.")),
    Key("leave_panel", "escape", "esc", mark("leave"), mark("Leave the panel.")),
    Key("app.command_palette", "ctrl+p", "ctrl+p", mark("palette"), mark("Find a command by its name.")),
    Key("help", "question_mark,f1", "?", mark("help"), mark("Show this list.")),
    Key("quit", "q,ctrl+c,ctrl+q", "q", mark("quit"), mark("Leave.")),
)

_FOOTER = (
    (("toggle_run",), mark("run/pause")),
    (("next_token",), mark("token")),
    (("previous_token",), mark("back")),
    (("layer(-1)", "layer(1)"), mark("layer")),
    (("head(-1)", "head(1)"), mark("head")),
    (("edit_prompt",), mark("prompt")),
    (("save_picture",), mark("picture")),
    (("restart",), mark("restart")),
    (("speed(1)", "speed(-1)"), mark("speed")),
)
"""Actions that stand in the last line together, and their word; the first to stay when room is short come first."""

_FOOTER_LAST = ((("help",), mark("help")), (("quit",), mark("quit")))


def bindings() -> list[Binding]:
    """The keys as Textual binds them."""
    return [Binding(key.keys, key.action, key.help, id=key.action, show=False) for key in KEYS]


def footer() -> KeysView:
    """The keys as the last line of the screen shows them."""
    shown = {key.action: key.shown for key in KEYS}

    def hints(rows: tuple[tuple[tuple[str, ...], str], ...]) -> tuple[KeyHint, ...]:
        return tuple(KeyHint(tuple((shown[action], action) for action in actions), tr(word)) for actions, word in rows)

    return KeysView(hints(_FOOTER), hints(_FOOTER_LAST))


WHAT_YOU_SEE = (
    (
        mark("text"),
        mark("What was given stands back, what was written is bold; the tint is surprise."),
    ),
    (
        mark("attention"),
        mark("Who looks at whom; a row adds up to 1. Colours go by the square root."),
    ),
    (mark("raw"), mark("The model's own probability, before any sampling stage.")),
    (mark("final"), mark("The probability the token was drawn with; – where the named stage had taken it out.")),
    (
        mark("u"),
        mark("A random number from 0 to 1: where it falls when shares lie side by side by id."),
    ),
    (mark("bits"), mark("Surprise: 1 bit is a coin toss, 10 bits are one chance in a thousand.")),
    (mark("first, then"), mark("Time to the first token, and tokens a second after it, by the engine's own clock.")),
)
"""Words on the screen, and what they mean."""


def help_rows() -> Iterator[tuple[str, str]]:
    """Keys and sentences, for the help."""
    for key in KEYS:
        yield key.shown, tr(key.help)
