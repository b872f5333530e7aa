"""The first two lines: what is open, how it goes, and which stage of a pass is looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cutaway.core import Generation, SamplingConfig, Trace, load_model
from cutaway.core.edits import (
    AblateHead,
    AblateMlp,
    Edit,
    ForceToken,
    PatchHead,
    PatchMlp,
    PatchResidual,
    ScaleHead,
    ScaleMlp,
)
from cutaway.core.events import Finished, TokenChosen
from cutaway.core.models.model import Model
from cutaway.core.sampling import STAGES as SAMPLING
from cutaway.tui.captions import caption, changes
from cutaway.tui.cursor import Cursor
from cutaway.tui.headlines import stages_view, strip_stage, title_view
from cutaway.tui.moment import Moment
from cutaway.tui.runner import Runner
from cutaway.tui.runs import Run
from cutaway.tui.stage_names import NAMES, placed_name, short_name
from cutaway.tui.stages import Place, Stage
from cutaway.widgets.drawable import cell_width
from cutaway.widgets.numbers import PERCENT


def a_generation(model: Model, edits: Sequence[Edit] = ()) -> Generation:
    return Generation(model, [610, 573], SamplingConfig(seed=1), max_new_tokens=3, ignore_eos=True, edits=edits)


@pytest.fixture(scope="module")
def generation(fable: Model) -> Generation:
    """A run of three tokens at its end."""
    generation = a_generation(fable)
    assert list(generation)
    return generation


def as_shown(source: Generation | Trace, steps: int = 0) -> Run:
    """*source* on the screen, with so many tokens heard of."""
    trace = source if isinstance(source, Trace) else source.trace
    return Run(source, Runner(lambda: source, running=False, speed=8.0), Moment(trace, steps))


def title(
    source: Generation | Trace,
    steps: int,
    place: Place | None = None,
    running: bool = False,
    speed: float = 8.0,
    branch: tuple[int, int] = (0, 1),
) -> str:
    """The title at *place*, or at the newest token."""
    run = as_shown(source, steps)
    view = title_view(run, place or run.moment.last_token, place is None, running, speed, branch)
    return " ".join(part.text for part in (*view.left, *view.right))


def test_what_is_open(generation: Generation) -> None:
    assert title(generation, 0).startswith("cutaway fable · a tiny story model · GPT-2 · 4 layers × 8 heads × 256 ")
    nothing_yet = title_view(None, None, True, True, 8.0, (0, 1))
    assert [part.text for part in nothing_yet.left] == ["cutaway"] and not nothing_yet.right


def test_only_the_embedded_model_is_called_tiny(tiny: Path) -> None:
    generation = Generation(load_model(tiny), [1], max_new_tokens=1)
    assert "gpt2_base · GPT-2" in title(generation, 0)


def test_a_model_may_have_any_name(fable: Model) -> None:
    twin = Generation(replace(fable, name="\x1b[2J\u202e[red]"), [610], max_new_tokens=1)
    assert "␛[2J⟨U+202E⟩[red]" in title(twin, 0)


def test_one_layer_and_one_head_are_one_of_each() -> None:
    tinymind = Generation(load_model("tinymind"), [3], max_new_tokens=1)
    assert "· 1 layer × 1 head × 16 1 token to write" in title(tinymind, 0)


def test_how_it_goes(generation: Generation) -> None:
    last = Moment(generation.trace).stages.last
    assert "3 tokens to write" in title(generation, 0) and "first" not in title(generation, 0)
    assert "token 0 · 1/3" in title(generation, 1) and "first" in title(generation, 1)
    assert "then" not in title(generation, 1)
    assert "token 1 · 2/3" in title(generation, 2) and "then" in title(generation, 2)
    assert "▶ at most 8/s" in title(generation, 2, running=True)
    assert "▶ at most 0.5/s" in title(generation, 2, running=True, speed=0.5)
    assert "▶ as fast as it goes" in title(generation, 2, running=True, speed=math.inf)
    assert "‖ paused" in title(generation, 2)
    assert "■ end" in title(generation, 3)
    assert "back at token 1 · 2/3" in title(generation, 3, Place(1, last))
    assert "■ end" not in title(generation, 3, Place(1, last))


def test_inside_a_pass_it_says_which_token_is_being_made(generation: Generation) -> None:
    for step in range(3):
        assert f"inside token {step} · {step + 1}/3" in title(generation, step, Place(step, 5))
    assert "back at token 1 · 2/3" in title(generation, 3, Place(1, 5))


def test_a_recording_says_that_it_is_one(generation: Generation) -> None:
    shown = title(generation.trace, 3, Place(1, 9))
    assert "recording token 1 · 2/3" in shown and "back" not in shown
    assert "recording token 2 · 3/3" in title(generation.trace, 3)
    assert "recording" not in title(generation, 3)


def test_what_was_changed_and_which_branch_it_is(fable: Model) -> None:
    edits = (AblateHead(1, 2), ScaleHead(0, 1, 0.5), AblateMlp(3), ForceToken(0, 77))
    generation = a_generation(fable, edits=edits)
    assert list(generation)
    shown = title(generation, 3, branch=(1, 4))
    assert "· without L1 head 2, L3 MLP" in shown and "· with L0 head 1 × 0.5" in shown
    assert "· text 2 of 4" in shown and "77" not in shown
    assert "without" not in title(a_generation(fable), 0) and "text" not in title(a_generation(fable), 0)


def test_the_time_to_the_first_token_and_the_rate_after_it(generation: Generation) -> None:
    seconds = [step.seconds for step in generation.trace.steps]
    assert f"first {seconds[0] * 1000:4.0f} ms" in title(generation, 3)
    assert f"then {2 / sum(seconds[1:]):4.0f}/s" in title(generation, 3)


def test_the_time_to_the_first_token_of_a_later_turn_is_that_of_what_is_new(generation: Generation) -> None:
    turn = generation.follow([*generation.trace.token_ids, 77, 78])
    assert list(turn)
    rows = len(turn.trace.prompt_ids) - generation.trace.positions
    assert rows == 3 and f"first {turn.trace.prefill_seconds * 1000:4.0f} ms for 3 new" in title(turn, 1)
    branch = turn.branch(1, token=77)
    assert "ms for 3 new" in title(branch, 1) and "new" not in title(generation, 1)


SETTINGS = SamplingConfig(temperature=0.8, top_k=40)


def lit(run: Run, place: Place) -> str:
    view = stages_view(run, SETTINGS, place)
    return view.names[view.current]


def test_stages_light_up_in_order(fable: Model) -> None:
    """As a run goes on, the strip is walked from left to right, once a pass."""
    generation = a_generation(fable)
    run = as_shown(generation)
    seen: list[int] = []
    for event in generation:
        if isinstance(event, Finished):
            break
        run.moment.hear(event)
        assert run.moment.newest is not None
        view = stages_view(run, SETTINGS, run.moment.newest)
        seen.append(view.current)
        if isinstance(event, TokenChosen):
            assert seen == sorted(seen) and seen[-1] == len(view.names) - 1
            assert list(dict.fromkeys(seen)) == list(range(min(run.moment.steps - 1, 1), len(view.names)))
            seen = []


def test_every_stage_has_its_place_in_the_strip(generation: Generation) -> None:
    run = as_shown(generation, 3)
    stages = run.moment.stages
    currents = []
    for index, stage in enumerate(stages.all):
        view = stages_view(run, SETTINGS, Place(1, index))
        currents.append(view.current)
        if stage.layer is not None:
            assert view.names[view.current] == f"L{stage.layer} {NAMES[stage.name]}"
            assert view.layers[stage.layer] == view.current
            others = [view.names[layer] for layer in view.layers if layer != view.current]
            assert others == [f"L{layer}" for layer in range(4) if layer != stage.layer]
    assert currents == sorted(currents)
    for name, neighbour in (("raw", "logits"), ("final", "draw")):  # each takes the place of the other
        there, beside = (stages_view(run, SETTINGS, Place(1, stages.index(each))) for each in (name, neighbour))
        assert there.current == beside.current and lit(run, Place(1, stages.index(name))) == name
        assert beside.names[beside.current] == neighbour


def test_a_stage_of_the_strip_is_where_one_goes_by_it(generation: Generation) -> None:
    """Going there lights it, and of a layer its end."""
    run = as_shown(generation, 3)
    stages, names = run.moment.stages, stages_view(run, SETTINGS, None).names
    for index in range(len(names)):
        stage = strip_stage(stages, index)
        assert stages_view(run, SETTINGS, Place(1, stage)).current == index
        assert stages.all[stage].layer is None or stages.all[stage].name == "residual"


def test_untimed_it_does_not_say_how_fast(generation: Generation) -> None:
    run = as_shown(generation, 3)
    view = title_view(run, run.moment.last_token, True, False, 8.0, (0, 1), timed=False)
    assert [part.text for part in view.right] == ["token 2 · 3/3"]


def test_stages_that_the_settings_leave_off_stand_back(generation: Generation) -> None:
    run = as_shown(generation, 3)
    view = stages_view(run, SETTINGS, None)
    assert {view.names[index] for index in view.off} == {"penalty", "top-p", "min-p"}
    view = stages_view(run, SamplingConfig(greedy=True), None)
    assert {view.names[index] for index in view.off} == {"penalty", "temperature", "top-k", "top-p", "min-p"}


def test_before_anything_no_stage_is_lit(generation: Generation) -> None:
    view = stages_view(as_shown(generation), SETTINGS, None)
    assert view.current == -1
    assert [view.names[layer] for layer in view.layers] == ["L0", "L1", "L2", "L3"]


def test_every_stage_has_a_name(generation: Generation) -> None:
    names = {stage.name for stage in Moment(generation.trace).stages.all}
    assert names == set(NAMES) and set(SAMPLING) <= names
    assert placed_name(Stage("softmax", 3)) == "layer 3, softmax"
    assert placed_name(Stage("top_k")) == "top-k"
    assert all(cell_width(short_name(name)) <= PERCENT for name in SAMPLING)


def test_a_caption_says_what_was_changed(fable: Model) -> None:
    """A picture of a panel alone has no title."""
    edits: list[Edit] = [AblateHead(1, 2), ForceToken(0, 77), *(ScaleHead(0, head, 0.5) for head in range(8))]
    generation = a_generation(fable, edits=edits)
    assert list(generation)
    moment = Moment(generation.trace, 3)
    said = caption(moment, moment.last_token, Cursor(), "text")
    scaled = ", ".join(f"L0 head {head} × 0.5" for head in range(6))
    assert f" · without L1 head 2 · with {scaled}, … · text" in said
    plain = a_generation(fable)
    assert list(plain)
    moment = Moment(plain.trace, 3)
    assert "with" not in caption(moment, moment.last_token, Cursor(), "text")


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (AblateHead(1, 2), "without L1 head 2"),
        (AblateMlp(0, since=3), "without L0 MLP"),
        (ScaleHead(1, 2, 0.1234567), "with L1 head 2 × 0.1234567"),
        (ScaleMlp(11, -2.0), "with L11 MLP × −2"),
        (PatchHead(1, 2, 7, (0.1,)), "with L1 head 2 patched @7"),
        (PatchMlp(0, 0, (0.25,)), "with L0 MLP patched @0"),
        (PatchResidual(3, 5, (1.0,)), "with L3 stream patched @5"),
    ],
)
def test_changes_are_told_in_words(edit: Edit, told: str) -> None:
    assert changes([edit, ForceToken(3, 7)]) == [told]
