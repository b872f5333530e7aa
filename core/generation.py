"""The loop: tokens in, one forward pass, one draw, one token more — as a generator of events.

Pulling the next event *is* the step; not pulling is a pause; `close` is a cancel. There are no locks, flags or
callbacks here: running, stepping, stopping at a stage and replaying are all this loop with another stop.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from time import perf_counter
from typing import get_args

import numpy as np

from .cache import ActivationCache, Capture
from .catalogue import tr
from .editing import first_position
from .edits import Edit, ForceToken, Lasting, Patch, check_range, next_turn
from .errors import ModelError
from .events import (
    ChatRendered,
    Event,
    Finished,
    FinishReason,
    Floats,
    LogitsReady,
    SamplingStage,
    TokenChosen,
    Tokenized,
    read_only,
)
from .models.model import Model
from .plain_numbers import whole
from .sampling import Chain, SamplingConfig, SamplingError
from .trace import ModelFacts, Step, Trace

KEPT_SCORES = 2**20
"""How many raw scores a run keeps at hand, all its newest steps together: 4 MB."""
FEWEST_SCORES = 16
"""Steps whose scores are kept however large the vocabulary is."""


class Generation(Iterator[Event]):
    """One run of a model: an iterator of events, and the `trace` they leave.

    Raises `ModelError` at once when the prompt does not fit the model, and `SamplingError` from the step whose
    scores cannot be sampled from; the trace then says ``failed`` and keeps every whole step.
    """

    def __init__(
        self,
        model: Model,
        ids: Sequence[int],
        sampling: SamplingConfig | None = None,
        *,
        max_new_tokens: int = 64,
        ignore_eos: bool = False,
        capture: Capture = "default",
        edits: Sequence[Edit] = (),
        added: Sequence[int] = (),
        prompt: str = "",
        chat: str | None = None,
        end_ids: Iterable[int] = (),
    ) -> None:
        """Prepare to continue *ids* [P]; an empty prompt starts from the model's own start token.

        *added* are the positions of ids that the prompt's text did not hold, *prompt* that text, and *chat* what
        the chat template made of it: they change nothing but what is told. *end_ids* end a text as the model's own
        end tokens do.
        """
        if capture not in get_args(Capture):
            raise ModelError(tr("there is no capture {name}", name=repr(capture)), hint=tr("choose default or all"))
        if max_new_tokens < 1:
            raise ModelError(
                tr("there is nothing to do with {count} new tokens", count=max_new_tokens),
                hint=tr("ask for 1 or more"),
            )
        ids = [whole(id, "id", ModelError) for id in ids]
        if not ids:
            ids, added = _start(model), (0,)
        model.check_prompt(ids)
        sampling = sampling or SamplingConfig()
        if sampling.seed is None:
            sampling = replace(sampling, seed=secrets.randbits(32))
        self.model = model
        self.max_new_tokens = max_new_tokens
        self.ignore_eos = ignore_eos
        more_ends = frozenset(whole(id, "end_ids", ModelError) for id in end_ids)
        more_ends = more_ends.intersection(range(model.config.vocabulary)).difference(model.config.eos_ids)
        self.end_ids = more_ends.union(model.config.eos_ids)
        self.trace = Trace(
            _facts(model),
            tuple(ids),
            _positions(added, len(ids)),
            prompt,
            ActivationCache(model.config, len(ids) + max_new_tokens, capture),
            [(0, sampling)],
            tuple(edits),
            more_end_ids=more_ends,
        )
        _keep_freed_memory()
        self._chat = chat
        self._edits = self.trace.edits_at_work
        self._inherited: Floats | None = None
        """Scores [V] that a branch draws its first token from."""
        self._begin()

    def __next__(self) -> Event:
        begun = perf_counter()
        try:
            event = next(self._events)
        except StopIteration:
            raise
        except Exception:
            self._stop("failed")
            raise
        self._seconds += perf_counter() - begun
        return event

    def close(self) -> None:
        """Stop here: whole steps stay in the trace, a half-done one is forgotten."""
        self._events.close()
        self._stop("stopped")

    def branch(
        self,
        step: int,
        *,
        token: int | None = None,
        sampling: SamplingConfig | None = None,
        edits: Sequence[Edit] = (),
    ) -> Generation:
        """A run that shares this one's text before generated *step* and goes its own way from there.

        It takes *token* there, or draws again under other *sampling*; further *edits* hold from there on. Of this
        run's it keeps those that hold by its own first pass, and of forced tokens those before *step*. Its events
        start at the sampling stages of that step: nothing before it is computed again. Raises `ModelError` when this
        run has no such step.
        """
        trace, step = self.trace, whole(step, "step", ModelError)
        if not 0 <= step < len(trace.steps):
            raise ModelError(
                tr("there is no generated token {step} to branch from", step=step),
                hint=tr("this run has {count}, counted from 0", count=len(trace.steps)),
            )
        forced = () if token is None else (ForceToken(step, token),)
        kept = tuple(edit for edit in trace.edits if _holds_in_branch(edit, step, len(trace.prompt_ids)))
        twin = copy(self)
        twin.trace = replace(
            trace,
            cache=trace.cache.fork(len(trace.prompt_ids) + step),
            sampling=_settings_from(trace, step, sampling),
            edits=(*kept, *forced, *(_from(edit, step + 1, trace) for edit in edits)),
            steps=trace.steps[:step],
            finish_reason=None,
        )
        twin._edits = twin.trace.edits_at_work
        twin._inherited = trace.scores(step)
        twin._begin()
        twin._seconds = trace.steps[step].seconds  # what the scores it begins with had cost
        return twin

    def follow(
        self,
        ids: Sequence[int],
        sampling: SamplingConfig | None = None,
        *,
        max_new_tokens: int | None = None,
        added: Sequence[int] = (),
        prompt: str = "",
        chat: str | None = None,
    ) -> Generation:
        """A run that continues *ids*, the next turn of a chat say, and computes only what this one has not.

        It takes over the rows of the positions up to where the two texts part; its first pass runs the rest, the
        last prompt token at least. Edits of the model stay, and hold from the beginning; what was computed before they
        held is computed again. Raises `ModelError` as a new run does.
        """
        run = Generation(
            self.model,
            ids,
            sampling or self.trace.sampling[-1][1],
            max_new_tokens=max_new_tokens or self.max_new_tokens,
            ignore_eos=self.ignore_eos,
            capture=self.trace.cache.capture,
            edits=next_turn(self.trace.edits),
            added=added,
            prompt=prompt,
            chat=chat,
            end_ids=self.end_ids,
        )
        shared = _shared_positions(self.trace, run.trace.prompt_ids)
        if shared:
            run.trace.cache, run.trace.begun = self.trace.cache.fork(shared), shared
        return run

    @classmethod
    def resume(cls, model: Model, trace: Trace, *, max_new_tokens: int = 64, ignore_eos: bool = False) -> Generation:
        """A run over a recorded *trace*: nothing follows, but it can be branched from, and its trace has weights.

        *max_new_tokens* and *ignore_eos* are for its branches. Raises `ModelError` when *model* is not the one that
        was recorded, since its rows would mean nothing to other weights.
        """
        _check_same(model, trace)
        ends = trace.more_end_ids
        run = cls(model, trace.prompt_ids, max_new_tokens=max_new_tokens, ignore_eos=ignore_eos, end_ids=ends)
        run.trace = replace(
            trace,
            model=_facts(model),
            steps=list(trace.steps),
            finish_reason=trace.finish_reason or "stopped",
            tables=None,
        )
        run._edits = run.trace.edits_at_work
        run._begin()
        run._events.close()
        return run

    def _begin(self) -> None:
        """Stand before the first event."""
        self._seconds = 0.0
        self._random = np.random.Generator(np.random.PCG64(self.trace.sampling[-1][1].seed))
        self._random.random(len(self.trace.steps))  # one number a step, so that branches stay aligned
        self._events = self._run()

    def _run(self) -> Generator[Event, None, None]:
        trace = self.trace
        if self._inherited is None:
            yield from self._read_prompt()
        else:
            yield from self._choose(self._inherited)
        while trace.finish_reason is None:
            ids = [trace.steps[-1].id] if trace.steps else trace.prompt_ids[trace.cache.length :]
            for event in self.model.decoder.forward(ids, trace.cache, self._edits):
                yield event
            assert isinstance(event, LogitsReady)
            yield from self._choose(event.logits[-1])
        yield Finished(trace.finish_reason)

    def _read_prompt(self) -> Iterator[Event]:
        if self._chat is not None:
            yield ChatRendered(self._chat)
        ids = self.trace.prompt_ids
        yield Tokenized(ids, tuple(map(self.trace.model.vocabulary.token_bytes, ids)), self.trace.added)

    def _choose(self, logits: Floats) -> Iterator[Event]:  # [V]
        trace, step = self.trace, len(self.trace.steps)
        settings = trace.settings_at(step)
        previous = trace.previous_ids(step) if settings.repetition_penalty != 1 else ()
        chain = self._chain(settings, logits, previous, step)
        for stage in chain.stages:
            yield SamplingStage(stage.name, stage.active, stage)
        uniform = float(self._random.random())
        forced = self._edits.token_at(step)
        id = chain.draw(uniform) if forced is None else forced
        chosen = TokenChosen(id, chain.probability(id), chain.raw_logprob(id), uniform, forced is not None)
        trace.steps.append(
            Step(
                id,
                chosen.probability,
                chosen.raw_logprob,
                uniform,
                chosen.forced,
                read_only(logits),
                self._seconds,
            )
        )
        self._seconds = 0.0
        self._forget_scores(step - max(KEPT_SCORES // chain.vocabulary, FEWEST_SCORES))
        trace.finish_reason = self._reason_to_end()
        yield chosen

    def _chain(self, settings: SamplingConfig, logits: Floats, previous: Sequence[int], step: int) -> Chain:
        try:
            return Chain(settings, logits, previous, where=tr("generated token {step}", step=step))
        except SamplingError as error:
            if not self.trace.edits:
                raise
            raise SamplingError(error.what, where=error.where, hint=tr("the edits may be too strong")) from error

    def _forget_scores(self, step: int) -> None:
        """Let go of the scores of *step*, which can be computed again from its residual."""
        if step >= 0 and self.trace.capture == "default":
            self.trace.steps[step] = replace(self.trace.steps[step], scores=None)

    def _reason_to_end(self) -> FinishReason | None:
        """Why no token can follow, the first that applies."""
        trace = self.trace
        if trace.steps[-1].id in self.end_ids and not self.ignore_eos:
            return "eos"
        if len(trace.prompt_ids) + len(trace.steps) > self.model.config.positions:
            return "context"
        return "length" if len(trace.steps) >= self.max_new_tokens else None

    def _stop(self, reason: FinishReason) -> None:
        if self.trace.finish_reason is None:
            self.trace.finish_reason = reason
            self.trace.cache.give_back()


@cache
def _keep_freed_memory() -> None:
    """Have glibc keep what one step frees for the next.

    It gives memory back to the system once more than twice the largest block that was ever freed, at most 32 MB, lies
    free at the top of the heap (mallopt(3), M_MMAP_THRESHOLD and M_TRIM_THRESHOLD). The scores of a large vocabulary
    are enough for that, and every step would get their pages anew: some 260 page faults a token at 124M. After one
    block of 16 MB it keeps up to 32 MB. With another C library, or MALLOC_ variables set, this does nothing.
    """
    np.empty(2**24, np.uint8)  # freed at once


def _facts(model: Model) -> ModelFacts:
    return ModelFacts(model.name, model.config, model.tokenizer.vocabulary, lambda: model.digest, model.decoder)


def _check_same(model: Model, trace: Trace) -> None:
    """Raise `ModelError` unless *model* has the shape and the very weights that *trace* was made with."""
    if model.config != trace.model.config or model.digest != trace.model.digest():
        raise ModelError(
            tr("this recording was not made with these weights of {model}", model=model.name),
            hint=tr("open it with {recorded}, the model that made it, or with none", recorded=trace.model.name),
        )


def _positions(added: Iterable[int], length: int) -> tuple[int, ...]:
    """*added* as positions of a prompt of that *length*. Raises `ModelError` for one that it has not."""
    positions = tuple(whole(position, "added", ModelError) for position in added)
    for position in positions:
        check_range(tr("the prompt has no position {value}", value=position), position, length)
    return positions


def _start(model: Model) -> list[int]:
    if model.start_token is None:
        raise ModelError(
            tr("the prompt is empty, and {model} names no token to start from", model=model.name),
            hint=tr("give a prompt of at least one token"),
        )
    return [model.start_token]


def _shared_positions(trace: Trace, ids: Sequence[int]) -> int:
    """How many leading positions of *ids* went through the model in *trace*, all of its edits in force.

    At most all but the last: a run needs the scores that come after that one.
    """
    if any(isinstance(edit, Lasting) and edit.since for edit in trace.edits):
        return 0
    known, count = trace.token_ids, max(min(trace.cache.length, len(ids) - 1), 0)
    return next((position for position in range(count) if known[position] != ids[position]), count)


def _holds_in_branch(edit: Edit, step: int, prompt_length: int) -> bool:
    """Whether a branch before generated *step* takes *edit* over: what began later belongs to the text it leaves."""
    if isinstance(edit, ForceToken):
        return edit.step < step
    if isinstance(edit, Patch):
        return edit.position <= prompt_length + step
    return edit.since <= step + 1


def _from(edit: Edit, step: int, trace: Trace) -> Edit:
    """*edit* as it holds in a branch of *trace*: its first scores of its own are those of *step*.

    Raises `ModelError` for a patch of a position that the branch takes over.
    """
    first = first_position(len(trace.prompt_ids), step)
    if isinstance(edit, Patch) and edit.position < first:
        raise ModelError(
            tr("position {position} was computed before this branch begins", position=edit.position),
            hint=tr("patch one from {first} on, or begin a run of its own", first=first),
        )
    return replace(edit, since=step) if isinstance(edit, Lasting) else edit


def _settings_from(trace: Trace, step: int, sampling: SamplingConfig | None) -> list[tuple[int, SamplingConfig]]:
    """The settings of a branch: the parent's up to *step*, then *sampling* if it is given."""
    inherited = [(begin, config) for begin, config in trace.sampling if begin <= step]
    if sampling is None:
        return inherited
    if sampling.seed is None:
        sampling = replace(sampling, seed=trace.settings_at(step).seed)
    return [(begin, config) for begin, config in inherited if begin < step] + [(step, sampling)]
