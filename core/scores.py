"""The candidates a token was drawn from: computed while its scores are whole, kept in compact form afterwards.

A row of V float32 for every generated token would be most of a recording. The compact form keeps the best 256
and the drawn one exactly, the stage that removed each, and per stage the one number that turns scores into
probabilities: so under the recorded settings every candidate shows the very probabilities it had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .sampling import STAGES, Chain, top_k

BEST = 256
"""Candidates that the compact form keeps of each step, beside the drawn one."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The likeliest next tokens of one step: m rows by descending raw score, then lowest id.

    Where the drawn token is not among the best, it is the last row.
    """

    ids: NDArray[np.int64]
    """[m]"""
    logits: NDArray[np.float32]
    """Raw scores [m]."""
    ranks: NDArray[np.int64]
    """Places among all V by raw score, from 0 [m]."""
    removed_by: NDArray[np.uint8]
    """Index into `STAGES` of the stage that removed each, or `KEPT` [m]."""
    final: NDArray[np.float64]
    """Probabilities after all stages [m]."""
    stage_logsumexp: NDArray[np.float64]
    """log Σ exp of the scores still in, one for each stage [7]; 0 for ``final``."""
    stage_kept: NDArray[np.int64]
    """How many tokens are still in after each stage [7]."""
    vocabulary: int

    @property
    def raw(self) -> NDArray[np.float64]:
        """Probabilities under the raw softmax [m]."""
        raw: NDArray[np.float64] = np.exp(self.logits.astype(np.float64) - self.stage_logsumexp[0])
        return raw

    def removal(self, row: int) -> str | None:
        """The name of the stage that removed *row*, or None while it is in."""
        code = int(self.removed_by[row])
        return None if code == KEPT else STAGES[code]

    def best(self, count: int, drawn: int) -> Candidates:
        """The first *count* rows; the *drawn* token takes the last one where it would be left out."""
        where = np.flatnonzero(self.ids == drawn)
        distinct = len(self.ids) - max(where.size - 1, 0)  # a recorded table may repeat the drawn token at its end
        rows = np.arange(min(count, distinct))
        if where.size and where[0] >= rows.size and rows.size:
            rows[-1] = where[0]
        return Candidates(
            ids=self.ids[rows],
            logits=self.logits[rows],
            ranks=self.ranks[rows],
            removed_by=self.removed_by[rows],
            final=self.final[rows],
            stage_logsumexp=self.stage_logsumexp,
            stage_kept=self.stage_kept,
            vocabulary=self.vocabulary,
        )


KEPT = len(STAGES)
"""The code in `Candidates.removed_by` of a token that no stage removed."""


def candidates(chain: Chain, drawn: int, count: int = BEST) -> Candidates:
    """The *count* best of a step's *chain*, and the *drawn* token."""
    raw = chain.stages[0].kept_values  # [V]
    ids = best_ids(raw, count)
    rank = int(np.count_nonzero(raw > raw[drawn]) + np.count_nonzero(raw[:drawn] == raw[drawn]))
    ranks = np.arange(ids.size)
    if rank >= ids.size:
        ids, ranks = np.append(ids, drawn), np.append(ranks, rank)
    return Candidates(
        ids=ids,
        logits=raw[ids].astype(np.float32),
        ranks=ranks,
        removed_by=_removed_by(chain, ids),
        final=chain.stages[-1].values[ids],
        stage_logsumexp=np.array([stage.logsumexp for stage in chain.stages]),
        stage_kept=np.array([stage.count for stage in chain.stages]),
        vocabulary=chain.vocabulary,
    )


def best_ids(scores: NDArray[np.floating[Any]], count: int) -> NDArray[np.int64]:
    """Ids of the *count* best scores, by descending score, then lowest id."""
    ids = top_k(scores, count)
    return ids[np.argsort(-scores[ids], kind="stable")[:count]]


def _removed_by(chain: Chain, ids: NDArray[np.int64]) -> NDArray[np.uint8]:
    codes = np.full(ids.size, KEPT, np.uint8)
    for code, stage in reversed(list(enumerate(chain.stages))):
        codes[~stage.kept[ids]] = code
    return codes
