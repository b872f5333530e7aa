"""One head at every stage of a pass: what is drawn is what the engine's events said."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cutaway.core.edits import AblateHead, AblateMlp, ForceToken
from cutaway.tui.cursor import Cursor
from cutaway.tui.moment import Moment
from cutaway.tui.stages import ATTENTION, Place
from cutaway.tui.views.attention import attention_view
from cutaway.widgets.attention_map import AttentionView, Layout
from cutaway.widgets.vector_blocks import VectorsView

if TYPE_CHECKING:
    from tests.tui.views.conftest import MakeRun, Run, Step

STEPS = 9
SCALE = 1 / np.sqrt(32)
"""Of the embedded model: one over the root of the head's size."""


def everything(keys: int) -> int:
    return keys


def a_map(moment: Moment, cursor: Cursor, place: Place, visible: Any = everything) -> AttentionView:
    view = attention_view(moment, cursor, place, visible)
    assert isinstance(view, AttentionView)
    return view


def vectors(moment: Moment, cursor: Cursor, place: Place, visible: Any = everything) -> VectorsView:
    view = attention_view(moment, cursor, place, visible)
    assert isinstance(view, VectorsView)
    return view


def test_weights_are_what_the_engine_computed(run: Run, moment: Moment) -> None:
    for step, layer, head in product(range(STEPS), range(4), range(8)):
        view = a_map(moment, Cursor(layer=layer, head=head), run.end(step))
        T = run.prompt_length + step
        expected = run.weights(step, layer, head)
        assert view.values.shape == expected.shape == (T, T)
        np.testing.assert_allclose(view.values, expected, atol=1e-5)
        np.testing.assert_array_equal(np.triu(view.values, 1), 0)
        assert (view.layer, view.head, view.first, view.kind, view.done) == (layer, head, 0, "weights", T)
        assert view.query == T - 1 and view.value == view.values[-1].max()
        assert view.labels == tuple(map(moment.label, range(T)))


def test_the_value_under_the_cursor_is_the_cell_s(run: Run, moment: Moment) -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        step, layer, head = (int(rng.integers(count)) for count in (STEPS, 4, 8))
        T = run.prompt_length + step
        query = int(rng.integers(T))
        key = int(rng.integers(query + 1))
        visible = int(rng.integers(1, T + 3))
        cursor = Cursor(layer=layer, head=head, cell=(query, key))
        view = a_map(moment, cursor, run.end(step), lambda keys, visible=visible: visible)
        assert (view.query, view.key) == (query, key)
        assert view.first <= query < view.first + len(view.values) <= T
        assert len(view.values) <= visible
        assert view.value == pytest.approx(float(run.weights(step, layer, head)[query, key]), abs=1e-5)
        assert view.labels[query] == moment.label(query)


def test_a_key_that_a_query_cannot_see_becomes_the_one_it_looks_at_most(run: Run, moment: Moment) -> None:
    for key in (-1, 5, 99):
        view = a_map(moment, Cursor(cell=(4, key)), run.end(3))
        assert view.query == 4 and view.value == view.values[4, :5].max()


def test_the_newest_queries_are_in_sight(run: Run, moment: Moment) -> None:
    T = run.prompt_length + STEPS - 1
    view = a_map(moment, Cursor(), run.end(STEPS - 1), lambda keys: 5)
    assert (view.first, len(view.values)) == (T - 5, 5)


def test_the_window_moves_no_further_than_the_cell_needs(run: Run, moment: Moment) -> None:
    T, visible, end = run.prompt_length + STEPS - 1, 5, run.end(STEPS - 1)

    def see(cursor: Cursor, place: Place, shown: AttentionView | None) -> AttentionView:
        view = attention_view(moment, cursor, place, lambda keys: visible, shown)
        assert isinstance(view, AttentionView)
        return view

    shown = see(Cursor(), end, None)
    rng = np.random.default_rng(3)
    for query in [T - 1, T - 6, T - 7, 0, 3, 4, 5, *map(int, rng.integers(0, T, 50)), T - 1]:
        view = see(Cursor(cell=(query, 0)), end, shown)
        assert view.first <= query < view.first + visible <= T
        if shown.first <= query < shown.first + visible:
            assert view.first == shown.first
        shown = view
    followed = see(Cursor(), end, shown)
    assert followed.first == T - visible
    assert see(Cursor(cell=(2, 0)), run.end(0), followed).first == 2


