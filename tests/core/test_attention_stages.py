"""Attention stage by stage, and what a layer adds, against what the events of the run said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, ModelError, SamplingConfig, Trace
from cutaway.core.attention_stages import (
    attention_mix,
    attention_output,
    attention_rows,
    attention_scores,
    head_vectors,
    mlp_output,
)
from cutaway.core.cache import ActivationCache
from cutaway.core.edits import AblateHead, AblateMlp
from cutaway.core.events import AttentionDone, BlockDone, Event, MlpDone
from cutaway.core.models.model import Model

PROMPT = [5, 83, 92, 83, 15, 11]
LIVELY = SamplingConfig(temperature=0.9, top_k=30, seed=4)
EDITS = (AblateHead(1, 2), AblateHead(1, 0, since=3), AblateHead(0, 3, since=1), AblateMlp(2, since=4))
T = 11


@pytest.fixture(scope="module")
def run(tiny: Model) -> Generation:
    return Generation(tiny, PROMPT, LIVELY, max_new_tokens=6, ignore_eos=True, edits=EDITS)


@pytest.fixture(scope="module")
def events(run: Generation) -> list[Event]:
    return list(run)


def joined(events: list[Event], kind: Any, field: str, layer: int, axis: int = 0) -> NDArray[Any]:
    """What the events of every step said, positions one after the other."""
    parts = [getattr(event, field) for event in events if isinstance(event, kind) and event.layer == layer]
    return np.concatenate(parts, axis=axis)


def test_vectors_of_a_head(run: Generation, events: list[Event]) -> None:
    for layer in range(3):
        for head in range(4):
            vectors = head_vectors(run.trace, layer, head, 2, 9)
            for name, vector in zip(("query", "key", "value"), vectors, strict=True):
                np.testing.assert_array_equal(vector, joined(events, AttentionDone, name, layer, axis=1)[head, 2:9])


def test_scores_before_the_mask_see_the_future(run: Generation, events: list[Event]) -> None:
    query = joined(events, AttentionDone, "query", 1, axis=1)
    key = joined(events, AttentionDone, "key", 1, axis=1)
    scores = attention_scores(run.trace, 1, 2, 3, 6, T)
    assert scores.shape == (3, T) and scores.dtype == np.float32
    np.testing.assert_allclose(scores, query[2, 3:6] @ key[2].T / np.sqrt(12), atol=1e-6)
    seen = np.where(np.arange(6) > np.arange(3, 6)[:, None], -np.inf, scores[:, :6])
    weights = np.exp(seen) / np.exp(seen).sum(1, keepdims=True)
    np.testing.assert_allclose(attention_rows(run.trace, 1, 2, 3, 6), weights, atol=1e-6)


def test_mix(run: Generation, events: list[Event]) -> None:
    value = joined(events, AttentionDone, "value", 2, axis=1)
    for head in range(4):
        mixed = attention_mix(run.trace, 2, head, 0, T)
        weights = attention_rows(run.trace, 2, head, 0, T)
        np.testing.assert_allclose(mixed, weights @ value[head], atol=1e-6)
        np.testing.assert_allclose(attention_mix(run.trace, 2, head, 7, 9), mixed[7:9], atol=1e-6)


def test_what_a_layer_adds_where_heads_fall_silent_on_the_way(run: Generation, events: list[Event]) -> None:
    trace = run.trace
    for layer in range(3):
        attended, worked = (joined(events, kind, "output", layer) for kind in (AttentionDone, MlpDone))
        for start in range(T):
            for stop in range(start + 1, T + 1):
                found = attention_output(trace, layer, start, stop)
                np.testing.assert_allclose(found, attended[start:stop], atol=1e-5)
                np.testing.assert_allclose(mlp_output(trace, layer, start, stop), worked[start:stop], atol=1e-5)


def test_a_branch_is_silent_from_its_own_first_scores_on(run: Generation, events: list[Event]) -> None:
    branch = run.branch(2, edits=[AblateHead(2, 1)])
    own = list(branch)
    shared = len(PROMPT) + 2
    for layer in range(3):
        truth = joined([*events], AttentionDone, "output", layer)[:shared]
        truth = np.concatenate([truth, joined(own, AttentionDone, "output", layer)])
        found = attention_output(branch.trace, layer, 0, branch.trace.positions)
        np.testing.assert_allclose(found, truth, atol=1e-5)


def test_a_pass_that_is_still_under_way(tiny: Model) -> None:
    """The layers that are through can be looked at, at positions that no whole step holds yet."""
    run = Generation(tiny, PROMPT, LIVELY, ignore_eos=True)
    attended: AttentionDone | None = None
    for event in run:
        if isinstance(event, AttentionDone):
            attended = event
        if isinstance(event, BlockDone) and event.layer == 1 and len(run.trace.steps) == 2:
            break
    assert attended is not None
    position = len(PROMPT) + 1
    assert position == run.trace.cache.length and position == run.trace.positions
    window = (position, position + 1)
    np.testing.assert_array_equal(head_vectors(run.trace, 1, 3, *window)[0], attended.query[3])
    np.testing.assert_allclose(attention_rows(run.trace, 1, 3, *window), attended.pattern[3], atol=1e-6)
    np.testing.assert_allclose(attention_output(run.trace, 1, *window), attended.output, atol=1e-5)


def test_heads_that_share_a_key_head(run: Generation, events: list[Event]) -> None:
    assert events
    trace, rows = run.trace, run.trace.cache.rows
    config = replace(trace.model.config, kv_heads=2)
    cache = ActivationCache.of(config, replace(rows, key=rows.key[:, :2], value=rows.value[:, :2]), T, [], "default")
    shared = replace(trace, model=replace(trace.model, config=config), cache=cache)
    for head, serves in enumerate((0, 0, 1, 1)):
        query, key, value = head_vectors(shared, 1, head, 0, T)
        np.testing.assert_array_equal(query, rows.query[1, head, :T])
        np.testing.assert_array_equal(key, rows.key[1, serves, :T])
        np.testing.assert_array_equal(value, rows.value[1, serves, :T])
        scores = attention_scores(shared, 1, head, 0, T, T)
        np.testing.assert_allclose(scores, query @ key.T / np.sqrt(12), atol=1e-6)
        mixed = attention_rows(shared, 1, head, 0, T) @ value
        np.testing.assert_allclose(attention_mix(shared, 1, head, 0, T), mixed, atol=1e-6)


def without_weights(trace: Trace) -> Trace:
    return replace(trace, model=replace(trace.model, decoder=None))


def test_without_weights(run: Generation, events: list[Event]) -> None:
    assert events
    bare = without_weights(run.trace)
    assert run.trace.has_weights and not bare.has_weights
    np.testing.assert_array_equal(attention_mix(bare, 1, 1, 0, 5), attention_mix(run.trace, 1, 1, 0, 5))
    for function in (attention_output, mlp_output):
        with pytest.raises(ModelError, match="needs the weights of gpt2_base.*no tables.*--model"):
            function(bare, 1, 0, 5)
