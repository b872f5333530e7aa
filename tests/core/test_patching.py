"""Patches from another trace: the usual experiment, and places that are not there."""

from __future__ import annotations

import numpy as np
import pytest

from cutaway.core import Generation, ModelError, SamplingConfig, Trace
from cutaway.core.attention_stages import edited_mix
from cutaway.core.edits import AblateHead, AblateMlp, Edit
from cutaway.core.models.model import Model
from cutaway.core.patching import patch_head, patch_mlp, patch_residual

GREEDY = SamplingConfig(greedy=True)
FOX = "Once upon a time, there was a little fox who"
DOG = "Once upon a time, there was a little dog who"


def run_of(model: Model, text: str, *edits: Edit) -> Trace:
    run = Generation(
        model, model.tokenizer.encode(text), GREEDY, max_new_tokens=3, ignore_eos=True, capture="all", edits=edits
    )
    list(run)
    return run.trace


def test_the_stream_of_the_other_word_makes_the_other_answer(fable: Model) -> None:
    """From where the texts part, the stream after the first layer carries all the difference there is."""
    fox, dog = run_of(fable, FOX), run_of(fable, DOG)
    place = next(i for i, (one, other) in enumerate(zip(fox.prompt_ids, dog.prompt_ids, strict=True)) if one != other)
    last = len(fox.prompt_ids) - 1
    assert np.abs(fox.cache.rows.logits[last] - dog.cache.rows.logits[last]).max() > 0.1
    everywhere = [patch_residual(dog, 0, position) for position in range(place, last + 1)]
    patched = run_of(fable, FOX, *everywhere)
    np.testing.assert_allclose(patched.cache.rows.logits[last], dog.cache.rows.logits[last], atol=1e-4)
    assert patched.token_ids[last + 1 :] == dog.token_ids[last + 1 :]
    one_place = run_of(fable, FOX, everywhere[0])
    moved = np.abs(one_place.cache.rows.logits[last] - fox.cache.rows.logits[last]).max()
    assert moved > 0.01 and np.isfinite(moved)


def test_a_patch_from_the_run_itself_changes_nothing(fable: Model) -> None:
    fox = run_of(fable, FOX)
    edits = (patch_head(fox, 1, 3, 4), patch_mlp(fox, 2, 5), patch_residual(fox, 0, 6))
    np.testing.assert_allclose(run_of(fable, FOX, *edits).residual(-1), fox.residual(-1), atol=1e-4)


def test_what_is_taken_is_what_the_edits_there_left(fable: Model) -> None:
    changed = run_of(fable, FOX, AblateHead(1, 3), AblateMlp(2))
    assert not any(patch_head(changed, 1, 3, 4).values)
    assert np.abs(patch_mlp(changed, 2, 4).values).max() < 1e-5
    np.testing.assert_array_equal(patch_head(changed, 1, 2, 4).values, edited_mix(changed, 1, 4, 5)[2, 0])


def test_a_patch_can_go_to_another_position(fable: Model) -> None:
    fox = run_of(fable, FOX)
    assert (patch_residual(fox, 0, 6, at=2).position, patch_residual(fox, 0, 6).position) == (2, 6)
    moved = run_of(fable, FOX, patch_residual(fox, 0, 6, at=2))
    np.testing.assert_array_equal(moved.residual(0)[2], fox.residual(0)[6])


@pytest.mark.parametrize(
    ("layer", "head", "position", "message"),
    [
        (4, 0, 0, "this trace has no layer 4; choose from 0 to 3"),
        (0, 8, 0, "this trace has no head 8; choose from 0 to 7"),
        (0, 0, 99, "this trace has no position 99"),
        (0, 0, -1, "this trace has no position -1"),
    ],
)
def test_places_that_are_not_there(layer: int, head: int, position: int, message: str, fable: Model) -> None:
    with pytest.raises(ModelError, match=message):
        patch_head(run_of(fable, FOX), layer, head, position)
