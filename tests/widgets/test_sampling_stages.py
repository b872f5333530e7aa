"""The sampling panel: settings one can change, what every stage left, and the number on its ruler."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.message import Message
from textual.strip import Strip

from cutaway.widgets.look import look
from cutaway.widgets.numbers import percent
from cutaway.widgets.sampling_stages import Layout, SamplingStages, SamplingView, SettingRow, Share, StageRow

Check = Callable[[Sequence[Strip], int], None]

SIZES = [(30, 6), (30, 12), (38, 12), (40, 24), (58, 14), (58, 26), (70, 12), (100, 14), (120, 50)]
"""Columns and rows inside a panel."""

per_size = pytest.mark.parametrize("size", SIZES)

SETTINGS = (
    SettingRow("temperature", "0.8", "temperature"),
    SettingRow("penalty", "off", "repetition_penalty", off=True),
    SettingRow("top-k", "40", "top_k"),
    SettingRow("top-p", "0.95", "top_p"),
    SettingRow("min-p", "off", "min_p", off=True),
    SettingRow("seed", "4294967295", "seed"),
    SettingRow("greedy", "off", "greedy"),
)

STAGES = (
    StageRow("scores", True, 4096, 0, 0.0, "·girl", 0.552),
    StageRow("penalty", False, 4096, 0, 0.0, "·girl", 0.552),
    StageRow("temperature", True, 4096, 0, 0.0, "·girl", 0.65),
    StageRow("top-k", True, 40, 4056, 0.00588, "·girl", 0.654),
    StageRow("top-p", True, 2, 38, 0.041, "·girl", 0.682),
    StageRow("min-p", False, 2, 0, 0.0, "·girl", 0.682),
    StageRow("the draw", True, 2, 0, 0.0, "·girl", 0.682),
)

SHARES = (Share("·boy", 0.0, 0.318, True), Share("·girl", 0.318, 1.0, False))
OUTCOME = "u = 0.0856 falls on ‹·boy›: shares lie side by side, by token id"


def a_view(selected: int = 3, **changes: Any) -> SamplingView:
    return replace(SamplingView(SETTINGS, selected, STAGES, SHARES, 0.0856, OUTCOME, changed=False), **changes)


def drawn(view: SamplingView, size: tuple[int, int] = (100, 14)) -> list[Strip]:
    return SamplingStages().draw(view, *size)


def text_of(rows: Sequence[Strip]) -> str:
    return "\n".join(row.text for row in rows)


def style_of(text: str, row: Strip) -> Style:
    return next(segment.style for segment in row if segment.text.strip() == text and segment.style)


@pytest.mark.parametrize("width", [1, 9, 20, 30, 38, 55, 56, 58, 69, 70, 100, 120])
def test_every_row_is_as_wide_as_the_panel(width: int, check_rows: Check) -> None:
    view = a_view()
    others = (a_view(6, stages=(), shares=(), note="before the scores " * 9), a_view(0, shares=(), uniform=None))
    for height in range(1, 32):
        for each in (view, *others, a_view(2, note="nothing can be tried here", changed=True, editable=False)):
            rows = drawn(each, (width, height))
            check_rows(rows, width)
            assert len(rows) <= max(height, 1)


@per_size
def test_the_selected_setting_is_in_sight_with_its_arrows(size: tuple[int, int]) -> None:
    for selected, setting in enumerate(SETTINGS):
        rows = drawn(a_view(selected), size)
        [row] = [row.text for row in rows if row.text[1:].startswith(setting.name) and "◂" in row.text]
        assert row.partition("◂")[2].partition("▸")[0].strip() == setting.value


@per_size
def test_settings_out_of_sight_are_hinted_at(size: tuple[int, int]) -> None:
    for selected in range(len(SETTINGS)):
        view = a_view(selected)
        layout, edges = Layout.of(view, *size), [row.text[0] for row in drawn(view, size)]
        assert ("▴" in edges) == (layout.first > 0)
        assert ("▾" in edges) == (layout.in_sight.stop < len(SETTINGS))


def test_what_cannot_be_changed_has_no_arrows() -> None:
    assert "◂" not in text_of(drawn(a_view(editable=False)))
    fixed = (SettingRow("seed", "7"), SETTINGS[0])
    one, other = (row.text for row in drawn(a_view(0, settings=fixed))[:2])
    assert "◂" not in one and "▸" not in one and "◂" in other and "▸" in other


@per_size
def test_every_active_stage_says_what_it_left(size: tuple[int, int]) -> None:
    view = a_view()
    layout, text = Layout.of(view, *size), text_of(drawn(view, size))
    if not layout.stages:
        assert size[1] < 12
        return
    for number in ("4,096", "0.59 %", "4.10 %"):
        assert number in text
    if size[0] >= 100:
        assert "−4,056" in text and percent(0.654) in text and "·girl" in text


def test_stages_that_are_off_stand_back_and_give_way_first() -> None:
    colours = look()
    rows = drawn(a_view(), (100, 14))
    off = rows[2]
    assert off.text.count("off") == 1 and "4,096" not in off.text and "·girl" not in off.text
    tone = style_of("min-p", rows[6])
    assert tone.color and tone.color.triplet and tone.color.triplet.hex == colours.quiet
    crowded = text_of(drawn(a_view(), (38, 12)))
    assert [name for name in ("scores", "top-k", "top-p", "the draw") if f" {name} " not in crowded] == []


def test_the_least_important_columns_give_way_first() -> None:
    parts = ["cut off", "68.2 %", "·girl", "−38"]
    stacked = {width: text_of(drawn(a_view(shares=()), (width, 30))) for width in range(30, 70)}
    first = [min(width for width, text in stacked.items() if part in text) for part in parts]
    assert first == sorted(first) and first[0] == 30 and first[-1] <= 58
    assert all(part in stacked[width] for part, start in zip(parts, first, strict=True) for width in range(start, 70))


@per_size
def test_nothing_jumps_from_token_to_token(size: tuple[int, int]) -> None:
    stages = tuple(StageRow(row.name, row.active, row.left, row.removed, 0.5, "漢" * 30, 0.5) for row in STAGES)
    one, other = a_view(), a_view(stages=stages, shares=(Share("漢" * 30, 0.0, 1.0, True),), outcome="so " * 90)
    assert Layout.of(one, *size) == Layout.of(other, *size)
    arrows = [
        [row.text.find("◂") for row in drawn(view, size)[: Layout.of(view, *size).visible]] for view in (one, other)
    ]
    assert arrows[0] == arrows[1] and -1 not in arrows[0]


@per_size
def test_the_number_stands_over_the_drawn_token(size: tuple[int, int]) -> None:
    rows = drawn(a_view(), size)
    [mark] = [place for place, row in enumerate(rows) if "u = 0.0856" in row.text and "▾" in row.text]
    under = rows[mark + 1].crop(rows[mark].text.index("▾"), rows[mark].text.index("▾") + 1)
    assert [segment.style for segment in under] == [style_of("·boy", rows[mark + 1])]


@per_size
def test_the_outcome_is_told(size: tuple[int, int]) -> None:
    words = " ".join(text_of(drawn(a_view(), size)).split())
    assert "falls on" in words and ("‹·boy›:" in words or size[0] <= 30)
    if size[1] >= 14:
        assert OUTCOME in words


def test_why_nothing_can_be_tried_is_told() -> None:
    note = "this recording kept the best scores only"
    for size in SIZES:
        if size[1] >= 12:
            assert note in " ".join(text_of(drawn(a_view(note=note), size)).split())
    assert note in text_of(drawn(a_view(stages=(), shares=(), note=note), (58, 14)))


@per_size
def test_any_token_fits(size: tuple[int, int], hostile_tokens: list[str], check_rows: Check) -> None:
    for start in range(0, 700, 7):
        texts = hostile_tokens[start : start + 7]
        stages = tuple(
            StageRow(row.name, True, row.left, 1, 0.1, text, 0.5) for row, text in zip(STAGES, texts, strict=True)
        )
        shares = tuple(Share(text, place / 7, (place + 1) / 7, place == 2) for place, text in enumerate(texts))
        check_rows(drawn(a_view(stages=stages, shares=shares, outcome=f"on ‹{texts[2]}›"), size), size[0])


class SamplingApp(App[None]):
    """One panel and what it said."""

    def __init__(self, view: SamplingView) -> None:
        super().__init__()
        self.shown = view
        self.said: list[object] = []

    def compose(self) -> ComposeResult:
        yield SamplingStages()

    def on_mount(self) -> None:
        self.query_one(SamplingStages).show(self.shown)

    @property
    def panel(self) -> SamplingStages:
        return self.query_one(SamplingStages)

    def on_sampling_stages_selected(self, message: SamplingStages.Selected) -> None:
        self.said.append(message.index)

    def on_sampling_stages_changed(self, message: SamplingStages.Changed) -> None:
        self.said.append((message.action, message.change))

    def on_sampling_stages_applied(self, message: Message) -> None:
        self.said.append("applied")


async def test_keys_select_change_and_apply() -> None:
    app = SamplingApp(a_view(3))
    async with app.run_test(size=(102, 16)) as pilot:
        app.panel.focus()
        await pilot.press("right", "left", "down", "right", "up", "up", "enter")
        await pilot.pause()
        changes: list[object] = [("top_p", 1), ("top_p", -1), 4, ("min_p", 1), 3, 2, "applied"]
        assert app.said == changes
        for selected, key, found in ((0, "up", 0), (6, "down", 6)):
            app.panel.show(a_view(selected))
            await pilot.press(key)
            await pilot.pause()
            assert app.said[-1] == found


async def test_what_cannot_be_changed_is_only_selected() -> None:
    app = SamplingApp(a_view(3, editable=False))
    async with app.run_test(size=(102, 16)) as pilot:
        app.panel.focus()
        await pilot.press("right", "left", "enter", "down")
        await pilot.click(SamplingStages, (14, 1))
        await pilot.pause()
        assert app.said == [4, 0]


@pytest.mark.parametrize("size", [(40, 14), (60, 16), (102, 16)])
async def test_the_mouse_does_what_keys_do(size: tuple[int, int]) -> None:
    app = SamplingApp(a_view(3))
    async with app.run_test(size=size) as pilot:
        layout = Layout.of(app.shown, size[0] - 2, size[1] - 2)
        for index, (column, change) in product(
            (layout.first, layout.in_sight[-1]), ((layout.less, -1), (layout.more, 1), (2, 0))
        ):
            app.said.clear()
            await pilot.click(SamplingStages, (column + 1, index - layout.first + 1))
            await pilot.pause()
            assert app.said == [index, *[(SETTINGS[index].action, change)] * abs(change)]
        app.said.clear()
        await pilot.click(SamplingStages, (2, size[1] - 2))
        await pilot.pause()
        assert app.said == []


async def test_the_wheel_over_a_setting_changes_it() -> None:
    app = SamplingApp(a_view(3))
    async with app.run_test(size=(102, 16)) as pilot:
        await pilot._post_mouse_events([events.MouseScrollUp], SamplingStages, (5, 1))
        await pilot._post_mouse_events([events.MouseScrollDown], SamplingStages, (5, 3))
        await pilot._post_mouse_events([events.MouseScrollDown], SamplingStages, (60, 3))
        await pilot.pause()
        assert app.said == [("temperature", 1), ("top_k", -1)]


async def test_titles_tell_a_preview_and_in_focus_the_keys() -> None:
    app = SamplingApp(a_view(changed=True))
    async with app.run_test(size=(60, 16)) as pilot:
        app.panel.blur()
        await pilot.pause()
        assert app.panel.titles(app.shown) == ("sampling · preview", "each stage sees what those before it left")
        assert not any("▌" in row.text for row in app.panel.draw(app.shown, 58, 14))
        app.panel.focus()
        await pilot.pause()
        assert app.panel.titles(a_view()) == ("sampling", "← → change · enter applies · esc leaves")
        [row] = [row for row in app.panel.draw(app.shown, 58, 14) if "▌" in row.text]
        assert row.text.startswith("▌top-p")
        await pilot.resize_terminal(34, 16)
        await pilot.pause()
        assert app.panel.titles(a_view())[1] == "← → change · enter applies"
