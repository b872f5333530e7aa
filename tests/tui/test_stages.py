"""The stages of a pass: all of them, in the order the engine goes through them, forwards and back."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import pytest

from cutaway.core import Generation, SamplingConfig
from cutaway.core.events import Event, Finished, TokenChosen
from cutaway.core.models.model import Model
from cutaway.core.sampling import STAGES as SAMPLING
from cutaway.tui.stages import ATTENTION, LAYER, Place, Stage, Stages, stages_of

LAYERS = [1, 2, 4, 12]


def walk(stages: Stages, passes: int) -> list[Place]:
    """Every place of the first few passes, one stage at a time."""
    places = [Place(0, 0)]
    while (place := stages.next_stage(places[-1])).step < passes:
        places.append(place)
    return places


@pytest.mark.parametrize("layers", LAYERS)
def test_every_stage_is_there_once_and_in_order(layers: int) -> None:
    stages = Stages(layers)
    names = [stage.name for stage in stages.all]
    assert names == ["tokens", "embedding", *LAYER * layers, "norm", "logits", *SAMPLING, "draw"]
    assert LAYER == (*ATTENTION, "mlp", "residual") and len(set(stages.all)) == len(stages.all)
    assert [stage.layer for stage in stages.all if stage.layer is not None] == [
        layer for layer in range(layers) for _ in LAYER
    ]
    assert stages.last == len(stages.all) - 1 == stages.index("draw")
    for index, stage in enumerate(stages.all):
        assert stages.index(stage.name, stage.layer) == index


def test_a_stage_that_is_not_there() -> None:
    with pytest.raises(KeyError):
        Stages(2).index("qkv", 2)
    with pytest.raises(KeyError):
        Stages(2).index("qkv")


def test_one_model_has_one_list_of_stages(fable: Model) -> None:
    config = fable.config
    assert stages_of(config) is stages_of(replace(config))
    assert stages_of(config).layers == config.layers
    bare = stages_of(replace(config, layers=1, final_norm=False))
    assert [stage.name for stage in bare.all if stage.layer is None][:3] == ["tokens", "embedding", "logits"]
    assert bare.passed(bare.index("logits")) == 1


def test_places_are_in_the_order_of_time() -> None:
    places = walk(Stages(2), 4)
    assert places == sorted(places) and len(set(places)) == len(places)
    assert Place(1, 0) > Place(0, 99) and Place(1, 2) <= Place(1, 2) < Place(1, 3)


@pytest.mark.parametrize("layers", LAYERS)
def test_one_stage_on_and_one_back_undo_each_other(layers: int) -> None:
    stages = Stages(layers)
    places = walk(stages, 3)
    assert stages.previous_stage(places[0]) is None
    for before, after in pairwise(places):
        assert stages.next_stage(before) == after and stages.previous_stage(after) == before


def test_only_the_prompt_is_cut_into_tokens() -> None:
    stages = Stages(2)
    assert stages.all[stages.first(0)] == Stage("tokens")
    assert {stages.all[stages.first(step)] for step in range(1, 5)} == {Stage("embedding")}
    places = walk(stages, 3)
    assert [place.step for place in places if place.stage == stages.index("tokens")] == [0]
    assert {place.step for place in places if place.stage == stages.index("embedding")} == {0, 1, 2}


@pytest.mark.parametrize("layers", LAYERS)
def test_the_next_layer_is_the_first_end_of_one_that_lies_ahead(layers: int) -> None:
    stages = Stages(layers)
    places = walk(stages, 3)
    ends = {stages.index("residual", layer) for layer in range(layers)} | {stages.last}
    for place in places[:-1]:
        ahead = [other for other in places if other > place and other.stage in ends]
        if ahead:
            assert stages.next_layer(place) == ahead[0]
    assert stages.next_layer(Place(-1, stages.last)) == Place(0, stages.index("residual", 0))


@pytest.mark.parametrize("layers", LAYERS)
def test_the_layer_before_is_the_last_end_of_one_that_lies_behind(layers: int) -> None:
    stages = Stages(layers)
    places = walk(stages, 3)
    ends = {stages.index("residual", layer) for layer in range(layers)} | {stages.index("embedding"), stages.last}
    for place in places:
        behind = [other for other in places if other < place and other.stage in ends]
        assert stages.previous_layer(place) == (behind[-1] if behind else None)


@pytest.mark.parametrize("layers", LAYERS)
def test_from_layer_to_layer_and_back_is_the_same_way(layers: int) -> None:
    stages = Stages(layers)
    place = Place(0, stages.index("embedding"))
    for _ in range(3 * (layers + 1)):
        there = stages.next_layer(place)
        assert there > place
        back = stages.previous_layer(there)
        assert back == place or back is not None and stages.all[back.stage].name == "embedding"
        place = there
    assert place == Place(2, stages.last)


@pytest.mark.parametrize("layers", LAYERS)
def test_layers_that_a_pass_has_come_to(layers: int) -> None:
    stages = Stages(layers)
    for stage, layer in product(range(len(stages.all)), range(layers)):
        assert (stages.attended(stage) > layer) == (stage >= stages.index("softmax", layer))
        assert (stages.passed(stage) > layer) == (stage >= stages.index("residual", layer))
    assert stages.attended(0) == stages.passed(0) == stages.attended(-1) == 0
    assert stages.attended(stages.last) == stages.passed(stages.last) == layers


def test_every_event_of_a_run_brings_the_stage_further(fable: Model) -> None:
    """Each event opens the stages up to one of its own, and a whole pass opens all of them."""
    run = Generation(fable, [610, 573], SamplingConfig(seed=1), max_new_tokens=3, ignore_eos=True)
    stages = Stages(4)
    reached, passes = -1, 0
    for event in run:
        if isinstance(event, Finished):
            assert stages.after(event) == -1
            break
        now = stages.after(event)
        assert now > reached
        assert name_in(event) in ("", stages.all[now].name)
        assert getattr(event, "layer", None) == stages.all[now].layer
        reached = now
        if isinstance(event, TokenChosen):
            assert reached == stages.last
            reached, passes = -1, passes + 1
    assert passes == 3


def name_in(event: Event) -> str:
    """The stage an event says itself it is of; empty where it says none."""
    return str(getattr(event, "name", ""))
