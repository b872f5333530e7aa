"""Where one looks: moving never leaves the model, and going to another moment forgets only what was its own."""

from dataclasses import fields, replace

from cutaway.tui.cursor import Cursor
from cutaway.tui.stages import Place

EVERYWHERE = Cursor(Place(2, 7), 1, 3, (5, 4), 6, 17)
"""Nothing of it is as it is at first."""


def test_it_follows_the_newest_token_at_first() -> None:
    assert Cursor().place is None
    assert EVERYWHERE.to_place(None).place is None
    assert all(getattr(EVERYWHERE, each.name) != getattr(Cursor(), each.name) for each in fields(Cursor))


def test_layers_end_and_heads_go_round() -> None:
    cursor = Cursor(layer=1, head=1)
    assert [cursor.to_layer(layer, 4).layer for layer in range(-2, 6)] == [0, 0, 0, 1, 2, 3, 3, 3]
    assert [cursor.to_head(head, 3).head for head in range(-2, 5)] == [1, 2, 0, 1, 2, 0, 1]


def test_another_moment_forgets_the_cell_and_the_candidate_and_nothing_else() -> None:
    for place in (Place(2, 8), Place(1, 7), Place(0, 0), None):
        moved = EVERYWHERE.to_place(place)
        assert moved == replace(EVERYWHERE, place=place, cell=None, candidate=0)


def test_staying_where_one_is_forgets_nothing() -> None:
    assert EVERYWHERE.to_place(Place(2, 7)) is EVERYWHERE
    following = replace(EVERYWHERE, place=None)
    assert following.to_place(None) is following


def test_each_move_changes_one_thing() -> None:
    assert EVERYWHERE.to_layer(2, 4) == replace(EVERYWHERE, layer=2)
    assert EVERYWHERE.to_head(0, 4) == replace(EVERYWHERE, head=0)
    assert EVERYWHERE.to_cell((1, 0)) == replace(EVERYWHERE, cell=(1, 0))
    assert EVERYWHERE.to_cell(None) == replace(EVERYWHERE, cell=None)
    assert EVERYWHERE.to_candidate(9) == replace(EVERYWHERE, candidate=9)
    assert EVERYWHERE.to_candidate(-1).candidate == 0
    assert EVERYWHERE.to_dimension(0) == replace(EVERYWHERE, dimension=0)
    assert EVERYWHERE.to_dimension(None) == replace(EVERYWHERE, dimension=None)
