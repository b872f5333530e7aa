"""The first two lines: what is open and how it goes, and where in a pass we are."""

from __future__ import annotations

from math import isinf

from ..core.catalogue import mark, tr, trn
from ..core.generation import Generation
from ..core.models.families import family_title, shape_title
from ..core.sampling import STAGES as SAMPLING
from ..core.sampling import SamplingConfig
from ..core.trace import Trace
from ..widgets.drawable import drawable
from ..widgets.stage_strip import StagesView
from ..widgets.title_line import Part, TitleView
from .captions import changes
from .runs import Run
from .stage_names import NAMES, stage_name
from .stages import Place, Stages

NOTES = {
    "fable": mark("a tiny story model"),
    "tinymind": mark("a model of one page, untrained"),
    "verse": mark("a tiny model of Chinese poems"),
}
"""What to know of an embedded model before believing anything it says."""

_BEFORE, _AFTER = ("tokens", "embedding"), ("norm", "logits", *SAMPLING[1:-1], "draw")
"""Stages of the strip before and after the layers. The shares before the filters and after them take the place of
their neighbours while one is at them."""
_JOINED = {"raw": "logits", "final": "draw"}


def title_view(
    run: Run | None,
    place: Place | None,
    following: bool,
    running: bool,
    speed: float,
    branch: tuple[int, int],
    *,
    timed: bool = True,
) -> TitleView:
    """What is open on the left, how it goes on the right; not how fast, unless *timed*.

    *branch* is the number of the run that is shown, of all.
    """
    left = [Part("cutaway", "badge")]
    if run is None:
        return TitleView(tuple(left), ())
    model = run.moment.trace.model
    config = model.config
    left.append(Part(drawable(model.name, spaces=False), "strong"))
    if note := NOTES.get(model.name):
        left.append(Part(f"· {tr(note)}", "quiet", 2))
    left += [Part(f"· {what}", "here", 1) for what in changes(run.moment.trace.edits)]
    left.append(Part(f"· {drawable(family_title(config.family), spaces=False)}", "quiet", 5))
    left.append(Part(f"· {shape_title(config.layers, config.heads, config.width)}", "quiet", 6))
    if branch[1] > 1:
        left.append(Part(tr("· text {number} of {count}", number=branch[0] + 1, count=branch[1]), "here", 1))
    where, pace = _status(run, place, following, running, speed)
    return TitleView(tuple(left), (*where, *pace) if timed else tuple(where))


def _status(
    run: Run, place: Place | None, following: bool, running: bool, speed: float
) -> tuple[list[Part], list[Part]]:
    """Where we are, and how it goes."""
    trace, steps, recorded = run.moment.trace, run.moment.steps, not isinstance(run.source, Generation)
    wanted = run.source.max_new_tokens if isinstance(run.source, Generation) else len(trace.steps)
    at = place.step if place else 0
    values: dict[str, object] = {"at": at, "number": at + 1, "count": max(wanted, steps)}
    if place is None:
        where = Part(trn("1 token to write", "{count} tokens to write", wanted), "plain")
    elif place.step >= steps:
        where = Part(tr("inside token {at} · {number}/{count}", **values), "here")
    elif following or recorded:
        where = Part(tr("token {at} · {number}/{count}", **values), "plain" if following else "here")
    else:
        where = Part(tr("back at token {at} · {number}/{count}", **values), "here")
    pace = tr("as fast as it goes") if isinf(speed) else tr("at most {speed:g}/s", speed=speed)
    over = run.over and not running
    state = f"▶ {pace}" if running else tr("■ end") if over and following else tr("‖ paused")
    parts = [Part(state, "here" if running else "plain", gap=2)]
    if steps:
        parts.append(Part(_time_to_first(trace), "quiet", 4, gap=2))
    if steps > 1:
        parts.append(Part(tr("then {rate:4.0f}/s", rate=trace.decode_rate), "quiet", 3, gap=2))
    return [*([Part(tr("recording"), "what", 1)] if recorded else []), where], parts


def _time_to_first(trace: Trace) -> str:
    """How long the first token took; in a later turn of a chat, what was new of the prompt is all that was read."""
    ms = trace.prefill_seconds * 1000
    if trace.begun:
        return tr("first {ms:4.0f} ms for {count} new", ms=ms, count=len(trace.prompt_ids) - trace.begun)
    return tr("first {ms:4.0f} ms", ms=ms)


def strip_stage(stages: Stages, index: int) -> int:
    """The stage of a pass that stands at *index* in the strip: of a layer its last one."""
    names = _strip(stages)
    layer = index - len(_BEFORE)
    return stages.index("residual", layer) if 0 <= layer < stages.layers else stages.index(names[index])


def _strip(stages: Stages) -> list[str]:
    """The stages of the strip, by their own names."""
    there = {stage.name for stage in stages.all}
    return [*_BEFORE, *(f"L{layer}" for layer in range(stages.layers)), *(name for name in _AFTER if name in there)]


def stages_view(run: Run, settings: SamplingConfig, place: Place | None) -> StagesView:
    """The stages of a pass, the one at *place* lit. Stages of sampling that *settings* leave off stand back."""
    layers = run.moment.stages.layers
    names = _strip(run.moment.stages)
    current = -1
    if place is not None:
        stage = run.moment.stages.all[place.stage]
        lit = f"L{stage.layer}" if stage.layer is not None else _JOINED.get(stage.name, stage.name)
        current = names.index(lit)
    off = frozenset(names.index(name) for name in settings.idle_stages())
    shown = [stage_name(name) if name in NAMES else name for name in names]
    if place is not None and (stage := run.moment.stages.all[place.stage]).layer is not None:
        shown[current] = f"L{stage.layer} {stage_name(stage.name)}"
    elif place is not None and stage.name in _JOINED:
        shown[current] = stage_name(stage.name)
    return StagesView(tuple(shown), range(len(_BEFORE), len(_BEFORE) + layers), current, off)
