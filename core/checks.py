"""Invariants of a run that anyone can check, each with the figure that says how nearly it holds.

A transformer computed right has them whatever its weights: that is what makes them worth checking on a model
that nobody else has computed before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .attention_stages import attention_maps
from .catalogue import tr
from .events import AttentionDone, BlockDone, Embedded, Event, LogitsReady, MlpDone
from .generation import Generation
from .lens import logit_lens
from .models.model import Model
from .sampling import SamplingConfig


@dataclass(frozen=True, slots=True)
class Check:
    """One invariant, how far the run was from it, and how far it may be."""

    claim: str
    deviation: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether the run kept it; NaN does not."""
        return self.deviation <= self.tolerance


def check_model(model: Model, ids: Sequence[int], new_tokens: int = 16) -> Iterator[Check]:
    """Run *model* from *ids* and check what must hold, one invariant after the other."""
    run = Generation(model, ids, SamplingConfig(greedy=True), max_new_tokens=new_tokens, ignore_eos=True)
    events = list(run)
    yield Check(tr("every row of attention sums to 1"), _row_sums(events), 1e-5)
    yield Check(tr("nothing looks at the future"), _future(events), 0.0)
    yield Check(tr("each block adds attention and MLP to what came in"), _block_sums(run, events), 1e-5)
    yield Check(tr("the recorded queries and keys give the attention again"), _recomputed(run, events), 1e-5)
    yield Check(tr("the last layer's lens is the model's output"), _last_lens(run, events), 1e-4)
    yield Check(tr("cached equals uncached, at every step"), _uncached(run, events), 1e-3)


def _row_sums(events: list[Event]) -> float:
    return _worst(float(np.abs(e.pattern.sum(-1) - 1).max()) for e in events if isinstance(e, AttentionDone))


def _future(events: list[Event]) -> float:
    """The largest weight on a key after its query."""
    patterns = [event.pattern for event in events if isinstance(event, AttentionDone)]  # [H, n, T]
    return _worst(float(np.abs(np.triu(each, each.shape[2] - each.shape[1] + 1)).max()) for each in patterns)


def _block_sums(run: Generation, events: list[Event]) -> float:
    """The largest difference between a residual and the sum it should be, relative to its size.

    Where norms come after the sums, the sums are taken through them.
    """
    differences, residual, parts = [], np.zeros(0, np.float32), []
    for event in events:
        match event:
            case Embedded():
                residual = event.sum
            case AttentionDone() | MlpDone():
                parts.append(event.output)
            case BlockDone():
                expected = residual
                for part, norm in zip(parts, run.model.decoder.blocks[event.layer].sum_norms, strict=True):
                    expected = expected + part if norm is None else norm(expected + part)
                differences.append(_relative(event.residual, expected))
                residual, parts = event.residual, []
    return _worst(differences)


def _recomputed(run: Generation, events: list[Event]) -> float:
    prefill = [e for e in events if isinstance(e, AttentionDone)][: run.model.config.layers]
    n = len(run.trace.prompt_ids)
    return _worst(float(np.abs(attention_maps(run.trace, e.layer)[:, :n, :n] - e.pattern).max()) for e in prefill)


def _last_lens(run: Generation, events: list[Event]) -> float:
    output = [e.logits[-1] for e in events if isinstance(e, LogitsReady)][-1]
    return _relative(logit_lens(run.trace, run.model.decoder, run.trace.positions - 1)[-1], output)


def _uncached(run: Generation, events: list[Event]) -> float:
    """The largest difference, over all steps, to a fresh run that reads the whole text at once."""
    differences = []
    cached = [e.logits[-1] for e in events if isinstance(e, LogitsReady)]
    for step in range(1, len(cached)):
        ids = run.trace.token_ids[: len(run.trace.prompt_ids) + step]
        fresh = Generation(run.model, ids, run.trace.settings_at(0), max_new_tokens=1, ignore_eos=True)
        logits = next(e.logits[-1] for e in fresh if isinstance(e, LogitsReady))
        differences.append(_relative(cached[step], logits))
    return _worst(differences)


def _worst(deviations: Iterable[float]) -> float:
    """The largest of *deviations*; NaN if any is, which `max` would step over."""
    return float(np.max([0.0, *deviations]))


def _relative(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, in units of the largest expected value (or 1)."""
    return float(np.abs(found - expected).max() / max(float(np.abs(expected).max()), 1.0))
