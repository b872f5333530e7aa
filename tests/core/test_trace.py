"""What a run leaves behind, as views ask for it."""

from __future__ import annotations

import numpy as np
import pytest

from cutaway.core import Generation, SamplingConfig
from cutaway.core.models.model import Model
from cutaway.core.sampling import STAGES
from cutaway.core.trace import REASONS

LIVELY = SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, repetition_penalty=1.2, seed=1)


@pytest.fixture(scope="module")
def run(fable: Model, story: list[int]) -> Generation:
    run = Generation(fable, story, LIVELY, max_new_tokens=8, ignore_eos=True, added=[0], prompt="Once upon a time")
    list(run)
    return run


def test_before_the_first_token(fable: Model, story: list[int]) -> None:
    run = Generation(fable, story, LIVELY, prompt="Once upon a time")
    trace = run.trace
    assert (trace.prompt, trace.prompt_ids, trace.token_ids) == ("Once upon a time", tuple(story), story)
    assert (trace.steps, trace.finish_reason, trace.capture) == ([], None, "default")
    assert trace.positions == 11 and trace.cache.length == 0
    assert trace.prefill_seconds == trace.decode_rate == 0
    assert trace.sampling == [(0, LIVELY)] and trace.edits == ()


def test_what_it_says_of_its_model(run: Generation, fable: Model) -> None:
    facts = run.trace.model
    assert facts.name == "fable" and facts.config is fable.config
    assert facts.digest() == fable.digest and len(fable.digest) == 64
    assert len(facts.vocabulary) == 4096


def test_tokens_and_their_bytes(run: Generation, fable: Model, story: list[int]) -> None:
    trace = run.trace
    assert trace.token_ids[:11] == story and len(trace.token_ids) == 19
    assert trace.positions == 18
    assert trace.added == (0,)
    text = b"".join(trace.token_bytes(position) for position in range(19))
    assert text.startswith(b"Once upon a time, there was a little fox who")
    assert text == fable.tokenizer.decode_bytes(trace.token_ids)
    for step in range(8):
        assert trace.previous_ids(step) == trace.token_ids[: 11 + step]


def test_times(run: Generation) -> None:
    trace = run.trace
    assert trace.prefill_seconds == trace.steps[0].seconds > 0
    assert trace.decode_rate == pytest.approx(7 / sum(step.seconds for step in trace.steps[1:]))


def test_pauses_are_not_counted(fable: Model, story: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def tick() -> float:
        clock[0] += 1.0
        return clock[0]

    monkeypatch.setattr("cutaway.core.generation.perf_counter", tick)
    run = Generation(fable, story, LIVELY, max_new_tokens=3, ignore_eos=True)
    for _ in run:
        clock[0] += 1000.0
    events = 1 + 3 * fable.config.layers + 2 + len(STAGES) + 1  # of every step; the prompt's has Tokenized as well
    assert [step.seconds for step in run.trace.steps] == [events] * 3  # the last one's time is its successor's


def test_settings_change_at_their_step(run: Generation) -> None:
    other = SamplingConfig(greedy=True, seed=3)
    trace = run.branch(4, sampling=other).trace
    assert [trace.settings_at(step) for step in (0, 3, 4, 5, 99)] == [LIVELY, LIVELY, other, other, other]


def test_chains(run: Generation) -> None:
    trace = run.trace
    for step, kept in enumerate(trace.steps):
        chain = trace.chain(step)
        assert chain is not None and tuple(stage.name for stage in chain.stages) == STAGES
        assert chain.draw(kept.uniform) == kept.id
        assert chain.probability(kept.id) == kept.probability
        assert chain.raw_logprob(kept.id) == kept.raw_logprob
    greedy = trace.chain(2, SamplingConfig(greedy=True))
    assert greedy is not None
    assert greedy.draw(0.5) == int(np.argmax(trace.steps[2].scores))  # type: ignore[arg-type]


def test_candidates(run: Generation) -> None:
    trace = run.trace
    for step, kept in enumerate(trace.steps):
        table = trace.candidates(step, 10)
        assert len(table.ids) == 10 and kept.id in table.ids
        row = table.ids.tolist().index(kept.id)
        assert table.final[row] == kept.probability and table.removal(row) is None
        assert np.log(table.raw[row]) == pytest.approx(kept.raw_logprob, abs=1e-9)


def test_rows_are_views_of_what_was_kept(run: Generation) -> None:
    trace = run.trace
    assert trace.embedding().shape == (18, 256)
    assert np.shares_memory(trace.embedding(), trace.cache.rows.embedding)
    assert trace.residual(3).shape == (18, 256)
    assert np.shares_memory(trace.residual(3), trace.cache.rows.residual)


def test_scores_stay_as_they_were_drawn_from(run: Generation) -> None:
    for step in run.trace.steps:
        assert isinstance(step.scores, np.ndarray) and step.scores.shape == (4096,)
        assert not step.scores.flags.writeable


def test_every_reason_has_words() -> None:
    assert list(REASONS) == ["eos", "context", "length", "stopped", "failed"]
    assert all(REASONS.values())
