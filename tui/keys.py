"""Every key and what it does, once: bindings, the footer, the help, the palette and the settings read this table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from textual.binding import Binding
from textual.keys import Keys

from ..core.catalogue import mark, tr
from ..core.errors import UsageError
from ..widgets.key_line import KeyHint, KeysView
from .layout import PANELS


@dataclass(frozen=True, slots=True)
class Key:
    """One thing the app can be asked to do. Words are translated when they are shown."""

    name: str
    """What the settings call it."""
    action: str
    """The screen's action."""
    keys: str
    """Keys as Textual names them, separated by commas."""
    title: str
    """What it does, in a word or two, as the palette lists it."""
    help: str
    """What it does, in a sentence."""

    @property
    def shown(self) -> str:
        """How its first key is written on screen."""
        return written(self.keys.split(",")[0])


KEYS = (
    Key("run", "toggle_run", "space", mark("run or pause"), mark("Run, or pause at the next token.")),
    Key(
        "next_token", "next_token", "right,n", mark("next token"),
        mark("Go to the next token; at the end, compute one more."),
    ),
    Key(
        "previous_token", "previous_token", "left,b", mark("back"),
        mark("Go back one token, to the picture of that moment."),
    ),
    Key("next_layer", "next_layer", "l", mark("next layer"), mark("Go on to the end of the next layer.")),
    Key(
        "previous_layer", "previous_layer", "L", mark("back one layer"),
        mark("Go back to the end of the layer before."),
    ),
    Key(
        "next_stage", "next_stage", "full_stop", mark("next stage"),
        mark("Go on by one stage: queries, scores, mask, softmax …"),
    ),
    Key("previous_stage", "previous_stage", "comma", mark("back one stage"), mark("Go back by one stage.")),
    Key("first_token", "first_token", "home", mark("first token"), mark("Go to the first generated token.")),
    Key("last_token", "last_token", "end", mark("newest token"), mark("Go to the newest token and follow it.")),
    Key("layer_before", "layer(-1)", "up", mark("layer before"), mark("Look at the layer before this one.")),
    Key("layer_after", "layer(1)", "down", mark("layer after"), mark("Look at the layer after this one.")),
    Key(
        "head_before", "head(-1)", "left_square_bracket", mark("head before"),
        mark("Look at the head before this one."),
    ),
    Key("head_after", "head(1)", "right_square_bracket", mark("head after"), mark("Look at the head after this one.")),
    Key("faster", "speed(1)", "plus", mark("faster"), mark("Go faster, up to as fast as it goes.")),
    Key("slower", "speed(-1)", "minus", mark("slower"), mark("Go slower, down to a token every two seconds.")),
    Key(
        "enter_panel", "app.focus_next", "tab", mark("enter a panel"),
        mark("Enter the next panel: arrows then move inside it, enter takes a token or opens a head."),
    ),
    Key(
        "enter_panel_before", "app.focus_previous", "shift+tab", mark("enter the panel before"),
        mark("Enter the panel before."),
    ),
    Key("leave_panel", "leave_panel", "escape", mark("leave"), mark("Leave the panel, the zoom, what was tried.")),
    Key("zoom", "zoom", "z", mark("zoom"), mark("Show the panel you are in alone, or all of them again.")),
    Key("view_text", "view('text')", "1", mark("text alone"), mark("Show the text alone.")),
    Key("view_attention", "view('attention')", "2", mark("attention alone"), mark("Show attention alone.")),
    Key("view_next_token", "view('candidates')", "3", mark("next token alone"), mark("Show the next token alone.")),
    Key("view_heads", "view('heads')", "4", mark("heads alone"), mark("Show all heads of all layers.")),
    Key("view_layers", "view('layers')", "5", mark("layers alone"), mark("Show what each layer would say next.")),
    Key("view_embedding", "view('embedding')", "6", mark("embedding alone"), mark("Show what the token becomes.")),
    Key("view_sampling", "view('sampling')", "7", mark("sampling alone"), mark("Show the stages before the draw.")),
    Key("view_all", "view('')", "0", mark("all panels"), mark("Show all panels that have room.")),
    Key(
        "sampling", "sampling", "t", mark("sampling"),
        mark("Try other sampling settings on this token; enter applies them from here on."),
    ),
    Key("next_branch", "walk(1)", "w", mark("next branch"), mark("Walk to the next branch of the text.")),
    Key("previous_branch", "walk(-1)", "W", mark("branch before"), mark("Walk to the branch before.")),
    Key(
        "arithmetic", "arithmetic", "equals_sign", mark("arithmetic"),
        mark("Write out how the number under the cursor comes about."),
    ),
    Key("edit_prompt", "edit_prompt", "e", mark("prompt"), mark("Write another prompt.")),
    Key("restart", "restart", "r", mark("restart"), mark("Run the same prompt again from the start.")),
    Key("save_picture", "save_picture(False)", "s", mark("picture"), mark("Save a picture of the screen as SVG.")),
    Key(
        "save_panel", "save_picture(True)", "S", mark("picture of the panel"),
        mark("Save a picture of the panel you are in, or of the one shown alone."),
    ),
    Key("palette", "app.command_palette", "ctrl+p", mark("palette"), mark("Find a command by its name.")),
    Key("help", "help", "question_mark,f1", mark("help"), mark("Show this list.")),
    Key("quit", "quit", "q,ctrl+c,ctrl+q", mark("quit"), mark("Leave.")),
)  # fmt: skip

