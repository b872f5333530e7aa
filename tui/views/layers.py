"""What every layer would say next at the end of the text: the logit lens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.cache import Floats
from ...core.catalogue import tr
from ...core.lens import lens_table, residual_norms
from ...core.tables import LensTable
from ...core.trace import Trace
from ...widgets.layer_table import LayerRow, LayersView
from ..cursor import Cursor
from ..moment import Draw, Moment
from ..stages import Place

BEST = 10
"""Tokens of a layer that are shown at most."""


@dataclass(frozen=True, slots=True, eq=False)
class LensFound:
    """The lens at the end of the text that token `step` follows, as far as its pass had come."""

    step: int
    table: LensTable | None
    """[L', 1, …]; None without weights and without recorded tables."""
    norms: Floats
    """[L' + 1], of what entered block 0 first."""


def find_lens(trace: Trace, step: int, layers: int) -> LensFound:
    """Compute the lens of *layers* at the position whose output generated token *step* is drawn from."""
    position = len(trace.prompt_ids) + step - 1
    if not layers:  # the row of this position may not even be begun
        return LensFound(step, None, np.zeros(1, np.float32))
    norms = residual_norms(trace, position, position + 1, layers)[:, 0]
    known = trace.has_weights or trace.tables is not None
    table = lens_table(trace, position, position + 1, layers) if known else None
    return LensFound(step, table, norms)


def layers_view(moment: Moment, cursor: Cursor, place: Place, found: LensFound) -> LayersView:
    """The rows of *found*; those of layers that the pass has not been through are empty."""
    layers = moment.trace.model.config.layers
    over = place.stage == moment.stages.last
    reached = min(len(found.norms) - 1, moment.stages.passed(place.stage))
    rows = tuple(
        _row(moment, found, layer, over) if layer < reached else LayerRow(f"L{layer}", None, ())
        for layer in range(layers)
    )
    draw = moment.draw(found.step) if place.stage >= moment.stages.index("logits") else None
    unknown = found.table is None and len(found.norms) > 1
    note = tr("what layers would say needs the weights: --model") if unknown else ""
    return LayersView(
        rows=rows,
        output=_output(moment, draw, over) if draw is not None else None,
        layer=cursor.layer,
        after=moment.label(moment.prompt_length + found.step - 1),
        drawn=moment.label(moment.prompt_length + found.step) if over else "",
        note=note,
    )


def _row(moment: Moment, found: LensFound, layer: int, over: bool) -> LayerRow:
    name, table = f"L{layer}", found.table
    norm = float(found.norms[layer + 1])
    if table is None:
        return LayerRow(name, norm, ())
    ids, shares = table.ids[layer, 0, :BEST].tolist(), table.probabilities[layer, 0, :BEST].tolist()
    best = tuple((moment.name(id), share) for id, share in zip(ids, shares, strict=True))
    known = over and table.rank[layer, 0] >= 0
    return LayerRow(
        name,
        norm,
        best,
        drawn=float(table.probability[layer, 0]) if known else None,
        rank=int(table.rank[layer, 0]) if known else None,
        entropy=float(table.entropy[layer, 0]),
    )


def _output(moment: Moment, draw: Draw, over: bool) -> LayerRow:
    """What the model itself says, by its own scores."""
    table = draw.table
    best = tuple(
        (moment.name(int(id)), float(share)) for id, share in zip(table.ids[:BEST], table.raw[:BEST], strict=True)
    )
    [row] = np.flatnonzero(table.ids == draw.id)[:1]
    return LayerRow(
        tr("output"),
        None,
        best,
        drawn=float(table.raw[row]) if over else None,
        rank=int(table.ranks[row]) if over else None,
    )
