"""What a token becomes before the first layer: the engine's own vectors, and the tokens nearest to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cutaway.tui.cursor import Cursor
from cutaway.tui.moment import Moment
from cutaway.tui.views.embedding import NEAREST, embedding_view, find_embedding
from cutaway.widgets.embedding_strips import EmbeddingView

if TYPE_CHECKING:
    from tests.tui.views.conftest import Run

STEPS = 9


def view_of(moment: Moment, position: int, dimension: int | None = None) -> EmbeddingView:
    return embedding_view(moment, Cursor(dimension=dimension), find_embedding(moment.trace, position))


def test_every_position_shows_the_vectors_that_entered(run: Run, moment: Moment) -> None:
    for position in range(run.prompt_length + STEPS - 1):
        view = view_of(moment, position, dimension=position)
        step = max(position - run.prompt_length + 1, 0)
        event = run.embedded[step]
        [row] = np.flatnonzero(event.positions == position)
        assert event.position is not None
        assert [name for name, _ in view.parts] == ["token", "position", "sum"]
        for (_, vector), said in zip(view.parts, (event.token, event.position, event.sum), strict=True):
            np.testing.assert_allclose(vector, said[row], atol=1e-6)
        assert (view.position, view.id) == (position, run.trace.token_ids[position])
        assert (view.token, view.dimension, view.note) == (moment.label(position), position, "")


def test_the_nearest_tokens_point_the_same_way(run: Run, moment: Moment) -> None:
    table = run.trace.decoder.embedding.token.astype(np.float64)
    lengths = np.linalg.norm(table, axis=1)
    for position in (0, 4, run.prompt_length + 2):
        id = run.trace.token_ids[position]
        cosines = table @ table[id] / (lengths * lengths[id])
        cosines[id] = -2
        best = np.argsort(-cosines, kind="stable")[:NEAREST]
        view = view_of(moment, position)
        assert [text for text, _ in view.nearest] == [moment.name(int(each)) for each in best]
        assert [cosine for _, cosine in view.nearest] == pytest.approx(cosines[best].tolist(), abs=1e-5)
        assert moment.name(id) not in [text for text, _ in view.nearest]


def test_a_recording_has_the_sum_and_says_what_is_missing(run: Run, recorded: Callable[[bool], Moment]) -> None:
    for tables in (True, False):
        view = view_of(recorded(tables), 5)
        [(name, vector)] = view.parts
        assert name == "sum" and "--model" in view.note and view.nearest == ()
        np.testing.assert_array_equal(vector, run.embedded[0].sum[5])