Rows = tuple[tuple[tuple[str, ...], str], ...]
"""Names of keys that stand together, and their word."""

_FOOTER: Rows = (
    (("run",), mark("run")),
    (("previous_token", "next_token"), mark("token")),
    (("next_stage",), mark("stage")),
    (("next_layer",), mark("layer")),
    (("layer_before", "layer_after", "head_before", "head_after"), mark("look")),
    (("enter_panel",), mark("panel")),
    (("sampling",), mark("sampling")),
    (("edit_prompt",), mark("prompt")),
    (("save_picture",), mark("picture")),
    (("zoom",), mark("zoom")),
    (("restart",), mark("again")),
    (("next_branch",), mark("other text")),
    (("faster", "slower"), mark("speed")),
)
"""Keys that stand in the last line together, and their word; the first to stay when room is short come first."""

_INSIDE: dict[str, tuple[tuple[str, str], ...]] = {
    "text": (("← → ↑ ↓", mark("token")),),
    "attention": (("← → ↑ ↓", mark("cell")),),
    "candidates": (("↑ ↓", mark("choose")), ("enter", mark("take it"))),
    "heads": (("← → ↑ ↓", mark("head")), ("enter", mark("open it"))),
    "layers": (("↑ ↓", mark("layer")),),
    "embedding": (("← →", mark("dimension")),),
    "sampling": (("↑ ↓", mark("setting")), ("← →", mark("change")), ("enter", mark("apply"))),
}
"""What keys do inside a panel, where they do something of their own."""

_FOOTER_LAST: Rows = ((("help",), mark("help")), (("quit",), mark("quit")))

_WRITTEN = {
    "right": "→", "left": "←", "up": "↑", "down": "↓", "left_square_bracket": "[", "right_square_bracket": "]",
    "plus": "+", "minus": "-", "full_stop": ".", "comma": ",", "question_mark": "?", "escape": "esc", "slash": "/",
    "semicolon": ";", "colon": ":", "equals_sign": "=", "underscore": "_", "less_than_sign": "<",
    "greater_than_sign": ">", "exclamation_mark": "!",
}  # fmt: skip
"""How people write the keys that Textual spells out."""


def written(key: str) -> str:
    """*key* as people write it."""
    return _WRITTEN.get(key, key)


def remapped(changes: Mapping[str, str], where: str = "") -> tuple[Key, ...]:
    """`KEYS` with other keys for some names, as the settings say. Raises `UsageError` for a clash."""
    keys = tuple(replace(key, keys=_spelled(changes[key.name])) if key.name in changes else key for key in KEYS)
    taken: dict[str, str] = {}
    for key in keys:
        for each in key.keys.split(","):
            if key.name in changes and not _is_key(each):
                raise UsageError(
                    tr("there is no key {key}", key=repr(each)),
                    where=where,
                    hint=tr("name a character, or one such as space, f2, ctrl+x"),
                )
            if taken.get(each, key.name) != key.name:
                raise UsageError(
                    tr("the key {key} would do two things", key=written(each)),
                    where=where,
                    hint=tr("choose another for {one} or {other}", one=taken[each], other=key.name),
                )
            taken[each] = key.name
    return keys


