"""What stands over a picture, so that it can be read alone, and what its file is called."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.catalogue import tr
from ..core.edits import Ablation, Edit, ForceToken, Lasting, OfHead, OfMlp, Patch, Scaling
from ..widgets.drawable import drawable
from .cursor import Cursor
from .layout import PANELS
from .moment import Moment
from .stage_names import placed_name, stage_name
from .stages import Place

MOST_NAMES = 6
"""Names of changed parts that are listed."""


def caption(moment: Moment | None, place: Place | None, cursor: Cursor, panel: str = "") -> str:
    """The model and what was changed in it, the moment, and for a *panel* alone what it shows."""
    if moment is None or place is None:
        return "Cutaway"
    values: dict[str, object] = {"model": drawable(moment.trace.model.name, spaces=False), "step": place.step}
    values["before"] = moment.label(moment.positions(place) - 1)
    stage = moment.stages.all[place.stage]
    if place.step < moment.steps:
        values["token"] = moment.label(moment.prompt_length + place.step)
        said = tr("{model} · token {step} ‹{token}› after ‹{before}›", **values)
    else:
        said = tr("{model} · token {step} after ‹{before}›", **values)
    parts = [said, *changes(moment.trace.edits)]
    if panel:
        parts.append(tr(PANELS[panel]))
    if panel == "attention":
        parts.append(tr("layer {layer} head {head}", layer=cursor.layer, head=cursor.head))
    if panel == "attention" and stage.layer == cursor.layer:
        parts.append(stage_name(stage.name))
    elif stage.name != "draw":
        parts.append(placed_name(stage))
    return " · ".join(parts)


def changes(edits: Sequence[Edit]) -> list[str]:
    """What was changed in the model, in words: nothing, or up to two phrases."""
    silenced = [_part_name(edit) for edit in edits if isinstance(edit, Ablation)]
    changed = [_changed(edit) for edit in edits if not isinstance(edit, Ablation | ForceToken)]
    told = [tr("without {parts}", parts=_few(silenced))] if silenced else []
    return [*told, tr("with {parts}", parts=_few(changed))] if changed else told


def _changed(edit: Scaling | Patch) -> str:
    """A part of the model, and by what it is multiplied or where it is replaced."""
    part = _part_name(edit)
    if isinstance(edit, Scaling):
        return f"{part} × {np.format_float_positional(edit.factor, trim='-')}".replace("-", "−")
    return tr("{part} patched @{position}", part=part, position=edit.position)


def _part_name(edit: Lasting | Patch) -> str:
    """The part of the model that *edit* is about."""
    if isinstance(edit, OfHead):
        return tr("L{layer} head {head}", layer=edit.layer, head=edit.head)
    if isinstance(edit, OfMlp):
        return tr("L{layer} MLP", layer=edit.layer)
    return tr("L{layer} stream", layer=edit.layer)


def _few(names: list[str]) -> str:
    """The first names, and that there are more."""
    return ", ".join([*names[:MOST_NAMES], "…"] if len(names) > MOST_NAMES else names)


def picture_name(moment: Moment | None, place: Place | None, cursor: Cursor, panel: str = "") -> str:
    """A file name without its suffix; what it is safe to hold is seen to when the file is written."""
    if moment is None or place is None:
        return "cutaway"
    view = f"-{PANELS[panel].replace(' ', '-')}" if panel else ""
    head = f"-L{cursor.layer}H{cursor.head}" if panel in ("", "attention", "heads") else ""
    return f"cutaway-{moment.trace.model.name}{view}{head}-token{place.step}"
