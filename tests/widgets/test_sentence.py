"""Sentences in lines: whole words, nothing lost without a sign of it, never wider than the panel."""

from collections.abc import Callable, Sequence

import pytest
from textual.strip import Strip

from cutaway.widgets.drawable import cell_width, drawable
from cutaway.widgets.look import look
from cutaway.widgets.sentence import centred, wrapped

Check = Callable[[Sequence[Strip], int], None]

SENTENCE = "u = 0.4312 falls on ‹·big›: shares lie side by side, by token id"


@pytest.mark.parametrize("cells", range(12, 80))
def test_words_stay_whole_and_none_is_lost(cells: int) -> None:
    lines = wrapped(SENTENCE, cells, 99)
    assert " ".join(lines) == SENTENCE
    assert all(0 < cell_width(line) <= cells for line in lines)


def test_lines_are_as_full_as_they_can_be() -> None:
    first, second, *_ = wrapped(SENTENCE, 30, 99)
    assert len(f"{first} {second.split()[0]}") > 30


@pytest.mark.parametrize("cells", range(12, 80))
def test_what_has_no_room_is_cut_between_words(cells: int) -> None:
    for most in (1, 2):
        lines = wrapped(SENTENCE, cells, most)
        assert len(lines) <= most and all(cell_width(line) <= cells for line in lines)
        text = " ".join(lines)
        if text != SENTENCE:
            assert text.endswith(" …") and SENTENCE.startswith(text[:-1])


def test_a_word_wider_than_a_line_goes_on_in_the_next() -> None:
    assert wrapped("漢字かな漢字 ab", 5, 9) == ["漢字", "かな", "漢字", "ab"]
    assert wrapped("abcdefgh", 3, 1) == ["ab…"]
    assert wrapped("", 10, 2) == []
    assert wrapped("words", 10, 0) == []


@pytest.mark.parametrize("cells", [1, 2, 9, 30])
def test_any_sentence_fits(cells: int, hostile_tokens: list[str]) -> None:
    for token in hostile_tokens[:200]:
        sentence = drawable(f"so {token} it is", spaces=False)
        assert all(cell_width(line) <= cells for line in wrapped(sentence, cells, 3))


@pytest.mark.parametrize("size", [(12, 3), (30, 6), (80, 9)])
def test_an_empty_panel_says_why_in_its_middle(size: tuple[int, int], check_rows: Check) -> None:
    rows = centred("needs the weights", *size, look())
    check_rows(rows, size[0])
    assert len(rows) <= size[1]
    said = [place for place, row in enumerate(rows) if row.text.strip()]
    assert " ".join(rows[place].text.strip() for place in said) == "needs the weights"
    assert abs(said[0] - (size[1] - 1 - said[-1])) <= 1