def _spelled(keys: str) -> str:
    """Keys as Textual names them, from keys as people write them."""
    spelling = {shown: name for name, shown in _WRITTEN.items()}
    wanted = [key.strip() for key in keys.split(",") if key.strip()] or [","]
    return ",".join(spelling.get(key, key) for key in wanted)


_NAMES = {key.value for key in Keys} | set(_WRITTEN) | {"space"}
"""Keys that have a name."""


def _is_key(name: str) -> bool:
    """Whether *name* is a key that a terminal can tell of."""
    *modifiers, key = name.split("+") if len(name) > 1 else [name]
    named = key in _NAMES or (len(key) == 1 and key.isprintable())
    return named and set(modifiers) <= {"ctrl", "shift", "alt"}


def bindings() -> list[Binding]:
    """The keys as Textual binds them; their ids let the settings change them."""
    return [Binding(key.keys, key.action, key.help, id=key.name, show=False) for key in KEYS]


def footer(keys: tuple[Key, ...] = KEYS, inside: str = "") -> KeysView:
    """The keys as the last line of the screen shows them, those of the panel one is *inside* first."""
    named = {key.name: key for key in keys}

    def hints(rows: Rows) -> tuple[KeyHint, ...]:
        return tuple(
            KeyHint(tuple((named[name].shown, named[name].action) for name in names), tr(word)) for names, word in rows
        )

    own = tuple(KeyHint(((shown, ""),), tr(word)) for shown, word in _INSIDE.get(inside, ()))
    rest: Rows = _FOOTER
    if own:
        own += (KeyHint(((named["leave_panel"].shown, named["leave_panel"].action),), tr("leave")),)
        rest = tuple(row for row in _FOOTER if row[0][0] not in ("previous_token", "layer_before"))
    return KeysView((*own, *hints(rest)), hints(_FOOTER_LAST))


WHAT_YOU_SEE = (
    (
        mark("text"),
        mark("What was given stands back, what was written is bold; the tint is surprise."),
    ),
    (
        mark("attention"),
        mark("Who looks at whom; a row adds up to 1. Colours go by the square root."),
    ),
    (mark("heads"), mark("Every head's whole map, small; neighbouring positions share a cell, the largest wins.")),
    (mark("layers"), mark("What the model would say if it stopped after that layer (the logit lens).")),
    (mark("embedding"), mark("The numbers a token becomes before the first layer.")),
    (mark("raw"), mark("The model's own probability, before any sampling stage.")),
    (mark("final"), mark("The probability the token was drawn with; – where the named stage had taken it out.")),
    (
        mark("u"),
        mark("A random number from 0 to 1: where it falls when shares lie side by side by id."),
    ),
    (mark("bits"), mark("Surprise: 1 bit is a coin toss, 10 bits are one chance in a thousand.")),
    (mark("entr."), mark("Entropy: how undecided a layer is, in bits; 0 is certain.")),
    (mark("first, then"), mark("Time to the first token, and tokens a second after it, by the engine's own clock.")),
)
"""Words on the screen, and what they mean."""


def help_rows(keys: tuple[Key, ...] = KEYS) -> Iterator[tuple[str, str]]:
    """Keys and sentences, for the help."""
    for key in keys:
        yield " ".join(written(each) for each in key.keys.split(",")[:2]), tr(key.help)


def hidden_views(shown: frozenset[str], alone: str, keys: tuple[Key, ...] = KEYS) -> KeysView:
    """The keys that show panels which are not on the screen."""
    named = {key.name: key for key in keys}

    def hint(name: str, word: str) -> KeyHint:
        key = next(key for key in keys if key.action == f"view('{name}')")
        return KeyHint(((key.shown, key.action),), tr(word))

    hints = [hint(name, word) for name, word in PANELS.items() if name not in shown]
    zoom = KeyHint(((named["zoom"].shown, named["zoom"].action),), tr("zoom"))
    return KeysView(tuple(hints), (hint("", mark("all")) if alone else zoom,))
