"""All heads at a glance: block maxima of the engine's own weights, of the layers a pass has been through."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from cutaway.core.edits import AblateHead
from cutaway.core.overview import block_size
from cutaway.tui.cursor import Cursor
from cutaway.tui.moment import Moment
from cutaway.tui.stages import Place
from cutaway.tui.views.heads import find_heads, heads_view
from cutaway.widgets.heads_map import HeadsView

if TYPE_CHECKING:
    from tests.tui.views.conftest import MakeRun, Run, Step

STEPS = 9


def view_of(moment: Moment, cursor: Cursor, place: Place) -> HeadsView:
    """All that is to be seen at *place*, whatever time it takes."""
    layers, T = moment.stages.attended(place.stage), moment.positions(place)
    while not (found := find_heads(moment.overview, place.step, layers, T)).whole:
        assert len(found.maps) < layers
    assert found.trace is moment.trace and found.step == place.step and len(found.maps) == layers
    return heads_view(moment, cursor, found)


def test_every_map_is_the_head_s_weights(run: Run, moment: Moment) -> None:
    """Forwards and back: what a token more or fewer changes is what the engine computed there."""
    for step in (*range(STEPS), 3, 0, 7):
        view = view_of(moment, Cursor(layer=2, head=5), run.end(step))
        T = run.prompt_length + step
        assert (view.layers, view.heads, view.positions, view.kv_heads) == (4, 8, T, 8)
        assert view.block == block_size(T) == 1 and (view.layer, view.head) == (2, 5)
        for layer, head in product(range(4), range(8)):
            np.testing.assert_allclose(view.maps[layer, head], run.weights(step, layer, head), atol=1e-5)


def test_a_long_text_has_the_largest_weight_of_each_block(a_run: MakeRun) -> None:
    run = a_run(steps=40)
    moment = Moment(run.trace, 40)
    for step in (39, 25, 38):
        T = run.prompt_length + step
        view = view_of(moment, Cursor(), run.end(step))
        assert view.block == 2 and view.maps.shape[2:] == (-(-T // 2),) * 2
        padded = np.pad(run.weights(step, 1, 6), (0, T % 2))
        blocks = padded.reshape(len(padded) // 2, 2, -1, 2).max(axis=(1, 3))
        np.testing.assert_allclose(view.maps[1, 6], blocks, atol=1e-5)


def test_a_pass_shows_the_layers_it_has_been_through(run: Run, moment: Moment, under_way: Step) -> None:
    for layer in range(4):
        for name, reached in (("mask", layer), ("softmax", layer + 1), ("residual", layer + 1)):
            assert len(view_of(moment, Cursor(), run.place(4, name, layer)).maps) == reached
    for step, layer in product(range(2), range(4)):
        view = view_of(under_way.moment, Cursor(), under_way.to("softmax", layer, step))
        assert len(view.maps) == layer + 1
        for head in range(8):
            np.testing.assert_allclose(view.maps[layer, head], under_way.run.weights(step, layer, head), atol=1e-5)
    assert view_of(moment, Cursor(), run.place(0, "tokens")).maps.shape == (0, 8, 11, 11)


def test_silenced_heads_are_told_from_the_step_on_that_they_are(a_run: MakeRun) -> None:
    run = a_run(edits=(AblateHead(1, 2, since=3), AblateHead(0, 0)), steps=5)
    moment = Moment(run.trace, 5)
    silent = [view_of(moment, Cursor(), run.end(step)).silent for step in range(5)]
    assert silent == [{(0, 0)}] * 3 + [{(0, 0), (1, 2)}] * 2
