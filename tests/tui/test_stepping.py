"""Going through a run by stages, layers and tokens, forwards and back: what is shown is what was computed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.events import AttentionDone, BlockDone, Event, LogitsReady, TokenChosen
from cutaway.tui.gate import SPEEDS
from cutaway.tui.stages import ATTENTION, Place, Stages
from cutaway.widgets.attention_map import AttentionMap, AttentionView
from cutaway.widgets.candidate_bars import CandidateBars, CandidatesView
from cutaway.widgets.heads_map import HeadsMap, HeadsView
from cutaway.widgets.layer_table import LayersView, LayerTable
from cutaway.widgets.stage_strip import StageStrip
from cutaway.widgets.token_stream import TokenStream
from cutaway.widgets.vector_blocks import VectorsView

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person

PROMPT = [5, 6, 7, 8]
SETTINGS = SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, seed=1)
"""What the app draws with when nobody says anything, and the seed of these tests."""

STRIP = {
    "tokens": "tokenize", "embedding": "embed", "qkv": "q k v", "scores": "scores", "mask": "mask",
    "softmax": "softmax", "mix": "mix", "projection": "projection", "mlp": "MLP", "residual": "residual",
    "norm": "norm", "logits": "logits", "raw": "raw", "repetition_penalty": "penalty",
    "temperature": "temperature", "top_k": "top-k", "top_p": "top-p", "min_p": "min-p", "final": "final",
    "draw": "draw",
}  # fmt: skip
"""What the second line lights at each stage."""


def computed(model: Path, tokens: int = 3) -> list[Event]:
    """What a run without a screen says, event by event."""
    run = Generation(load_model(model), PROMPT, SETTINGS, max_new_tokens=tokens, ignore_eos=True)
    return list(run)


def drawn(events: Sequence[Event]) -> list[int]:
    return [event.id for event in events if isinstance(event, TokenChosen)]


async def goes_to(person: Person, key: str, place: Place | None) -> None:
    """Press *key* and wait until *place* is looked at and everything shown is about it."""
    await person.press(key)
    await person.until(lambda: person.screen.place == place)
    await person.rests()


def lit(person: Person) -> str:
    """What the second line lights."""
    strip = person.screen.query_one(StageStrip)
    look = strip.look
    return "".join(
        segment.text
        for segment in strip.render_line(0)
        if segment.style and segment.style.bgcolor and segment.style.bgcolor.name == look.what.lower()
    )


def shown(person: Person) -> dict[str, object]:
    """Everything that the panels say about the place that is looked at."""
    kinds = TokenStream, AttentionMap, CandidateBars, HeadsMap, LayerTable
    return {kind.__name__: person.panel(kind) for kind in kinds if person.screen.query_one(kind).display}


@pytest.fixture(scope="session")
def shallow(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model without all its layers but the first."""
    folder = tmp_path_factory.mktemp("models") / "shallow"
    shutil.copytree(tiny, folder)
    tensors = load_file(folder / "model.safetensors")
    save_file({name: each for name, each in tensors.items() if ".h." not in f".{name}" or ".h.0." in f".{name}"},
              folder / "model.safetensors")  # fmt: skip
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"n_layer": 1}), "utf-8")
    return folder


@pytest.fixture(params=["tiny", "shallow"])
def model(request: pytest.FixtureRequest) -> Path:
    """A model of three layers, and one of a single layer."""
    folder: Path = request.getfixturevalue(request.param)
    return folder


def options(model: Path, **more: object) -> dict[str, object]:
    return {
        "model": str(model), "prompt_ids": PROMPT, "max_new_tokens": 3, "ignore_eos": True, "step": True,
        "size": (120, 40),
    } | more  # fmt: skip