def test_a_cell_of_a_later_moment_is_brought_into_this_one(run: Run, moment: Moment) -> None:
    cell = (run.prompt_length + 5, run.prompt_length + 4)
    view = a_map(moment, Cursor(cell=cell), run.end(0))
    assert view.query == run.prompt_length - 1
    assert view.value == view.values[-1].max()


def test_a_trace_is_never_read_further_than_it_was_heard(run: Run) -> None:
    heard = Moment(run.trace, 2)
    view = a_map(heard, Cursor(layer=1, head=2), run.end(1))
    assert len(view.labels) == run.prompt_length + 1
    np.testing.assert_allclose(view.values, run.weights(1, 1, 2), atol=1e-5)


def test_a_map_as_large_as_its_panel_shows_every_query(run: Run, moment: Moment) -> None:
    for columns, rows in product((30, 60, 118), (6, 12, 30)):
        visible = partial_layout(columns, rows)
        view = a_map(moment, Cursor(), run.end(STEPS - 1), visible)
        assert len(view.values) == min(visible(len(view.labels)), len(view.labels))


def partial_layout(columns: int, rows: int) -> Callable[[int], int]:
    return lambda keys: Layout.of(keys, columns, rows).queries


def test_scores_before_and_after_the_mask(run: Run, moment: Moment) -> None:
    for step, layer, head in product((0, 4), range(4), (0, 5)):
        query, key = (run.vectors(name, step, layer, head) for name in ("query", "key"))
        expected = query @ key.T * SCALE
        cursor = Cursor(layer=layer, head=head)
        scores = a_map(moment, cursor, run.place(step, "scores", layer))
        assert scores.kind == "scores" and scores.done == len(query)
        np.testing.assert_allclose(scores.values, expected, atol=1e-4)
        assert scores.value == scores.values[-1].max()
        masked = a_map(moment, cursor, run.place(step, "mask", layer))
        assert masked.kind == "masked"
        np.testing.assert_allclose(masked.values, np.tril(expected), atol=1e-4)
        exponentials = np.where(np.tri(len(query), dtype=bool), np.exp(expected), 0)
        softmax = a_map(moment, cursor, run.place(step, "softmax", layer))
        np.testing.assert_allclose(softmax.values, exponentials / exponentials.sum(axis=1, keepdims=True), atol=1e-4)


def test_before_the_mask_the_future_can_be_looked_at(run: Run, moment: Moment) -> None:
    cursor = Cursor(layer=1, head=2, cell=(3, 9))
    scores = a_map(moment, cursor, run.place(0, "scores", 1))
    expected = run.vectors("query", 0, 1, 2)[3] @ run.vectors("key", 0, 1, 2)[9] * SCALE
    assert (scores.query, scores.key) == (3, 9) and scores.value == pytest.approx(expected, abs=1e-4)
    masked = a_map(moment, cursor, run.place(0, "mask", 1))
    assert masked.key <= 3


@pytest.mark.parametrize("visible", [3, 99])
def test_vectors_of_the_head(run: Run, moment: Moment, visible: int) -> None:
    for step, layer, head in product((0, 5), (0, 3), (1, 7)):
        T = run.prompt_length + step
        window = slice(max(T - visible, 0), T)
        query, key, value = (run.vectors(name, step, layer, head) for name in ("query", "key", "value"))
        cursor = Cursor(layer=layer, head=head)
        view = vectors(moment, cursor, run.place(step, "qkv", layer), lambda keys: visible)
        assert [name for name, _ in view.blocks] == ["q", "k", "v"]
        for (_, block), expected in zip(view.blocks, (query, key, value), strict=True):
            np.testing.assert_array_equal(block, expected[window])
        assert (view.first, view.query, view.layer, view.head) == (window.start, T - 1, layer, head)
        assert view.labels == tuple(map(moment.label, range(T)))
        mix = vectors(moment, cursor, run.place(step, "mix", layer), lambda keys: visible)
        np.testing.assert_array_equal(mix.blocks[0][1], value[window])
        np.testing.assert_allclose(mix.blocks[1][1], (run.weights(step, layer, head) @ value)[window], atol=1e-4)


def test_what_attention_adds_to_the_stream(run: Run, moment: Moment, recorded: Callable[[bool], Moment]) -> None:
    for step, layer in product((0, 5), range(4)):
        expected = np.concatenate([events[layer].output for events in run.attention[: step + 1]])
        for each in (moment, recorded(True)):
            view = vectors(each, Cursor(layer=layer), run.place(step, "projection", layer))
            [(_, output)] = view.blocks
            np.testing.assert_allclose(output, expected, atol=1e-4)


