"""Every stage of every family, in prefill and at each cached step, against an independent implementation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, SamplingConfig
from cutaway.core.attention_stages import attention_maps, attention_mix, attention_output, attention_scores, mlp_output
from cutaway.core.attribution import attribution
from cutaway.core.cache import ActivationCache
from cutaway.core.checkpoint.config import ModelConfig
from cutaway.core.checkpoint.open import open_checkpoint
from cutaway.core.editing import Edits
from cutaway.core.events import AttentionDone, BlockDone, Embedded, Event, LogitsReady, MlpDone, Normalized
from cutaway.core.models.attention import attention_mixed
from cutaway.core.models.families import FAMILIES, bind
from cutaway.core.models.model import Model
from cutaway.core.models.rotary import frequencies

Arrays = Mapping[str, NDArray[Any]]
Facts = dict[str, Any]

ATTENTION_ATOL = 2e-5


def prefill(events: list[Event], kind: type[Event], layers: int) -> list[Any]:
    """The first events of a kind: one for each layer of the first step."""
    return [event for event in events if isinstance(event, kind)][:layers]


def assert_logits(found: NDArray[np.float32], in_float64: NDArray[np.float64], facts: Facts) -> None:
    allowed = facts["tolerance"]["logits_atol"] + facts["tolerance"]["rtol"] * np.abs(in_float64)
    assert found.shape == in_float64.shape
    assert found.dtype == np.float32
    assert (np.abs(found - in_float64) <= allowed).all()


def assert_other(found: NDArray[np.float32], expected: NDArray[np.float32], facts: Facts) -> None:
    assert found.shape == expected.shape
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=facts["tolerance"]["other_atol"])


def test_embedding(run: Generation, events: list[Event], expected: Arrays, facts: Facts) -> None:
    (event,) = prefill(events, Embedded, 1)
    assert_other(event.sum, expected["embed"], facts)
    assert_other(event.token if event.position is None else event.token + event.position, expected["embed"], facts)
    assert (event.position is None) == (run.model.config.position_encoding == "rotary")
    assert event.positions.tolist() == list(range(len(expected["input_ids"])))
    np.testing.assert_array_equal(run.trace.embedding()[: len(event.sum)], event.sum)


def test_residual_stream(run: Generation, events: list[Event], expected: Arrays, facts: Facts) -> None:
    blocks = prefill(events, BlockDone, run.model.config.layers)
    assert len(blocks) == sum(name.startswith("hidden_") for name in expected)
    for layer, event in enumerate(blocks):
        assert event.layer == layer
        assert_other(event.residual, expected[f"hidden_{layer:02}"], facts)
        np.testing.assert_array_equal(run.trace.residual(layer)[: len(event.residual)], event.residual)


def test_attention(run: Generation, events: list[Event], expected: Arrays) -> None:
    n = len(expected["input_ids"])
    for layer, event in enumerate(prefill(events, AttentionDone, run.model.config.layers)):
        weights = expected[f"attn_{layer:02}"]
        np.testing.assert_allclose(event.pattern, weights, rtol=0, atol=ATTENTION_ATOL)
        np.testing.assert_allclose(attention_maps(run.trace, layer)[:, :n, :n], weights, rtol=0, atol=ATTENTION_ATOL)


def test_final_norm(events: list[Event], expected: Arrays, facts: Facts) -> None:
    (event,) = prefill(events, Normalized, 1)
    assert_other(event.hidden, expected["final_norm"], facts)


def test_logits_of_the_prompt(events: list[Event], expected: Arrays, facts: Facts) -> None:
    (event,) = prefill(events, LogitsReady, 1)
    assert_logits(event.logits, expected["logits_f64"], facts)
    np.testing.assert_allclose(event.logits, expected["logits"], rtol=1e-5, atol=facts["tolerance"]["logits_atol"])


def test_greedy_text(run: Generation, events: list[Event], expected: Arrays) -> None:
    assert events and [step.id for step in run.trace.steps] == expected["greedy_ids"].tolist()


def test_logits_of_every_cached_step(events: list[Event], expected: Arrays, facts: Facts) -> None:
    last_rows = np.stack([event.logits[-1] for event in events if isinstance(event, LogitsReady)])
    assert_logits(last_rows, expected["decode_logits_f64"], facts)
    np.testing.assert_allclose(last_rows, expected["decode_logits"], rtol=1e-5, atol=facts["tolerance"]["logits_atol"])


def test_attention_of_the_last_cached_step(run: Generation, events: list[Event], expected: Arrays) -> None:
    layers = run.model.config.layers
    for event in [event for event in events if isinstance(event, AttentionDone)][-layers:]:
        weights = expected[f"decode_last_attn_{event.layer:02}"]
        assert event.pattern.shape == (weights.shape[0], 1, weights.shape[1])
        np.testing.assert_allclose(event.pattern[:, 0], weights, rtol=0, atol=ATTENTION_ATOL)
        np.testing.assert_allclose(attention_maps(run.trace, event.layer)[:, -1], weights, rtol=0, atol=ATTENTION_ATOL)


def test_inside_the_blocks(run: Generation, events: list[Event], internals: Arrays, facts: Facts) -> None:
    layers = run.model.config.layers
    (embedded,) = prefill(events, Embedded, 1)
    entering = embedded.sum
    attentions, mlps = prefill(events, AttentionDone, layers), prefill(events, MlpDone, layers)
    for layer, block in enumerate(run.model.decoder.blocks):
        attention, mlp, number = attentions[layer], mlps[layer], f"_{layer:02}"
        assert_other(block.attention_norm(entering), internals["ln1" + number], facts)
        assert_other(attention.query, internals["q" + number], facts)
        assert_other(attention.key, internals["k" + number], facts)
        assert_other(attention.value, internals["v" + number], facts)
        config = run.model.config
        key = attention.key.repeat(config.heads // config.kv_heads, axis=0)  # one for each query head
        scores = attention.query @ key.transpose(0, 2, 1) * np.float32(block.attention.scale)
        assert_other(scores, internals["scores" + number], facts)
        mixed = attention_mixed(attention.pattern, attention.value)  # [H, n, d]
        assert_other(mixed.transpose(1, 0, 2).reshape(len(entering), -1), internals["ctx" + number], facts)
        assert_other(attention.output, internals["attn_out" + number], facts)
        middle = entering + attention.output
        assert_other(middle, internals["resid_mid" + number], facts)
        assert_other(block.mlp_norm(middle), internals["ln2" + number], facts)
        assert_other(mlp.hidden, internals["mlp_act" + number], facts)
        assert_other(mlp.output, internals["mlp_out" + number], facts)
        entering = prefill(events, BlockDone, layers)[layer].residual


def test_what_is_computed_from_the_trace(
    run: Generation, events: list[Event], internals: Arrays, expected: Arrays, facts: Facts
) -> None:
    """The same stages and sums, out of nothing but the rows that were kept."""
    assert events
    trace, n = run.trace, len(expected["input_ids"])
    for layer in range(run.model.config.layers):
        number = f"_{layer:02}"
        for head in range(run.model.config.heads):
            scores = attention_scores(trace, layer, head, 0, n, n)
            assert_other(scores, internals["scores" + number][head], facts)
        mixed = [attention_mix(trace, layer, head, 0, n) for head in range(run.model.config.heads)]
        assert_other(np.concatenate(mixed, axis=-1), internals["ctx" + number], facts)
        assert_other(attention_output(trace, layer, 0, n), internals["attn_out" + number], facts)
        assert_other(mlp_output(trace, layer, 0, n), internals["mlp_out" + number], facts)
    logits = expected["logits"][np.arange(n - 1), expected["input_ids"][1:]]
    np.testing.assert_allclose(attribution(trace, 0, n - 1).sum(0), logits, rtol=1e-3, atol=1e-3)


def test_default_capture_computes_the_same(model: Model, expected: Arrays, facts: Facts) -> None:
    run = Generation(model, expected["input_ids"].tolist(), SamplingConfig(greedy=True), ignore_eos=True)
    logits = next(event.logits for event in run if isinstance(event, LogitsReady))
    assert_logits(logits, expected["logits_f64"][-1:], facts)


OTHER_GELU = {"gelu_tanh": "gelu", "gelu": "gelu_tanh", "relu": "gelu_tanh"}


def mistaken(config: ModelConfig, mistake: str) -> ModelConfig:
    match mistake:
        case "eps_1e-12":
            return replace(config, norm_epsilon=1e-12)
        case "eps_x10":
            return replace(config, norm_epsilon=10 * config.norm_epsilon)
        case "scale_attn_weights_flipped":
            return replace(config, scale_attention=not config.scale_attention)
        case "inverse_layer_flipped":
            return replace(config, scale_attention_by_layer=not config.scale_attention_by_layer)
        case "wrong_gelu_variant":
            return replace(config, activation=OTHER_GELU[config.activation])
        case "no_qk_norm":
            return replace(config, query_key_norm=False)
        case "no_bias":
            return replace(config, attention_bias=False, mlp_bias=False)
    assert config.rope is not None
    if mistake == "rope_interleaved":
        return replace(config, rope=replace(config.rope, interleaved=not config.rope.interleaved))
    if mistake == "theta_10000":
        return replace(config, rope=replace(config.rope, theta=10000.0))
    return replace(config, rope=replace(config.rope, scaling="default", attention_factor=1.0))


def names_of(folder: Path) -> list[str]:
    """The mistakes whose effect on a model the reference has measured, and that can be made in its configuration."""
    changes = json.loads((folder / "expected.json").read_text("utf-8"))["sensitivity_max_abs_logit_change"]
    made_elsewhere = ("positions_off_by_one", "heads_tiled", "tie_flipped", "conv1d", "no_causal")
    return [name for name, value in changes.items() if isinstance(value, float) and not name.startswith(made_elsewhere)]


def test_a_mistake_would_be_noticed(folder: Path, model: Model, expected: Arrays, facts: Facts) -> None:
    family = FAMILIES[model.config.family]
    ids: list[int] = expected["input_ids"].tolist()
    for mistake in names_of(folder):
        config = mistaken(model.config, mistake)
        decoder = family.build(config, bind(open_checkpoint(folder), config))
        *_, last = decoder.forward(ids, ActivationCache(config, len(ids), "all"), Edits((), config, len(ids)))
        assert isinstance(last, LogitsReady)
        moved = float(np.abs(last.logits - expected["logits_f64"]).max())
        change = facts["sensitivity_max_abs_logit_change"][mistake]
        if change > 2 * facts["tolerance"]["logits_atol"]:
            assert moved == pytest.approx(change, rel=0.05), mistake
            with pytest.raises(AssertionError):
                assert_logits(last.logits, expected["logits_f64"], facts)
        elif not change:  # this model has nothing of the kind
            assert_logits(last.logits, expected["logits_f64"], facts)


def test_frequencies_of_rotation(model: Model, facts: Facts) -> None:
    if model.config.rope is None:
        assert facts.get("rope") is None
        return
    found = frequencies(model.config.rope, model.config.head_size)
    np.testing.assert_allclose(found, facts["rope"]["inv_freq_f64"], rtol=1e-12)
    assert model.config.rope.attention_factor == pytest.approx(facts["rope"]["cos_sin_factor"], rel=1e-12)
    assert model.config.rope.interleaved == (facts["rope"]["pairing"] == "(2i, 2i+1)")


def test_cached_equals_uncached(run: Generation, events: list[Event]) -> None:
    """Each step's logits are those of a fresh run that reads the whole text at once."""
    trace, P = run.trace, len(run.trace.prompt_ids)
    rows = [event.logits[-1] for event in events if isinstance(event, LogitsReady)]
    ids = trace.token_ids[:-1]
    fresh = Generation(run.model, ids, SamplingConfig(greedy=True), max_new_tokens=1, ignore_eos=True, capture="all")
    logits = next(event.logits for event in fresh if isinstance(event, LogitsReady))
    scale = max(1.0, float(np.abs(logits).max()))
    np.testing.assert_allclose(np.stack(rows), logits[P - 1 :], rtol=0, atol=2e-5 * scale)
