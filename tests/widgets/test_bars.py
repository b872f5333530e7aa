"""The lines around the panels: whole parts or none, the least important left out first."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from time import monotonic

import pytest
from rich.style import Style
from textual.app import App, ComposeResult
from textual.strip import Strip

from cutaway.widgets import notice_line
from cutaway.widgets.drawable import cell_width
from cutaway.widgets.key_line import KeyHint, KeyLine, KeysView
from cutaway.widgets.notice_line import NoticeLine, NoticeView
from cutaway.widgets.stage_strip import StageStrip, StagesView
from cutaway.widgets.title_line import Part, TitleLine, TitleView, Tone
from tests.patience import PATIENCE

Check = Callable[[Sequence[Strip], int], None]

TITLE = TitleView(
    (
        Part("cutaway", "badge"),
        Part("fable", "strong"),
        Part("· a tiny story model", "quiet", 1),
        Part("· GPT-2", "quiet", 4),
        Part("4 layers × 8 heads × 256", "quiet", 5),
    ),
    (Part("token 7 of 64"), Part("▶ 8/s", "here"), Part("first 9 ms", "quiet", 3), Part("then 310/s", "quiet", 2)),
)


def draw_title(width: int, view: TitleView = TITLE) -> Strip:
    [row] = TitleLine().draw(view, width, 1)
    return row


def left_out(row: Strip) -> list[Part]:
    return [part for part in (*TITLE.left, *TITLE.right) if part.text not in row.text]


def tones_of(row: Strip) -> dict[str, Style]:
    return {segment.text.strip(): segment.style for segment in row if segment.text.strip() and segment.style}


def test_all_of_the_title_where_there_is_room(check_rows: Check) -> None:
    row = draw_title(120)
    check_rows([row], 120)
    assert left_out(row) == []
    assert row.text.rstrip().endswith("token 7 of 64 ▶ 8/s first 9 ms then 310/s")
    assert row.text.startswith("  cutaway  fable · a tiny story model")
    assert len(row.text.rstrip()) == 119


@pytest.mark.parametrize("width", range(36, 121))
def test_the_title_leaves_out_whole_parts_by_weight(width: int, check_rows: Check) -> None:
    row = draw_title(width)
    check_rows([row], width)
    weights = sorted((part.weight for part in left_out(row)), reverse=True)
    assert weights == [5, 4, 3, 2, 1][: len(weights)]
    assert "…" not in row.text


def test_no_part_is_left_out_for_nothing() -> None:
    shorter = [len(left_out(draw_title(width))) for width in range(120, 30, -1)]
    assert shorter == sorted(shorter)
    for width in range(45, 120):
        out = left_out(draw_title(width))
        if out:
            lightest = min(out, key=lambda part: part.weight)
            kept = [part for part in (*TITLE.left, *TITLE.right) if part not in out]
            needed = sum(cell_width(part.text) + 1 for part in (*kept, lightest)) + 2
            assert needed > width - 3


def test_tones_are_told_apart() -> None:
    tones: tuple[Tone, ...] = ("badge", "strong", "plain", "quiet", "here", "what")
    row = draw_title(120, TitleView(tuple(Part(tone, tone) for tone in tones), ()))
    assert len(set(tones_of(row).values())) == len(tones)


@pytest.mark.parametrize("layers", [1, 2, 4, 12, 48, 126])
def test_the_stages_fit_and_say_where_we_are(layers: int, check_rows: Check) -> None:
    names = ("tokenize", "embed", *(f"L{layer}" for layer in range(layers)), "norm", "logits", "draw")
    for width, current in product((50, 80, 120, 200), range(-1, len(names))):
        [row] = StageStrip().draw(StagesView(names, range(2, 2 + layers), current), width, 1)
        check_rows([row], width)
        assert "…" not in row.text
        if current < 0:
            continue
        name = names[current]
        inside = 0 <= current - 2 < layers
        [lit] = [segment for segment in row if segment.style and segment.style.bold]
        assert lit.text == name
        words = row.text.replace("─", " ").split()
        whole = " ".join(names).split()
        ranges = layer_ranges(layers, current - 2 if inside else None)
        joined = whole[:2] + ranges + whole[-3:]
        assert words in (whole, joined) or (width == 50 and " ".join(words) in " ".join(joined))


def layer_ranges(layers: int, here: int | None) -> list[str]:
    """Layers as ranges, the one we are in by itself."""
    spans = [(0, layers)] if here is None else [(0, here), (here, here + 1), (here + 1, layers)]
    return [f"L{first}" if last - first == 1 else f"L{first}–L{last - 1}" for first, last in spans if first < last]


TWELVE = ("embed", *(f"L{layer}" for layer in range(12)), "draw")
"""The stages of a model of twelve layers."""
OF_TWELVE = StagesView(TWELVE, range(1, 13), -1)


def text(width: int, current: int, view: StagesView = OF_TWELVE) -> str:
    """What the strip says in so many columns at the stage *current*."""
    [row] = StageStrip().draw(replace(view, current=current), width, 1)
    return row.text.strip()


def test_layers_become_ranges_where_they_do_not_fit() -> None:
    assert text(120, 3) == " ─ ".join(TWELVE)
    assert text(60, 3) == " ".join(TWELVE)
    assert text(44, 3) == "embed ─ L0–L1 ─ L2 ─ L3–L11 ─ draw"
    assert text(44, 2) == "embed ─ L0 ─ L1 ─ L2–L11 ─ draw"
    assert text(44, 12) == "embed ─ L0–L10 ─ L11 ─ draw"
    assert text(40, 0) == "embed ─ L0–L11 ─ draw"
    assert text(29, 3) == "embed L0–L1 L2 L3–L11 draw"
    assert text(20, 0) == "embed L0–L11 draw"


def test_where_little_fits_the_neighbours_of_where_we_are_do() -> None:
    assert text(20, 3) == "L0–L1 L2 L3–L11"
    assert text(14, 3) == "L0–L1 L2"
    assert text(9, 3) == "L2"
    assert text(18, 0) == "embed L0–L11"
    assert text(14, 13) == "L0–L11 draw"
    assert text(8, 13) == "draw"


def test_stages_that_do_nothing_are_left_out_before_the_others() -> None:
    names = ("embed", "L0", "L1", "L2", "logits", "penalty", "temperature", "top-k", "draw")

    def in_cells(cells: int, current: int) -> str:
        return text(cells + 2, current, StagesView(names, range(1, 4), current, frozenset({5, 7})))

    joined, left = "embed L0–L2 logits penalty temperature top-k draw", "embed L0–L2 logits temperature draw"
    assert in_cells(80, 0) == " ─ ".join(names)
    assert in_cells(len(joined), 0) == joined
    assert in_cells(len(joined) - 1, 0) == left.replace(" ", " ─ ")
    assert in_cells(len(left), 0) == left
    assert in_cells(len(left) + 4, 2) == left.replace("L0–L2", "L0 L1 L2")
    here = "embed L0–L2 logits temperature top-k draw"  # where one is, it does stand there
    assert in_cells(len(left) + 6, 7) == here


def test_past_here_and_ahead_look_different() -> None:
    names = ("one", "two", "three")
    [row] = StageStrip().draw(StagesView(names, range(0), 1), 40, 1)
    tones = tones_of(row)
    assert len({tones[name] for name in names}) == 3


@pytest.mark.parametrize("width", range(20, 100, 7))
def test_a_notice_takes_its_short_form_or_is_clipped(width: int, check_rows: Check) -> None:
    text, short = "token 3: ·rabbit was drawn; a surprise of 2 bits", "token 3: ·rabbit"
    [row] = NoticeLine().draw(NoticeView(text, "here", short), width, 1)
    check_rows([row], width)
    assert row.text.strip() == (text if cell_width(text) <= width - 2 else short)
    [row] = NoticeLine().draw(NoticeView(text), width, 1)
    check_rows([row], width)
    assert row.text.strip() == text or row.text.strip().endswith("…")


class NoticeApp(App[None]):
    """A line that says things."""

    def compose(self) -> ComposeResult:
        yield NoticeLine()


async def test_what_was_said_stays_for_a_while_and_what_is_to_last_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    before, now, said = (NoticeView(text) for text in ("token 1", "token 2", "saved"))
    app = NoticeApp()
    async with app.run_test(size=(40, 3)) as pilot:
        line = app.query_one(NoticeLine)
        line.idle(before)
        monkeypatch.setattr(notice_line, "SAID_SECONDS", 1000.0)
        line.say(said)
        line.idle(now)
        await pilot.pause()
        assert line.view == said
        monkeypatch.setattr(notice_line, "SAID_SECONDS", 0.01)
        line.say(said)
        deadline = monotonic() + PATIENCE
        while line.view != now:
            assert monotonic() < deadline
            await pilot.pause(0.01)
        line.say(said)
        line.say(said, lasting=True)
        await pilot.pause(0.1)
        assert line.view == said
        line.hush()
        assert line.view == now


HINTS = KeysView(
    (
        KeyHint((("space", "do_run"),), "run"),
        KeyHint((("→", "do_token"),), "token"),
        KeyHint((("↑", "do_up"), ("↓", "do_down")), "layer"),
    ),
    (KeyHint((("?", "do_help"),), "help"), KeyHint((("q", "do_quit"),), "quit")),
)


def text_of(hint: KeyHint) -> str:
    return f"{hint.text} {hint.label}"


@pytest.mark.parametrize("width", range(20, 80))
def test_key_hints_are_whole_and_the_last_always_there(width: int, check_rows: Check) -> None:
    [row] = KeyLine().draw(HINTS, width, 1)
    check_rows([row], width)
    shown = [hint for hint in HINTS.hints if text_of(hint) in row.text]
    assert shown == list(HINTS.hints[: len(shown)])
    assert "? help  q quit" in row.text
    assert row.text.split() == [word for hint in (*shown, *HINTS.last) for word in text_of(hint).split()]


class KeyApp(App[None]):
    """A line of keys and what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def compose(self) -> ComposeResult:
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(KeyLine).show(HINTS)

    def on_key_line_asked(self, message: KeyLine.Asked) -> None:
        self.asked.append(message.action)