async def test_every_stage_of_two_passes_in_order(open_app: OpenApp, model: Path) -> None:
    """Title, strip, sentence and panels say where the pass is, and only the first pass cuts up a prompt."""
    events = computed(model)
    async with open_app(**options(model)) as person:
        stages = person.moment.stages
        said = [""]
        for step in (0, 1):
            for index in range(stages.first(step), stages.last + 1):
                await goes_to(person, "full_stop", Place(step, index))
                stage = stages.all[index]
                layer = "" if stage.layer is None else f"L{stage.layer} "
                assert lit(person) == layer + STRIP[stage.name]
                inside = index < stages.last
                assert f"{'inside token' if inside else 'token'} {step} · {step + 1}/3" in person.title
                assert "‖ paused" in person.title
                assert person.notice != said[-1] and person.notice and "…" not in person.notice
                said.append(person.notice)
                if stage.layer is not None:
                    assert person.screen.cursor.layer == stage.layer
                text = "".join(person.panel(TokenStream))
                assert ("▁" in text) == inside
                assert len(person.trace.steps) == (step if inside else step + 1)
        assert [step.id for step in person.trace.steps] == drawn(events)[:2]
        assert sum("the prompt is 4 tokens" in sentence for sentence in said) == 1


async def test_attention_shows_what_the_pass_computed_stage_by_stage(open_app: OpenApp, model: Path) -> None:
    """Every number in the panel is one of the events of a run without a screen."""
    attention: dict[tuple[int, int], AttentionDone] = {}
    step = 0
    for event in computed(model):
        if isinstance(event, AttentionDone):
            attention[step, event.layer] = event
        step += isinstance(event, TokenChosen)
    async with open_app(**options(model)) as person:
        config, stages = person.trace.model.config, person.moment.stages
        panel = person.screen.query_one(AttentionMap)
        keys: dict[tuple[int, int], np.ndarray] = {}
        for step in (0, 1):
            for index in range(stages.first(step), stages.last + 1):
                await goes_to(person, "full_stop", Place(step, index))
                stage = stages.all[index]
                if stage.name not in ATTENTION:
                    continue
                assert stage.layer is not None
                head, layer = person.screen.cursor.head, stage.layer
                event = attention[step, layer]
                view, text = panel.view, "\n".join(person.panel(AttentionMap))
                assert view is not None and view.layer == layer
                assert view.head == (None if stage.name == "projection" else head)
                assert view.query == len(PROMPT) + step - 1
                newest = {"q": event.query[head, -1], "k": event.key[head, -1], "v": event.value[head, -1]}
                keys[step, layer] = event.key[head] if step == 0 else np.r_[keys[step - 1, layer], event.key[head]]
                scores = keys[step, layer] @ newest["q"] / np.sqrt(config.head_size)
                if stage.name == "qkv":
                    assert isinstance(view, VectorsView)
                    assert [name for name, _ in view.blocks] == ["q", "k", "v"]
                    for name, vectors in view.blocks:
                        np.testing.assert_allclose(vectors[-1], newest[name], rtol=1e-5, atol=1e-6)
                        assert f"‖{name}‖ {np.linalg.norm(newest[name]):.3f}" in text
                elif stage.name in ("scores", "mask", "softmax"):
                    assert isinstance(view, AttentionView)
                    wanted = event.pattern[head, -1] if stage.name == "softmax" else scores
                    np.testing.assert_allclose(view.values[-1], wanted, rtol=1e-4, atol=1e-5)
                    assert view.value == pytest.approx(max(wanted), abs=1e-5)
                    assert f"{max(wanted):.4f}"[:-1] in text
                    hidden = view.values[np.triu_indices(len(view.values), 1)]
                    assert (np.abs(hidden) > 0).any() == (stage.name == "scores")
                    assert view.seen(0) == (len(view.labels) if stage.name == "scores" else 1)
                elif stage.name == "mix":
                    assert isinstance(view, VectorsView)
                    (_, values), (_, mixed) = view.blocks
                    np.testing.assert_allclose(mixed[-1], event.pattern[head, -1] @ values, rtol=1e-4, atol=1e-5)
                    assert f"{np.linalg.norm(mixed[-1]):.3f}" in text
                else:
                    assert isinstance(view, VectorsView)
                    [(_, output)] = view.blocks
                    np.testing.assert_allclose(output[-1], event.output[-1], rtol=1e-3, atol=1e-4)
                    assert f"{np.linalg.norm(event.output[-1]):.2f}" in person.notice


