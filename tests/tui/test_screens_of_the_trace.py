"""Whatever somebody does, what the screen shows is what the trace says: long walks of keys and mouse, then a check."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rich.cells import cell_len

from cutaway.core.attention_stages import attention_maps, attention_output, attention_rows, attention_scores
from cutaway.core.embedding import embedding_parts
from cutaway.core.lens import lens_table
from cutaway.core.overview import block_size
from cutaway.core.sampling import STAGES
from cutaway.tui.layout import PANELS
from cutaway.tui.stages import Place
from cutaway.widgets.attention_map import AttentionMap, AttentionView
from cutaway.widgets.candidate_bars import CandidateBars
from cutaway.widgets.embedding_strips import EmbeddingStrips
from cutaway.widgets.heads_map import HeadsMap
from cutaway.widgets.layer_table import LayerTable
from cutaway.widgets.numbers import percent
from cutaway.widgets.panel import Panel
from cutaway.widgets.sampling_stages import SamplingStages
from cutaway.widgets.token_stream import TokenStream
from cutaway.widgets.vector_blocks import VectorsView

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person

PROMPT = [5, 6, 7, 8]

KEYS = (
    *["full_stop", "l", "right"] * 4, *["comma", "L", "left"] * 3, *["up", "down", "tab", "enter"] * 3, "shift+tab",
    "left_square_bracket", "right_square_bracket", "home", "end", "escape", "escape", "space", "plus", "minus",
    "z", "t", "w", "W", "r", *map(str, range(len(PANELS) + 1)),
)  # fmt: skip
"""Everything but what leaves the screen, those that go through a run more often."""


async def does_something(person: Person, chance: random.Random) -> str:
    """Press a key, or point or click somewhere into a panel; say what was done."""
    what = chance.random()
    if what < 0.7:
        key = chance.choice(KEYS)
        await person.pilot.press(key)
        return key
    panels = [panel for name in PANELS if (panel := person.screen.query_one(f"#{name}", Panel)).region.area]
    panel = chance.choice(panels)
    if isinstance(panel, SamplingStages) and what >= 0.9:
        return "nothing"
    spot = chance.randrange(panel.size.width), chance.randrange(panel.size.height)
    if what < 0.9:
        await person.pilot.hover(panel, spot)
    else:
        await person.pilot.click(panel, spot)
    return f"{panel.id} {spot}"


def assert_screen_is_the_trace(person: Person) -> None:
    """Every panel that is in sight shows the numbers of the trace under its cursor."""
    assert [cell_len(row) for row in person.rows] == [person.screen.size.width] * person.screen.size.height
    place = person.screen.place
    if place is None:
        return
    for kind, check in CHECKS.items():
        panel: Any = person.screen.query_one(kind)
        if panel.display and panel.region.area and panel.view is not None:
            check(person, panel, panel.view, place)


def text(panel: Panel[Any]) -> str:
    return "\n".join(panel.render_line(y).text for y in range(panel.size.height))


def check_attention(person: Person, panel: AttentionMap, view: AttentionView | VectorsView, place: Place) -> None:
    trace, cursor = person.trace, person.screen.cursor
    T = person.moment.prompt_length + place.step
    assert (view.layer, view.head, len(view.labels)) == (cursor.layer, cursor.head, len(view.labels))
    assert view.query == (min(cursor.cell[0], T - 1) if cursor.cell else T - 1)
    if isinstance(view, VectorsView):
        if len(view.blocks) == 1:
            wanted = attention_output(trace, view.layer, view.query, view.query + 1)[0]
            np.testing.assert_allclose(view.blocks[0][1][view.query - view.first], wanted, rtol=1e-4, atol=1e-5)
        return
    if view.kind == "weights":
        there = view.query < (view.done if view.done is not None else T)
        row = attention_rows(trace, view.layer, view.head, view.query, view.query + 1)[0]
        wanted = float(row[view.key]) if there else 0.0
        assert view.key <= view.query
    else:
        row = attention_scores(trace, view.layer, view.head, view.query, view.query + 1, T)[0]
        wanted, there = float(row[view.key]), True
    assert view.value == pytest.approx(wanted, abs=1e-5)
    assert f"{view.value:.4f}" in text(panel) if there else "not yet" in text(panel)
    if cursor.cell and 0 <= cursor.cell[1] < view.seen(view.query):
        assert view.key == cursor.cell[1]


def check_candidates(person: Person, panel: CandidateBars, view: Any, place: Place) -> None:
    trace, moment, draft = person.trace, person.moment, person.screen.draft
    scores = trace.scores(place.step) if place.step < moment.steps else moment._scores
    assert scores is not None
    settings, previous = draft.settings if draft else trace.settings_at(place.step), trace.previous_ids(place.step)
    name = moment.stages.all[place.stage].name
    at = STAGES.index(name) if name in STAGES else 6 if draft or name == "draw" else 0
    stages = settings.stages(scores, previous)
    values = np.where(stages[at].kept, stages[at].values, -np.inf)
    wanted = values if at == 6 else np.exp(values - np.logaddexp.reduce(values))
    raw = np.exp(stages[0].values - np.logaddexp.reduce(stages[0].values))
    drawn_at = text(panel).splitlines()
    for index, row in enumerate(view.rows):
        id = int(row.text.removeprefix("#"))
        assert row.share == pytest.approx(max(float(wanted[id]), 0.0), abs=1e-9)
        assert row.raw == pytest.approx(float(raw[id]), abs=1e-9)
        if 2 + index < panel.size.height - 2:
            assert row.text in drawn_at[2 + index]
            assert (percent(row.share) if row.removed_by is None else "–") in drawn_at[2 + index]
    if view.drawn is not None and not draft:
        assert view.rows[view.drawn].text == f"#{trace.steps[place.step].id}"


def check_layers(person: Person, panel: LayerTable, view: Any, place: Place) -> None:
    trace, moment = person.trace, person.moment
    assert view.layer == person.screen.cursor.layer
    passed, position = moment.stages.passed(place.stage), moment.prompt_length + place.step - 1
    if passed:
        table = lens_table(trace, position, position + 1, passed)
    for layer, row in enumerate(view.rows):
        assert (row.norm is not None) == (layer < passed)
        if row.norm is None:
            continue
        assert row.norm == pytest.approx(float(np.linalg.norm(trace.cache.rows.residual[layer, position])), rel=1e-4)
        assert [token for token, _ in row.best] == [f"#{id}" for id in table.ids[layer, 0, :10]]
        assert [share for _, share in row.best] == pytest.approx(table.probabilities[layer, 0, :10].tolist(), rel=1e-4)
        if place.stage == moment.stages.last:
            assert row.drawn == pytest.approx(float(table.probability[layer, 0]), rel=1e-4)
            assert row.rank == table.rank[layer, 0]


def check_heads(person: Person, panel: HeadsMap, view: Any, place: Place) -> None:
    trace, moment, cursor = person.trace, person.moment, person.screen.cursor
    assert (view.layer, view.head) == (cursor.layer, cursor.head)
    reached, T = moment.stages.attended(place.stage), moment.prompt_length + place.step
    assert len(view.maps) == reached and view.positions == T and block_size(T) == 1
    for layer in range(reached):
        if T <= trace.positions:
            np.testing.assert_allclose(view.maps[layer], attention_maps(trace, layer)[:, :T, :T], atol=1e-5)


def check_embedding(person: Person, panel: EmbeddingStrips, view: Any, place: Place) -> None:
    trace, cursor, T = person.trace, person.screen.cursor, person.moment.prompt_length + place.step
    position = min(cursor.cell[0], T - 1) if cursor.cell else T - 1
    assert (view.position, view.id, view.dimension) == (position, trace.token_ids[position], cursor.dimension)
    for (_, shown), wanted in zip(view.parts, embedding_parts(trace, position), strict=True):
        np.testing.assert_array_equal(shown, wanted)
    if cursor.dimension is not None and panel.size.width >= 60:
        numbers = [float(part[cursor.dimension]) for _, part in view.parts]
        assert any(f"{numbers[-1]:.{digits}f}".replace("-", "−") in text(panel) for digits in (4, 3, 2))


def check_sampling(person: Person, panel: SamplingStages, view: Any, place: Place) -> None:
    moment, draft = person.moment, person.screen.draft
    assert view.changed == (draft is not None)
    if place.step < moment.steps and draft is None:
        step = person.trace.steps[place.step]
        assert view.uniform == step.uniform
        [drawn] = [share for share in view.shares if share.drawn] or [None]
        assert drawn is None or drawn.text == f"#{step.id}"


def check_text(person: Person, panel: TokenStream, view: Any, place: Place) -> None:
    moment = person.moment
    assert [cell.text for cell in view.tokens] == [f"#{id}" for id in person.trace.token_ids[: len(moment.cells)]]
    assert view.current == (moment.prompt_length + place.step if place.step < moment.steps else None)


CHECKS: dict[type[Panel[Any]], Any] = {
    TokenStream: check_text,
    AttentionMap: check_attention,
    CandidateBars: check_candidates,
    HeadsMap: check_heads,
    LayerTable: check_layers,
    EmbeddingStrips: check_embedding,
    SamplingStages: check_sampling,
}


@pytest.mark.parametrize(("seed", "size"), [(1, (120, 40)), (2, (200, 60)), (3, (80, 24)), (5, (60, 18))])
async def test_after_any_walk_the_screen_is_the_trace(
    open_app: OpenApp, tiny: Path, seed: int, size: tuple[int, int]
) -> None:
    chance, done = random.Random(seed), []
    options = {"model": str(tiny), "prompt_ids": PROMPT, "max_new_tokens": 12, "ignore_eos": True, "step": True}
    async with open_app(**options, size=size, seed=seed) as person:
        for turn in range(200):
            done.append(await does_something(person, chance))
            if turn % 20 == 19:
                try:
                    await person.rests()
                    assert_screen_is_the_trace(person)
                except AssertionError as error:
                    raise AssertionError(f"after {' '.join(done[-12:])}, at {person.screen.place}: {error}") from error
        assert person.app.is_running


async def test_the_same_with_a_real_vocabulary_and_a_mouse_in_the_map(open_app: OpenApp) -> None:
    """Hovering every cell of a long text's map, where several keys may share a cell."""
    chance = random.Random(3)
    async with open_app("A dog ran and a cat sat and " * 6, max_new_tokens=5, size=(90, 30)) as person:
        await person.has_ended()
        panel, checked = person.screen.query_one(AttentionMap), 0
        for _ in range(60):
            await person.pilot.hover(
                panel, (chance.randrange(1, panel.size.width - 1), chance.randrange(1, panel.size.height - 3))
            )
            await person.sees()
            view = panel.view
            assert isinstance(view, AttentionView)
            row = attention_rows(person.trace, view.layer, view.head, view.query, view.query + 1)[0]
            assert view.value == pytest.approx(float(row[view.key]), abs=1e-5)
            assert f"{row[view.key]:.4f}" in text(panel)
            checked += person.screen.cursor.cell is not None
        assert checked > 20
