"""Direct logit attribution: its parts sum to the score, and each part is what it says it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cutaway.core import Generation, ModelError, SamplingConfig
from cutaway.core.attribution import attribution
from cutaway.core.edits import AblateHead, AblateMlp
from cutaway.core.models.model import Model
from cutaway.core.models.parts import LayerNorm

LIVELY = SamplingConfig(temperature=0.9, top_k=30, seed=4)
EDITS = (AblateHead(1, 2, since=2), AblateMlp(0, since=3))


@pytest.fixture(scope="module", params=["tiny", "fable"])
def run(request: pytest.FixtureRequest, story: list[int]) -> Generation:
    model: Model = request.getfixturevalue(request.param)
    prompt = story if request.param == "fable" else [5, 83, 92, 83, 15, 11]
    run = Generation(model, prompt, LIVELY, max_new_tokens=9, ignore_eos=True, capture="all", edits=EDITS)
    list(run)
    return run


def test_the_parts_sum_to_the_score_of_the_token_that_follows(run: Generation) -> None:
    trace, T = run.trace, run.trace.positions
    parts = attribution(trace, 0, T)
    assert parts.shape == (2 * trace.model.config.layers + 2, T) and parts.dtype == np.float32
    scores = trace.cache.rows.logits[np.arange(T), trace.token_ids[1:]]
    np.testing.assert_allclose(parts.sum(0), scores, rtol=1e-3, atol=1e-3)
    for start, stop in ((0, 1), (4, 9), (T - 1, T), (3, 3)):
        np.testing.assert_allclose(attribution(trace, start, stop), parts[:, start:stop], rtol=1e-3, atol=1e-4)


def test_each_part_by_taking_it_through_the_norm_alone(run: Generation) -> None:
    """The frozen norm is a matrix: (part − its mean) / σ · weight, written out in float64."""
    trace, decoder, rows, position = run.trace, run.model.decoder, run.trace.cache.rows, 5
    after = [rows.embedding, *rows.residual]
    norm, last = decoder.final_norm, rows.residual[-1, position].astype(np.float64)
    assert isinstance(norm, LayerNorm)
    sigma = np.sqrt(last.var() + norm.epsilon)
    readout = decoder.head[trace.token_ids[position + 1]].astype(np.float64)
    parts = attribution(trace, position, position + 1)[:, 0]

    def through(part: np.ndarray) -> float:
        return float(((part - part.mean()) / sigma * norm.weight) @ readout)

    assert parts[0] == pytest.approx(through(rows.embedding[position].astype(np.float64)), rel=1e-3, abs=1e-4)
    for layer in range(trace.model.config.layers):
        added = after[layer + 1][position].astype(np.float64) - after[layer][position]
        both = parts[2 * layer + 1] + parts[2 * layer + 2]
        assert both == pytest.approx(through(added), rel=1e-3, abs=1e-3)
    assert parts[-1] == pytest.approx(float(norm.bias @ readout), rel=1e-4, abs=1e-5)


def test_what_is_silenced_adds_nothing(run: Generation) -> None:
    parts = attribution(run.trace, 0, run.trace.positions)
    silent = len(run.trace.prompt_ids) + 2  # the pass of step 3 begins here
    assert np.abs(parts[2, silent:]).max() < 1e-4 < np.abs(parts[2, :silent]).min()


def test_where_nothing_follows_yet(run: Generation) -> None:
    paused = Generation(run.model, run.trace.prompt_ids, LIVELY, ignore_eos=True)
    while paused.trace.cache.length == 0:
        next(paused)
    P = len(paused.trace.prompt_ids)
    parts = attribution(paused.trace, 0, P)
    assert np.isnan(parts[:, -1]).all() and np.isfinite(parts[:, :-1]).all()
    np.testing.assert_allclose(parts[:, :-1], attribution(run.trace, 0, P - 1), rtol=1e-3, atol=1e-3)


def test_without_weights(run: Generation) -> None:
    bare = replace(run.trace, model=replace(run.trace.model, decoder=None))
    with pytest.raises(ModelError, match="needs the weights"):
        attribution(bare, 0, 2)
