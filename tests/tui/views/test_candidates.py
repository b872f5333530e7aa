"""What the widgets are given is what the engine computed, at every step, layer, head and cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.edits import ForceToken
from cutaway.core.events import AttentionDone, LogitsReady
from cutaway.core.models.model import Model
from cutaway.core.trace import Trace
from cutaway.tui.cursor import Cursor
from cutaway.tui.moment import Moment
from cutaway.tui.views import attention_view, candidates_view, describe, draw_notice, text_view
from cutaway.widgets.attention_map import AttentionView, Layout
from cutaway.widgets.candidate_bars import percent

PROMPT = [610, 573, 258, 440, 11, 421, 293, 258, 401, 1486, 520]
"""Once upon a time, there was a little fox who"""

SETTINGS = [
    SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, seed=3),
    SamplingConfig(temperature=1.3, min_p=0.02, repetition_penalty=1.3, seed=4),
    SamplingConfig(top_k=3, seed=5),
    SamplingConfig(greedy=True),
    SamplingConfig(temperature=0.0),
    SamplingConfig(seed=6),
]
STEPS = 9


@dataclass
class Run:
    """A run, and what its events said."""

    trace: Trace
    patterns: list[list[NDArray[np.float32]]]
    """By step and layer [H, n, T]."""
    logits: list[NDArray[np.float32]]
    """By step [V]."""

    def weights(self, step: int, layer: int, head: int) -> NDArray[np.float32]:
        """The whole map [T, T] as it stood at *step*."""
        T = len(PROMPT) + step
        rows = np.zeros((T, T), np.float32)
        for pattern in (patterns[layer] for patterns in self.patterns[: step + 1]):
            n, keys = pattern.shape[1:]
            rows[keys - n : keys, :keys] = pattern[head]
        return rows


@cache
def a_run(settings: SamplingConfig) -> Run:
    model = load_model("fable")
    generation = Generation(model, PROMPT, settings, max_new_tokens=STEPS, ignore_eos=True)
    patterns: list[list[NDArray[np.float32]]] = []
    logits = []
    for event in generation:
        match event:
            case AttentionDone(layer=layer, pattern=pattern):
                if layer == 0:
                    patterns.append([])
                patterns[-1].append(pattern)
            case LogitsReady():
                logits.append(event.logits[-1])
    return Run(generation.trace, patterns, logits)


def everything(keys: int) -> int:
    return keys


def attention(moment: Moment, cursor: Cursor, visible: Any = everything) -> AttentionView:
    view = attention_view(moment, cursor, visible)
    assert view is not None
    return view


def test_attention_is_what_the_engine_computed() -> None:
    run = a_run(SETTINGS[0])
    moment = Moment(run.trace, STEPS)
    for step, layer, head in product(range(STEPS), range(4), range(8)):
        view = attention(moment, Cursor(step, layer, head))
        expected = run.weights(step, layer, head)
        assert view.weights.shape == expected.shape == (len(PROMPT) + step,) * 2
        np.testing.assert_allclose(view.weights, expected, atol=1e-5)
        np.testing.assert_array_equal(np.triu(view.weights, 1), 0)
        assert (view.layer, view.head, view.first) == (layer, head, 0)
        assert view.query == len(PROMPT) + step - 1
        assert view.weight == view.weights[-1].max()
        assert len(view.labels) == len(PROMPT) + step


def test_the_value_under_the_cursor_is_the_cell_s() -> None:
    run = a_run(SETTINGS[0])
    moment = Moment(run.trace, STEPS)
    rng = np.random.default_rng(2)
    for _ in range(300):
        step, layer, head = (int(rng.integers(count)) for count in (STEPS, 4, 8))
        T = len(PROMPT) + step
        query = int(rng.integers(T))
        key = int(rng.integers(query + 1))
        visible = int(rng.integers(1, T + 3))
        view = attention(moment, Cursor(step, layer, head, (query, key)), lambda keys, visible=visible: visible)
        assert (view.query, view.key) == (query, key)
        assert view.first <= query < view.first + len(view.weights) <= T
        assert len(view.weights) <= visible
        assert view.weight == pytest.approx(float(run.weights(step, layer, head)[query, key]), abs=1e-5)
        assert view.labels[query] == moment.label(query)


def test_the_newest_queries_are_in_sight() -> None:
    moment = Moment(a_run(SETTINGS[0]).trace, STEPS)
    view = attention(moment, Cursor(), lambda keys: 5)
    T = len(PROMPT) + STEPS - 1
    assert (view.first, len(view.weights)) == (T - 5, 5)


def test_the_window_moves_no_further_than_the_cell_needs() -> None:
    moment = Moment(a_run(SETTINGS[0]).trace, STEPS)
    T, visible = len(PROMPT) + STEPS - 1, 5
    shown = attention(moment, Cursor(), lambda keys: visible)
    rng = np.random.default_rng(3)
    for query in [T - 1, T - 6, T - 7, 0, 3, 4, 5, *map(int, rng.integers(0, T, 50)), T - 1]:
        view = attention_view(moment, Cursor(cell=(query, 0)), lambda keys: visible, shown)
        assert view is not None and view.first <= query < view.first + visible <= T
        if shown.first <= query < shown.first + visible:
            assert view.first == shown.first
        shown = view
    followed = attention_view(moment, Cursor(), lambda keys: visible, shown)
    assert followed is not None and followed.first == T - visible
    earlier = attention_view(moment, Cursor(0, cell=(2, 0)), lambda keys: visible, followed)
    assert earlier is not None and earlier.first == 2


def test_a_cell_of_a_later_moment_is_brought_into_this_one() -> None:
    moment = Moment(a_run(SETTINGS[0]).trace, STEPS)
    view = attention(moment, Cursor(0, cell=(len(PROMPT) + 5, len(PROMPT) + 4)))
    assert view.query == len(PROMPT) - 1
    assert view.weight == view.weights[-1].max()


def test_a_trace_is_never_read_further_than_it_was_heard() -> None:
    run = a_run(SETTINGS[0])
    moment = Moment(run.trace, 2)
    assert len(attention(moment, Cursor()).labels) == len(PROMPT) + 1
    assert len(text_view(moment, Cursor()).tokens) == len(PROMPT) + 2
    np.testing.assert_allclose(attention(moment, Cursor(layer=1, head=2)).weights, run.weights(1, 1, 2), atol=1e-5)


@pytest.mark.parametrize("settings", SETTINGS, ids=describe)
def test_candidates_are_what_was_drawn_from(settings: SamplingConfig) -> None:
    run = a_run(settings)
    trace, moment = run.trace, Moment(run.trace, STEPS)
    texts = {moment.name(id): id for id in range(4096)}
    for step, visible in [*product(range(STEPS), (1, 2, 20)), (5, 5000)]:
        view = candidates_view(moment, Cursor(step), visible)
        assert view is not None
        logits = run.logits[step].astype(np.float64)
        raw = np.exp(logits - logits.max())
        raw /= raw.sum()
        final = settings.distribution(logits, trace.previous_ids(step))
        order = np.argsort(-logits, kind="stable")
        assert len(view.rows) == min(visible, 4096)
        for row in view.rows:
            id = texts[row.text]
            assert order[row.rank] == id
            assert row.raw == pytest.approx(raw[id], rel=1e-6)
            assert row.final == pytest.approx(final[id], rel=1e-9)
            assert (row.removed_by is None) == (final[id] > 0)
        assert texts[view.rows[view.drawn].text] == trace.steps[step].id
        assert [row.rank for row in view.rows[:-1]] == list(range(len(view.rows) - 1))
        assert view.others == 4096 - len(view.rows)
        assert view.others_raw == pytest.approx(1 - sum(row.raw for row in view.rows), abs=1e-9)


def test_what_removed_a_candidate_is_named() -> None:
    def reasons(settings: SamplingConfig) -> set[str | None]:
        view = candidates_view(Moment(a_run(settings).trace, STEPS), Cursor(0), 300)
        assert view is not None
        return {row.removed_by for row in view.rows}

    assert reasons(SETTINGS[0]) == {None, "top-k", "top-p"}
    assert reasons(SETTINGS[1]) == {None, "min-p"}
    assert reasons(SETTINGS[2]) == {None, "top-k"}
    assert reasons(SETTINGS[3]) == {None, "greedy"}
    assert reasons(SETTINGS[5]) == {None}
    assert reasons(SamplingConfig(temperature=0.01, seed=1)) == {None, "≈ 0"}


def test_how_a_token_came_about() -> None:
    def how(settings: SamplingConfig) -> str:
        view = candidates_view(Moment(a_run(settings).trace, STEPS), Cursor(2), 9)
        assert view is not None
        return view.how

    assert how(SETTINGS[0]) == "drawn"
    assert how(SETTINGS[3]) == how(SETTINGS[4]) == "best"


def test_a_token_that_somebody_chose(fable: Model) -> None:
    run = Generation(fable, PROMPT, SETTINGS[2], max_new_tokens=3, edits=[ForceToken(1, 77)])
    assert list(run)
    moment = Moment(run.trace, 3)
    view = candidates_view(moment, Cursor(1), 6)
    assert view is not None and view.how == "yours"
    assert len(view.rows) == 6 and view.drawn == 5 and view.rows[5].rank > 5
    assert view.rows[5].removed_by == "top-k" and view.rows[5].final == 0
    token = moment.label(len(PROMPT) + 1)
    assert draw_notice(moment, Cursor(1)).text.startswith(f"token 1: ‹{token}› was put by hand")


def test_the_notice_tells_the_draw() -> None:
    trace = a_run(SETTINGS[0]).trace
    moment = Moment(trace, STEPS)
    for step, done in enumerate(trace.steps):
        notice = draw_notice(moment, Cursor(step))
        assert f"token {step}: ‹{moment.label(len(PROMPT) + step)}› drawn, {percent(done.probability)}" in notice.text
        assert f"u = {done.uniform:.4f}" in notice.text and f"u = {done.uniform:.4f}" in notice.short
        assert f"a surprise of {-done.raw_logprob / np.log(2):.1f} bits" in notice.text
        assert len(notice.short) < len(notice.text)
    assert "is the likeliest" in draw_notice(Moment(a_run(SETTINGS[3]).trace, STEPS), Cursor(0)).text


def test_before_the_first_token_there_is_nothing_to_see() -> None:
    moment = Moment(a_run(SETTINGS[0]).trace)
    assert attention_view(moment, Cursor(), everything) is None
    assert candidates_view(moment, Cursor(), 9) is None
    assert draw_notice(moment, Cursor()).text == ""
    view = text_view(moment, Cursor())
    assert view.current is None and len(view.tokens) == len(PROMPT)


def test_the_text_and_how_surprising_it_was() -> None:
    trace = a_run(SETTINGS[0]).trace
    moment = Moment(trace, STEPS)
    view = text_view(moment, Cursor(4))
    assert view.current == len(PROMPT) + 4
    assert "".join(cell.text for cell in view.tokens).startswith("Once·upon·a·time,·there·was·a·little·fox·who")
    assert [cell.kind for cell in view.tokens] == ["prompt"] * len(PROMPT) + ["written"] * STEPS
    assert all(cell.surprisal is None for cell in view.tokens[: len(PROMPT)])
    for cell, done in zip(view.tokens[len(PROMPT) :], trace.steps, strict=True):
        assert cell.surprisal == pytest.approx(-done.raw_logprob / np.log(2))
    moment.learn_surprisal(0, [float("nan"), *map(float, range(1, len(PROMPT)))])
    assert [cell.surprisal for cell in text_view(moment, Cursor()).tokens[:3]] == [None, 1.0, 2.0]


def test_added_tokens_and_line_breaks(fable: Model) -> None:
    ids = [4095, *fable.tokenizer.encode("a\n\nb")]
    run = Generation(fable, ids, SETTINGS[0], max_new_tokens=1, added=(0,))
    cells = Moment(run.trace).cells
    assert [cell.kind for cell in cells] == ["added", *["prompt"] * (len(ids) - 1)]
    assert "".join(cell.text for cell in cells) == "<|endoftext|>a⏎⏎b"
    assert [cell.breaks for cell in cells] == [cell.text.endswith("⏎") for cell in cells]


def test_labels_without_a_tokenizer(tiny: Path) -> None:
    run = Generation(load_model(tiny), [5, 6], max_new_tokens=1)
    assert [cell.text for cell in Moment(run.trace).cells] == ["#5", "#6"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (SamplingConfig(temperature=0.8, top_k=40, top_p=0.95), "T 0.8 · top-k 40 · top-p 0.95"),
        (SamplingConfig(), "T 1"),
        (SamplingConfig(min_p=0.05, repetition_penalty=1.2), "penalty 1.2 · T 1 · min-p 0.05"),
        (SamplingConfig(greedy=True, top_k=4), "greedy"),
        (SamplingConfig(temperature=0.0, repetition_penalty=1.5), "penalty 1.5 · greedy"),
    ],
)
def test_settings_in_words(settings: SamplingConfig, words: str) -> None:
    assert describe(settings) == words


def test_a_map_as_large_as_its_panel_shows_every_query() -> None:
    moment = Moment(a_run(SETTINGS[0]).trace, STEPS)
    for columns, rows in product((30, 60, 118), (6, 12, 30)):
        view = attention(moment, Cursor(), lambda keys, size=(columns, rows): Layout.of(keys, *size).queries)
        assert len(view.weights) == min(Layout.of(len(view.labels), columns, rows).queries, len(view.labels))
