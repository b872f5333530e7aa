"""What is computed from a trace when somebody looks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cutaway.core import Generation, SamplingConfig, Trace
from cutaway.core.cache import ActivationCache
from cutaway.core.edits import AblateHead
from cutaway.core.lens import attention_maps, attention_rows, logit_lens, surprisal
from cutaway.core.models.model import Model

PROMPT = [5, 83, 92, 83, 15, 11]
LIVELY = SamplingConfig(temperature=0.9, top_k=30, seed=4)


@pytest.fixture(scope="module")
def run(tiny: Model) -> Generation:
    run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=6, ignore_eos=True, capture="all", edits=[AblateHead(1, 2)])
    list(run)
    return run


@pytest.fixture(scope="module")
def told(fable: Model, story: list[int]) -> Generation:
    run = Generation(fable, story, LIVELY, max_new_tokens=20, ignore_eos=True, capture="all")
    list(run)
    return run


def recorded(trace: Trace, layer: int) -> Any:
    """The maps [H, T, T] put together from what each step's own attention was."""
    T = trace.positions
    whole = np.zeros((trace.model.config.heads, T, T), np.float32)
    for block in trace.cache.patterns[layer]:
        n, stop = block.shape[1:]
        whole[:, stop - n : stop, :stop] = block
    return whole


@pytest.mark.parametrize("name", ["run", "told"])
def test_maps_are_those_that_were_used(name: str, request: pytest.FixtureRequest) -> None:
    trace = request.getfixturevalue(name).trace
    for layer in range(trace.model.config.layers):
        maps = attention_maps(trace, layer)
        np.testing.assert_allclose(maps, recorded(trace, layer), atol=1e-5)
        np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
        assert not np.triu(maps, 1).any()


def test_every_window_of_every_head(run: Generation) -> None:
    trace = run.trace
    T = trace.positions
    for layer in range(3):
        truth = recorded(trace, layer)
        for head in range(4):
            for start in range(T):
                for stop in range(start + 1, T + 1):
                    rows = attention_rows(trace, layer, head, start, stop)
                    assert rows.shape == (stop - start, stop) and rows.dtype == np.float32
                    np.testing.assert_allclose(rows, truth[head, start:stop, :stop], atol=1e-5)


def test_heads_that_share_a_key_head(run: Generation) -> None:
    trace, rows = run.trace, run.trace.cache.rows
    config = replace(trace.model.config, kv_heads=2)
    fewer = ActivationCache.of(config, replace(rows, key=rows.key[:, :2], value=rows.value[:, :2]), 11, [], "default")
    shared = replace(trace, model=replace(trace.model, config=config), cache=fewer)
    maps = attention_maps(shared, 1)
    for head in range(4):
        np.testing.assert_allclose(attention_rows(shared, 1, head, 2, 9), maps[head, 2:9, :9], atol=1e-6)
    assert np.abs(maps[1] - maps[0]).max() > 0.01


def test_looking_at_attention_changes_nothing(run: Generation) -> None:
    before = run.trace.cache.rows.query.copy()
    attention_rows(run.trace, 0, 0, 0, 5)[...] = 7
    attention_maps(run.trace, 1)[...] = 7
    np.testing.assert_array_equal(run.trace.cache.rows.query[:, :, : run.trace.positions], before[:, :, :11])


@pytest.mark.parametrize("name", ["run", "told"])
def test_surprisal_of_every_token(name: str, request: pytest.FixtureRequest) -> None:
    run: Generation = request.getfixturevalue(name)
    trace = run.trace
    length = len(trace.token_ids)
    logits = trace.cache.rows.logits[: trace.positions].astype(np.float64)
    log_softmax = logits - np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1, keepdims=True))
    log_softmax -= logits.max(-1, keepdims=True)
    truth = -log_softmax[np.arange(length - 1), trace.token_ids[1:]] / np.log(2)
    bits = surprisal(trace, run.model.decoder, 0, length)
    assert bits.shape == (length,) and np.isnan(bits[0])
    np.testing.assert_allclose(bits[1:], truth, rtol=1e-4, atol=1e-4)
    generated = [-step.raw_logprob / np.log(2) for step in trace.steps]
    np.testing.assert_allclose(bits[len(trace.prompt_ids) :], generated, rtol=1e-4, atol=1e-4)
    for start, stop in ((0, 1), (1, 2), (3, 3), (4, length), (length - 1, length)):
        np.testing.assert_allclose(surprisal(trace, run.model.decoder, start, stop), bits[start:stop], rtol=1e-4)


@pytest.mark.parametrize("name", ["run", "told"])
def test_the_last_row_of_the_lens_is_the_output(name: str, request: pytest.FixtureRequest) -> None:
    run: Generation = request.getfixturevalue(name)
    config, trace = run.model.config, run.trace
    for position in range(trace.positions):
        lens = logit_lens(trace, run.model.decoder, position)
        assert lens.shape == (config.layers, config.vocabulary)
        output = trace.cache.rows.logits[position]
        np.testing.assert_allclose(lens[-1], output, atol=1e-5 * max(1.0, float(np.abs(output).max())))


def test_each_row_of_the_lens_reads_its_own_layer(run: Generation) -> None:
    trace, decoder = run.trace, run.model.decoder
    lens = logit_lens(trace, decoder, 7)
    for layer in range(3):
        np.testing.assert_allclose(lens[layer], decoder.logits(trace.residual(layer)[7:8])[0], atol=1e-5)
    assert np.abs(lens[0] - lens[-1]).max() > 0.1
