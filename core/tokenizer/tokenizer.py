"""A model's tokenizer as the rest of the program sees it."""

from collections.abc import Iterable, Mapping

from .pipeline import Pipeline
from .templates import Template
from .vocabulary import Vocabulary


class Tokenizer:
    """Text to token ids and back.

    A tokenizer may be unable to encode (`can_encode`): the model's folder holds none, or one of a kind that
    is not implemented. Tokens then show as their ids, and a text that lists ids stands for those.
    """

    vocabulary: Vocabulary
    """What each of the model's ids stands for [V]; empty entries where that is not known."""

    special_tokens: Mapping[str, int]
    """The ids of the special tokens by their names."""

    chat_template: str | None
    """The Jinja template that writes a conversation as text; see `cutaway.core.chat`."""

    bos_token: str | None
    """The name of the token that begins a text, which chat templates refer to; *eos_token*: that ends it."""

    eos_token: str | None

    notice: str | None
    """A sentence for the user about what of this tokenizer is not as its files ask for."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        pipeline: Pipeline | None = None,
        *,
        special_tokens: Mapping[str, int] | None = None,
        chat_template: str | None = None,
        bos_token: str | None = None,
        eos_token: str | None = None,
        notice: str | None = None,
    ) -> None:
        """Encode by *pipeline*; without one, texts cannot be encoded."""
        self.vocabulary = vocabulary
        self.special_tokens = special_tokens or {}
        self.chat_template = chat_template
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.notice = notice
        self._pipeline = pipeline

    @property
    def can_encode(self) -> bool:
        """Whether text can be turned into ids."""
        return self._pipeline is not None

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Return the ids of *text* and nothing else; never raises.

        The names of special tokens are ordinary text, unless *special*. Surrogates that are no pair become
        U+FFFD. Without an encoder: the ids that *text* lists, or none if it is anything but a list of ids.
        """
        if self._pipeline is None:
            return self._listed_ids(text)
        return self._pipeline.encode(_without_surrogates(text), special)

    def encode_prompt(self, text: str, special: bool = False) -> tuple[list[int], frozenset[int]]:
        """Return the ids of *text* with what the tokenizer itself puts around a prompt.

        The set holds the positions of the ids that were put there. A conversation written by a chat template
        already has all it needs: that goes through `encode`.
        """
        before, after = self._pipeline.template if self._pipeline else Template()
        ids = [*before, *self.encode(text, special), *after]
        last = len(ids) - len(after)
        return ids, frozenset([*range(len(before)), *range(last, len(ids))])

    def decode(self, ids: Iterable[int], skip_special: bool = False) -> str:
        """Return the text of *ids*, U+FFFD where their bytes are not UTF-8; unknown ids give nothing."""
        return self.decode_bytes(ids, skip_special).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int], skip_special: bool = False) -> bytes:
        """Return the bytes of *ids*, joined; without those of special tokens if *skip_special*."""
        hidden = self.vocabulary.special if skip_special else frozenset[int]()
        return b"".join(self.token_bytes(id) for id in ids if id not in hidden)

    def token_bytes(self, id: int) -> bytes:
        """Return the bytes of one token: none if *id* is unknown, its name in UTF-8 if it is special."""
        return self.vocabulary.token_bytes(id)

    def _listed_ids(self, text: str) -> list[int]:
        numbers = text.replace(",", " ").split()
        if not all(number.isascii() and number.isdecimal() and len(number) < 10 for number in numbers):
            return []
        ids = [int(number) for number in numbers]
        return ids if max(ids, default=0) < len(self.vocabulary) else []


def _without_surrogates(text: str) -> str:
    """Return *text* with pairs of surrogates joined to characters and single ones replaced by U+FFFD."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