async def test_sentences_name_the_numbers_of_their_stage(open_app: OpenApp, tiny: Path) -> None:
    """The length of the residual stream, the best score, the share that temperature makes of it, the draw."""
    events = computed(tiny)
    [logits] = [event.logits[-1] for event in events if isinstance(event, LogitsReady)][:1]
    residuals = [event.residual[-1] for event in events if isinstance(event, BlockDone)][:3]
    chosen = next(event for event in events if isinstance(event, TokenChosen))
    async with open_app(**options(tiny)) as person:
        stages = person.moment.stages
        heard = {}
        for index in range(stages.last + 1):
            await goes_to(person, "full_stop", Place(0, index))
            heard[stages.all[index].name, stages.all[index].layer] = person.notice
        for layer, residual in enumerate(residuals):
            assert f"{np.linalg.norm(residual):.2f} long" in heard["residual", layer]
        best = int(np.argmax(logits))
        assert f"‹#{best}› the highest, {logits[best]:.2f}" in heard["logits", None]
        chain = SETTINGS.stages(logits, PROMPT)
        shares = np.exp(chain[2].values - np.logaddexp.reduce(chain[2].values))
        assert f"‹#{best}› goes from" in heard["temperature", None]
        assert f"to {shares[best]:.1%}".replace("%", " %") in heard["temperature", None]
        for at, name in ((3, "top_k"), (4, "top_p")):
            left, out = chain[at].kept.sum(), chain[at - 1].kept.sum() - chain[at].kept.sum()
            assert f"takes out {out} tokens" in heard[name, None] and heard[name, None].endswith(f"{left} left")
        assert "is off" in heard["min_p", None] and "is off" in heard["repetition_penalty", None]
        assert f"‹#{chosen.id}› drawn" in heard["draw", None] and f"u = {chosen.uniform:.4f}" in heard["draw", None]


async def test_no_panel_shows_what_the_pass_has_not_reached(open_app: OpenApp, model: Path) -> None:
    async with open_app(**options(model)) as person:
        stages, screen = person.moment.stages, person.screen
        places = [Place(step, index) for step in (0, 1) for index in range(stages.first(step), stages.last + 1)]
        for place in places:
            await goes_to(person, "full_stop", place)
            assert_nothing_from_the_future(person, place)
        for place in places[-2::-1]:  # and neither when one comes back, though all of it is known by then
            await goes_to(person, "comma", place)
            assert_nothing_from_the_future(person, place)
        assert len(screen.run_shown.moment.trace.steps if screen.run_shown else ()) == 2


