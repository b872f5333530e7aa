"""The end of the context, on a model of 16 positions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cutaway.core import Generation, ModelError, SamplingConfig, load_model
from cutaway.core.events import Finished, LogitsReady
from cutaway.core.models.model import Model

FOLDER = Path(__file__).resolve().parents[1] / "data" / "models" / "gpt2_ctx16"
GREEDY = SamplingConfig(greedy=True)


@pytest.fixture(scope="module")
def short() -> Model:
    return load_model(FOLDER)


@pytest.fixture(scope="module")
def overflow() -> dict[str, np.ndarray]:
    with np.load(FOLDER / "overflow.npz") as arrays:
        return dict(arrays)


def test_a_prompt_that_fills_the_context(short: Model, overflow: dict[str, np.ndarray]) -> None:
    run = Generation(short, overflow["full_ids"].tolist(), GREEDY, ignore_eos=True, capture="all")
    events = list(run)
    logits = next(event.logits for event in events if isinstance(event, LogitsReady))
    tolerance = json.loads((FOLDER / "expected.json").read_text("utf-8"))["tolerance"]
    allowed = tolerance["logits_atol"] + tolerance["rtol"] * np.abs(overflow["full_logits_f64"])
    assert (np.abs(logits - overflow["full_logits_f64"]) <= allowed).all()
    assert len(run.trace.steps) == 1
    assert isinstance(events[-1], Finished) and events[-1].reason == run.trace.finish_reason == "context"


def test_a_prompt_that_is_one_token_too_long(short: Model, overflow: dict[str, np.ndarray]) -> None:
    with pytest.raises(ModelError, match=r"17 tokens.*at most 16") as caught:
        Generation(short, overflow["too_long_ids"].tolist(), GREEDY)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [1, 2, 10, 15, 16])
def test_how_many_tokens_fit(length: int, short: Model, overflow: dict[str, np.ndarray]) -> None:
    run = Generation(short, overflow["full_ids"][:length].tolist(), GREEDY, max_new_tokens=100, ignore_eos=True)
    list(run)
    assert len(run.trace.steps) == 16 - length + 1
    assert run.trace.finish_reason == "context"
    assert run.trace.positions == run.trace.cache.length == 16


def test_the_context_is_full_before_as_many_tokens_as_asked_for(short: Model, overflow: dict[str, np.ndarray]) -> None:
    prompt = overflow["full_ids"][:10].tolist()
    for asked, reason in ((6, "length"), (7, "context"), (8, "context")):
        run = Generation(short, prompt, GREEDY, max_new_tokens=asked, ignore_eos=True)
        list(run)
        assert (len(run.trace.steps), run.trace.finish_reason) == (min(asked, 7), reason)
