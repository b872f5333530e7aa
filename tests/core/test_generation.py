"""The loop: cached equals uncached, pausing and closing anywhere, prompts, edits, and what can fail."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, ModelError, SamplingConfig, load_model
from cutaway.core import generation as generation_module
from cutaway.core.attention_stages import attention_maps
from cutaway.core.edits import ForceToken
from cutaway.core.events import (
    AttentionDone,
    BlockDone,
    Event,
    Finished,
    LogitsReady,
    TokenChosen,
    Tokenized,
)
from cutaway.core.models.model import Model
from cutaway.core.sampling import SamplingError

PROMPT = [5, 83, 92, 83, 15, 11]
LIVELY = SamplingConfig(temperature=0.9, top_k=30, seed=4)
GREEDY = SamplingConfig(greedy=True)


def chosen(events: list[Event]) -> list[TokenChosen]:
    return [event for event in events if isinstance(event, TokenChosen)]


def last_rows(events: list[Event]) -> list[NDArray[np.float32]]:
    """The logits each token was drawn from."""
    return [event.logits[-1] for event in events if isinstance(event, LogitsReady)]


def close_to(found: NDArray[np.float32], truth: NDArray[np.float32]) -> None:
    np.testing.assert_allclose(found, truth, rtol=1e-4, atol=2e-5 * max(1.0, float(np.abs(truth).max())))


# The cache


@pytest.mark.parametrize("name", ["fable", "tiny"])
def test_cached_equals_uncached_at_every_step(name: str, request: pytest.FixtureRequest, story: list[int]) -> None:
    model: Model = request.getfixturevalue(name)
    prompt = story if name == "fable" else PROMPT
    run = Generation(model, prompt, LIVELY, max_new_tokens=12, ignore_eos=True)
    events = list(run)
    layers = model.config.layers
    patterns = [event.pattern for event in events if isinstance(event, AttentionDone)]
    residuals = [event.residual for event in events if isinstance(event, BlockDone)]
    for step in range(1, 12):
        ids = run.trace.token_ids[: len(prompt) + step]
        fresh = list(Generation(model, ids, GREEDY, max_new_tokens=1, ignore_eos=True))
        close_to(last_rows(events)[step], last_rows(fresh)[0])
        for layer, event in enumerate(event for event in fresh if isinstance(event, AttentionDone)):
            np.testing.assert_allclose(patterns[step * layers + layer][:, 0], event.pattern[:, -1], atol=2e-5)
        for layer, block in enumerate(event for event in fresh if isinstance(event, BlockDone)):
            close_to(residuals[step * layers + layer][0], block.residual[-1])


def test_capture_changes_no_number(tiny: Model) -> None:
    runs = [
        list(Generation(tiny, PROMPT, LIVELY, max_new_tokens=9, ignore_eos=True, capture=capture))
        for capture in ("default", "all")
    ]
    assert [event.id for event in chosen(runs[0])] == [event.id for event in chosen(runs[1])]
    for one, other in zip(*map(last_rows, runs), strict=True):
        close_to(one, other)


# Pausing and closing


def test_two_runs_taking_turns_do_not_disturb_each_other(tiny: Model) -> None:
    def start(seed: int) -> Generation:
        return Generation(tiny, PROMPT, replace(LIVELY, seed=seed), max_new_tokens=6, ignore_eos=True)

    alone = [start(1), start(2)]
    for run in alone:
        list(run)
    together = [start(1), start(2)]
    for _ in itertools.zip_longest(*together):
        pass
    for one, other in zip(alone, together, strict=True):
        assert one.trace.token_ids == other.trace.token_ids
        np.testing.assert_array_equal(one.trace.residual(2), other.trace.residual(2))


def test_the_trace_is_whole_wherever_a_run_is_paused(tiny: Model) -> None:
    whole = Generation(tiny, PROMPT, LIVELY, max_new_tokens=3, ignore_eos=True)
    list(whole)
    run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=3, ignore_eos=True)
    steps = 0
    for event in run:
        steps += isinstance(event, TokenChosen)
        trace = run.trace
        assert len(trace.steps) == steps
        assert trace.token_ids == whole.trace.token_ids[: 6 + steps]
        if steps:
            assert trace.positions == 6 + steps - 1 <= trace.cache.length
            np.testing.assert_array_equal(trace.residual(2), whole.trace.residual(2)[: trace.positions])


@pytest.mark.parametrize("capture", ["default", "all"])
def test_closing_anywhere_keeps_whole_steps_only(capture: Any, tiny: Model) -> None:
    def start() -> Generation:
        return Generation(tiny, PROMPT, LIVELY, max_new_tokens=3, ignore_eos=True, capture=capture)

    whole = start()
    events = list(whole)
    for pulled in range(len(events) + 1):
        run = start()
        seen = chosen([next(run) for _ in range(pulled)])
        run.close()
        run.close()
        assert [step.id for step in run.trace.steps] == [event.id for event in seen]
        assert run.trace.finish_reason == ("length" if len(seen) == 3 else "stopped")
        assert run.trace.cache.rows.filled == run.trace.cache.length
        for blocks in run.trace.cache.patterns:
            assert sum(block.shape[1] for block in blocks) == (run.trace.cache.length if capture == "all" else 0)
        with pytest.raises(StopIteration):
            next(run)


def test_the_same_seed_draws_the_same_numbers(tiny: Model) -> None:
    truth = np.random.Generator(np.random.PCG64(4)).random(12)
    for settings in (LIVELY, replace(LIVELY, greedy=True), replace(LIVELY, temperature=0.1, top_k=1)):
        events = list(Generation(tiny, PROMPT, settings, max_new_tokens=12, ignore_eos=True))
        np.testing.assert_array_equal([event.uniform for event in chosen(events)], truth)


def test_the_same_seed_gives_the_same_text(tiny: Model) -> None:
    texts = []
    for seed in (4, 4, 5):
        run = Generation(tiny, PROMPT, replace(LIVELY, seed=seed), max_new_tokens=20, ignore_eos=True)
        list(run)
        texts.append(run.trace.token_ids)
    assert texts[0] == texts[1] != texts[2]


def test_a_fresh_seed_is_recorded(tiny: Model) -> None:
    runs = [Generation(tiny, PROMPT, max_new_tokens=8, ignore_eos=True) for _ in range(2)]
    seeds = [run.trace.settings_at(0).seed for run in runs]
    assert None not in seeds and seeds[0] != seeds[1]
    list(runs[0])
    again = Generation(tiny, PROMPT, SamplingConfig(seed=seeds[0]), max_new_tokens=8, ignore_eos=True)
    list(again)
    assert again.trace.token_ids == runs[0].trace.token_ids


def test_what_is_said_of_a_token(fable: Model, story: list[int]) -> None:
    settings = SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, repetition_penalty=1.2, seed=1)
    run = Generation(fable, story, settings, max_new_tokens=10, ignore_eos=True)
    events = list(run)
    for step, (event, logits) in enumerate(zip(chosen(events), last_rows(events), strict=True)):
        before = run.trace.token_ids[: len(story) + step]
        distribution = settings.distribution(logits, before)
        assert event.id == int(np.argmax(np.cumsum(distribution) > event.uniform))
        assert event.probability == distribution[event.id]
        raw = SamplingConfig().distribution(logits)
        assert event.raw_logprob == pytest.approx(float(np.log(raw[event.id])), abs=1e-12)
        kept = run.trace.steps[step]
        assert (kept.id, kept.probability, kept.raw_logprob, kept.uniform, kept.forced) == (
            event.id,
            event.probability,
            event.raw_logprob,
            event.uniform,
            event.forced,
        )
        assert kept.seconds > 0


# What can fail


def damaged(model: Model, position: int) -> Model:
    """*model* with NaN where the vector of *position* is."""
    embedding = model.decoder.embedding
    assert embedding.position is not None
    table = embedding.position.copy()
    table[position] = np.nan
    return replace(model, decoder=replace(model.decoder, embedding=replace(embedding, position=table)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("capture", ["default", "all"])
@pytest.mark.parametrize("whole", [0, 1, 4])
def test_weights_that_are_not_numbers(whole: int, capture: Any, tiny: Model) -> None:
    broken = damaged(tiny, 5 + whole)  # reached when that many tokens are there
    run = Generation(broken, PROMPT, LIVELY, max_new_tokens=9, ignore_eos=True, capture=capture)
    events = []
    with pytest.raises(SamplingError, match=rf"NaN.*\(generated token {whole}\)"):
        for event in run:
            events.append(event)
    assert len(chosen(events)) == len(run.trace.steps) == whole
    assert not any(isinstance(event, Finished) for event in events)
    assert run.trace.finish_reason == "failed"
    assert list(run) == []
    run.close()
    assert run.trace.finish_reason == "failed"
    if whole:
        assert np.isfinite(run.trace.residual(2)).all()
        assert np.isfinite(attention_maps(run.trace, 0)).all()


def test_nothing_to_do(tiny: Model) -> None:
    for count in (0, -3):
        with pytest.raises(ModelError, match=f"{count} new tokens"):
            Generation(tiny, PROMPT, max_new_tokens=count)


# Prompts


def test_an_empty_prompt_starts_from_the_end_token(fable: Model) -> None:
    run = Generation(fable, [], LIVELY, max_new_tokens=2)
    event = next(run)
    assert isinstance(event, Tokenized)
    assert (event.ids, event.pieces, event.added) == ((4095,), (b"<|endoftext|>",), (0,))
    list(run)
    assert run.trace.prompt_ids == (4095,) and run.trace.added == (0,)


def test_an_empty_prompt_without_a_token_to_start_from(tiny: Model) -> None:
    lost = replace(tiny, config=replace(tiny.config, bos_id=None, eos_ids=()))
    with pytest.raises(ModelError, match="the prompt is empty"):
        Generation(lost, [])


def test_an_empty_prompt_starts_from_the_first_token_there_is(tiny: Model) -> None:
    for bos, ends, start in ((3, (7, 9), 3), (None, (7, 9), 7)):
        model = replace(tiny, config=replace(tiny.config, bos_id=bos, eos_ids=ends))
        assert Generation(model, []).trace.prompt_ids == (start,)


@pytest.mark.parametrize("id", [-1, 97, 10**9])
def test_ids_outside_the_vocabulary(id: int, tiny: Model) -> None:
    with pytest.raises(ModelError, match=rf"token id {id} .*gpt2_base; choose from 0 to 96"):
        Generation(tiny, [1, id, 2])


def test_ids_of_other_kinds(tiny: Model) -> None:
    run = Generation(tiny, np.array(PROMPT, np.int32), max_new_tokens=1)  # type: ignore[arg-type]
    assert run.trace.prompt_ids == tuple(PROMPT)
    assert all(type(id) is int for id in run.trace.prompt_ids)


def test_a_prompt_of_exactly_as_many_tokens_as_fit(fable: Model) -> None:
    run = Generation(fable, [610] * 512, GREEDY, max_new_tokens=5)
    events = list(run)
    assert len(chosen(events)) == 1
    assert run.trace.finish_reason in ("context", "eos")
    with pytest.raises(ModelError, match=r"513 tokens; fable reads at most 512; shorten it by 1"):
        Generation(fable, [610] * 513)


def test_an_ignored_end_goes_on_and_leaves_the_scores_alone(tiny: Model) -> None:
    edits = [ForceToken(0, 7), ForceToken(1, 0)]
    ended = Generation(tiny, PROMPT, LIVELY, max_new_tokens=5, edits=edits)
    ended_events = list(ended)
    assert len(ended.trace.steps) == 2 and ended.trace.finish_reason == "eos"
    ignored = Generation(tiny, PROMPT, LIVELY, max_new_tokens=5, edits=edits, ignore_eos=True)
    ignored_events = list(ignored)
    assert len(ignored.trace.steps) == 5 and ignored.trace.finish_reason == "length"
    for one, other in zip(last_rows(ended_events), last_rows(ignored_events)[:2], strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_end_token_ends(tiny: Model) -> None:
    two_ends = replace(tiny, config=replace(tiny.config, eos_ids=(0, 50)))
    run = Generation(two_ends, PROMPT, max_new_tokens=5, edits=[ForceToken(0, 50)])
    list(run)
    assert (len(run.trace.steps), run.trace.finish_reason) == (1, "eos")


# Edits


def test_a_forced_token(tiny: Model) -> None:
    free = list(Generation(tiny, PROMPT, LIVELY, max_new_tokens=6, ignore_eos=True))
    unlikely = int(np.argmin(last_rows(free)[2]))
    forced = list(Generation(tiny, PROMPT, LIVELY, max_new_tokens=6, ignore_eos=True, edits=[ForceToken(2, unlikely)]))
    assert [event.forced for event in chosen(forced)] == [False, False, True, False, False, False]
    event = chosen(forced)[2]
    assert (event.id, event.probability) == (unlikely, 0.0)  # top-k had removed it
    assert event.raw_logprob == pytest.approx(
        float(np.log(SamplingConfig().distribution(last_rows(free)[2])[unlikely]))
    )
    assert [event.uniform for event in chosen(forced)] == [event.uniform for event in chosen(free)]
    assert [event.id for event in chosen(forced)[:2]] == [event.id for event in chosen(free)[:2]]


def test_forcing_the_token_that_would_be_drawn_changes_nothing_else(tiny: Model) -> None:
    free = Generation(tiny, PROMPT, LIVELY, max_new_tokens=6, ignore_eos=True)
    list(free)
    id = free.trace.steps[3].id
    forced = Generation(tiny, PROMPT, LIVELY, max_new_tokens=6, ignore_eos=True, edits=[ForceToken(3, id)])
    list(forced)
    assert forced.trace.token_ids == free.trace.token_ids
    assert forced.trace.steps[3].forced and forced.trace.steps[3].probability == free.trace.steps[3].probability


def test_old_scores_are_let_go_and_come_back_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run keeps few scores; what is asked of an older step is what it was, to the last digit."""
    monkeypatch.setattr(generation_module, "KEPT_SCORES", 0)
    monkeypatch.setattr(generation_module, "FEWEST_SCORES", 3)
    model = load_model("fable")
    run = Generation(model, model.tokenizer.encode("Once upon a time"), SamplingConfig(seed=5), max_new_tokens=12)
    told = [event.logits[-1] for event in run if isinstance(event, LogitsReady)]
    trace = run.trace
    assert [step.scores is not None for step in trace.steps] == [False] * 9 + [True] * 3
    for step, logits in enumerate(told):
        again = trace.scores(step)
        assert again is not None
        np.testing.assert_array_equal(again, logits)
    branch = run.branch(2, token=told[2].argmax())
    assert list(branch)
    assert branch.trace.steps[2].id == told[2].argmax()
