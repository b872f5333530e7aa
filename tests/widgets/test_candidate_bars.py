"""Candidates: numbers as people read them, bars that compare, the drawn one and the removed ones marked."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from rich.style import Style
from textual.app import App, ComposeResult
from textual.message import Message
from textual.strip import Strip

from cutaway.widgets.candidate_bars import CandidateBars, CandidateRow, CandidatesView
from cutaway.widgets.look import look, style
from cutaway.widgets.numbers import EIGHTHS, bar, percent

Check = Callable[[Sequence[Strip], int], None]

WIDTHS = [26, 28, 33, 45, 46, 60, 118, 200]


STEP = 5
"""The generated token that all this is about."""


def a_row(rank: int, text: str, raw: float, share: float, removed_by: str | None = None) -> CandidateRow:
    return CandidateRow(100 + rank, rank, text, raw, share, removed_by)


ROWS = (
    a_row(0, "·rabbit", 0.4, 0.5),
    a_row(1, "·girl", 0.2, 0.25),
    a_row(2, "·漢字", 0.1, 0.125),
    a_row(3, "·boy", 0.05, 0.0, "top-k"),
    a_row(9, "·bear", 0.00004, 0.0, "top-p"),
)


def a_view(
    rows: Sequence[CandidateRow] = ROWS, drawn: int | None = 1, how: str = "drawn", stage: str = "final"
) -> CandidatesView:
    return CandidatesView(STEP, tuple(rows), stage, drawn, how, 4091, 0.2499, 0.125, "T 0.8 · top-k 40")


def drawn(view: CandidatesView, width: int = 60, height: int = 12) -> list[Strip]:
    return CandidateBars().draw(view, width, height)


def eighths(text: str) -> int:
    """How long the bar in *text* is, in eighths of a column."""
    return sum(EIGHTHS.index(character) for character in text if character in EIGHTHS)


def style_of(text: str, row: Strip) -> Style:
    return next(segment.style for segment in row if segment.text.strip() == text and segment.style)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100.0 %"),
        (0.31234, "31.2 %"),
        (0.1, "10.0 %"),
        (0.0999, "9.99 %"),
        (0.01, "1.00 %"),
        (0.0004, "0.04 %"),
        (0.0001, "0.01 %"),
        (0.00009999, "<0.01 %"),
        (1e-30, "<0.01 %"),
        (0.0, "0.00 %"),
    ],
)
def test_percentages_as_people_read_them(share: float, text: str) -> None:
    assert percent(share) == text
    row = drawn(a_view([a_row(0, "·a", share, share)], drawn=0))[1].text
    assert row.replace(text, f" {text} ").count(f" {text} ") == 2
    assert f" {text} " in drawn(CandidatesView(STEP, (), "final", None, "", 3, share, 0.0, ""))[-1].text


@pytest.mark.parametrize("cells", [0, 1, 7, 40])
def test_a_bar_is_as_long_as_its_share_to_an_eighth(cells: int) -> None:
    for thousandth in range(1001):
        share = thousandth / 1000
        text = bar(share, cells)
        assert len(text) <= cells and set(text) <= set(EIGHTHS[1:])
        assert "█" not in text.lstrip("█")
        assert abs(eighths(text) - share * cells * 8) < (0.51 if share * cells * 8 >= 1 else 1)
    assert bar(1e-9, cells) == "▏" * bool(cells)
    assert bar(0.0, cells) == ""
    assert bar(2.0, cells) == "█" * cells


@pytest.mark.parametrize("width", WIDTHS)
def test_every_row_is_as_wide_as_the_panel(width: int, check_rows: Check) -> None:
    for height in range(2, 20):
        for how in ("drawn", "yours", "best"):
            rows = drawn(a_view(how=how), width, height)
            assert len(rows) == min(height, len(ROWS) + 2)
            check_rows(rows, width)


@pytest.mark.parametrize("width", WIDTHS)
def test_rank_token_and_share_are_always_there(width: int) -> None:
    rows = drawn(a_view(), width)
    assert rows[0].text.split()[0] == "token" and rows[0].text.split()[-1] == "final"
    for row, candidate in zip(rows[1:], ROWS, strict=False):
        words = row.text.split()
        assert words[0] == str(candidate.rank)
        assert words[1] == candidate.text or width < 33 and words[1].rstrip("…") in candidate.text
        share = "–" if candidate.removed_by else f"{candidate.share:.1%}"[:-1]
        assert share in words[2:]


def test_the_raw_share_gives_way_first() -> None:
    assert "raw" in drawn(a_view(), 50)[0].text and "40.0 %" in drawn(a_view(), 50)[1].text
    assert "raw" not in drawn(a_view(), 49)[0].text and "40.0 %" not in drawn(a_view(), 49)[1].text


@pytest.mark.parametrize("width", WIDTHS)
def test_columns_stand_under_their_headings(width: int) -> None:
    rows = drawn(a_view(), width)
    edge = rows[0].text.index("final") + len("final")
    for row, candidate in zip(rows[1:], ROWS, strict=False):
        share = "–" if candidate.removed_by else f"{candidate.share:.1%}".replace("%", " %")
        assert row.crop(0, edge).text.endswith(f" {share}")


@pytest.mark.parametrize("width", [40, 60, 118, 200])
@pytest.mark.parametrize("place", [None, *range(4)])
def test_a_full_bar_is_a_hundred_percent(width: int, place: int | None) -> None:
    """In every row, at every moment: a sure model and an unsure one look different."""
    shares = [1.0, 0.5, 0.25, 0.05]
    rows = [a_row(rank, "·t", share, share) for rank, share in enumerate(shares)]
    lengths = [eighths(row.text) for row in drawn(a_view(rows, drawn=place), width)[1:5]]
    assert lengths[0] >= 8 and lengths[0] % 8 == 0
    assert lengths == pytest.approx([lengths[0] * share for share in shares], abs=1)


def test_bars_of_removed_rows_show_their_raw_share() -> None:
    rows = [a_row(0, "·a", 0.5, 1.0), a_row(1, "·b", 0.25, 0.0, "top-k"), a_row(2, "·c", 0.125, 0.0, "min-p")]
    full, quarter, eighth = (eighths(row.text) for row in drawn(a_view(rows, drawn=0), 118)[1:4])
    assert [quarter, eighth] == pytest.approx([full / 4, full / 8], abs=1)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_jumps_when_names_grow(width: int) -> None:
    short = drawn(a_view([a_row(0, "a", 0.4, 0.5)], drawn=0), width)
    long = drawn(a_view([a_row(0, "a" * 60, 0.4, 0.5)], drawn=0), width)
    assert short[0] == long[0] and short[1].text.index("◂") == long[1].text.index("◂")


@pytest.mark.parametrize("width", WIDTHS)
def test_what_was_removed_says_by_what_at_any_width(width: int) -> None:
    texts = [row.text.rstrip("".join(EIGHTHS)) for row in drawn(a_view(), width)[4:6]]
    assert all(text.endswith(name) or width < 32 for text, name in zip(texts, ["top-k", "top-p"], strict=True))


def test_what_was_removed_says_by_what_and_shows_its_raw_share() -> None:
    colours = look()
    rows = drawn(a_view(), 80)
    for row, candidate in zip(rows[4:6], ROWS[3:], strict=True):
        assert candidate.removed_by is not None
        assert f" – {candidate.removed_by} " in row.text
        [bar_style] = [segment.style for segment in row if set(segment.text) & set(EIGHTHS[1:])]
        assert bar_style == style(colours.line, colours.panel)
    kept = drawn(a_view(), 80)[1]
    assert style_of("·rabbit", kept) != style_of("·boy", rows[4])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", range(len(ROWS)))
def test_the_drawn_row_is_marked_and_no_other(width: int, place: int) -> None:
    rows = drawn(a_view(drawn=place), width)
    marked = [number for number, row in enumerate(rows) if "◂" in row.text]
    assert marked == [place + 1]


@pytest.mark.parametrize("how", ["drawn", "best", "yours"])
def test_the_drawn_row_says_how(how: str) -> None:
    for width in (34, 60, 118):
        assert f"◂ {how} " in drawn(a_view(how=how), width)[2].text


@pytest.mark.parametrize("width", WIDTHS)
def test_before_the_draw_no_row_is_marked(width: int) -> None:
    rows = drawn(a_view(drawn=None), width)
    assert "◂" not in "".join(row.text for row in rows)
    here = style(look().here, look().panel, True)
    assert not [segment for row in rows for segment in row if segment.style == here and segment.text.strip()]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("stage", ["softmax", "heat", "top-k", "final", "penalty"])
def test_the_stage_that_is_shown_heads_its_shares(width: int, stage: str) -> None:
    heading, best = (row.text for row in drawn(a_view(stage=stage), width)[:2])
    assert heading.split()[-1] == stage
    assert best[: heading.index(stage) + len(stage)].endswith(" 50.0 %")


def test_the_others_come_last_with_what_they_share() -> None:
    for height in (3, 7, 20):
        assert drawn(a_view(), 60, height)[-1].text.split() == "4,091 others 25.0 % 12.5 %".split()
    assert drawn(a_view(), 40)[-1].text.split() == "4,091 others 12.5 %".split()


def test_a_greedy_draw() -> None:
    rows = [a_row(0, "·a", 0.4, 1.0), a_row(1, "·b", 0.3, 0.0, "greedy")]
    first, second = drawn(a_view(rows, drawn=0, how="best"), 80)[1:3]
    assert "100.0 %" in first.text and "◂ best" in first.text
    assert " – greedy " in second.text


@pytest.mark.parametrize("width", [26, 60])
def test_every_token_fits_its_column(width: int, hostile_tokens: list[str], check_rows: Check) -> None:
    panel = CandidateBars()
    for start in range(0, len(hostile_tokens), 60):
        rows = [
            a_row(start + place, text, 0.01, 0.02, ("top-k", None)[place % 2])
            for place, text in enumerate(hostile_tokens[start : start + 60])
        ]
        check_rows(panel.draw(a_view(rows, drawn=3), width, 62), width)


class BarsApp(App[None]):
    """The candidates, and what was asked of them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Message] = []

    def compose(self) -> ComposeResult:
        yield CandidateBars()

    def on_mount(self) -> None:
        self.query_one(CandidateBars).show(a_view())

    @property
    def rows(self) -> list[Strip]:
        bars = self.query_one(CandidateBars)
        return [bars.render_line(y) for y in range(bars.size.height)]

    def on_candidate_bars_pointed(self, message: CandidateBars.Pointed) -> None:
        self.asked.append(message)
        self.query_one(CandidateBars).show(replace(a_view(), pointed=message.row))

    def on_candidate_bars_taken(self, message: CandidateBars.Taken) -> None:
        self.asked.append(message)

    def pop(self) -> list[Message]:
        """What was asked since the last time."""
        asked, self.asked = self.asked, []
        return asked