def assert_nothing_from_the_future(person: Person, place: Place) -> None:
    moment, screen = person.moment, person.screen
    stages, stage = moment.stages, moment.stages.all[place.stage]
    T = moment.prompt_length + place.step
    attention = screen.query_one(AttentionMap).view
    if stage.name in ("tokens", "embedding") and place.step == 0:
        assert attention is None
        assert "the pass has not come to layer" in "\n".join(person.panel(AttentionMap))
    elif isinstance(attention, AttentionView) and attention.kind == "weights":
        there = (
            stage.layer is not None and ATTENTION.index("softmax") > ATTENTION.index(stage.name)
            if (stage.name in ATTENTION)
            else stage.name in ("tokens", "embedding")
        )
        assert attention.done == (T - 1 if there else T)
        assert not attention.values[max(attention.done - attention.first, 0) :].any()
    heads = screen.query_one(HeadsMap).view
    assert isinstance(heads, HeadsView) and len(heads.maps) == stages.attended(place.stage)
    layers = screen.query_one(LayerTable).view
    assert isinstance(layers, LayersView)
    known = [row.norm is not None for row in layers.rows]
    assert known == [layer < stages.passed(place.stage) for layer in range(stages.layers)]
    assert all(bool(row.best) == (row.norm is not None) for row in layers.rows)
    over = place.stage == stages.last
    assert all((row.drawn is None) != (over and row.norm is not None) for row in layers.rows)
    assert layers.drawn == (moment.label(T) if over else "")
    candidates = screen.query_one(CandidateBars).view
    if place.stage < stages.index("logits"):
        assert candidates is None and layers.output is None
        assert "no logits yet" in "\n".join(person.panel(CandidateBars))
    else:
        assert isinstance(candidates, CandidatesView)
        assert (candidates.drawn is None) != over
        assert layers.output is not None and (layers.output.drawn is None) != over
    stream = person.stream
    assert stream.current == (moment.prompt_length + place.step if over or place.step < moment.steps else None)


async def test_l_goes_layer_by_layer_and_back(open_app: OpenApp, model: Path) -> None:
    async with open_app(**options(model)) as person:
        stages = person.moment.stages
        pass_stops = [*(stages.index("residual", layer) for layer in range(stages.layers)), stages.last]
        walked = [Place(step, stop) for step in (0, 1) for stop in pass_stops]
        pictures = []
        for place in walked:
            await goes_to(person, "l", place)
            pictures.append(shown(person)["AttentionMap"])
        seen = [walked[-1]]
        while seen[-1] != Place(0, stages.index("embedding")):
            await person.press("L")
            await person.rests()
            assert person.screen.place is not None and person.screen.place < seen[-1]
            seen.append(person.screen.place)
        assert set(walked) <= set(seen)
        assert Place(1, stages.index("embedding")) in seen
        await person.press("L")
        assert "this is where the run begins" in person.notice
        assert len(person.trace.steps) == 2


async def test_a_token_is_finished_from_its_middle(open_app: OpenApp, model: Path) -> None:
    events = computed(model)
    async with open_app(**options(model)) as person:
        stages = person.moment.stages
        for step, keys in enumerate((["full_stop"] * 4, ["l"], ["full_stop", "l", "full_stop"])):
            for key in keys:
                await person.press(key)
                await person.rests()
            assert person.screen.place is not None and person.screen.place.step == step
            assert f"inside token {step} · {step + 1}/3" in person.title and len(person.trace.steps) == step
            await goes_to(person, "right", Place(step, stages.last))
            assert f"token {step} · {step + 1}/3" in person.title
            assert drawn(events)[: step + 1] == [each.id for each in person.trace.steps]
        await person.press("full_stop")
        assert "the run is at its end" in person.notice


async def test_back_through_everything_shows_the_same_pictures(open_app: OpenApp, tiny: Path) -> None:
    """What a stage showed when it was the newest is what it shows when one comes back to it, forwards or backwards."""
    async with open_app(**options(tiny)) as person:
        stages = person.moment.stages
        places = [Place(step, index) for step in (0, 1) for index in range(stages.first(step), stages.last + 1)]
        pictures = {}
        for place in places:
            await goes_to(person, "full_stop", place)
            pictures[place] = shown(person) | {"said": person.notice, "lit": lit(person)}
        for place in places[-2::-1]:
            await goes_to(person, "comma", place)
            assert_same(person, pictures[place], place)
        await person.press("comma")
        assert "this is where the run begins" in person.notice
        for place in places[1:]:
            await goes_to(person, "full_stop", place)
            assert_same(person, pictures[place], place)
        await goes_to(person, "left", Place(0, stages.last))
        await goes_to(person, "comma", Place(0, stages.last - 1))
        await goes_to(person, "right", Place(0, stages.last))
        await goes_to(person, "right", Place(1, stages.last))
        assert len(person.trace.steps) == 2 and "back" not in person.title