def test_where_nothing_can_tell_what_attention_adds_it_says_so(run: Run, recorded: Callable[[bool], Moment]) -> None:
    view = vectors(recorded(False), Cursor(layer=1), run.place(2, "projection", 1))
    assert view.blocks == () and "weights" in view.note
    assert vectors(recorded(False), Cursor(layer=1), run.place(2, "qkv", 1)).note == ""


def test_a_recording_shows_the_same(run: Run, moment: Moment, recorded: Callable[[bool], Moment]) -> None:
    for name in ATTENTION:
        for tables in (True, False):
            one, other = (
                attention_view(each, Cursor(layer=2, head=3), run.place(4, name, 2), everything)
                for each in (moment, recorded(tables))
            )
            assert type(one) is type(other)
            if isinstance(one, AttentionView) and isinstance(other, AttentionView):
                np.testing.assert_array_equal(one.values, other.values)


def test_the_mask_changes_no_colour(run: Run, moment: Moment) -> None:
    """The scale is that of all scores, of those too that the mask hides."""
    for step, layer, head in product((0, 4), range(4), range(8)):
        cursor = Cursor(layer=layer, head=head)
        scores, masked = (a_map(moment, cursor, run.place(step, name, layer)) for name in ("scores", "mask"))
        assert masked.limit == scores.limit == np.abs(scores.values).max()


def test_only_queries_keys_and_values_have_scales_of_their_own(run: Run, moment: Moment) -> None:
    view = vectors(moment, Cursor(layer=1), run.place(2, "qkv", 1))
    assert view.limits == [float(np.abs(values).max()) for _, values in view.blocks]
    assert len(set(view.limits)) == 3
    for name in ("mix", "projection"):
        view = vectors(moment, Cursor(layer=1), run.place(2, name, 1))
        assert set(view.limits) == {max(float(np.abs(values).max()) for _, values in view.blocks)}


def test_stages_of_another_layer_leave_the_weights_of_this_one(run: Run, moment: Moment) -> None:
    """Only the layer that is looked at is taken apart; one behind shows its whole map, one ahead the queries before."""
    T = run.prompt_length + 3
    for name in ATTENTION:
        behind = a_map(moment, Cursor(layer=1, head=2), run.place(3, name, 2))
        np.testing.assert_allclose(behind.values, run.weights(3, 1, 2), atol=1e-5)
        ahead = a_map(moment, Cursor(layer=3, head=2), run.place(3, name, 2))
        assert (ahead.kind, ahead.done, ahead.query) == ("weights", T - 1, T - 1)
        np.testing.assert_allclose(ahead.values[:-1, :-1], run.weights(2, 3, 2), atol=1e-5)
        assert not ahead.values[-1].any() and ahead.seen(T - 1) == 0


def test_before_a_layer_is_reached_there_is_nothing_to_see(run: Run, moment: Moment) -> None:
    for layer, name in product(range(1, 4), ATTENTION):
        assert attention_view(moment, Cursor(layer=layer), run.place(0, name, layer - 1), everything) is None
    for name in ("tokens", "embedding"):
        assert attention_view(moment, Cursor(), run.place(0, name), everything) is None


def test_a_pass_that_is_under_way(under_way: Step) -> None:
    """The rows of a pass that is not over show as soon as their event is out."""
    run, moment = under_way.run, under_way.moment
    for step, layer in product(range(2), range(4)):
        place = under_way.to("softmax", layer, step)
        view = a_map(moment, Cursor(layer=layer, head=6), place)
        np.testing.assert_allclose(view.values, run.weights(step, layer, 6), atol=1e-5)
        view = a_map(moment, Cursor(layer=layer, head=6), under_way.run.place(step, "scores", layer))
        assert view.values.shape == (run.prompt_length + step,) * 2


def test_a_silenced_head_says_so_from_the_step_on_that_it_is(a_run: MakeRun) -> None:
    run = a_run(edits=(AblateHead(1, 2, since=3), AblateMlp(1), ForceToken(1, 77)), steps=5)
    moment = Moment(run.trace, 5)
    silent = {
        (step, layer, head)
        for step, layer, head in product(range(5), range(4), range(8))
        if a_map(moment, Cursor(layer=layer, head=head), run.end(step)).silent
    }
    assert silent == {(3, 1, 2), (4, 1, 2)}
