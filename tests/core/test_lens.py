"""What is computed from a trace when somebody looks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cutaway.core import Generation, ModelError, SamplingConfig, Trace
from cutaway.core.attention_stages import attention_maps, attention_rows
from cutaway.core.cache import ActivationCache
from cutaway.core.edits import AblateHead
from cutaway.core.events import BlockDone
from cutaway.core.lens import lens_table, logit_lens, residual_norms, surprisal
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


# The lens as a table


def probabilities(logits: Any) -> Any:
    """Softmax of the last axis, in float64."""
    weights = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("name", ["run", "told"])
def test_the_table_says_what_the_lens_says(name: str, request: pytest.FixtureRequest) -> None:
    run: Generation = request.getfixturevalue(name)
    trace, T, L = run.trace, run.trace.positions, run.model.config.layers
    table = lens_table(trace, 0, T)
    assert table.ids.shape == table.probabilities.shape == (L, T, 10)
    assert table.entropy.shape == table.rank.shape == table.probability.shape == (L, T)
    assert table.ids.dtype == table.rank.dtype == np.int64
    assert table.probabilities.dtype == table.entropy.dtype == table.probability.dtype == np.float32
    for position in range(T):
        follows = trace.token_ids[position + 1]
        truth = probabilities(logit_lens(trace, run.model.decoder, position))  # [L, V]
        entropy = -(truth * np.log2(truth, where=truth > 0, out=np.zeros_like(truth))).sum(-1)
        np.testing.assert_allclose(table.entropy[:, position], entropy, atol=1e-4)
        np.testing.assert_allclose(table.probability[:, position], truth[:, follows], rtol=1e-4, atol=1e-7)
        for layer in range(L):
            best = np.argsort(-truth[layer], kind="stable")[:10]
            np.testing.assert_allclose(table.probabilities[layer, position], truth[layer, best], rtol=1e-4, atol=1e-7)
            found = truth[layer, table.ids[layer, position]]
            np.testing.assert_allclose(found, truth[layer, best], rtol=1e-4, atol=1e-7)
            place = table.rank[layer, position]
            assert truth[layer, best[place]] == pytest.approx(truth[layer, follows], rel=1e-4) if place < 10 else True
            assert (place < 10) == (follows in table.ids[layer, position])


@pytest.mark.parametrize("name", ["run", "told"])
def test_the_last_layer_of_the_table_is_the_output(name: str, request: pytest.FixtureRequest) -> None:
    trace = request.getfixturevalue(name).trace
    P, G = len(trace.prompt_ids), len(trace.steps)
    table = lens_table(trace, P - 1, P + G - 1)
    for step in range(G):
        drawn = trace.candidates(step, 11)
        np.testing.assert_allclose(table.probabilities[-1, step], drawn.raw[:10], atol=1e-5)
        assert table.probability[-1, step] == pytest.approx(np.exp(trace.steps[step].raw_logprob), abs=1e-5)
        raw = probabilities(trace.steps[step].scores)
        assert raw[table.ids[-1, step, 0]] == pytest.approx(raw.max(), abs=1e-6)
        assert table.rank[-1, step] == np.count_nonzero(
            trace.steps[step].scores > trace.steps[step].scores[trace.steps[step].id]
        )


def test_windows_of_the_table(run: Generation) -> None:
    trace, T = run.trace, run.trace.positions
    whole = lens_table(trace, 0, T)
    for start, stop, layers in ((0, 1, None), (3, 7, 2), (T - 1, T, 1), (4, 4, None), (2, 9, 0)):
        found, part = lens_table(trace, start, stop, layers), whole.window(start, stop, layers)
        for name in ("ids", "probabilities", "entropy", "rank", "probability"):
            assert getattr(found, name).shape == getattr(part, name).shape
            np.testing.assert_allclose(getattr(found, name), getattr(part, name), rtol=1e-4, atol=1e-6, err_msg=name)


def test_few_rows_at_a_time_are_the_same(run: Generation, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lens_table(run.trace, 0, 11)
    monkeypatch.setattr("cutaway.core.lens._SCORES_AT_ONCE", 4 * 97)
    few = lens_table(run.trace, 0, 11)
    np.testing.assert_array_equal(few.ids, whole.ids)
    np.testing.assert_allclose(few.entropy, whole.entropy, atol=1e-5)


def test_tokens_that_tie_come_by_lowest_id(run: Generation) -> None:
    decoder = run.model.decoder
    flat = replace(decoder, head=np.zeros_like(decoder.head))
    trace = replace(run.trace, model=replace(run.trace.model, decoder=flat))
    table = lens_table(trace, 0, 11)
    assert (table.ids == np.arange(10)).all()
    np.testing.assert_allclose(table.probabilities, 1 / 97, rtol=1e-5)
    np.testing.assert_allclose(table.entropy, np.log2(97), rtol=1e-5)
    np.testing.assert_array_equal(table.rank, [trace.token_ids[1:]] * 3)


def test_a_vocabulary_of_fewer_than_ten(run: Generation) -> None:
    decoder = replace(run.model.decoder, head=run.model.decoder.head[:7])
    trace = replace(run.trace, prompt_ids=(1, 2, 3), steps=[], model=replace(run.trace.model, decoder=decoder))
    table = lens_table(trace, 0, 3)
    assert table.ids.shape == (3, 3, 7) and (np.sort(table.ids) == np.arange(7)).all()


def test_scores_that_are_no_numbers_are_nan_in_the_table(run: Generation) -> None:
    decoder = run.model.decoder
    damaged = replace(decoder, head=np.where(np.arange(97)[:, None] == 3, np.nan, decoder.head).astype(np.float32))
    trace = replace(run.trace, model=replace(run.trace.model, decoder=damaged))
    table = lens_table(trace, 0, 2)
    assert np.isnan(table.probabilities).all() and (table.rank == -1).all()


def test_a_pass_under_way_has_its_first_layers_and_nothing_that_follows(tiny: Model) -> None:
    paused = Generation(tiny, PROMPT, LIVELY, ignore_eos=True)
    blocks = (event for event in paused if isinstance(event, BlockDone) and event.layer == 1)
    block = next(each for each in blocks if len(paused.trace.steps) == 1)
    table = lens_table(paused.trace, 0, 7, layers=2)
    assert table.ids.shape == (2, 7, 10)
    assert (table.rank[:, -1] == -1).all() and np.isnan(table.probability[:, -1]).all()
    assert (table.rank[:, :-1] >= 0).all() and np.isfinite(table.entropy).all()
    truth = probabilities(tiny.decoder.logits(block.residual))
    np.testing.assert_allclose(table.probabilities[1, -1], -np.sort(-truth[0])[:10], rtol=1e-4)
    assert residual_norms(paused.trace, 0, 7, layers=2).shape == (3, 7)


def test_norms_of_the_residual_stream(run: Generation) -> None:
    trace = run.trace
    norms = residual_norms(trace, 2, 9)
    assert norms.shape == (4, 7) and norms.dtype == np.float32
    np.testing.assert_allclose(norms[0], np.sqrt((trace.embedding()[2:9] ** 2).sum(-1)), rtol=1e-5)
    for layer in range(3):
        np.testing.assert_allclose(norms[layer + 1], np.sqrt((trace.residual(layer)[2:9] ** 2).sum(-1)), rtol=1e-5)


def test_what_needs_the_weights_says_so(run: Generation) -> None:
    bare = replace(run.trace, model=replace(run.trace.model, decoder=None))
    with pytest.raises(ModelError, match="needs the weights of gpt2_base"):
        lens_table(bare, 0, 3)
    with pytest.raises(ModelError, match="needs the weights of gpt2_base"):
        surprisal(bare, None, 0, 3)
    assert residual_norms(bare, 0, 3).shape == (4, 3)
