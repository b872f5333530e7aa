"""From scores to a token: penalty, temperature, top-k, top-p, min-p, softmax, draw.

All in float64. Each stage sees only the tokens the stages before it kept, so a chain over 50,000 tokens does
its later work on a handful; a stage is laid out over the whole vocabulary when somebody looks at it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .catalogue import tr
from .errors import CutawayError
from .plain_numbers import make_plain, written

STAGES = ("raw", "repetition_penalty", "temperature", "top_k", "top_p", "min_p", "final")
"""The seven stages, in the order they run."""

Scores = NDArray[np.float64]
Ids = NDArray[np.int64]


class SamplingError(CutawayError, ValueError):
    """Settings that make no sense, or scores that cannot be sampled from."""


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How the next token is drawn. The defaults draw from the model's own distribution."""

    temperature: float = 1.0
    """Scores are divided by it; 0 is greedy."""
    top_k: int = 0
    """Keep the k best tokens and every token tied with the k-th; 0 is off."""
    top_p: float = 1.0
    """Keep the fewest tokens whose probabilities reach p, the one that crosses it included; 1 is off."""
    min_p: float = 0.0
    """Keep tokens at least this probable relative to the best one; 0 is off."""
    repetition_penalty: float = 1.0
    """Divides positive and multiplies negative scores of tokens already in the text, once each; 1 is off."""
    greedy: bool = False
    """Take the best token; the lowest id on a tie."""
    seed: int | None = None
    """Where the random numbers start (NumPy's PCG64); None takes a fresh seed and records it."""

    def __post_init__(self) -> None:
        make_plain(self, SamplingError)
        _require("temperature", self.temperature, 0 <= self.temperature < math.inf, tr("0 or more"))
        _require("top_k", self.top_k, self.top_k >= 0, tr("0 (off) or more"))
        _require("top_p", self.top_p, 0 <= self.top_p <= 1, tr("from 0 to 1 (off)"))
        _require("min_p", self.min_p, 0 <= self.min_p <= 1, tr("from 0 (off) to 1"))
        _require(
            "repetition_penalty",
            self.repetition_penalty,
            0 < self.repetition_penalty < math.inf,
            tr("more than 0 (1 is off)"),
        )
        _require("seed", self.seed, self.seed is None or 0 <= self.seed < 2**128, tr("from 0 to 2^128 − 1"))

    @property
    def is_greedy(self) -> bool:
        """Whether the best token is taken without a draw."""
        return self.greedy or self.temperature == 0

    def idle_stages(self) -> tuple[str, ...]:
        """The stages of `STAGES` that change nothing under these settings."""
        active = {
            "repetition_penalty": self.repetition_penalty != 1,
            "temperature": self.temperature != 1 and not self.is_greedy,
            "top_k": self.top_k > 0 and not self.is_greedy,
            "top_p": self.top_p < 1 and not self.is_greedy,
            "min_p": self.min_p > 0 and not self.is_greedy,
        }
        return tuple(name for name, is_active in active.items() if not is_active)

    def distribution(self, logits: ArrayLike, previous_ids: Sequence[int] = ()) -> Scores:
        """What the draw is made from: float64 [V] that sums to 1.

        Raises `SamplingError` when *logits* [V] hold NaN or +inf, hold nothing finite, or are empty, and when
        *previous_ids* point outside the vocabulary.
        """
        return Chain(self, logits, previous_ids).stages[-1].values

    def stages(self, logits: ArrayLike, previous_ids: Sequence[int] = ()) -> tuple[Stage, ...]:
        """The same, stage by stage: seven `Stage` objects named as in `STAGES`. Raises as `distribution`."""
        return Chain(self, logits, previous_ids).stages

    def to_dict(self) -> dict[str, Any]:
        """The settings as recordings keep them."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Stage:
    """What one stage left: the tokens still in, and their values."""

    name: str
    active: bool
    ids: Ids | None
    """Ids still in, ascending [m]; None means all V."""
    kept_values: Scores
    """Their scores [m] or [V]; in ``final`` their probabilities."""
    vocabulary: int
    known_logsumexp: float | None = None
    """`logsumexp`, where it came along with something else: an exponential of every score is dear."""

    @cached_property
    def values(self) -> Scores:
        """Float64 [V]: scores, −inf where a token is out; in ``final`` probabilities, 0 where it is out."""
        if self.ids is None:
            return self.kept_values
        laid_out = np.full(self.vocabulary, 0.0 if self.name == "final" else -np.inf)
        laid_out[self.ids] = self.kept_values
        laid_out.flags.writeable = False
        return laid_out

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Bool [V]: which tokens this stage and those before it left in."""
        kept = self.values > (0.0 if self.name == "final" else -np.inf)
        kept.flags.writeable = False
        return kept

    @property
    def count(self) -> int:
        """How many tokens are still in."""
        return int(np.count_nonzero(self.kept_values > (0.0 if self.name == "final" else -np.inf)))

    @cached_property
    def logsumexp(self) -> float:
        """Natural logarithm of the sum of exp(scores): what turns this stage's scores into probabilities."""
        if self.known_logsumexp is not None:
            return self.known_logsumexp
        return 0.0 if self.name == "final" else log_sum_exp(self.kept_values)