async def test_a_click_asks_for_the_hint_under_it() -> None:
    app = KeyApp()
    async with app.run_test(size=(40, 3)) as pilot:
        row = app.query_one(KeyLine).render_line(0).text
        shown = [hint for hint in (*HINTS.hints, *HINTS.last) if text_of(hint) in row]
        assert len(shown) >= 4
        for hint in shown:
            column = row.index(text_of(hint))
            end = column + len(text_of(hint))
            app.asked.clear()
            for place in (column - 1, column, end - 1, end):
                await pilot.click(KeyLine, (place, 0))
            await pilot.pause()
            assert app.asked == [hint.keys[0][1]] * 2


async def test_each_key_of_a_pair_is_its_own() -> None:
    app = KeyApp()
    async with app.run_test(size=(60, 3)) as pilot:
        row = app.query_one(KeyLine).render_line(0).text
        await pilot.click(KeyLine, (row.index("↑"), 0))
        await pilot.click(KeyLine, (row.index("↓"), 0))
        await pilot.pause()
        assert app.asked == ["do_up", "do_down"]


def test_hostile_text_in_every_line(hostile_tokens: list[str], check_rows: Check) -> None:
    for place in range(0, len(hostile_tokens) - 6, 6):
        one, two, three, four, five, six = hostile_tokens[place : place + 6]
        title = TitleView((Part(one, "badge"), Part(two, "strong"), Part(three, "quiet", 1)), (Part(four, "what", 2),))
        for width in (20, 60):
            check_rows(TitleLine().draw(title, width, 1), width)
            check_rows(NoticeLine().draw(NoticeView(one + two + three, "quiet", four), width, 1), width)
            check_rows(StageStrip().draw(StagesView((one, two, three), range(1, 2), place % 3), width, 1), width)
            keys = KeysView(
                (KeyHint(((one, ""), (three, "")), two), KeyHint(((four, ""),), five)), (KeyHint(((six, ""),), one),)
            )
            check_rows(KeyLine().draw(keys, width, 1), width)
