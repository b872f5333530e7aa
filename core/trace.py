"""What a run leaves behind: its tokens, the facts of each step, and the rows its views are drawn from.

A trace is one path of text. It grows while a `Generation` runs, is saved as a recording (`recording.py`), and
comes back the same. What can be computed from it is in `lens.py` and the files it names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .cache import ActivationCache
from .catalogue import mark, tr
from .checkpoint.config import ModelConfig
from .editing import Edits
from .edits import Edit
from .errors import ModelError
from .events import FinishReason
from .sampling import Chain, SamplingConfig
from .scores import Candidates, candidates
from .tables import Ids, Tables
from .tokenizer import Vocabulary

if TYPE_CHECKING:
    from .models.decoder import Decoder

REASONS: dict[FinishReason, str] = {
    "eos": mark("the model ended its text"),
    "context": mark("the context is full"),
    "length": mark("as many tokens as asked for"),
    "stopped": mark("stopped"),
    "failed": mark("failed"),
}
"""Why a run ended, in words that `tr` translates."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One generated token and how it came about."""

    id: int
    probability: float
    """After all sampling stages."""
    raw_logprob: float
    """Under the raw softmax, natural logarithm."""
    uniform: float
    """The random number in [0, 1)."""
    forced: bool
    """Whether a person chose it."""
    scores: NDArray[np.float32] | Candidates | None
    """What it was drawn from: all raw scores [V] in a run, the best of them in a recording.

    None in a run that has gone on for long: `Trace.scores` computes them again.
    """
    seconds: float
    """How long the engine worked on it, pauses left out."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a trace says of its model, so that it can be shown without the weights."""

    name: str
    config: ModelConfig
    vocabulary: Vocabulary
    digest: Callable[[], str] = field(repr=False)
    """A SHA-256 over the weights, in hex."""
    decoder: Decoder | None = field(default=None, repr=False, compare=False)
    """The weights, while they are at hand; None in a trace that was loaded."""


