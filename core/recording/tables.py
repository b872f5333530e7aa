"""The tables of a recording: computed once when it is saved with the weights at hand, checked when it is read.

P prompt tokens, T positions, L layers, D width, V vocabulary, k = min(10, V).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attention_stages import attention_output
from ..attribution import attribution
from ..checkpoint.config import ModelConfig
from ..lens import lens_table, surprisal
from ..tables import LENS_BEST, LensTable, Tables
from ..trace import Trace
from .reader import LARGEST, Reader, Tensors

_POSITIONS_AT_ONCE = 32
"""So that neither the scores of all layers nor the attention maps are ever there for a whole text."""

_LENS = ("ids", "probability", "entropy", "rank", "chosen_probability")
NAMES = (*(f"lens_{name}" for name in _LENS), "attribution", "attention_output", "prompt_surprisal")
"""A recording has all of them or none."""


def table_tensors(trace: Trace) -> Tensors:
    """The tables of *trace* by name: those it was loaded with or, with weights at hand, new ones.

    None where there are neither, or where damaged weights make numbers that are not finite.
    """
    if trace.has_weights:
        tensors = _computed(trace)
    elif trace.tables is not None:
        tensors = _named(trace.tables)
    else:
        return {}
    first, *rest = tensors["prompt_surprisal"]
    finite = np.isfinite(rest).all() and all(np.isfinite(tensors[name]).all() for name in NAMES[:-1])
    return tensors if finite else {}


def read_tables(reader: Reader, config: ModelConfig, P: int, T: int) -> Tables | None:
    """The tables, where the recording has them. Raises `RecordingError` when they hold what cannot be."""
    if not any(name in reader for name in NAMES):
        return None
    L, V, numbers = config.layers, config.vocabulary, reader.numbers
    k = min(LENS_BEST, V)
    lens = LensTable(
        ids=numbers("lens_ids", np.int64, 0, V - 1, L, T, k),
        probabilities=numbers("lens_probability", np.float32, 0, 1, L, T, k),
        entropy=numbers("lens_entropy", np.float32, 0, LARGEST, L, T),
        rank=numbers("lens_rank", np.int64, 0, V - 1, L, T),
        probability=numbers("lens_chosen_probability", np.float32, 0, 1, L, T),
    )
    bits = numbers("prompt_surprisal", np.float32, 0, LARGEST, P, start=1)
    return Tables(
        lens,
        attribution=numbers("attribution", np.float32, -LARGEST, LARGEST, 2 * L + 2, T),
        attention_output=numbers("attention_output", np.float32, -LARGEST, LARGEST, L, T, config.width),
        prompt_surprisal=np.concatenate([np.full(1, np.nan, np.float32), bits[1:]]),
    )


@np.errstate(invalid="ignore", over="ignore")  # weights may be damaged
def _computed(trace: Trace) -> Tensors:
    """The tables of every position, a few positions at a time."""
    config, P, T = trace.model.config, len(trace.prompt_ids), trace.positions
    L, k = config.layers, min(LENS_BEST, config.vocabulary)
    tables = Tables(
        LensTable(
            ids=np.empty((L, T, k), np.int64),
            probabilities=np.empty((L, T, k), np.float32),
            entropy=np.empty((L, T), np.float32),
            rank=np.empty((L, T), np.int64),
            probability=np.empty((L, T), np.float32),
        ),
        attribution=np.empty((2 * L + 2, T), np.float32),
        attention_output=np.empty((L, T, config.width), np.float32),
        prompt_surprisal=np.empty(P, np.float32),
    )
    tensors = _named(tables)
    for start, stop in _windows(T):
        lens = _named_lens(lens_table(trace, start, stop))
        for name, part in lens.items():
            tensors[name][:, start:stop] = part
        tables.attribution[:, start:stop] = attribution(trace, start, stop)
        for layer in range(L):
            tables.attention_output[layer, start:stop] = attention_output(trace, layer, start, stop)
    for start, stop in _windows(P):
        bits = surprisal(trace, trace.decoder, start, stop)
        tables.prompt_surprisal[start:stop] = np.maximum(bits, 0)  # rounding may leave a hair less
    return tensors


def _windows(length: int) -> Iterator[tuple[int, int]]:
    for start in range(0, length, _POSITIONS_AT_ONCE):
        yield start, min(start + _POSITIONS_AT_ONCE, length)


def _named(tables: Tables) -> Tensors:
    others: Tensors = {
        "attribution": tables.attribution,
        "attention_output": tables.attention_output,
        "prompt_surprisal": tables.prompt_surprisal,
    }
    return _named_lens(tables.lens) | others


def _named_lens(lens: LensTable) -> Tensors:
    columns: tuple[NDArray[Any], ...] = (lens.ids, lens.probabilities, lens.entropy, lens.rank, lens.probability)
    return {f"lens_{name}": column for name, column in zip(_LENS, columns, strict=True)}