def assert_same(person: Person, picture: dict[str, object], place: Place) -> None:
    """The panels as they were, but for what could not be told then: which token came after, what the MLP added.

    Outside of the layers the layer that is looked at is the one somebody came from.
    """
    stage = person.moment.stages.all[place.stage]
    now = shown(person) | {"said": person.notice, "lit": lit(person)}
    not_yet = {"TokenStream"} | ({"said"} if stage.name == "mlp" else set())
    elsewhere = set() if stage.layer is not None else {"AttentionMap", "HeadsMap", "LayerTable"}
    for part in now.keys() - not_yet - elsewhere:
        assert now[part] == picture[part], (place, stage.name, part)


async def test_any_walk_writes_the_tokens_of_a_free_run(open_app: OpenApp, tiny: Path) -> None:
    ids = drawn(computed(tiny, 6))
    chance = random.Random(7)
    async with open_app(**options(tiny, max_new_tokens=6, size=(90, 26))) as person:
        presses = 0
        while not (person.trace.finish_reason and person.moment.steps == 6):
            keys = ("full_stop", "full_stop", "l", "l", "right", "comma", "L", "left", "up", "bracketright")
            await person.press(chance.choice(keys))
            if chance.random() < 0.5:  # otherwise the next key does not wait
                await person.rests()
            presses += 1
            assert presses < 400
            written = [step.id for step in person.trace.steps]  # the engine may go on while this is looked at
            assert written == ids[: len(written)]
        assert [step.id for step in person.trace.steps] == ids


async def test_space_in_the_middle_of_a_pass_runs_on_and_pausing_finishes_a_token(
    open_app: OpenApp, model: Path
) -> None:
    ids = drawn(computed(model, 40))
    async with open_app(**options(model, max_new_tokens=40, speed=4.0)) as person:
        stages = person.moment.stages
        await goes_to(person, "l", Place(0, stages.index("residual", 0)))
        await person.press("space")
        assert "▶" in person.title
        await person.has_steps(4)
        await person.press("space")
        await person.rests()
        assert person.screen.place == Place(person.moment.steps - 1, stages.last)
        assert person.moment.reached == -1 and person.moment.steps < 40
        assert [step.id for step in person.trace.steps] == ids[: len(person.trace.steps)]
        step = person.moment.steps
        await goes_to(person, "full_stop", Place(step, stages.index("embedding")))
        await person.press(*["plus"] * len(SPEEDS), "space")
        await person.has_ended()
        assert [each.id for each in person.trace.steps] == ids


async def test_keys_that_outrun_the_screen_are_not_lost_and_do_not_overshoot(open_app: OpenApp, tiny: Path) -> None:
    async with open_app(**options(tiny)) as person:
        person.types(*["full_stop"] * 40)
        await person.rests()
        place = person.screen.place
        assert place is not None and place < Place(1, 0 + person.moment.stages.last)
        assert person.moment.newest == place or person.moment.has(place)


async def test_looking_at_another_layer_in_the_middle_of_a_pass(open_app: OpenApp, tiny: Path) -> None:
    """A layer that the pass has left shows its map; one it has not come to shows that."""
    async with open_app(**options(tiny)) as person:
        stages: Stages = person.moment.stages
        while person.screen.place != Place(0, stages.index("scores", 1)):
            await person.press("full_stop")
            await person.rests()
        panel = person.screen.query_one(AttentionMap)
        await person.press("up")
        assert isinstance(panel.view, AttentionView) and (panel.view.layer, panel.view.kind) == (0, "weights")
        assert panel.view.values[-1].sum() == pytest.approx(1.0, abs=1e-5)
        await person.press("down", "down")
        assert panel.view is None
        assert "the pass has not come to layer 2" in "\n".join(person.panel(AttentionMap))
        await person.press("up")
        assert isinstance(panel.view, AttentionView) and (panel.view.layer, panel.view.kind) == (1, "scores")
