"""Vectors of tokens and their neighbours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cutaway.core import Generation, ModelError
from cutaway.core.embedding import embedding_parts, nearest_tokens
from cutaway.core.models.model import Model
from cutaway.core.models.parts import Embedding

PROMPT = [5, 83, 92, 83, 15, 11]


def test_parts_add_up_to_what_entered_block_0(tiny: Model) -> None:
    run = Generation(tiny, PROMPT, max_new_tokens=4, ignore_eos=True)
    list(run)
    table = tiny.decoder.embedding
    for position, id in enumerate(run.trace.token_ids[:-1]):
        token, place, both = embedding_parts(run.trace, position)
        assert place is not None and table.position is not None
        np.testing.assert_array_equal(token, table.token[id])
        np.testing.assert_array_equal(place, table.position[position])
        np.testing.assert_array_equal(both, run.trace.embedding()[position])


def test_parts_where_positions_enter_later(tiny: Model) -> None:
    run = Generation(tiny, PROMPT)
    decoder = replace(tiny.decoder, embedding=Embedding(tiny.decoder.embedding.token, None))
    trace = replace(run.trace, model=replace(run.trace.model, decoder=decoder))
    token, place, both = embedding_parts(trace, 2)
    assert place is None
    np.testing.assert_array_equal(token, both)


def test_parts_need_the_weights(tiny: Model) -> None:
    trace = Generation(tiny, PROMPT).trace
    with pytest.raises(ModelError, match="needs the weights of gpt2_base.*--model"):
        embedding_parts(replace(trace, model=replace(trace.model, decoder=None)), 0)


@pytest.mark.parametrize("id", [0, 7, 96])
def test_neighbours_of_a_token(id: int, tiny: Model) -> None:
    table = tiny.decoder.embedding.token.astype(np.float64)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    truth = unit @ unit[id]
    order = [each for each in np.argsort(-truth, kind="stable").tolist() if each != id]
    ids, cosines = nearest_tokens(tiny.decoder, id, 8)
    assert ids.tolist() == order[:8]
    np.testing.assert_allclose(cosines, truth[ids], atol=1e-6)
    assert sorted(nearest_tokens(tiny.decoder, id, 1000)[0].tolist()) == sorted(order)


def test_neighbours_of_a_vector(tiny: Model) -> None:
    vector = 3 * tiny.decoder.embedding.token[12]
    ids, cosines = nearest_tokens(tiny.decoder, vector, 3)
    assert ids[0] == 12 and cosines[0] == pytest.approx(1, abs=1e-6)
    nothing, cosines = nearest_tokens(tiny.decoder, np.zeros_like(vector), 3)
    assert nothing.tolist() == [0, 1, 2] and not cosines.any()


def test_neighbours_of_a_word(fable: Model) -> None:
    """The embedded model has learned that a girl is like a boy."""
    girl, boy = (fable.tokenizer.encode(word)[0] for word in (" girl", " boy"))
    assert boy in nearest_tokens(fable.decoder, girl, 10)[0]
