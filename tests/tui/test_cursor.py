"""Where one looks: moving never leaves the run or the model, and looking at the newest token means following it."""

from itertools import product

from cutaway.tui.cursor import Cursor


def test_it_follows_the_newest_step() -> None:
    cursor = Cursor()
    assert [cursor.at_step(steps) for steps in range(4)] == [-1, 0, 1, 2]


def test_going_back_stays_at_a_step_and_going_forward_follows_again() -> None:
    cursor = Cursor().moved_by(-1, 5)
    assert cursor.step == 3
    assert cursor.at_step(9) == 3
    assert cursor.moved_by(1, 9).step == 4
    assert cursor.moved_by(1, 5).step is None


def test_moving_never_leaves_the_run() -> None:
    for steps, step, change in product(range(1, 6), [None, 0, 1, 2, 3, 4, 9], range(-7, 8)):
        moved = Cursor(step).moved_by(change, steps)
        assert 0 <= moved.at_step(steps) < steps
        expected = min(max(Cursor(step).at_step(steps) + change, 0), steps - 1)
        assert moved.at_step(steps) == expected
        assert (moved.step is None) == (expected == steps - 1)


def test_a_step_that_is_no_longer_there_is_the_last_one() -> None:
    assert Cursor(7).at_step(3) == 2


def test_layers_end_and_heads_go_round() -> None:
    cursor = Cursor(layer=1, head=1)
    assert [cursor.to_layer(layer, 4).layer for layer in range(-2, 6)] == [0, 0, 0, 1, 2, 3, 3, 3]
    assert [cursor.to_head(head, 3).head for head in range(-2, 5)] == [1, 2, 0, 1, 2, 0, 1]


def test_another_step_forgets_the_cell_and_nothing_else_does() -> None:
    cursor = Cursor(2, 1, 3, (5, 4))
    assert cursor.to_layer(2, 4).cell == cursor.to_head(0, 4).cell == (5, 4)
    assert cursor.moved_by(-1, 5) == Cursor(1, 1, 3)
    assert cursor.to_step(0) == Cursor(0, 1, 3)
    assert cursor.to_cell(None) == Cursor(2, 1, 3)
