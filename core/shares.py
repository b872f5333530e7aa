"""What each sampling stage did to a draw, in shares of the whole: who was left, who went, where the number fell.

Works from the compact candidates of a step, so that a recording shows the same as a live run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .sampling import STAGES, SamplingConfig, penalise, temper
from .scores import Candidates


@dataclass(frozen=True, slots=True)
class StageShare:
    """One stage's work."""

    name: str
    active: bool
    left: int
    """Tokens still in after it."""
    removed: int
    """Tokens it took out."""
    removed_mass: float
    """Their probability together, in the distribution before it."""
    best: int
    """Id of the likeliest token after it."""
    best_share: float
    """Its probability among those left."""


def probabilities_at(
    table: Candidates, stage: int, settings: SamplingConfig, previous_ids: Sequence[int]
) -> NDArray[np.float64]:
    """Probabilities [m] of the candidates in *table* after *stage* (an index into `STAGES`); 0 where they are out.

    What `SamplingConfig.stages` gives, for these candidates: scores as *settings* had changed them by then, over the
    logarithm of the sum that the table keeps for every stage.
    """
    if STAGES[stage] == "final":
        return table.final
    values = table.logits.astype(np.float64)
    if stage >= STAGES.index("repetition_penalty") and settings.repetition_penalty != 1:
        seen = np.flatnonzero(np.isin(table.ids, np.asarray(previous_ids, np.int64)))
        values = penalise(values, seen, settings.repetition_penalty)
    if stage >= STAGES.index("temperature") and "temperature" not in settings.idle_stages():
        values = temper(values, settings.temperature)
    shares: NDArray[np.float64] = np.exp(values - table.stage_logsumexp[stage])
    shares[table.removed_by <= stage] = 0.0
    return shares


def stage_shares(table: Candidates, settings: SamplingConfig, previous_ids: Sequence[int]) -> tuple[StageShare, ...]:
    """The seven stages of one draw. The likeliest token is looked for among the candidates in *table*."""
    idle = settings.idle_stages()
    shares, before = [], table.vocabulary
    for stage, name in enumerate(STAGES):
        left = int(table.stage_kept[stage])
        probabilities = probabilities_at(table, stage, settings, previous_ids)
        best = int(np.argmax(probabilities))
        shares.append(
            StageShare(
                name=name,
                active=name not in idle,
                left=left,
                removed=max(before - left, 0),
                removed_mass=_removed_mass(table, stage),
                best=int(table.ids[best]),
                best_share=float(probabilities[best]),
            )
        )
        before = left
    return tuple(shares)


def _removed_mass(table: Candidates, stage: int) -> float:
    """The share of the distribution before *stage* that it took out. Only filters take out, and leave scores alone."""
    if STAGES[stage] not in ("top_k", "top_p", "min_p"):
        return 0.0
    kept = np.exp(table.stage_logsumexp[stage] - table.stage_logsumexp[stage - 1])
    return max(1.0 - float(kept), 0.0)


def stretches(table: Candidates) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Ids [m] that may be drawn, ascending, and where the stretch of each ends in [0, 1] [m].

    A random number u draws the first id whose stretch ends above u. None where more tokens may be drawn than the
    table holds, so that nobody knows what lies between.
    """
    ids, rows = np.unique(table.ids, return_index=True)
    final = table.final[rows]
    if np.count_nonzero(final) < table.stage_kept[-1]:
        return None
    return ids[final > 0], np.cumsum(final[final > 0])
