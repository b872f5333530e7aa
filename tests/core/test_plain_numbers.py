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


Config: Any = SamplingConfig
Head: Any = AblateHead
Scaled: Any = ScaleHead
Patched: Any = PatchMlp
Forced: Any = ForceToken
Run: Any = Generation
"""The same, for arguments that no type checker would let pass."""

HUGE = 10**5000

REFUSED: list[tuple[Callable[[Model], object], type[CutawayError], str]] = [
    (lambda _: Config(top_k=2.5), SamplingError, "top_k is 2.5 (SamplingConfig); it must be a whole number"),
    (lambda _: Config(seed="1"), SamplingError, "seed is '1' (SamplingConfig); it must be a whole number, or None"),
    (lambda _: Config(seed=True), SamplingError, "seed is True (SamplingConfig); it must be a whole number, or None"),
    (lambda _: Scaled(0, 0, False), ModelError, "factor is False (ScaleHead); it must be a number"),
    (lambda _: Config(seed=HUGE), SamplingError, "seed is a number of 16610 bits; it must be from 0 to 2^128 − 1"),
    (lambda _: Config(top_k=-HUGE), SamplingError, "top_k is a number of 16610 bits; it must be 0 (off) or more"),
    (lambda _: Scaled(0, 0, HUGE), ModelError, "factor is a number of 16610 bits (ScaleHead); it must be a number"),
    (lambda _: Config(top_p="1"), SamplingError, "top_p is '1' (SamplingConfig); it must be a number"),
    (lambda _: Config(top_p=1.0000001), SamplingError, "top_p is 1.0000001; it must be from 0 to 1 (off)"),
    (lambda _: Config(min_p=1j), SamplingError, "min_p is 1j (SamplingConfig); it must be a number"),
    (lambda _: Config(greedy=1), SamplingError, "greedy is 1 (SamplingConfig); it must be True or False"),
    (lambda _: Config(temperature=None), SamplingError, "temperature is None (SamplingConfig); it must be a number"),
    (lambda _: Head(1.0, 0), ModelError, "layer is 1.0 (AblateHead); it must be a whole number"),
    (lambda _: Scaled(0, 0, "x"), ModelError, "factor is 'x' (ScaleHead); it must be a number"),
    (lambda _: Patched(0, 0, 5), ModelError, "values is 5 (PatchMlp); it must be numbers"),
    (lambda _: Patched(0, 0, [[1], [2]]), ModelError, "values is [[1], [2]] (PatchMlp); it must be numbers"),
    (lambda _: Forced(0, math.nan), ModelError, "id is nan (ForceToken); it must be a whole number"),
    (lambda model: Run(model, [1.7]), ModelError, "id is 1.7; it must be a whole number"),
    (lambda model: Run(model, PROMPT, added=[0.0]), ModelError, "added is 0.0; it must be a whole number"),
    (lambda model: Run(model, PROMPT, end_ids=[2.7]), ModelError, "end_ids is 2.7; it must be a whole number"),
    (lambda model: Run(model, PROMPT).branch(2.0), ModelError, "step is 2.0; it must be a whole number"),
    (
        lambda model: Run(model, PROMPT, edits=[Head(HUGE, 0)]),
        ModelError, "this model has no layer a number of 16610 bits; choose from 0 to 2",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "sentence"), REFUSED)
def test_what_is_no_such_number_is_refused_at_once(
    make: Callable[[Model], object], kind: type[CutawayError], sentence: str, tiny: Model
) -> None:
    with pytest.raises(kind) as refused:
        make(tiny)
    assert str(refused.value) == sentence


def test_a_value_of_many_lines_is_told_in_one(tiny: Model) -> None:
    with pytest.raises(ModelError) as refused:
        Patched(0, 0, np.eye(2))
    assert str(refused.value) == "values is array([[1., 0.], [0., 1.]]) (PatchMlp); it must be numbers"


@pytest.mark.parametrize("position", [-1, 3])
def test_a_position_that_the_prompt_has_not_cannot_have_been_added(tiny: Model, position: int) -> None:
    with pytest.raises(ModelError, match=f"the prompt has no position {position}; choose from 0 to 2"):
        Generation(tiny, PROMPT, added=[position])


def test_a_step_that_no_text_has_is_refused(tiny: Model) -> None:
    """The last an edit may begin at is that of a branch at the end of the longest text."""
    n = tiny.config.positions
    for edit in (AblateHead(0, 0, since=n + 1), ForceToken(n, 1), ForceToken(2**40, 1)):
        with pytest.raises(ModelError, match="no text of this model has a generated token"):
            Generation(tiny, PROMPT, edits=[edit])
    Generation(tiny, PROMPT, edits=[AblateHead(0, 0, since=n), ForceToken(n - 1, 1)])
