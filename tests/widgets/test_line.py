"""A row put together piece by piece is exactly as wide as it was meant to be."""

import random
from collections.abc import Callable, Sequence

from rich.segment import Segment
from textual.strip import Strip

from cutaway.widgets.line import Line
from cutaway.widgets.look import style

Check = Callable[[Sequence[Strip], int], None]

FILL = style("#ffffff", "#000000")
OTHER = style("#ff0000", "#000000")


def test_pieces_stand_where_they_are_put() -> None:
    line = Line(20, FILL).gap(1).add("one", OTHER).to(8).add("漢字").right("end", OTHER)
    assert line.strip().text == " one    漢字     end"
    assert [segment.text for segment in line.strip() if segment.style == OTHER] == ["one", "end"]


def test_what_does_not_fit_is_clipped_or_left_out() -> None:
    assert Line(5, FILL).add("abcdefgh").strip().text == "abcd…"
    assert Line(5, FILL).add("abc").add("defgh").strip().text == "abcd…"
    assert Line(5, FILL).add("abc").right("def").strip().text == "abc  "
    assert Line(5, FILL).add("abcde").add("x").strip().text == "abcde"
    assert Line(3, FILL).add("漢字").strip().text == "漢…"
    assert Line(4, FILL).gap(9).strip().text == "    "
    assert Line(4, FILL).add("abc").to(1).add("d").strip().text == "abcd"
    assert Line(0, FILL).add("a").gap(2).right("b").strip().text == ""


def test_ready_segments_stand_beside_texts() -> None:
    line = Line(9, FILL).gap(1).paint([Segment("漢", OTHER), Segment("▀▀", FILL)])
    assert (line.used, line.room) == (5, 4)
    strip = line.add("abcdef").strip()
    assert strip.text == " 漢▀▀abc…" and strip.cell_length == 9
    assert [segment.text for segment in strip if segment.style == OTHER] == ["漢"]
    assert Line(3, FILL).paint([]).strip().text == "   "


def test_whatever_is_added_the_row_is_as_wide_as_it_should_be(hostile_tokens: list[str], check_rows: Check) -> None:
    rng = random.Random(4)
    for _ in range(2000):
        cells = rng.randrange(1, 40)
        line = Line(cells, FILL)
        for _ in range(rng.randrange(5)):
            text = rng.choice(hostile_tokens)
            rng.choice([line.add, line.right])(text, OTHER)
            rng.choice([line.gap, line.to])(rng.randrange(50) // 5)
            assert 0 <= line.room <= cells
        check_rows([line.strip()], cells)