class Chain:
    """One step's way from scores to a distribution.

    Raises `SamplingError` as `SamplingConfig.distribution` says; *where* names the step in its sentence.
    """

    def __init__(
        self,
        config: SamplingConfig,
        logits: ArrayLike,
        previous_ids: Sequence[int] = (),
        *,
        where: str | None = None,
    ) -> None:
        self.config = config
        raw = np.array(logits, np.float64)  # [V]
        _check_scores(raw, where)
        self.vocabulary = raw.size
        self.stages: tuple[Stage, ...] = self._run(raw, _distinct(previous_ids, raw.size, config), where)

    def draw(self, uniform: float) -> int:
        """The first id, ascending, whose cumulative probability exceeds *uniform* in [0, 1)."""
        final = self.stages[-1]
        index = drawn(final.kept_values, uniform)
        return index if final.ids is None else int(final.ids[index])

    def probability(self, id: int) -> float:
        """Probability of *id* after all stages; 0 where a stage removed it."""
        final = self.stages[-1]
        if final.ids is None:
            return float(final.kept_values[id])
        index = int(np.searchsorted(final.ids, id))
        found = index < final.ids.size and final.ids[index] == id
        return float(final.kept_values[index]) if found else 0.0

    def raw_logprob(self, id: int) -> float:
        """Log-probability of *id* under the raw softmax."""
        raw = self.stages[0]
        return float(raw.kept_values[id] - raw.logsumexp)

    def _run(self, raw: Scores, previous: Ids, where: str | None) -> tuple[Stage, ...]:
        config, idle = self.config, self.config.idle_stages()
        stages = [self._stage("raw", True, None, raw)]
        penalised = raw
        if previous.size:
            penalised = penalise(raw, previous, config.repetition_penalty)
            _check_penalised(penalised, where)
        stages.append(self._stage("repetition_penalty", "repetition_penalty" not in idle, None, penalised))
        heated = "temperature" not in idle
        values = temper(penalised, config.temperature) if heated else penalised
        stages.append(self._stage("temperature", heated, None, values))

        ids: Ids | None = None
        filters: tuple[tuple[str, Callable[[Scores, Any], Ids], float], ...] = (
            ("top_k", top_k, config.top_k),
            ("top_p", top_p, config.top_p),
            ("min_p", min_p, config.min_p),
        )
        for name, keep, setting in filters:
            if name not in idle:
                kept = keep(values, setting)
                ids = kept if ids is None else ids[kept]
                values = values[kept]
            stages.append(self._stage(name, name not in idle, ids, values))

        if config.is_greedy:
            best = int(np.argmax(values))
            ids, probabilities = np.array([best]), np.ones(1)
        else:
            probabilities, logsumexp = normalised(values)
            if values is raw:
                stages[0] = replace(stages[0], known_logsumexp=logsumexp)
        stages.append(self._stage("final", True, ids, probabilities))
        return tuple(stages)

    def _stage(self, name: str, active: bool, ids: Ids | None, values: Scores) -> Stage:
        values.flags.writeable = False
        return Stage(name, active, ids, values, self.vocabulary)


def penalise(scores: Scores, ids: Ids, penalty: float) -> Scores:
    """Divide positive and multiply negative scores of *ids* (Keskar et al. 2019, arXiv:1909.05858, as used since)."""
    penalised = scores.copy()
    seen = scores[ids]
    with np.errstate(over="ignore"):
        penalised[ids] = np.where(seen > 0, seen / penalty, seen * penalty)
    return penalised


def temper(scores: Scores, temperature: float) -> Scores:
    """Divide scores by *temperature*; measured from the best score where the quotient would overflow."""
    with np.errstate(over="ignore"):
        tempered = scores / temperature
    if not math.isfinite(tempered.max()):
        with np.errstate(over="ignore"):
            tempered = (scores - scores.max()) / temperature
    return tempered


_GROUP = 64
"""Scores of which only the best is ranked, to find out which of a large vocabulary are worth ranking."""


