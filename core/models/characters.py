"""A tokenizer of single characters, for a model of a page: what it does not know becomes a space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from ..tokenizer import Tokenizer, Vocabulary


class CharacterTokenizer(Tokenizer):
    """One id for each character of an alphabet, then one for the end token."""

    def __init__(self, alphabet: str, end: str) -> None:
        """Number the characters of *alphabet*, the space among them, in their order; *end* names the end token."""
        self._ids = {character: id for id, character in enumerate(alphabet)}
        self._end = len(alphabet)
        self._end_name = end
        tokens = [character.encode() for character in (*alphabet, end)]
        super().__init__(
            Vocabulary.from_tokens(tokens, special=[self._end]),
            special_tokens={end: self._end},
            eos_token=end,
        )

    @property
    def can_encode(self) -> bool:
        return True

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Return an id for each UTF-16 unit of *text*: a character outside of the alphabet is one space, or two.

        The name of the end token is ordinary text, unless *special*.
        """
        first, *others = text.split(self._end_name) if special else (text,)
        ids = list(self._characters(first))
        for part in others:
            ids += (self._end, *self._characters(part))
        return ids

    def decode_bytes(self, ids: Iterable[int], skip_special: bool = False) -> bytes:
        """Return the bytes of *ids*; the text ends at the end token."""
        return super().decode_bytes(takewhile(lambda id: id != self._end, ids), skip_special)

    def _characters(self, text: str) -> Iterator[int]:
        space = self._ids[" "]
        for character in text:
            id = self._ids.get(character, space)
            yield id
            if character > "\uffff":
                yield id
