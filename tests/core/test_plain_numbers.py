"""Numbers that NumPy computed are as good as Python's: a run with them is saved, and comes back the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutaway.core import CutawayError, Generation, ModelError, SamplingConfig, Trace
from cutaway.core.edits import AblateHead, AblateMlp, Edit, ForceToken, PatchMlp, PatchResidual, ScaleHead
from cutaway.core.models.model import Model
from cutaway.core.sampling import SamplingError

PROMPT = [5, 83, 92]


def test_a_run_with_numpy_s_numbers_is_saved_and_comes_back(tiny: Model, tmp_path: Path) -> None:
    numpy: Any = np  # type checkers would rather have Python's
    width = tiny.config.width
    settings = SamplingConfig(
        temperature=numpy.float32(0.5),
        top_k=numpy.int64(7),
        top_p=numpy.float64(0.9),
        greedy=numpy.bool_(False),
        seed=numpy.uint8(3),
    )
    edits: list[Edit] = [
        AblateHead(*numpy.unravel_index(2, (3, 4))),
        AblateMlp(numpy.int32(1), since=numpy.int64(1)),
        ScaleHead(0, numpy.int64(0), numpy.float32(0.5)),
        PatchMlp(1, numpy.int64(2), numpy.linspace(-1, 1, width, dtype=numpy.float32)),
        PatchResidual(0, 1, numpy.full(width, 0.25)),
        ForceToken(1, numpy.argmax([0, 0, 9])),
    ]
    run = Generation(
        tiny, numpy.array(PROMPT), settings, max_new_tokens=3, ignore_eos=True, edits=edits,
        added=numpy.array([0]), end_ids=numpy.array([96]),
    )  # fmt: skip
    assert list(run)
    branch = run.branch(numpy.int64(2), token=numpy.int64(8))
    assert list(branch)
    for trace in (run.trace, branch.trace):
        trace.save(tmp_path / "run.cutaway")
        loaded = Trace.load(tmp_path / "run.cutaway")
        assert loaded.edits == trace.edits and loaded.sampling == trace.sampling
        assert loaded.added == trace.added == (0,) and loaded.more_end_ids == trace.more_end_ids == {96}
    same = SamplingConfig(temperature=0.5, top_k=7, top_p=0.9, seed=3)
    assert settings == same and type(settings.top_k) is int and type(settings.temperature) is float


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SamplingConfig(top_k=2.5), "top_k is 2.5; it must be a whole number"),  # type: ignore[arg-type]
        (lambda: SamplingConfig(seed="1"), "seed is '1'; it must be a whole number, or None"),  # type: ignore[arg-type]
        (lambda: SamplingConfig(seed=10**5000), "seed is too large; it must be from 0 to 2^128 − 1"),
        (lambda: SamplingConfig(top_p="1"), "top_p is '1'; it must be a number"),  # type: ignore[arg-type]
        (lambda: SamplingConfig(greedy=1), "greedy is 1; it must be True or False"),  # type: ignore[arg-type]
        (lambda: SamplingConfig(temperature=None), "temperature is None; it must be a number"),  # type: ignore[arg-type]
        (lambda: AblateHead(1.0, 0), "layer is 1.0; it must be a whole number"),  # type: ignore[arg-type]
        (lambda: ScaleHead(0, 0, "x"), "factor is 'x'; it must be a number"),  # type: ignore[arg-type]
        (lambda: PatchMlp(0, 0, 5), "values is 5; it must be numbers"),  # type: ignore[arg-type]
        (lambda: ForceToken(0, math.nan), "id is nan; it must be a whole number"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_such_number_is_refused_at_once(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(CutawayError) as refused:
        make()
    assert str(refused.value) == sentence
    assert isinstance(refused.value, SamplingError if "; it" in sentence and "_" in sentence else CutawayError)


def test_truth_counts_as_a_number() -> None:
    """As it does in Python; what is kept is the number."""
    assert repr(SamplingConfig(seed=True)).endswith("seed=1)")


@pytest.mark.parametrize("position", [-1, 3])
def test_a_position_that_the_prompt_has_not_cannot_have_been_added(tiny: Model, position: int) -> None:
    with pytest.raises(ModelError, match=f"the prompt has no position {position}; choose from 0 to 2"):
        Generation(tiny, PROMPT, added=[position])


@pytest.mark.parametrize("edit", [AblateHead(0, 0, since=2**31 + 1), ForceToken(2**40, 1)])
def test_a_step_that_no_text_has_is_refused(tiny: Model, edit: AblateHead | ForceToken) -> None:
    with pytest.raises(ModelError, match="no text of this model has a generated token"):
        Generation(tiny, PROMPT, edits=[edit])
