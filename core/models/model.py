"""A model that is open: its name, its configuration, its weights as a decoder, its tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..catalogue import tr, trn
from ..checkpoint.config import ModelConfig
from ..errors import ModelError
from ..tokenizer import Tokenizer
from .decoder import Decoder


@dataclass(frozen=True)
class Model:
    """What `load_model` gives: everything a run needs, and nothing of a run."""

    name: str
    """What people call it: its folder's name, never a path."""
    config: ModelConfig
    decoder: Decoder
    tokenizer: Tokenizer
    compute_digest: Callable[[], str] = field(repr=False)

    @cached_property
    def digest(self) -> str:
        """A SHA-256 over the weights, in hex; reads the files, so it is computed when first asked for."""
        return self.compute_digest()

    @property
    def start_token(self) -> int | None:
        """The token a run starts from when there is no prompt: the beginning token, or else an end token."""
        if self.config.bos_id is not None:
            return self.config.bos_id
        return min(self.config.eos_ids, default=None)

    def check_prompt(self, ids: Sequence[int]) -> None:
        """Raise `ModelError` when *ids* cannot be this model's prompt: too many, or not in its vocabulary."""
        limit, vocabulary = self.config.positions, self.config.vocabulary
        if len(ids) > limit:
            raise ModelError(
                trn(
                    "the prompt has 1 token; {model} reads at most {limit}",
                    "the prompt has {count} tokens; {model} reads at most {limit}",
                    len(ids),
                    model=self.name,
                    limit=f"{limit:,}",
                ),
                hint=trn("shorten it by 1 token", "shorten it by {count} tokens", len(ids) - limit),
            )
        for id in ids:
            if not 0 <= id < vocabulary:
                raise ModelError(
                    tr("token id {id} is not in the vocabulary of {model}", id=id, model=self.name),
                    hint=tr("choose from 0 to {last}", last=vocabulary - 1),
                )
