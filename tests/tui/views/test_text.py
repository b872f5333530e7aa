"""The text: every token's kind and surprise, where one is, and what is coming."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.models.model import Model
from cutaway.tui.cursor import Cursor
from cutaway.tui.moment import Moment
from cutaway.tui.views.attention import attention_view
from cutaway.tui.views.text import COMING, text_view
from cutaway.widgets.attention_map import AttentionView
from cutaway.widgets.vector_blocks import VectorsView

if TYPE_CHECKING:
    from tests.tui.views.conftest import Run, Step

STEPS = 9


def test_the_text_and_how_surprising_it_was(run: Run, moment: Moment) -> None:
    view = text_view(moment, run.end(4))
    P = run.prompt_length
    assert view.current == P + 4
    assert "".join(cell.text for cell in view.tokens).startswith("Once·upon·a·time,·there·was·a·little·fox·who")
    assert [cell.kind for cell in view.tokens] == ["prompt"] * P + ["written"] * STEPS
    assert all(cell.surprisal is None for cell in view.tokens[:P])
    for cell, done in zip(view.tokens[P:], run.trace.steps, strict=True):
        assert cell.surprisal == pytest.approx(-done.raw_logprob / np.log(2))
    moment.learn_surprisal(0, [float("nan"), *map(float, range(1, P))])
    assert [cell.surprisal for cell in text_view(moment, run.end(8)).tokens[:3]] == [None, 1.0, 2.0]


def test_before_the_first_token_the_prompt_stands_alone(run: Run) -> None:
    view = text_view(Moment(run.trace), None)
    assert view.current is None and len(view.tokens) == run.prompt_length and view.coming == ""


def test_no_token_is_seen_before_it_was_heard_of(run: Run) -> None:
    assert len(text_view(Moment(run.trace, 2), run.end(1)).tokens) == run.prompt_length + 2


def test_while_a_pass_is_under_way_its_token_is_coming(under_way: Step) -> None:
    for step in range(3):
        for name in ("embedding", "logits", "final"):
            view = text_view(under_way.moment, under_way.to(name, step=step))
            assert view.coming == COMING and view.current is None
            assert len(view.tokens) == under_way.run.prompt_length + step
        view = text_view(under_way.moment, under_way.to("draw", step=step))
        assert view.coming == "" and view.current == under_way.run.prompt_length + step


def test_the_stages_of_an_older_pass_stand_at_its_token(run: Run, moment: Moment) -> None:
    for name in ("embedding", "logits", "draw"):
        assert text_view(moment, run.place(3, name)).current == run.prompt_length + 3


def test_the_end_says_why_no_token_follows(run: Run, moment: Moment, under_way: Step) -> None:
    assert text_view(moment, run.end(2)).coming == " ■ as many tokens as asked for"
    assert text_view(Moment(run.trace, 4), run.end(2)).coming == ""
    assert text_view(under_way.moment, under_way.to("draw")).coming == ""
    under_way.run.generation.close()
    assert text_view(under_way.moment, run.end(0)).coming == " ■ stopped"


def test_tokens_that_attention_is_looked_at_are_marked(run: Run, moment: Moment) -> None:
    end = run.end(3)
    weights = attention_view(moment, Cursor(cell=(7, 2)), end, lambda keys: keys)
    assert isinstance(weights, AttentionView)
    assert text_view(moment, end, weights).marked == {7, 2}
    place = run.place(3, "qkv", 0)
    vectors = attention_view(moment, Cursor(cell=(7, 2)), place, lambda keys: keys)
    assert isinstance(vectors, VectorsView)
    assert text_view(moment, place, vectors).marked == {7}
    assert text_view(moment, end, None).marked == frozenset()


def test_added_tokens_and_line_breaks(fable: Model) -> None:
    ids = [4095, *fable.tokenizer.encode("a\n\nb")]
    run = Generation(fable, ids, SamplingConfig(seed=1), max_new_tokens=1, added=(0,))
    cells = text_view(Moment(run.trace), None).tokens
    assert [cell.kind for cell in cells] == ["added", *["prompt"] * (len(ids) - 1)]
    assert "".join(cell.text for cell in cells) == "<|endoftext|>a⏎⏎b"
    assert [cell.breaks for cell in cells] == [cell.text.endswith("⏎") for cell in cells]


def test_labels_without_a_tokenizer(tiny: Path) -> None:
    run = Generation(load_model(tiny), [5, 6], max_new_tokens=1)
    assert [cell.text for cell in text_view(Moment(run.trace), None).tokens] == ["#5", "#6"]
