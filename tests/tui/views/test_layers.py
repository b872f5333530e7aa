"""What every layer would say next: the model's own head on the engine's own residual stream."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.tui.cursor import Cursor
from cutaway.tui.moment import Moment
from cutaway.tui.stages import Place
from cutaway.tui.views.layers import BEST, find_lens, layers_view
from cutaway.widgets.layer_table import LayerRow, LayersView

if TYPE_CHECKING:
    from tests.tui.views.conftest import Run, Step

STEPS = 9


def view_of(moment: Moment, place: Place, layer: int = 0) -> LayersView:
    found = find_lens(moment.trace, place.step, moment.stages.passed(place.stage))
    return layers_view(moment, Cursor(layer=layer), place, found)


def softmax(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    weights = np.exp(scores.astype(np.float64) - scores.max())
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def check_row(row: LayerRow, moment: Moment, scores: NDArray[np.float32], drawn: int | None) -> None:
    """Fail unless *row* says what *scores* [V] say."""
    shares = softmax(scores)
    order = np.argsort(-scores, kind="stable")
    assert [text for text, _ in row.best] == [moment.name(int(id)) for id in order[:BEST]]
    assert [share for _, share in row.best] == pytest.approx([shares[id] for id in order[:BEST]], rel=1e-4)
    if drawn is None:
        assert row.drawn is None and row.rank is None
    else:
        assert row.drawn == pytest.approx(shares[drawn], rel=1e-4, abs=1e-9)
        assert row.rank == int(np.flatnonzero(order == drawn)[0])


def test_every_layer_says_what_its_residual_reads_as(run: Run, moment: Moment) -> None:
    decoder = run.trace.decoder
    for step in range(STEPS):
        view = view_of(moment, run.end(step), layer=2)
        assert [row.name for row in view.rows] == ["L0", "L1", "L2", "L3"] and view.layer == 2
        for layer, row in enumerate(view.rows):
            residual = run.residual[step][layer][-1:]
            scores = decoder.logits(residual)[0]
            check_row(row, moment, scores, run.trace.steps[step].id)
            assert row.norm == pytest.approx(float(np.linalg.norm(residual)), rel=1e-5)
            shares = softmax(scores)
            assert row.entropy == pytest.approx(float(-(shares * np.log2(shares)).sum()), rel=1e-3)
        T = run.prompt_length + step
        assert (view.after, view.drawn, view.note) == (moment.label(T - 1), moment.label(T), "")


def test_the_output_is_the_model_s_own_scores(run: Run, moment: Moment) -> None:
    for step in range(STEPS):
        output = view_of(moment, run.end(step)).output
        assert output is not None and output.name == "output" and output.norm is None
        check_row(output, moment, run.logits[step], run.trace.steps[step].id)


def test_a_pass_shows_the_layers_behind_it_and_no_token_before_the_draw(under_way: Step) -> None:
    run, moment = under_way.run, under_way.moment
    for step in range(2):
        for layer, name in product(range(4), ("qkv", "mlp", "residual")):
            view = view_of(moment, under_way.to(name, layer, step))
            reached = layer + (name == "residual")
            assert [row.norm is not None for row in view.rows] == [each < reached for each in range(4)]
            assert [bool(row.best) for row in view.rows] == [each < reached for each in range(4)]
            assert view.output is None and view.drawn == ""
            for done in range(reached):
                scores = run.trace.decoder.logits(run.residual[step][done][-1:])[0]
                check_row(view.rows[done], moment, scores, None)
        view = view_of(moment, under_way.to("logits", step=step))
        assert view.output is not None
        check_row(view.output, moment, run.logits[step], None)
        view = view_of(moment, under_way.to("draw", step=step))
        assert view.drawn == moment.label(run.prompt_length + step)


def test_the_stages_of_an_older_pass_do_not_tell_what_came_after(run: Run, moment: Moment) -> None:
    for name in ("norm", "logits", "final"):
        view = view_of(moment, run.place(3, name))
        assert view.drawn == "" and all(row.rank is None and row.drawn is None for row in view.rows)


def test_a_recording_says_the_same_from_its_tables(
    run: Run, moment: Moment, recorded: Callable[[bool], Moment]
) -> None:
    for step, (name, layer) in product((0, 5), (("residual", 1), ("draw", None))):
        one, other = (view_of(each, run.place(step, name, layer)) for each in (moment, recorded(True)))
        for live, kept in zip(one.rows, other.rows, strict=True):
            assert [text for text, _ in kept.best] == [text for text, _ in live.best]
            assert [share for _, share in kept.best] == pytest.approx([share for _, share in live.best], rel=1e-3)
            assert (kept.norm is None) == (live.norm is None) and kept.rank == live.rank
        assert (one.after, one.drawn, one.note) == (other.after, other.drawn, other.note)


def test_without_weights_and_tables_the_lengths_are_left_and_a_reason(
    run: Run, recorded: Callable[[bool], Moment]
) -> None:
    view = view_of(recorded(False), run.end(3))
    for layer, row in enumerate(view.rows):
        assert row.norm == pytest.approx(float(np.linalg.norm(run.residual[3][layer][-1])), rel=1e-4)
        assert row.best == () and row.drawn is None and row.rank is None
    assert "--model" in view.note
    assert view.output is not None and view.output.best
    assert view_of(recorded(False), run.place(3, "embedding")).note == ""
