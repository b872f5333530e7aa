"""What holds for every family: the order of events, the invariants, edits, branches, recordings, attribution."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from cutaway.core import Generation, ModelError, SamplingConfig, Trace, load_model
from cutaway.core.attention_stages import (
    attention_maps,
    attention_mix,
    attention_output,
    attention_rows,
    knows_mlp_output,
    layer_outputs,
)
from cutaway.core.attribution import attribution
from cutaway.core.checks import check_model
from cutaway.core.edits import AblateHead, AblateMlp
from cutaway.core.events import AttentionDone, BlockDone, Embedded, Event, LogitsReady, MlpDone, Normalized
from cutaway.core.lens import lens_table, logit_lens, residual_norms, surprisal
from cutaway.core.models.families import FAMILIES, family_title, shape_title
from cutaway.core.models.model import Model
from cutaway.core.overview import Overview, block_size

MODELS = Path(__file__).resolve().parents[2] / "data" / "models"
COMMITTED = sorted(folder.name for folder in MODELS.iterdir())
NAMES = ["fable", "verse", "tinymind", *COMMITTED]
LIVELY = SamplingConfig(temperature=0.9, top_k=30, seed=4)


@pytest.fixture(scope="module", params=NAMES)
def model(request: pytest.FixtureRequest) -> Model:
    """One model of every kind that opens."""
    name: str = request.param
    return load_model(MODELS / name if (MODELS / name).is_dir() else name)


@pytest.fixture(scope="module")
def prompt(model: Model) -> list[int]:
    return [int(id) for id in np.random.default_rng(5).integers(0, model.config.vocabulary, 6)]


@pytest.fixture(scope="module")
def run(model: Model, prompt: list[int]) -> Generation:
    edits = (AblateHead(model.config.layers - 1, 0, since=2), AblateMlp(0, since=3))
    run = Generation(model, prompt, LIVELY, max_new_tokens=8, ignore_eos=True, capture="all", edits=edits)
    list(run)
    return run


def forward_events(model: Model) -> list[type[Event]]:
    """What one pass says, in order."""
    last = [Normalized] if model.config.final_norm else []
    return [Embedded, *[AttentionDone, MlpDone, BlockDone] * model.config.layers, *last, LogitsReady]


def test_the_committed_models_are_of_many_families() -> None:
    kinds = {json.loads((MODELS / name / "config.json").read_text())["model_type"] for name in COMMITTED}
    assert kinds >= {"gpt2", "llama", "qwen2", "qwen3", "minimind"}


def test_events_come_in_order_and_shape(model: Model, prompt: list[int]) -> None:
    c, P = model.config, len(prompt)
    events = list(Generation(model, prompt, LIVELY, max_new_tokens=3, ignore_eos=True))
    one_pass = forward_events(model)
    told = [type(event) for event in events if type(event) in (*one_pass, Normalized)]
    assert told == one_pass * 3
    step = -1
    for event in events:
        match event:
            case Embedded():
                step += 1
                n, T = (P, P) if step == 0 else (1, P + step)
                assert event.token.shape == event.sum.shape == (n, c.width)
                assert (event.position is None) == (c.position_encoding == "rotary")
            case AttentionDone():
                assert event.query.shape == (c.heads, n, c.head_size)
                assert event.key.shape == event.value.shape == (c.kv_heads, n, c.head_size)
                assert event.pattern.shape == (c.heads, n, T) and event.output.shape == (n, c.width)
            case MlpDone():
                assert event.hidden.shape == (n, c.mlp_width) and event.output.shape == (n, c.width)
            case LogitsReady():
                assert event.logits.shape == (1, c.vocabulary)


def test_events_never_change(model: Model, prompt: list[int]) -> None:
    def arrays(events: list[Event]) -> Iterator[np.ndarray]:
        for event in events:
            yield from (value for value in event.told().values() if isinstance(value, np.ndarray))

    events, copies = [], []
    for event in Generation(model, prompt, LIVELY, max_new_tokens=4, ignore_eos=True):
        events.append(event)
        copies += [array.copy() for array in arrays([event])]
    for now, then in zip(arrays(events), copies, strict=True):
        np.testing.assert_array_equal(now, then)
        assert not now.flags.writeable


def test_invariants_hold(model: Model, prompt: list[int]) -> None:
    for length in (1, len(prompt)):
        assert [check.claim for check in check_model(model, prompt[:length], 6) if not check.holds] == []


def test_what_is_looked_at_later_is_what_was_computed(run: Generation) -> None:
    trace, c, T = run.trace, run.model.config, run.trace.positions
    overview = Overview(trace).maps(c.layers, T)
    assert block_size(T) == 1
    for layer in range(c.layers):
        pattern = np.zeros((c.heads, T, T), np.float32)
        for block in trace.cache.patterns[layer]:
            pattern[:, block.shape[2] - block.shape[1] : block.shape[2], : block.shape[2]] = block
        np.testing.assert_allclose(attention_maps(trace, layer), pattern, atol=1e-5)
        np.testing.assert_allclose(overview[layer], pattern, atol=1e-5)
        for head in range(c.heads):
            np.testing.assert_allclose(attention_rows(trace, layer, head, 2, T), pattern[head, 2:T], atol=1e-5)
            assert attention_mix(trace, layer, head, 0, T).shape == (T, c.head_size)
    table = lens_table(trace, 0, T)
    assert table.ids.shape == (c.layers, T, min(10, c.vocabulary))
    rows = trace.cache.rows.logits
    for position in range(T):
        scale = max(1.0, float(np.abs(rows[position]).max()))
        lens = logit_lens(trace, run.model.decoder, position)
        np.testing.assert_allclose(lens[-1], rows[position], atol=1e-5 * scale)
    assert np.isfinite(surprisal(trace, run.model.decoder, 1, T + 1)).all()
    assert residual_norms(trace, 0, T).shape == (c.layers + 1, T)


def test_attribution_sums_to_the_score(run: Generation) -> None:
    trace, T = run.trace, run.trace.positions
    parts = attribution(trace, 0, T)
    scores = trace.cache.rows.logits[np.arange(T), trace.token_ids[1:]]
    assert parts.shape == (2 * run.model.config.layers + 2, T)
    scale = max(1.0, float(np.abs(parts).max()))
    np.testing.assert_allclose(parts.sum(0), scores, rtol=1e-4, atol=1e-4 * scale)


def test_attribution_is_the_change_of_the_score(run: Generation) -> None:
    """With all norms held at their scale, the score without one part is the score less what the part adds."""
    trace, decoder, position = run.trace, run.model.decoder, 4
    parts = attribution(trace, position, position + 1)[:, 0].astype(np.float64)
    last = run.model.config.layers - 1
    block, rows = decoder.blocks[last], trace.cache.rows
    before = (rows.residual[last - 1] if last else rows.embedding)[position : position + 1]
    attended, worked = layer_outputs(trace, last, position, position + 1)
    middle = block.after_attention(before, attended)
    readout = decoder.head[trace.token_ids[position + 1]][None]
    if decoder.final_norm is not None:
        readout = decoder.final_norm.pull_back(rows.residual[last, position : position + 1], readout)
    if block.sum_norms[1] is not None:
        readout = block.sum_norms[1].pull_back(middle + worked, readout)
    assert parts[-2] == pytest.approx(float((worked * readout).sum()), rel=1e-3, abs=1e-4)


def test_what_is_silenced_adds_nothing(run: Generation, model: Model) -> None:
    trace, T, silent = run.trace, run.trace.positions, len(run.trace.prompt_ids) + 2  # where the pass of step 3 begins
    attended, worked = layer_outputs(trace, 0, 0, T)
    stream = trace.cache.rows.embedding[:T]
    scale = float(np.abs(worked).max())
    assert np.abs(worked[silent:]).max() < 1e-4 * scale
    assert np.abs(worked[:silent]).max() > 1e-2 * scale
    block = model.decoder.blocks[0]
    whole = block.after_mlp(block.after_attention(stream, attended), worked)
    np.testing.assert_allclose(whole, trace.residual(0), rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(whole).max())))
    assert np.isfinite(attention_output(trace, model.config.layers - 1, 0, T)).all()


def test_a_branch_is_the_run_it_would_have_been(model: Model, prompt: list[int]) -> None:
    run = Generation(model, prompt, LIVELY, max_new_tokens=6, ignore_eos=True)
    list(run)
    other = (run.trace.steps[2].id + 1) % model.config.vocabulary
    branch = run.branch(2, token=other)
    list(branch)
    ids = branch.trace.token_ids[:-1]
    fresh = Generation(model, ids, LIVELY, max_new_tokens=1, ignore_eos=True)
    logits = next(event.logits[-1] for event in fresh if isinstance(event, LogitsReady))
    scores = branch.trace.scores(5)
    assert scores is not None and ids[len(prompt) + 2] == other
    np.testing.assert_allclose(scores, logits, atol=1e-4 * max(1.0, float(np.abs(logits).max())))


@pytest.mark.parametrize("capture", ["default", "all"])
def test_recordings_come_back(capture: Any, model: Model, prompt: list[int], tmp_path: Path) -> None:
    run = Generation(model, prompt, LIVELY, max_new_tokens=5, ignore_eos=True, capture=capture)
    list(run)
    run.trace.save(tmp_path / "x.cutaway")
    with safe_open(tmp_path / "x.cutaway", framework="numpy") as file:
        assert ("final_norm" in file.keys()) == (capture == "all" and model.config.final_norm)
    loaded = Trace.load(tmp_path / "x.cutaway")
    T = loaded.positions
    assert loaded.model.config == model.config and loaded.token_ids == run.trace.token_ids
    for layer in range(model.config.layers):
        np.testing.assert_array_equal(attention_maps(loaded, layer), attention_maps(run.trace, layer))
        np.testing.assert_array_equal(loaded.residual(layer), run.trace.residual(layer))
    np.testing.assert_allclose(attribution(loaded, 0, T), attribution(run.trace, 0, T), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(lens_table(loaded, 0, T).entropy, lens_table(run.trace, 0, T).entropy, atol=1e-3)
    assert knows_mlp_output(run.trace) and knows_mlp_output(loaded) == (not model.config.post_norm)
    if model.config.post_norm:
        with pytest.raises(ModelError, match="needs the weights"):
            layer_outputs(loaded, 0, 0, T)
    else:
        found, expected = layer_outputs(loaded, 0, 0, T), layer_outputs(run.trace, 0, 0, T)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    resumed = Generation.resume(model, replace(loaded))
    branch = resumed.branch(3, token=1)
    list(branch)
    assert branch.trace.token_ids[len(prompt) + 3] == 1


def test_titles() -> None:
    assert family_title("gpt2") == "GPT-2" and family_title("qwen3") == "Qwen3"
    assert family_title("a family of tomorrow") == "a family of tomorrow"
    assert all(family.name == name and family.title for name, family in FAMILIES.items())


@pytest.mark.parametrize(
    ("layers", "heads", "said"),
    [(1, 1, "1 layer × 1 head × 16"), (1, 2, "1 layer × 2 heads × 16"), (3, 1, "3 layers × 1 head × 16"),
     (12, 16, "12 layers × 16 heads × 16")],
)  # fmt: skip
def test_one_of_anything_is_no_plural(layers: int, heads: int, said: str) -> None:
    assert shape_title(layers, heads, 16) == said
