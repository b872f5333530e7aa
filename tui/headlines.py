"""The first two lines: what is open and how it goes, and where in a pass we are."""

from __future__ import annotations

from math import isinf

from ..core.catalogue import mark, tr
from ..core.edits import ForceToken, edit_name
from ..core.events import (
    AttentionDone,
    BlockDone,
    ChatRendered,
    Embedded,
    Event,
    LogitsReady,
    MlpDone,
    Normalized,
    SamplingStage,
    Tokenized,
)
from ..core.generation import Generation
from ..core.models.model import Model
from ..core.sampling import SamplingConfig
from ..widgets.drawable import drawable
from ..widgets.stage_strip import StagesView
from ..widgets.title_line import Part, TitleView
from .cursor import Cursor
from .moment import Moment

FAMILIES = {"gpt2": "GPT-2"}
"""Families as people write them."""
NOTES = {"fable": mark("a tiny story model")}
"""What to know of an embedded model before believing anything it says."""

_BEFORE = (mark("tokenize"), mark("embed"))
_AFTER = (mark("norm"), mark("logits"), mark("penalty"), mark("temperature"), "top-k", "top-p", "min-p", mark("draw"))
_SAMPLING = {
    "raw": "logits",
    "repetition_penalty": "penalty",
    "temperature": "temperature",
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
}


def title_view(
    generation: Generation | None, moment: Moment | None, cursor: Cursor, running: bool, speed: float
) -> TitleView:
    """What is open on the left, how it goes on the right."""
    left = [Part("cutaway", "badge")]
    if generation is None or moment is None:
        return TitleView(tuple(left), ())
    model, config = generation.model, generation.model.config
    left.append(Part(drawable(model.name, spaces=False), "strong"))
    if note := NOTES.get(model.name):
        left.append(Part(f"· {tr(note)}", "quiet", 1))
    sizes = {"layers": config.layers, "heads": config.heads, "width": config.width}
    shape = tr("{layers} layers × {heads} heads × {width}", **sizes)
    silenced = ", ".join(edit_name(e) for e in moment.trace.edits if not isinstance(e, ForceToken))
    if silenced:
        left.append(Part(tr("· without {parts}", parts=silenced), "here", 1))
    left.append(Part(f"· {FAMILIES.get(config.family, config.family)}", "quiet", 4))
    left.append(Part(shape, "quiet", 5))
    return TitleView(tuple(left), tuple(_status(moment, generation.max_new_tokens, cursor, running, speed)))


def _status(moment: Moment, wanted: int, cursor: Cursor, running: bool, speed: float) -> list[Part]:
    trace, steps = moment.trace, moment.steps
    at = cursor.at_step(steps)
    over = trace.finish_reason is not None
    if at < 0:
        place = Part(tr("{count} tokens to write", count=wanted), "plain")
    elif cursor.step is None:
        place = Part(tr("token {at} of {count}", at=at, count=wanted), "plain")
    else:
        place = Part(tr("back at token {at} of {count}", at=at, count=wanted), "here")
    pace = tr("as fast as it goes") if isinf(speed) else f"{speed:g}/s"
    state = f"▶ {pace}" if running else tr("■ end") if over and steps == len(trace.steps) else tr("‖ paused")
    parts = [place, Part(state, "here" if running else "plain", gap=2)]
    if steps:
        parts.append(Part(tr("first {ms:4.0f} ms", ms=trace.prefill_seconds * 1000), "quiet", 3, gap=2))
    if steps > 1:
        parts.append(Part(tr("then {rate:4.0f}/s", rate=trace.decode_rate), "quiet", 2, gap=2))
    return parts


def stages_view(model: Model, settings: SamplingConfig, last: Event | None, *, looking_back: bool) -> StagesView:
    """The stages of a pass, the one that *last* completed lit, none before the first; all done when looking back.

    Stages of sampling that *settings* leave off stand back.
    """
    layers = model.config.layers
    names = (*_BEFORE, *(f"L{layer}" for layer in range(layers)), *_AFTER)
    current = len(names) - 1 if looking_back else -1 if last is None else _index(last, names)
    off = frozenset(names.index(_SAMPLING[name]) for name in settings.idle_stages())
    return StagesView(tuple(map(tr, names)), range(len(_BEFORE), len(_BEFORE) + layers), current, off)


def _index(event: Event, names: tuple[str, ...]) -> int:
    match event:
        case ChatRendered() | Tokenized():
            return 0
        case Embedded():
            return 1
        case AttentionDone(layer=layer) | MlpDone(layer=layer) | BlockDone(layer=layer):
            return len(_BEFORE) + layer
        case Normalized():
            return names.index("norm")
        case LogitsReady():
            return names.index("logits")
        case SamplingStage():
            return names.index(_SAMPLING.get(event.name, "draw"))
        case _:
            return len(names) - 1
