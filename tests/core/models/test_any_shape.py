"""Models of any shape: odd heads, one layer, one head, two tokens, a context of one, prompts that fill it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cutaway.core import Generation, SamplingConfig, Trace
from cutaway.core.attention_stages import attention_maps
from cutaway.core.attribution import attribution
from cutaway.core.events import (
    AttentionDone,
    BlockDone,
    Embedded,
    Event,
    Finished,
    LogitsReady,
    MlpDone,
    Normalized,
    SamplingStage,
    TokenChosen,
    Tokenized,
)
from cutaway.core.models.model import Model
from cutaway.core.sampling import STAGES
from tests.core.models.plain import logits as plain_logits
from tests.core.strategies import FAMILIES, Drawn, drawn_models

LIVELY = SamplingConfig(temperature=0.9, top_k=7, repetition_penalty=1.2, seed=4)

families = pytest.mark.parametrize("family", FAMILIES)
FEW = settings(max_examples=10)
"""For each family; they differ in little."""


class Setting(NamedTuple):
    """A run to be made of a model."""

    drawn: Drawn
    prompt: list[int]
    new_tokens: int
    capture: Any

    def run(self, model: Model | None = None) -> tuple[Generation, list[Event]]:
        """The run at its end, and what it said."""
        model = model or self.drawn.open()
        run = Generation(
            model, self.prompt, LIVELY, max_new_tokens=self.new_tokens, ignore_eos=True, capture=self.capture
        )
        return run, list(run)


@st.composite
def runs(draw: st.DrawFn, family: str) -> Setting:
    """A model and a prompt of 1 token up to all that fit, with fewer new tokens than there is room for, or more."""
    drawn = draw(drawn_models(family))
    positions = drawn.fields["n_positions" if family == "gpt2" else "max_position_embeddings"]
    length = draw(st.sampled_from((1, positions)) | st.integers(1, positions))
    ids = st.integers(0, drawn.fields["vocab_size"] - 1)
    prompt = draw(st.lists(ids, min_size=length, max_size=length))
    return Setting(drawn, prompt, draw(st.integers(1, positions + 2)), draw(st.sampled_from(("default", "all"))))


def close_to(found: NDArray[Any], truth: NDArray[Any], tolerance: float = 1e-4) -> None:
    assert found.shape == truth.shape
    np.testing.assert_allclose(found, truth, rtol=0, atol=tolerance * max(1.0, float(np.abs(truth).max())))


def uncached(model: Model, ids: list[int]) -> NDArray[np.float32]:
    """The scores [T, V] after each of *ids*, read at once."""
    run = Generation(model, ids, max_new_tokens=1, ignore_eos=True, capture="all")
    return next(event.logits for event in run if isinstance(event, LogitsReady))


@families
@FEW
@given(data=st.data())
def test_events_come_in_order_and_shape(family: str, data: st.DataObject) -> None:
    setting = data.draw(runs(family))
    run, events = setting.run()
    c, P, n = run.model.config, len(setting.prompt), run.model.config.positions
    G = min(setting.new_tokens, n - P + 1)
    assert len(run.trace.steps) == G and run.trace.positions == P + G - 1 == run.trace.cache.length
    assert run.trace.finish_reason == ("context" if G == n - P + 1 else "length")
    one_pass = [Embedded, *[AttentionDone, MlpDone, BlockDone] * c.layers, Normalized, LogitsReady]
    one_pass += [*[SamplingStage] * 7, TokenChosen]
    assert [type(event) for event in events] == [Tokenized, *one_pass * G, Finished]
    assert [event.name for event in events if isinstance(event, SamplingStage)] == [*STAGES] * G
    for step in range(G):
        rows, T = (P, P) if step == 0 else (1, P + step)
        check_pass(run.model, events[1 + step * len(one_pass) :][: len(one_pass)], rows, T, setting.capture)


def check_pass(model: Model, events: list[Event], n: int, T: int, capture: str) -> None:
    """What one pass over *n* positions says: its shapes, causal maps, and that each block adds up."""
    c, layer = model.config, -1
    stream = parts = np.zeros((n, c.width), np.float32)
    for event in events:
        match event:
            case Embedded():
                assert event.positions.tolist() == list(range(T - n, T))
                assert (event.position is None) == (c.position_encoding == "rotary")
                assert event.token.shape == event.sum.shape == (n, c.width)
                stream = parts = event.sum
            case AttentionDone():
                layer += 1
                assert event.layer == layer and event.query.shape == (c.heads, n, c.head_size)
                assert event.key.shape == event.value.shape == (c.kv_heads, n, c.head_size)
                assert event.pattern.shape == (c.heads, n, T) and event.output.shape == (n, c.width)
                np.testing.assert_allclose(event.pattern.sum(-1), 1, atol=1e-5)
                assert not np.triu(event.pattern, T - n + 1).any() and (event.pattern >= 0).all()
                parts = parts + event.output
            case MlpDone():
                assert event.layer == layer
                assert event.hidden.shape == (n, c.mlp_width) and event.output.shape == (n, c.width)
                parts = parts + event.output
            case BlockDone():
                assert event.layer == layer
                close_to(event.residual, parts, 1e-5)
                stream = parts = event.residual
            case Normalized():
                assert event.hidden.shape == (n, c.width)
            case LogitsReady():
                assert event.logits.shape == (n if capture == "all" else 1, c.vocabulary)
                close_to(event.logits, model.decoder.logits(stream)[-len(event.logits) :])


@families
@given(data=st.data())
def test_scores_are_those_of_a_plain_forward_pass_and_cached_equals_uncached(family: str, data: st.DataObject) -> None:
    """At every step, and whatever is captured: a token at a time, all at once, and in another program."""
    setting = data.draw(runs(family))
    run, events = setting.run()
    ids, drawn = run.trace.token_ids[: run.trace.positions], setting.drawn
    truth = plain_logits(drawn.fields, drawn.tensors, ids, in_pairs=family == "minimind of 2024")
    told = np.array([event.logits[-1] for event in events if isinstance(event, LogitsReady)])
    first = len(setting.prompt) - 1
    whole = uncached(run.model, ids)
    close_to(told, whole[first:])
    close_to(whole, truth)
    if setting.capture == "all":
        close_to(run.trace.cache.rows.logits[: len(ids)], whole)


@families
@FEW
@given(data=st.data())
def test_a_run_in_parts_is_the_run_as_a_whole(family: str, data: st.DataObject) -> None:
    """A branch that takes the same token, and a run that follows a shorter one."""
    setting = data.draw(runs(family))
    whole, _ = setting.run()
    ids, T = whole.trace.token_ids, whole.trace.positions
    branch = whole.branch(data.draw(st.integers(0, len(whole.trace.steps) - 1)))
    list(branch)
    assert branch.trace.token_ids == ids and branch.trace.finish_reason == whole.trace.finish_reason
    cut = data.draw(st.integers(1, T))
    shorter = Generation(whole.model, ids[:cut], LIVELY, max_new_tokens=1, ignore_eos=True, capture=setting.capture)
    list(shorter)
    following = shorter.follow(ids[:T])
    list(following)
    assert following.trace.begun == max(min(cut, T - 1), 0)
    for other in (branch, following):
        close_to(other.trace.residual(-1), whole.trace.residual(-1)[: other.trace.positions])
        for layer in range(whole.model.config.layers):
            found, expected = (attention_maps(each.trace, layer) for each in (other, whole))
            np.testing.assert_allclose(found, expected, atol=1e-4)
    scores, truth = following.trace.scores(0), whole.trace.scores(len(whole.trace.steps) - 1)
    assert scores is not None and truth is not None
    close_to(scores, truth)


@families
@FEW
@given(data=st.data())
def test_attribution_sums_to_the_score(family: str, data: st.DataObject) -> None:
    run, _ = data.draw(runs(family)).run()
    T = run.trace.positions
    parts = attribution(run.trace, 0, T)
    assert parts.shape == (2 * run.model.config.layers + 2, T)
    scores = uncached(run.model, run.trace.token_ids[:T])[np.arange(T), run.trace.token_ids[1:]]
    np.testing.assert_allclose(parts.sum(0), scores, atol=1e-4 * max(1.0, float(np.abs(parts).max())))


@families
@FEW
@given(data=st.data())
def test_recordings_come_back(family: str, data: st.DataObject) -> None:
    run, _ = data.draw(runs(family)).run()
    trace = run.trace
    with tempfile.TemporaryDirectory() as folder:
        trace.save(Path(folder) / "run.cutaway")
        loaded = Trace.load(Path(folder) / "run.cutaway")
    assert loaded.model.config == run.model.config and loaded.model.digest() == run.model.digest
    assert (loaded.token_ids, loaded.sampling) == (trace.token_ids, trace.sampling)
    assert (loaded.capture, loaded.finish_reason) == (trace.capture, trace.finish_reason)
    T, all_rows = trace.positions, ("embedding", "residual", "query", "key", "value", "hidden", "normalized", "logits")
    for name in all_rows:
        found, kept = getattr(loaded.cache.rows, name), getattr(trace.cache.rows, name)
        np.testing.assert_array_equal(found, kept[..., :T, :])
    for step, (one, other) in enumerate(zip(loaded.steps, trace.steps, strict=True)):
        assert (one.id, one.uniform, one.forced) == (other.id, other.uniform, other.forced)
        assert one.probability == pytest.approx(other.probability, rel=1e-6)
        assert one.raw_logprob == pytest.approx(other.raw_logprob, rel=1e-6, abs=1e-6)
        np.testing.assert_array_equal(loaded.candidates(step, 9).ids, trace.candidates(step, 9).ids)
        if trace.capture == "all":
            assert isinstance(one.scores, np.ndarray) and isinstance(other.scores, np.ndarray)
            np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_allclose(attribution(loaded, 0, T), attribution(trace, 0, T), rtol=1e-4, atol=1e-4)


@given(runs("gpt2") | runs("llama"))
def test_any_end_token_ends(setting: Setting) -> None:
    """And only those that the vocabulary has; the same run that ignores them begins alike."""
    model = setting.drawn.open()
    going_on, _ = setting.run(model)
    ended = Generation(model, setting.prompt, LIVELY, max_new_tokens=setting.new_tokens)
    list(ended)
    ids = [step.id for step in going_on.trace.steps]
    end = next((index + 1 for index, id in enumerate(ids) if id in model.config.eos_ids), None)
    assert [step.id for step in ended.trace.steps] == ids[:end]
    assert ended.trace.finish_reason == (going_on.trace.finish_reason if end is None else "eos")
    assert all(id < model.config.vocabulary for id in model.config.eos_ids)
