"""Tokens added to a tokenizer beside its merges: found in the text before it is cut and merged.

Special ones (an end token, say) are found only if the caller asks for it; in plain text their names are
ordinary characters. The others (``<think>``) are always found. This is what the reference does.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .patterns import compile_pattern
from .problems import member


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token found by its name."""

    id: int
    text: str
    special: bool = True
    normalized: bool = False
    """Whether it is looked for in the normalized text rather than in the text as it was typed."""
    lstrip: bool = False
    """Whether it takes in the whitespace before it; *rstrip*: after it."""
    rstrip: bool = False
    single_word: bool = False
    """Whether it counts only where no letter, digit or underscore touches it."""

    @classmethod
    def from_json(cls, spec: object) -> "AddedToken":
        """Read an added token as tokenizer.json writes it; `Malformed` if it is not one."""
        return cls(
            member(spec, "id", int),
            member(spec, "content", str),
            special=member(spec, "special", bool, False),
            normalized=member(spec, "normalized", bool, False),
            lstrip=member(spec, "lstrip", bool, False),
            rstrip=member(spec, "rstrip", bool, False),
            single_word=member(spec, "single_word", bool, False),
        )


class AddedTokens:
    """A set of added tokens to look for: the leftmost first, of those the longest."""

    def __init__(self, tokens: Sequence[tuple[str, AddedToken]]) -> None:
        """Look for *tokens*, each under a name."""
        self._tokens = {name: token for name, token in tokens if name}
        names = sorted(self._tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, names))) if names else None
        self._word = compile_pattern({"Regex": r"\w"})

    def split(self, text: str, special: bool) -> Iterator[str | AddedToken]:
        """Yield the added tokens in *text* and the text between them, in order; special ones if *special*."""
        done = 0
        for match in self._pattern.finditer(text) if self._pattern else ():
            token = self._tokens[match.group()]
            start, end = match.span()
            if (token.special and not special) or (token.single_word and self._touches_a_word(text, start, end)):
                continue
            if token.lstrip:
                start = _back_over_space(text, start, done)
            if token.rstrip:
                end = _on_over_space(text, end)
            if done < start:
                yield text[done:start]
            yield token
            done = end
        if done < len(text):
            yield text[done:]

    def _touches_a_word(self, text: str, start: int, end: int) -> bool:
        neighbours = text[max(start - 1, 0) : start] + text[end : end + 1]
        return self._word.search(neighbours) is not None


def _back_over_space(text: str, place: int, limit: int) -> int:
    while place > limit and text[place - 1].isspace():
        place -= 1
    return place


def _on_over_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place
