"""Where a text begins: the vectors of its tokens, and which other tokens lie near them."""

from __future__ import annotations

import numpy as np

from .cache import Floats
from .models.decoder import Decoder
from .scores import best_ids
from .tables import Ids
from .trace import Trace


def embedding_parts(trace: Trace, position: int) -> tuple[Floats, Floats | None, Floats]:
    """Token vector, position vector (None where positions enter later) and their sum, each [D].

    Needs the weights: raises `ModelError` without.
    """
    id = trace.token_ids[position]
    token, place, both = trace.decoder.embedding([id], np.array([position]))
    return token[0], None if place is None else place[0], both[0]


def nearest_tokens(decoder: Decoder, wanted: int | Floats, count: int) -> tuple[Ids, Floats]:
    """Ids and cosines [count] of the tokens whose vectors point most nearly the same way, best first.

    *wanted* is a vector [D], or the id of a token, which is then left out.
    """
    table, norms = decoder.embedding.token, decoder.embedding.norms  # [V, D], [V]
    vector = table[wanted] if isinstance(wanted, int) else wanted
    lengths = norms * np.linalg.norm(vector)
    products = table @ vector
    cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)  # [V]
    if isinstance(wanted, int):
        cosines[wanted] = -np.inf
        count = min(count, len(cosines) - 1)
    ids = best_ids(cosines, count)
    return ids, cosines[ids]