@dataclass(eq=False, repr=False)
class Trace:
    """One run's memory. P prompt tokens, G generated; T positions that went through the model."""

    model: ModelFacts
    prompt_ids: tuple[int, ...]
    added: tuple[int, ...]
    """Positions of prompt tokens that the text did not hold."""
    prompt: str
    """The prompt's text as it was given; empty for a prompt of ids."""
    cache: ActivationCache
    sampling: list[tuple[int, SamplingConfig]]
    """Settings, each with the step it began at; seeds are the ones really used."""
    edits: tuple[Edit, ...] = ()
    steps: list[Step] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    """Why the run ended; None while it goes on."""
    more_end_ids: frozenset[int] = frozenset()
    """Tokens that end this text beside those of the configuration, as the end token that a chat template names."""
    begun: int = 0
    """The position its first pass began at; what came before was taken over from another run. Not recorded."""
    tables: Tables | None = None
    """What the weights said of it when it was saved; only a trace that was loaded has them."""

    def __repr__(self) -> str:
        return f"<Trace of {self.model.name}: {len(self.prompt_ids)} + {len(self.steps)} tokens, {self.finish_reason}>"

    @property
    def text(self) -> str:
        """Prompt and continuation as text, U+FFFD where their bytes are not UTF-8."""
        return b"".join(map(self.model.vocabulary.token_bytes, self.token_ids)).decode("utf-8", "replace")

    @property
    def token_ids(self) -> list[int]:
        """Prompt, then generated [P + G]."""
        return [*self.prompt_ids, *(step.id for step in self.steps)]

    @property
    def positions(self) -> int:
        """T = P + max(G − 1, 0): positions that went through the model in whole steps."""
        return len(self.prompt_ids) + max(len(self.steps) - 1, 0)

    @property
    def has_weights(self) -> bool:
        """Whether the model's weights are at hand."""
        return self.model.decoder is not None

    @property
    def decoder(self) -> Decoder:
        """The model's weights. Raises `ModelError` where they are not at hand."""
        if self.model.decoder is None:
            raise ModelError(
                tr("this needs the weights of {model}", model=self.model.name),
                hint=tr("open the recording with --model"),
            )
        return self.model.decoder

    @property
    def recorded(self) -> Tables:
        """What the weights said when the trace was saved. Raises `ModelError` where nobody asked them."""
        if self.tables is None:
            raise ModelError(
                tr("this needs the weights of {model}; the recording has no tables of them", model=self.model.name),
                hint=tr("open the recording with --model"),
            )
        return self.tables

    @property
    def capture(self) -> str:
        """``default`` or ``all``."""
        return self.cache.capture

    @property
    def prefill_seconds(self) -> float:
        """Time to the first token: the prompt through the model from where it was `begun`, and the draw."""
        return self.steps[0].seconds if self.steps else 0.0

    @property
    def decode_rate(self) -> float:
        """Tokens a second after the first, by the engine's own time; 0 before there are any."""
        seconds = sum(step.seconds for step in self.steps[1:])
        return (len(self.steps) - 1) / seconds if seconds else 0.0

    def token_bytes(self, position: int) -> bytes:
        """The exact bytes of the token at *position* of the text."""
        prompt = len(self.prompt_ids)
        id = self.prompt_ids[position] if position < prompt else self.steps[position - prompt].id
        return self.model.vocabulary.token_bytes(id)

    def following_ids(self, start: int, stop: int) -> Ids:
        """The token after each position [stop − start]; −1 where none follows yet."""
        known = self.token_ids[start + 1 : stop + 1]
        return np.array(known + [-1] * (stop - start - len(known)), np.int64)

    @cached_property
    def edits_at_work(self) -> Edits:
        """Its edits, ready to change what is computed again as they changed it in the run."""
        return Edits(self.edits, self.model.config, len(self.prompt_ids))

    def settings_at(self, step: int) -> SamplingConfig:
        """The sampling settings that generated *step* was drawn under."""
        return next(config for begin, config in reversed(self.sampling) if begin <= step)

    def previous_ids(self, step: int) -> Sequence[int]:
        """The text [P + step] that generated *step* was drawn after."""
        return [*self.prompt_ids, *(each.id for each in self.steps[:step])]

    def chain(self, step: int, settings: SamplingConfig | None = None) -> Chain | None:
        """The sampling stages of generated *step*, under its own or other *settings*.

        None where only the best scores were kept, as in a recording with default capture, and no weights are there.
        """
        scores = self.scores(step)
        if scores is None:
            return None
        return Chain(settings or self.settings_at(step), scores, self.previous_ids(step))

    def scores(self, step: int) -> NDArray[np.float32] | None:
        """All raw scores [V] of generated *step*: kept, or computed again from the residual where weights are there."""
        kept = self.steps[step].scores
        if isinstance(kept, np.ndarray):
            return kept
        if self.model.decoder is None:
            return None
        position = len(self.prompt_ids) + step - 1
        residual = self.cache.rows.residual[-1, position : position + 1]  # [1, D]
        scores: NDArray[np.float32] = self.model.decoder.logits(residual)[0]
        return scores

    def candidates(self, step: int, count: int) -> Candidates:
        """The *count* likeliest tokens at generated *step*, the drawn one always among them."""
        scores, drawn = self.steps[step].scores, self.steps[step].id
        if isinstance(scores, Candidates):
            return scores.best(count, drawn)
        chain = self.chain(step)
        assert chain is not None
        return candidates(chain, drawn, count).best(count, drawn)

    def embedding(self) -> NDArray[np.float32]:
        """What entered block 0, [T, D]."""
        return self.cache.rows.embedding[: self.positions]

    def residual(self, layer: int) -> NDArray[np.float32]:
        """The residual stream after *layer*, [T, D]."""
        return self.cache.rows.residual[layer, : self.positions]

    def save(self, path: str | Path, *, overwrite: bool = True) -> None:
        """Write the recording at *path*, whole or not at all. Raises `RecordingError`.

        With the weights at hand its tables are computed here: a second or two per 100 positions of a 124M model.
        """
        from .recording import save_recording

        save_recording(self, Path(path), overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> Trace:
        """Read a recording back. Raises `RecordingError` on anything that is not one."""
        from .recording import load_recording

        return load_recording(Path(path))
