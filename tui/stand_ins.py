"""Characters that an editor must not be given, and what stands there in their place.

A prompt may hold anything, escape sequences included, and comes back from the editor as it went in. So the
editor is given characters of private use, one for each that cannot be drawn as itself. Which stands for which
is a table: no character is free to always stand for another, since a prompt may hold those of private use too.
"""

from __future__ import annotations

from ..widgets.drawable import cell_width, drawable

_FIRST, _LAST = 0xF0000, 0x10FFFF
"""Planes 15 and 16 of Unicode, all of them private."""
_BOX = "▯"
"""Drawn for what has no sign of a single column."""


class StandIns:
    """The characters one editor is spared."""

    def __init__(self) -> None:
        self._stand_ins: dict[str, str] = {}
        self._spared: dict[str, str] = {}

    def hide(self, text: str) -> str:
        """*text* as the editor may have it."""
        return "".join(character if _is_plain(character) else self._stand_in(character) for character in text)

    def reveal(self, text: str) -> str:
        """The reverse of `hide`."""
        return "".join(self._spared.get(character, character) for character in text)

    def draw(self, text: str) -> str:
        """What is drawn for text in the editor: a sign of one column for each stand-in."""
        return "".join(_sign(self._spared[c]) if c in self._spared else c for c in text)

    def _stand_in(self, character: str) -> str:
        if (stand_in := self._stand_ins.get(character)) is None:
            if len(self._stand_ins) > _LAST - _FIRST:  # nobody writes so many, but a file may hold them
                return "\ufffd"
            stand_in = chr(_FIRST + len(self._stand_ins))
            self._stand_ins[character], self._spared[stand_in] = stand_in, character
        return stand_in


def _is_plain(character: str) -> bool:
    """Whether *character* is drawn as itself, after a letter if it is a mark."""
    return character in "\n " or drawable(f"a{character}", spaces=False) == f"a{character}"


def _sign(character: str) -> str:
    drawn = drawable(character, spaces=False)
    return drawn if cell_width(drawn) == 1 else _BOX
