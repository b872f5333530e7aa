"""Text from models, files and people, made fit to draw: safe, visible, and of a width all terminals agree on.

Everything that was not written by us goes through here before it reaches a terminal, a picture or an error
line. What comes out holds no control, format, private or unassigned character, so it can steer no terminal
and break no XML; nothing in it is invisible; and nothing in it moves its neighbours.

A character that cannot be drawn as itself is shown by its picture (``␛``) or by its number (``⟨U+202E⟩``):

* controls, format and bidi characters, surrogates, private and unassigned code points, and every space but
  the plain one;
* fillers and variation selectors, which leave nothing on the screen;
* what terminals measure differently: the zero-width joiner and U+FE0F in emoji, skin tones, the letter pairs
  that make flags, the spacing vowel signs of Indic scripts. A sequence of these is drawn as its parts, which
  is also what the tokenizer sees.

Right-to-left letters stay as they are. A terminal that reorders them may also reorder the columns between
them; the isolates that would prevent it are format characters themselves, and those are never sent.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from rich.cells import cell_len, get_character_cell_size, split_graphemes

_PICTURES = {chr(code): chr(0x2400 + code) for code in range(0x20)} | {
    "\x7f": "␡",
    "\n": "⏎",
    "\t": "⇥",
    " ": "·",
}

_SEAT = "◌"
"""What a combining mark sits on when it has no letter of its own."""

_SIGNS = frozenset(_PICTURES.values()) | {"⟨", _SEAT}
"""Characters that mean something else in a drawn token, so that a literal one is shown by its number."""

_UNSEEN = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0"  # fillers, joiners, blank braille
    "\ufe00-\ufe0f\U000e0100-\U000e01ef"  # variation selectors
)
"""Letters, marks and symbols that leave no ink."""

_DISPUTED = (
    "\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff"  # halves of flags, skin tones
    "\u2630-\u2637\u268a-\u268f\u4dc0-\u4dff"  # trigrams, hexagrams: wide since Unicode 16
    "\U0001d300-\U0001d356\U0001d360-\U0001d376"  # tetragrams, counting rods: the same
    "\u3248-\u324f\uff9e\uff9f"  # circled numbers on black, halfwidth sound marks
)
"""Symbols that do not have the same width in every terminal."""

_BY_NUMBER = re.compile(f"[{_UNSEEN}{_DISPUTED}]")
"""What Unicode calls a letter, mark or symbol, and cannot be drawn as itself all the same."""

_NOT_TEXT = re.compile("([\udc80-\udcff]+)")
"""Bytes that are not UTF-8, as the ``surrogateescape`` error handler leaves them."""


def drawable(text: str, *, spaces: bool = True) -> str:
    """Return *text* as it is drawn.

    With *spaces*, a space is drawn as ``·`` and the drawing can be read back: no two texts share one.
    Without, *text* is a sentence: spaces stay, and so do the signs of text that was drawn before.
    """
    if text.isascii() and text.isprintable():
        return text.replace(" ", "·") if spaces else text
    sign: Callable[[str], str] = _sign if spaces else _sentence_sign
    return _seat_marks("".join(map(sign, text)))


def draw_token(data: bytes, *, id: int | None = None) -> str:
    """Return the bytes of a token as they are drawn; no two tokens share a drawing.

    Bytes that are not whole UTF-8 are shown in hexadecimal, ``⟨e2 96⟩``. A token without bytes, as all are
    in a model without a tokenizer, is drawn as its *id*, ``#123``.
    """
    if data or id is None:
        return _draw_bytes(data)
    return f"#{id}"


def cell_width(text: str) -> int:
    """Return how many columns *text* takes."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def clip(text: str, cells: int) -> str:
    """Return *text* in at most *cells* columns, ending in ``…`` where something was cut off."""
    if cell_width(text) <= cells:
        return text
    return beginning(text, cells - 1) + "…" if cells > 0 else ""


def beginning(text: str, cells: int) -> str:
    """Return as much of *text* as fits into *cells* columns, never half a character or one without its marks."""
    end, room = 0, cells
    for _, span_end, span_cells in split_graphemes(text)[0]:
        if span_cells > room:
            break
        end, room = span_end, room - span_cells
    return text[:end]


def fit(text: str, cells: int, align: Literal["left", "right"] = "left") -> str:
    """Return *text* in exactly *cells* columns: clipped, or padded on the side away from *align*."""
    clipped = clip(text, cells)
    padding = " " * (cells - cell_width(clipped))
    return padding + clipped if align == "right" else clipped + padding


@lru_cache(1 << 14)
def _draw_bytes(data: bytes) -> str:
    if not data:
        return "⟨⟩"
    text = data.decode("utf-8", "surrogateescape")
    if text.isprintable():
        return drawable(text)
    parts = _NOT_TEXT.split(text)  # text and bytes in turn
    parts[::2] = map(drawable, parts[::2])
    parts[1::2] = (f"⟨{part.encode('utf-8', 'surrogateescape').hex(' ')}⟩" for part in parts[1::2])
    return "".join(parts)


@lru_cache(1 << 12)
def _sign(character: str) -> str:
    """How one character is drawn within a token."""
    if picture := _PICTURES.get(character):
        return picture
    by_number = character in _SIGNS or _BY_NUMBER.match(character) or unicodedata.category(character) == "Mc"
    return f"⟨U+{ord(character):04X}⟩" if by_number or not character.isprintable() else character


def _sentence_sign(character: str) -> str:
    """How one character is drawn within a sentence."""
    return character if character == " " or character in _SIGNS else _sign(character)


def _seat_marks(drawn: str) -> str:
    """Give a base to every mark that would otherwise combine with the text before, or with a bracket."""
    if drawn.isascii():
        return drawn
    seated = []
    before = "⟩"
    for character in drawn:
        if before == "⟩" and get_character_cell_size(character) == 0:
            seated.append(_SEAT)
        seated.append(character)
        before = character
    return "".join(seated)
