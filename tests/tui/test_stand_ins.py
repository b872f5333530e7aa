"""What an editor is spared comes back exactly, whatever it is."""

import unicodedata

import pytest

from cutaway.tui.stand_ins import StandIns
from cutaway.widgets.drawable import cell_width


def test_every_code_point_comes_back() -> None:
    text = "".join(map(chr, range(0, 0x110000, 41))) + "\n \x1b\u009b\u202e\U000f0000\U000f0001\U0010ffff"
    stand_ins = StandIns()
    hidden = stand_ins.hide(text)
    assert len(hidden) == len(text)
    assert stand_ins.reveal(hidden) == text
    assert stand_ins.reveal(stand_ins.hide(text[::-1])) == text[::-1]


def test_more_of_them_than_there_are_stand_ins_is_no_error() -> None:
    stand_ins = StandIns()
    stand_ins.hide("".join(map(chr, range(0xF0000, 0x110000))))
    assert stand_ins.hide("\x1b a") == "\ufffd a"


def test_what_is_drawn_is_safe_and_one_column_for_each() -> None:
    stand_ins = StandIns()
    odd = "\x00\x1b\t\r\x7f\u0085\u009b\u00a0\u00ad\u200b\u202e\u2028\u3000\ue000\ufeff\ufffe\U0001f1eb\U000e0041"
    drawn = stand_ins.draw(stand_ins.hide(odd))
    assert len(drawn) == cell_width(drawn) == len(odd)
    assert all(unicodedata.category(sign)[0] == "S" for sign in drawn)
    assert drawn.startswith("␀␛⇥␍␡")


@pytest.mark.parametrize("text", ["two words\n", "漢字 😀", "e\u0301te", "שלום", "[/INST] [b]", "·⏎"])
def test_what_can_be_drawn_stays(text: str) -> None:
    assert StandIns().hide(text) == text
