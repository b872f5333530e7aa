"""From text to token ids: added tokens, normalizing, cutting, merging, in the order of the reference."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from .added import AddedToken, AddedTokens
from .bpe import BytePairEncoder
from .normalizers import Normalizer
from .pretokenizers import Splitter, split
from .templates import Template


class Steps(NamedTuple):
    """What a tokenizer's file says about encoding."""

    normalizer: Normalizer
    splitters: Sequence[Splitter]
    bpe: BytePairEncoder
    template: Template


class Pipeline:
    """The encoding of texts by one tokenizer."""

    def __init__(self, steps: Steps, added: Sequence[AddedToken]) -> None:
        """Encode by *steps*, with *added* as the added tokens."""
        self.template = steps.template
        self._steps = steps
        self._typed = AddedTokens([(token.text, token) for token in added if not token.normalized])
        self._normalized = AddedTokens([(steps.normalizer(token.text), token) for token in added if token.normalized])

    def encode(self, text: str, special: bool) -> list[int]:
        """Return the ids of *text*, a string without surrogates; special tokens are found if *special*."""
        ids: list[int] = []
        encode_piece = cache(self._steps.bpe.encode)  # words repeat
        for part in self._parts(text, special):
            if isinstance(part, AddedToken):
                ids.append(part.id)
                continue
            for piece in split(part, self._steps.splitters):
                ids += encode_piece(piece)
        return ids

    def _parts(self, text: str, special: bool) -> Iterator[str | AddedToken]:
        for part in self._typed.split(text, special):
            if isinstance(part, AddedToken):
                yield part
            else:
                yield from self._normalized.split(self._steps.normalizer(part), special)
