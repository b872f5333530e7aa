"""One head of one layer: who looks at whom, or the way to it, stage by stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...core.attention_stages import (
    attention_mix,
    attention_output,
    attention_rows,
    attention_scores,
    edited_mix,
    head_vectors,
)
from ...core.catalogue import mark, tr
from ...core.errors import CutawayError
from ...core.events import Floats
from ...widgets.attention_map import AttentionView, Kind
from ...widgets.drawable import drawable
from ...widgets.vector_blocks import VectorsView
from ..cursor import Cursor
from ..moment import Moment
from ..stages import Place

VECTORS = {"qkv": mark("q k v"), "mix": mark("mix"), "projection": mark("projection")}
"""Stages that are vectors, and how the title names them."""

MAPS: dict[str, Kind] = {"scores": "scores", "mask": "masked"}
"""Stages that are maps, but not of weights."""

Shown = AttentionView | VectorsView | None


def attention_view(
    moment: Moment, cursor: Cursor, place: Place, visible_of: Callable[[int], int], shown: Shown = None
) -> Shown:
    """The head looked at, at *place*; the newest queries, or those around the one that is looked at.

    *visible_of* says how many queries fit for so many keys. What is *shown* of the same text stays where it is while
    the query that is looked at is in sight. None where the pass has not come so far and there were none before it.
    """
    T = moment.positions(place)
    stage = moment.stages.all[place.stage]
    here = stage.name if stage.layer == cursor.layer else ""
    query = min(cursor.cell[0] if cursor.cell else T - 1, T - 1)
    first, stop = _window(T, query, visible_of(T), cursor, shown)
    if here in VECTORS:
        return _vectors(moment, cursor, here, first, stop, query)
    return _map(moment, cursor, place, MAPS.get(here, "weights"), first, stop, query)


def _window(T: int, query: int, visible: int, cursor: Cursor, shown: Shown) -> tuple[int, int]:
    """The queries in sight: from, up to."""
    first = newest = max(T - visible, 0)
    if cursor.cell is not None:
        if shown is not None and len(shown.labels) == T:
            first = max(shown.first, query - visible + 1)
        first = min(first, query, newest)
    return first, min(first + visible, T)


def _map(
    moment: Moment, cursor: Cursor, place: Place, kind: Kind, first: int, stop: int, query: int
) -> AttentionView | None:
    trace, T = moment.trace, moment.positions(place)
    done = T if kind != "weights" else moment.attended(place, cursor.layer)
    if not done:
        return None
    values: Floats = np.zeros((stop - first, T), np.float32)
    rows = max(min(stop, done) - first, 0)
    if kind == "weights" and rows:
        values[:rows, : first + rows] = attention_rows(trace, cursor.layer, cursor.head, first, first + rows)
    elif kind != "weights":
        values[:] = attention_scores(trace, cursor.layer, cursor.head, first, stop, T)
    limit = 1.0 if kind == "weights" else float(np.abs(values).max(initial=0.0))  # with the future: colours stay
    if kind == "masked":
        values[np.arange(T) > np.arange(first, stop)[:, None]] = 0.0
    labels = tuple(cell.text for cell in moment.cells[:T])
    silent = (cursor.layer, cursor.head) in moment.silent_heads(place.step)
    view = AttentionView(cursor.layer, cursor.head, values, first, labels, query, 0, kind, done, silent, limit)
    key = cursor.cell[1] if cursor.cell else -1
    seen = max(view.seen(query), 1)
    if not 0 <= key < seen:
        key = int(np.argmax(values[query - first, :seen]))
    return replace(view, key=key)


def _vectors(moment: Moment, cursor: Cursor, stage: str, first: int, stop: int, query: int) -> VectorsView:
    trace, layer, head = moment.trace, cursor.layer, cursor.head
    blocks: tuple[tuple[str, Floats], ...]
    note = ""
    if stage == "qkv":
        blocks = tuple(zip("qkv", head_vectors(trace, layer, head, first, stop), strict=True))
    elif stage == "mix":
        _, _, value = head_vectors(trace, layer, head, first, stop)
        blocks = (("v", value), (tr("weights · v"), attention_mix(trace, layer, head, first, stop)))
        if trace.edits_at_work.touch_head(layer, head):
            blocks += ((tr("after the edit"), edited_mix(trace, layer, first, stop)[head]),)
    else:
        try:
            blocks = ((tr("output"), attention_output(trace, layer, first, stop)),)
        except CutawayError as error:  # a recording of an earlier version, without its model
            blocks, note = (), drawable(str(error), spaces=False)
    labels = tuple(cell.text for cell in moment.cells[:stop])
    name, of_all = tr(VECTORS[stage]), stage == "projection"
    return VectorsView(layer, None if of_all else head, name, blocks, first, labels, query, note, stage == "qkv")
