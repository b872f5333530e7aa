"""What the token at the end of the text became before the first layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.cache import Floats
from ...core.catalogue import tr
from ...core.embedding import embedding_parts, nearest_tokens
from ...core.tables import Ids
from ...core.trace import Trace
from ...widgets.embedding_strips import EmbeddingView
from ..cursor import Cursor
from ..moment import Moment

NEAREST = 12
"""Tokens that are looked for near this one."""


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingFound:
    """The vectors of one position, and the tokens nearest to its own."""

    position: int
    token: Floats | None
    """[D]; None without weights."""
    place: Floats | None
    """[D]; None without weights, and where positions enter later."""
    sum: Floats
    """[D]"""
    nearest: tuple[Ids, Floats]
    """Ids and cosines."""


def find_embedding(trace: Trace, position: int) -> EmbeddingFound:
    """Compute what the token at *position* became."""
    if not trace.has_weights:
        nothing = np.empty(0, np.int64), np.empty(0, np.float32)
        return EmbeddingFound(position, None, None, trace.cache.rows.embedding[position], nothing)
    token, place, both = embedding_parts(trace, position)
    nearest = nearest_tokens(trace.decoder, trace.token_ids[position], NEAREST)
    return EmbeddingFound(position, token, place, both, nearest)


def embedding_view(moment: Moment, cursor: Cursor, found: EmbeddingFound) -> EmbeddingView:
    """The parts that are known, and the sum of them."""
    named = ((tr("token"), found.token), (tr("position"), found.place), (tr("sum"), found.sum))
    ids, cosines = found.nearest
    note = tr("token, position and nearest tokens need the weights: --model") if found.token is None else ""
    return EmbeddingView(
        token=moment.label(found.position),
        id=moment.trace.token_ids[found.position],
        position=found.position,
        parts=tuple((name, vector) for name, vector in named if vector is not None),
        nearest=tuple((moment.name(id), cosine) for id, cosine in zip(ids.tolist(), cosines.tolist(), strict=True)),
        dimension=cursor.dimension,
        note=note,
    )
