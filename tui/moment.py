"""A trace as far as the screen has followed it.

The engine's thread is always a little ahead; what is drawn stops at the last event that was heard of, so that
nothing is half seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isnan, log

import numpy as np

from ..core.events import Event, Floats, LogitsReady, SamplingStage, TokenChosen
from ..core.overview import Overview
from ..core.sampling import Chain, SamplingConfig
from ..core.scores import BEST, Candidates, candidates
from ..core.trace import Trace
from ..widgets.drawable import draw_token
from ..widgets.token_stream import Kind, TokenCell
from .stages import Place, stages_of


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """How a token was drawn, or would be: the candidates under some settings."""

    table: Candidates
    settings: SamplingConfig
    previous: Sequence[int]
    """The text it is drawn after."""
    uniform: float | None
    """The random number; None before it was drawn."""
    id: int
    """The drawn token; the likeliest before one was drawn."""
    forced: bool


class Moment:
    """A trace, its text as cells, and how far the pass under way has come."""

    def __init__(self, trace: Trace, steps: int = 0) -> None:
        """Begin with the prompt and the first *steps* generated tokens."""
        self.trace = trace
        self.stages = stages_of(trace.model.config)
        self.cells = [self._prompt_cell(position, None) for position in range(self.prompt_length)]
        """Every token of the text so far."""
        self._event: Event | None = None
        """The last one of the pass under way; None before its first."""
        self.overview = Overview(trace)
        self.surprisal_known = 0
        """Prompt tokens whose surprisal was asked for and answered, whether or not there is one."""
        self._scores: Floats | None = None
        """Scores [V] of the pass under way, once they are there."""
        self._draw = lru_cache(maxsize=2)(self._compute_draw)
        for _ in range(steps):
            self._hear_token()

    def fork(self, trace: Trace, overview: Overview) -> Moment:
        """The moment of a branch: the same text up to where it left, with all that was learnt about it."""
        moment = Moment(trace, len(trace.steps))
        moment.overview = overview
        moment.cells[: self.prompt_length] = self.cells[: self.prompt_length]
        moment.surprisal_known = self.surprisal_known
        return moment

    @property
    def prompt_length(self) -> int:
        """P."""
        return len(self.trace.prompt_ids)

    @property
    def steps(self) -> int:
        """Generated tokens that have been heard of."""
        return len(self.cells) - self.prompt_length

    @property
    def reached(self) -> int:
        """The last stage that can be looked at of the pass under way; −1 before its first."""
        return -1 if self._event is None else self.stages.after(self._event)

    @property
    def newest(self) -> Place | None:
        """The place a run stands at: inside the pass under way, or at the end of the last whole one."""
        if self.reached >= 0:
            return Place(self.steps, self.reached)
        return Place(self.steps - 1, self.stages.last) if self.steps else None

    @property
    def last_token(self) -> Place | None:
        """The end of the last whole pass."""
        return Place(self.steps - 1, self.stages.last) if self.steps else None

    @property
    def knows_outputs(self) -> bool:
        """Whether what attention and MLP add can be told: from the weights, or from a recording's tables."""
        return self.trace.has_weights or self.trace.tables is not None

    def has(self, place: Place) -> bool:
        """Whether *place* can be looked at yet."""
        return self.newest is not None and place <= self.newest

    def positions(self, place: Place) -> int:
        """T: positions that the pass at *place* goes over or looks back at."""
        return self.prompt_length + place.step

    def attended(self, place: Place, layer: int) -> int:
        """Queries whose attention in *layer* is there at *place*: T, or those of the passes before."""
        if self.stages.attended(place.stage) > layer:
            return self.positions(place)
        return self.positions(place) - 1 if place.step else 0

    def hear(self, event: Event) -> None:
        """One event more."""
        if isinstance(event, TokenChosen):
            self._hear_token()
            self._event = self._scores = None
            return
        self._event = event  # what it means is worked out when somebody looks: there may be thousands a second
        if isinstance(event, LogitsReady):
            self._scores = event.logits[-1]
        elif self._scores is None and isinstance(event, SamplingStage) and event.name == "raw":
            self._scores = event.values.astype(np.float32)  # a branch begins with the scores it inherited

    def silent_heads(self, step: int) -> frozenset[tuple[int, int]]:
        """Layer and head of those of which nothing is left where the scores of generated *step* come from."""
        return self.trace.edits_at_work.silent_heads(self.prompt_length + max(step, 0) - 1)

    def learn_surprisal(self, start: int, bits: Sequence[float]) -> None:
        """Take in how unexpected each token of the prompt from *start* on was; NaN where that is not known."""
        self.surprisal_known = max(self.surprisal_known, start + len(bits))
        for position, surprisal in enumerate(bits, start):
            self.cells[position] = self._prompt_cell(position, None if isnan(surprisal) else float(surprisal))

    def draw(self, step: int, settings: SamplingConfig | None = None) -> Draw | None:
        """How generated token *step* was drawn, or would be under other *settings*.

        None before its scores are there, and for other settings where a recording kept only the best scores.
        """
        drawn = step < self.steps
        return self._draw(step, settings, drawn) if drawn or self._scores is not None else None

    def can_try(self, step: int) -> bool:
        """Whether the draw of *step* can be worked out under other settings."""
        return self.trace.has_weights or step >= self.steps or isinstance(self.trace.steps[step].scores, np.ndarray)

    def label(self, position: int) -> str:
        """Drawable text of the token at *position*."""
        return self.cells[position].text

    def name(self, id: int) -> str:
        """Drawable text of token *id*."""
        return draw_token(self.trace.model.vocabulary.token_bytes(id), id=id)

    def _compute_draw(self, step: int, settings: SamplingConfig | None, drawn: bool) -> Draw | None:
        trace = self.trace
        chosen = settings or trace.settings_at(step)
        previous = trace.previous_ids(step)
        scores = trace.steps[step].scores if drawn else self._scores
        if drawn and (scores is None or (isinstance(scores, Candidates) and settings is not None)):
            scores = trace.scores(step)  # computed again, where there are weights
        if scores is None:
            return None
        uniform = self._uniform(step, chosen) if drawn else None
        if isinstance(scores, Candidates):
            return Draw(scores, chosen, previous, uniform, trace.steps[step].id, trace.steps[step].forced)
        chain = Chain(chosen, scores, previous)
        forced = drawn and trace.steps[step].forced
        if not drawn:
            id = int(np.argmax(scores))
        elif settings is None:
            id = trace.steps[step].id
        else:
            assert uniform is not None
            id, forced = chain.draw(uniform), False
        return Draw(candidates(chain, id, BEST), chosen, previous, uniform, id, forced)

    def _uniform(self, step: int, settings: SamplingConfig) -> float:
        """The random number of *step*: the one that was drawn, or the one that another seed gives."""
        if settings.seed in (None, self.trace.settings_at(step).seed):
            return self.trace.steps[step].uniform
        numbers = np.random.Generator(np.random.PCG64(settings.seed)).random(step + 1)
        return float(numbers[-1])

    def _hear_token(self) -> None:
        step = self.trace.steps[self.steps]
        self.cells.append(self._cell(step.id, "written", -step.raw_logprob / log(2)))

    def _prompt_cell(self, position: int, surprisal: float | None) -> TokenCell:
        kind: Kind = "added" if position in self.trace.added else "prompt"
        return self._cell(self.trace.prompt_ids[position], kind, surprisal)

    def _cell(self, id: int, kind: Kind, surprisal: float | None) -> TokenCell:
        breaks = self.trace.model.vocabulary.token_bytes(id).endswith(b"\n")
        return TokenCell(self.name(id), kind, surprisal, breaks)
