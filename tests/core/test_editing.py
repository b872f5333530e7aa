"""Edits at work in every family: what is silenced, scaled or replaced, and that nothing else is."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, ModelError, SamplingConfig, Trace, load_model
from cutaway.core.attention_stages import (
    attention_output,
    edited_mix,
    knows_mlp_output,
    mlp_output,
    stream_is_patched,
)
from cutaway.core.attribution import attribution
from cutaway.core.editing import Edits
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
from cutaway.core.events import AttentionDone, BlockDone, Embedded, Event, LogitsReady, MlpDone
from cutaway.core.models.model import Model
from cutaway.core.models.parts import Linear
from tests.core.conftest import MODELS

PROMPT = [5, 3, 9, 3, 11, 1]
GREEDY = SamplingConfig(greedy=True)
FAMILIES = ["gpt2_base", "llama_headdim_mqa", "minimind2_own_class", "qwen2_bias", "qwen3_qknorm", "tinymind"]


@pytest.fixture(scope="module", params=FAMILIES)
def model(request: pytest.FixtureRequest) -> Model:
    """One model of every family: several heads to a key head, norms of queries and keys, norms after the sums."""
    name: str = request.param
    return load_model(name if name == "tinymind" else MODELS / name)


def close_to(found: NDArray[np.float32], truth: NDArray[np.float32]) -> None:
    np.testing.assert_allclose(found, truth, rtol=1e-4, atol=2e-5 * max(1.0, float(np.abs(truth).max())))


def vector(values: tuple[float, ...]) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def run_of(model: Model, *edits: Edit, ids: list[int] = PROMPT, tokens: int = 4) -> tuple[Trace, list[Event]]:
    run = Generation(model, ids, GREEDY, max_new_tokens=tokens, ignore_eos=True, capture="all", edits=edits)
    events = list(run)
    return run.trace, events


def at(layer: int, events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind) and event.layer == layer]


def same_events(ones: list[Event], others: list[Event]) -> None:
    assert len(ones) == len(others)
    for one, other in zip(ones, others, strict=True):
        match one, other:
            case (AttentionDone(), AttentionDone()):
                close_to(one.output, other.output)
                np.testing.assert_allclose(one.pattern, other.pattern, atol=1e-5)
                close_to(one.value, other.value)
            case (BlockDone(), BlockDone()):
                close_to(one.residual, other.residual)
            case (LogitsReady(), LogitsReady()):
                close_to(one.logits, other.logits)


def with_output_rows(model: Model, layer: int, factors: dict[int, float]) -> Model:
    """The model whose output projection multiplies what comes from these heads."""
    size = model.config.head_size
    block = model.decoder.blocks[layer]
    weight = block.attention.output.weight.copy()
    for head, factor in factors.items():
        weight[head * size : (head + 1) * size] *= np.float32(factor)
    output = Linear(weight, block.attention.output.bias)
    blocks = list(model.decoder.blocks)
    blocks[layer] = replace(block, attention=replace(block.attention, output=output))
    return replace(model, decoder=replace(model.decoder, blocks=tuple(blocks)))


def test_a_silent_head_is_one_whose_rows_of_the_output_matrix_are_zero(model: Model) -> None:
    layer = model.config.layers - 1
    heads = [model.config.heads - 1, 0]
    edits = [AblateHead(layer, head) for head in heads]
    _, ablated = run_of(model, *edits)
    same_events(ablated, run_of(with_output_rows(model, layer, dict.fromkeys(heads, 0.0)))[1])
    one, other = at(layer, ablated, AttentionDone)[0], at(layer, run_of(model)[1], AttentionDone)[0]
    np.testing.assert_array_equal(one.pattern, other.pattern)  # still computed and told
    assert np.abs(one.output - other.output).max() > 1e-3


def test_a_scaled_head_is_one_whose_rows_of_the_output_matrix_are_scaled(model: Model) -> None:
    head = model.config.heads - 1
    _, scaled = run_of(model, ScaleHead(0, head, -1.75))
    same_events(scaled, run_of(with_output_rows(model, 0, {head: -1.75}))[1])


def test_scaling_by_nothing_is_silence_and_by_one_is_nothing(model: Model) -> None:
    none, _ = run_of(model, AblateHead(0, 0), AblateMlp(0))
    zero, _ = run_of(model, ScaleHead(0, 0, 0.0), ScaleMlp(0, 0.0))
    np.testing.assert_array_equal(zero.residual(-1), none.residual(-1))
    once, _ = run_of(model, ScaleHead(0, 0, 1.0), ScaleMlp(0, 1.0))
    np.testing.assert_array_equal(once.residual(-1), run_of(model)[0].residual(-1))


def test_an_mlp_adds_what_its_edit_leaves_of_it(model: Model) -> None:
    for edit, factor in ((AblateMlp(0), 0.0), (ScaleMlp(0, 2.5), 2.5)):
        _, events = run_of(model, edit)
        stream: Any = None
        for event in events:
            match event:
                case Embedded():
                    stream = event.sum
                case AttentionDone(layer=0):
                    block = model.decoder.blocks[0]
                    middle = block.after_attention(stream, event.output)
                case MlpDone(layer=0):
                    close_to(event.output, block.mlp.down(event.hidden) * np.float32(factor))
                    after = block.after_mlp(middle, event.output)
                case BlockDone(layer=0):
                    close_to(event.residual, after)


def test_an_edit_holds_since_its_step(model: Model) -> None:
    free, _ = run_of(model)
    edits = (AblateMlp(0, since=2), ScaleHead(0, 0, 3.0, since=3), ForceToken(0, free.steps[0].id))
    held, _ = run_of(model, *edits)
    first, second = len(PROMPT) + 1, len(PROMPT) + 2
    np.testing.assert_array_equal(held.residual(0)[:first], free.residual(0)[:first])
    assert np.abs(mlp_output(held, 0, first, held.positions)).max() < 1e-5
    for position in (first, second):
        mix = edited_mix(held, 0, position, position + 1)[0]
        plain = edited_mix(replace(held, edits=()), 0, position, position + 1)[0]
        np.testing.assert_array_equal(mix, plain * np.float32(3.0 if position >= second else 1.0))


def test_a_patched_head_hands_over_the_values_it_was_given(model: Model) -> None:
    values = tuple(np.linspace(-1, 1, model.config.head_size, dtype=np.float32).tolist())
    head, layer = model.config.heads - 1, model.config.layers - 1
    for position in (2, len(PROMPT) + 1):  # in the prompt, and in a step of its own
        trace, events = run_of(model, PatchHead(layer, head, position, values))
        mixed = edited_mix(trace, layer, 0, trace.positions)  # [H, T, d]
        np.testing.assert_array_equal(mixed[head, position], vector(values))
        outputs = np.concatenate([event.output for event in at(layer, events, AttentionDone)])
        close_to(model.decoder.blocks[layer].attention.join(mixed), outputs)
        close_to(attention_output(trace, layer, 1, trace.positions), outputs[1:])
        free = edited_mix(replace(trace, edits=()), layer, 0, trace.positions)
        free[head, position] = values
        np.testing.assert_array_equal(free, mixed)  # and nowhere else


def test_a_patched_mlp_adds_the_values_it_was_given(model: Model) -> None:
    values = tuple(np.linspace(-1, 1, model.config.width, dtype=np.float32).tolist())
    trace, events = run_of(model, PatchMlp(0, 3, values))
    outputs = np.concatenate([event.output for event in at(0, events, MlpDone)])
    np.testing.assert_array_equal(outputs[3], vector(values))
    close_to(mlp_output(trace, 0, 0, trace.positions), outputs)


def test_a_patched_stream_is_what_the_next_layer_reads(model: Model) -> None:
    values = tuple(np.linspace(-1, 1, model.config.width, dtype=np.float32).tolist())
    layer = model.config.layers - 1
    free, intact = run_of(model, *(ForceToken(step, 4) for step in range(4)))
    trace, events = run_of(model, PatchResidual(layer, 3, values), *(ForceToken(step, 4) for step in range(4)))
    np.testing.assert_array_equal(trace.residual(layer)[3], vector(values))
    close_to(trace.cache.rows.logits[3], model.decoder.logits(vector(values)[None])[0])
    np.testing.assert_array_equal(np.delete(trace.residual(layer), 3, 0), np.delete(free.residual(layer), 3, 0))
    outputs = np.concatenate([event.output for event in at(layer, events, MlpDone)])
    close_to(mlp_output(trace, layer, 0, trace.positions), outputs)  # what the MLP really added
    assert stream_is_patched(trace, layer, 0, 5).tolist() == [False, False, False, True, False]


def test_the_parts_of_a_score_still_sum_to_it(model: Model) -> None:
    stream = tuple(np.linspace(-1, 1, model.config.width, dtype=np.float32).tolist())
    head = tuple(np.linspace(1, 2, model.config.head_size, dtype=np.float32).tolist())
    last = model.config.layers - 1
    edits = (PatchResidual(last, 3, stream), PatchMlp(0, 2, stream), PatchHead(0, 0, 1, head), ScaleMlp(last, 0.5))
    trace, _ = run_of(model, *edits)
    parts, T = attribution(trace, 0, trace.positions), trace.positions
    scores = trace.cache.rows.logits[np.arange(T), trace.token_ids[1:]]
    np.testing.assert_allclose(parts.sum(0), scores, rtol=1e-3, atol=1e-3)
    assert (parts[: 2 * last + 2, 3] == 0).all()  # what the patch replaced adds nothing


def test_a_recording_keeps_its_edits_and_what_they_did(model: Model, tmp_path: Path) -> None:
    stream = tuple(np.linspace(-1, 1, model.config.width, dtype=np.float32).tolist())
    edits = (PatchResidual(0, 3, stream), ScaleHead(0, 0, 1 / 3), PatchMlp(0, 1, stream))
    run = Generation(model, PROMPT, GREEDY, max_new_tokens=4, ignore_eos=True, edits=edits)
    list(run)
    run.trace.save(tmp_path / "x.cutaway")
    loaded = Trace.load(tmp_path / "x.cutaway")
    assert loaded.edits == edits
    T = loaded.positions
    np.testing.assert_array_equal(loaded.residual(0), run.trace.residual(0))
    close_to(attention_output(loaded, 0, 0, T), attention_output(run.trace, 0, 0, T))
    np.testing.assert_array_equal(attribution(loaded, 0, T), attribution(run.trace, 0, T))
    assert not knows_mlp_output(loaded)  # a patched stream does not tell it
    resumed = Generation.resume(model, loaded)
    close_to(mlp_output(resumed.trace, 0, 0, T), mlp_output(run.trace, 0, 0, T))


def test_branches_keep_the_edits_of_what_they_take_over(model: Model) -> None:
    stream = tuple(np.linspace(-1, 1, model.config.width, dtype=np.float32).tolist())
    run = Generation(model, PROMPT, GREEDY, max_new_tokens=4, ignore_eos=True, edits=[PatchMlp(0, 2, stream)])
    list(run)
    branch = run.branch(1, token=4, edits=[ScaleMlp(0, 0.0), PatchResidual(0, len(PROMPT) + 2, stream)])
    list(branch)
    trace, first = branch.trace, len(PROMPT) + 1
    np.testing.assert_array_equal(trace.residual(0)[:first], run.trace.residual(0)[:first])
    assert np.abs(mlp_output(trace, 0, first, trace.positions)).max() < 1e-5
    np.testing.assert_array_equal(mlp_output(trace, 0, 2, 3)[0].round(4), vector(stream).round(4))
    np.testing.assert_array_equal(trace.residual(0)[first + 1], vector(stream))
    with pytest.raises(ModelError, match=f"computed before this branch begins; patch one from {first} on"):
        run.branch(1, edits=[PatchMlp(0, first - 1, stream)])


def test_a_next_turn_keeps_patches_and_the_rows_they_made(model: Model) -> None:
    stream = tuple(np.linspace(-1, 1, model.config.width, dtype=np.float32).tolist())
    run = Generation(model, PROMPT, GREEDY, max_new_tokens=2, ignore_eos=True, edits=[PatchMlp(0, 2, stream)])
    list(run)
    text = [*run.trace.token_ids, 7, 8]
    following = run.follow(text)
    list(following)
    assert following.trace.begun > 0
    alone = Generation(model, text, GREEDY, max_new_tokens=2, ignore_eos=True, edits=[PatchMlp(0, 2, stream)])
    list(alone)
    close_to(following.trace.residual(-1), alone.trace.residual(-1))


@pytest.mark.parametrize(
    ("edits", "silent"),
    [
        ([AblateHead(1, 2, since=3)], [(1, 2)]),
        ([AblateHead(1, 2, since=4)], []),
        ([ScaleHead(1, 2, 0.0), ScaleHead(0, 1, 0.1), AblateMlp(1)], [(1, 2)]),
        ([AblateHead(1, 2), PatchHead(1, 2, 8, (0.0,) * 11 + (1.0,))], []),
        ([PatchHead(1, 2, 8, (0.0,) * 11 + (1.0,)), AblateHead(1, 2)], [(1, 2)]),
        ([PatchHead(1, 2, 8, (0.0,) * 12)], [(1, 2)]),
        ([PatchHead(1, 2, 7, (0.0,) * 12)], []),
    ],
)
def test_what_counts_as_silent(edits: list[Edit], silent: list[tuple[int, int]], tiny: Model) -> None:
    """Six tokens of prompt: the scores of generated step 3 come from position 8."""
    assert Edits(edits, tiny.config, 6).silent_heads(8) == set(silent)
    assert Edits(edits, tiny.config, 6).touch_head(1, 2) and not Edits(edits, tiny.config, 6).touch_head(1, 3)


def test_equal_scalings_of_a_branch_multiply_in_the_next_turn_too(tiny: Model) -> None:
    run = Generation(tiny, PROMPT, GREEDY, max_new_tokens=3, ignore_eos=True, edits=[ScaleMlp(0, 0.5)])
    list(run)
    branch = run.branch(1, token=4, edits=[ScaleMlp(0, 0.5)])
    list(branch)
    following = branch.follow([*branch.trace.token_ids, 7, 8])
    list(following)
    alone = Generation(
        tiny, following.trace.prompt_ids, GREEDY, max_new_tokens=3, ignore_eos=True, edits=[ScaleMlp(0, 0.25)]
    )
    list(alone)
    close_to(following.trace.residual(-1), alone.trace.residual(-1))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (AblateHead(3, 0), "no layer 3; choose from 0 to 2"),
        (AblateHead(-1, 0), "no layer -1"),
        (AblateHead(0, 4), "no head 4; choose from 0 to 3"),
        (AblateMlp(3), "no layer 3"),
        (AblateMlp(0, since=-1), "no text of this model has a generated token -1"),
        (ScaleHead(0, 4, 0.5), "no head 4"),
        (ScaleHead(0, 0, math.nan), "nan is no factor"),
        (ScaleMlp(0, 1e39), "1e\\+39 is no factor to scale with; choose from −1,000,000 to 1,000,000"),
        (ScaleMlp(3, 1.0), "no layer 3"),
        (PatchHead(0, 0, 0, (1.0,) * 7), "patch of 7 values does not fit this model; it takes 12 there"),
        (PatchHead(0, 4, 0, (1.0,) * 12), "no head 4"),
        (PatchMlp(0, 0, (1.0,) * 12), "patch of 12 values does not fit this model; it takes 48 there"),
        (PatchMlp(0, 64, (1.0,) * 48), "no position 64; choose from 0 to 63"),
        (PatchResidual(0, -1, (1.0,) * 48), "no position -1"),
        (PatchResidual(0, 0, (math.inf,) * 48), "no activation has"),
        (ForceToken(0, 97), "no token id 97; choose from 0 to 96"),
        (ForceToken(0, -1), "no token id -1"),
        (ForceToken(-1, 5), "no text of this model has a generated token -1"),
    ],
)
def test_edits_that_point_outside_the_model(edit: Edit, message: str, tiny: Model) -> None:
    with pytest.raises(ModelError, match=message):
        Generation(tiny, PROMPT, edits=[edit])


def test_a_branch_leaves_behind_what_was_to_come_later(tiny: Model) -> None:
    """What holds where it leaves, or from its own next pass on, stays."""
    first, width = len(PROMPT), (0.5,) * tiny.config.width
    edits: list[Edit] = [
        AblateHead(0, 1), PatchMlp(0, first + 1, width), AblateMlp(0, since=3), PatchResidual(0, first + 3, width),
        ScaleHead(0, 0, 2.0, since=5), ForceToken(4, 9),
    ]  # fmt: skip
    run = Generation(tiny, PROMPT, SamplingConfig(seed=1), max_new_tokens=8, ignore_eos=True, edits=edits)
    assert list(run)
    assert run.branch(0).trace.edits == (edits[0],)
    assert run.branch(1).trace.edits == tuple(edits[:2])
    assert run.branch(2).trace.edits == tuple(edits[:3])
    changed = run.branch(3, edits=[AblateMlp(1)])
    assert list(changed)
    assert changed.branch(3, token=5).trace.edits == (*edits[:4], AblateMlp(1, since=4), ForceToken(3, 5))
    assert run.branch(5).trace.edits == tuple(edits)
