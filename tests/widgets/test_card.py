"""The card over the screen: as large as its words, keys in one column, sentences in another."""

from collections.abc import Callable, Sequence

import pytest
from textual.app import App, ComposeResult
from textual.strip import Strip

from cutaway.widgets.card import Card, CardView
from cutaway.widgets.drawable import cell_width
from cutaway.widgets.look import look, style

Check = Callable[[Sequence[Strip], int], None]

VIEW = CardView("welcome", (("", "A model is writing."), ("space", "stops it"), ("→ ←", "one token on, one back")))


def drawn(view: CardView, width: int | None = None) -> list[Strip]:
    columns, rows = view.size
    return Card().draw(view, columns - 2 if width is None else width, rows - 2)


def test_it_is_as_large_as_its_words(check_rows: Check) -> None:
    columns, rows = VIEW.size
    assert (columns, rows) == (len("space") + 2 + len("one token on, one back") + 4, 5)
    check_rows(drawn(VIEW), columns - 2)
    assert [row.text.strip() for row in drawn(VIEW)] == [
        "A model is writing.", "space  stops it", "→ ←    one token on, one back"
    ]  # fmt: skip
    assert all("…" not in row.text and row.text.startswith(" ") and row.text.endswith(" ") for row in drawn(VIEW))


@pytest.mark.parametrize("heading", ["a heading that is wider than all the rest", "漢字" * 20, "x"])
def test_whatever_is_widest_fits_whole(heading: str, check_rows: Check) -> None:
    view = CardView("title", (("", heading), ("漢", "wide keys"), ("k", "漢字")))
    check_rows(drawn(view), view.size[0] - 2)
    for (_, text), row in zip(view.rows, drawn(view), strict=True):
        assert text in row.text
    assert view.key_cells == 2


def test_sentences_begin_in_one_column() -> None:
    rows = drawn(VIEW)[1:]
    begins = [cell_width(row.text[: row.text.index(text)]) for row, (_, text) in zip(rows, VIEW.rows[1:], strict=True)]
    assert begins == [8, 8]


def test_keys_and_the_heading_stand_out() -> None:
    colours = look()
    heading, space, _ = drawn(VIEW)
    tones = {segment.text: segment.style for row in (heading, space) for segment in row}
    assert tones["A model is writing."] == style(colours.text, colours.panel, True)
    assert tones["space"] == style(colours.here, colours.panel, True)
    assert tones["stops it"] == style(colours.text, colours.panel)


@pytest.mark.parametrize("width", [1, 5, 9, 30])
def test_less_room_than_it_wants_is_no_error(width: int, check_rows: Check) -> None:
    check_rows(drawn(VIEW, width), width)


def test_a_card_of_nothing() -> None:
    assert CardView("", ()).size == (4, 2) and drawn(CardView("", ())) == []


async def test_the_title_is_in_the_border(check_rows: Check) -> None:
    class CardApp(App[None]):
        CSS = "Card { display: block; }"

        def compose(self) -> ComposeResult:
            yield Card()

    app = CardApp()
    async with app.run_test(size=(60, 12)) as pilot:
        card = app.query_one(Card)
        card.styles.width, card.styles.height = VIEW.size
        await pilot.pause()
        card.show(VIEW)
        rows = [card.render_line(y) for y in range(VIEW.size[1])]
        check_rows(rows, VIEW.size[0])
        assert rows[0].text.startswith("╭─ welcome ─") and rows[-1].text.startswith("╰──")
        assert [row.text.strip("│ ") for row in rows[1:-1]] == [row.text.strip() for row in drawn(VIEW)]