def said(messages: Sequence[Message]) -> list[int | tuple[int, int]]:
    """The rows that were pointed at, and the steps and tokens that were taken."""
    return [
        (message.step, message.id) if isinstance(message, CandidateBars.Taken) else message.row
        for message in messages
        if isinstance(message, CandidateBars.Taken | CandidateBars.Pointed)
    ]


async def test_arrows_point_at_rows_and_enter_takes_one(check_rows: Check) -> None:
    app = BarsApp()
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.press("up", "down", "down", "enter")
        assert said(app.pop()) == [0, 1, 2, (STEP, 102)]
        await pilot.press(*["down"] * 9, "enter")
        assert said(app.pop())[-1] == (STEP, 100 + ROWS[-1].rank)
        check_rows(app.rows, 60)


async def test_arrows_that_outrun_the_screen_are_all_counted() -> None:
    app = BarsApp()
    async with app.run_test(size=(60, 12)) as pilot:
        panel = app.query_one(CandidateBars)
        for change in (1, 1, 1, -1):
            panel.action_move(change)
        panel.action_take()
        await pilot.pause()
        assert said(app.pop()) == [1, 2, 3, 2, (STEP, 102)]


async def test_the_row_that_keys_are_at_is_marked_while_they_are(check_rows: Check) -> None:
    app = BarsApp()
    async with app.run_test(size=(60, 12)) as pilot:
        for row in range(len(ROWS)):
            marked = [y for y, strip in enumerate(app.rows) if "▸" in strip.text]
            assert marked == [row + 2]
            underlined = [s.text for strip in app.rows for s in strip if s.style and s.style.underline]
            assert [text.strip() for text in underlined] == [ROWS[row].text]
            await pilot.press("down")
        assert "enter takes it" in app.rows[-1].text
        app.query_one(CandidateBars).blur()
        await pilot.pause()
        assert "▸" not in "".join(strip.text for strip in app.rows)
        assert "T 0.8 · top-k 40" in app.rows[-1].text


async def test_a_click_points_and_a_second_one_takes() -> None:
    app = BarsApp()
    async with app.run_test(size=(60, 12)) as pilot:
        for row in (3, 0):
            await pilot.click(CandidateBars, (10, 2 + row))
            await pilot.pause()
            assert said(app.pop()) == [row]
        await pilot.click(CandidateBars, (10, 2 + 2), times=2)
        await pilot.pause()
        assert said(app.pop()) == [2, (STEP, 102)]
        for y in (0, 1, 2 + len(ROWS), 11):  # borders, the heading, the line of the others
            await pilot.click(CandidateBars, (10, y))
        await pilot.pause()
        assert app.pop() == []


async def test_without_candidates_keys_ask_for_nothing() -> None:
    app = BarsApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.query_one(CandidateBars).wait("no scores yet")
        await pilot.press("down", "enter")
        await pilot.click(CandidateBars, (10, 3))
        await pilot.pause()
        assert app.pop() == []