def top_k(scores: NDArray[np.floating[Any]], k: int) -> Ids:
    """Indices, ascending, of the k best scores and of every score tied with the k-th (Fan et al. 2018)."""
    if k >= scores.size:
        return np.arange(scores.size)
    groups = scores[: scores.size - scores.size % _GROUP].reshape(-1, _GROUP).max(axis=1)
    if groups.size < k:
        groups = scores
    # The k-th best group has a score no better than the k-th best of all, so none of those is lost here.
    near = np.flatnonzero(scores >= np.partition(groups, groups.size - k)[groups.size - k])
    found = scores[near]
    best: Ids = near[found >= np.partition(found, found.size - k)[found.size - k]]
    return best


def top_p(scores: Scores, p: float) -> Ids:
    """Indices, ascending, of the fewest tokens whose probabilities reach p (Holtzman et al. 2019, arXiv:1904.09751).

    Tokens are taken by probability, then lowest index; the one that crosses p stays, and so does the best.
    """
    probabilities = softmax(scores)
    # All tokens below (1 − p)/V together weigh less than 1 − p, so p is reached without any of them: half of that
    # spares the sort most of a large vocabulary and leaves room for rounding.
    likely = np.flatnonzero(probabilities >= (1 - p) / (2 * scores.size))
    order = likely[np.argsort(-probabilities[likely], kind="stable")]
    reached = np.cumsum(probabilities[order])
    crossing = int(np.searchsorted(reached, p))  # the first place where the sum is p or more
    return np.sort(order[: crossing + 1])


def min_p(scores: Scores, p: float) -> Ids:
    """Indices, ascending, of tokens at least p times as probable as the best (Nguyen et al. 2024, arXiv:2407.01082)."""
    return np.flatnonzero(scores >= scores.max() + math.log(p))


def normalised(scores: Scores) -> tuple[Scores, float]:
    """Probabilities [m] of *scores* [m], the maximum subtracted first, and log Σ exp(scores)."""
    best = scores.max()
    with np.errstate(over="ignore"):  # scores may lie farther apart than any number
        weights: Scores = scores - best
        np.exp(weights, out=weights)
    total = weights.sum()
    weights /= total
    return weights, float(best + np.log(total))


_SPAN = 512
"""Probabilities that are summed before one of them is looked for: adding up all of a large vocabulary is slow."""


def drawn(probabilities: Scores, uniform: float) -> int:
    """The first index whose cumulative probability exceeds *uniform* in [0, 1)."""
    reached = np.cumsum(np.add.reduceat(probabilities, np.arange(0, probabilities.size, _SPAN)))
    span = int(np.searchsorted(reached, uniform, side="right"))
    start, before = span * _SPAN, reached[span - 1] if span else 0.0
    within = before + np.cumsum(probabilities[start : start + _SPAN])
    index = start + int(np.searchsorted(within, uniform, side="right"))
    if index < start + within.size:
        return index
    return int(np.flatnonzero(probabilities[:index])[-1])  # rounding left the sum a hair under uniform


def softmax(scores: Scores) -> Scores:
    """Probabilities [m] of *scores* [m]."""
    return normalised(scores)[0]


def log_sum_exp(scores: Scores) -> float:
    """log Σ exp(scores), the maximum subtracted first."""
    best = scores.max()
    with np.errstate(over="ignore"):
        return float(best + np.log(np.exp(scores - best).sum()))


def _distinct(previous_ids: Sequence[int], vocabulary: int, config: SamplingConfig) -> Ids:
    """Distinct ids the penalty applies to; none while it is off."""
    if config.repetition_penalty == 1 or not len(previous_ids):
        return np.empty(0, np.int64)
    ids = np.unique(np.asarray(previous_ids, np.int64))
    if ids[0] < 0 or ids[-1] >= vocabulary:
        outside = ids[0] if ids[0] < 0 else ids[-1]
        raise SamplingError(tr("token {id} is not in a vocabulary of {size}", id=int(outside), size=vocabulary))
    return ids


def _check_scores(scores: Scores, where: str | None) -> None:
    if scores.ndim != 1 or not scores.size:
        raise SamplingError(tr("there are no scores to choose from"), where=where)
    best = scores.max()  # NaN if any score is NaN
    if math.isfinite(best):
        return
    if math.isnan(best):
        what = tr("the scores hold NaN (not a number)")
    else:
        what = tr("the scores hold +inf") if best > 0 else tr("every score is −inf")
    raise SamplingError(what, where=where, hint=tr("the weights are probably damaged"))


def _check_penalised(scores: Scores, where: str | None) -> None:
    if not math.isfinite(scores.max()):
        raise SamplingError(
            tr("the repetition penalty takes scores beyond all numbers"),
            where=where,
            hint=tr("choose one nearer to 1 (off)"),
        )


def _require(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise SamplingError(
            tr("{name} is {value}", name=name, value=written(value)),
            hint=tr("it must be {expected}", expected=expected),
        )
