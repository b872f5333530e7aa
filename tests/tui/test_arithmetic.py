"""`=` writes out the number under the cursor of the panel one is in, with numbers that come to it."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cutaway.core.embedding import embedding_parts
from cutaway.core.lens import lens_table
from cutaway.widgets.attention_map import AttentionMap
from cutaway.widgets.candidate_bars import CandidateBars
from cutaway.widgets.embedding_strips import EmbeddingStrips
from cutaway.widgets.heads_map import HeadsMap
from cutaway.widgets.layer_table import LayerTable
from cutaway.widgets.panel import Panel
from cutaway.widgets.sampling_stages import SamplingStages
from cutaway.widgets.token_stream import TokenStream

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person


def numbers_in(sentence: str) -> list[float]:
    """The numbers of a sentence, shares as shares of 1; what stands between ‹ and › is a token."""
    plain = re.sub("‹.*?›|log₂", "", sentence).replace("−", "-").replace("e^(", "")
    found = re.findall(r"(-?\d+(?:\.\d+)?(?:e-\d+)?)( %)?", re.sub(r" - (?=\d)", " −", plain))
    return [float(number) / (100 if share else 1) for number, share in found]


async def told(person: Person, panel: type[Panel[Any]]) -> str:
    await person.enters(panel)
    await person.press("equals_sign")
    return person.notice


async def test_a_weight(open_app: OpenApp) -> None:
    async with open_app("A dog ran", max_new_tokens=4, size=(200, 60)) as person:
        await person.has_ended()
        for query, key in ((None, None), (3, 1)):
            if query is not None:
                person.screen.cursor = person.screen.cursor.to_cell((query, key or 0))
                person.screen.redraw()
            sentence = await told(person, AttentionMap)
            product, scale, score, again, best, total, weight, *whence = numbers_in(sentence)
            assert product * scale == pytest.approx(score, rel=1e-3, abs=2e-3) and score == again
            assert math.exp(score - best) / total == pytest.approx(weight, abs=2e-3)
            assert weight == pytest.approx(person.attention.value, abs=1e-4)
            assert whence == [best, total]


async def test_a_candidate_and_the_drawn_one(open_app: OpenApp) -> None:
    async with open_app("A dog ran", max_new_tokens=4, size=(200, 60)) as person:
        await person.has_ended()
        await person.enters(CandidateBars)
        await person.press("down", "down", "equals_sign")
        row = person.candidates.rows[2]
        assert f"‹{row.text}›" in person.notice
        score, total, raw, final, _ = numbers_in(person.notice)
        assert math.exp(score - total) == pytest.approx(row.raw, rel=2e-3)
        assert raw == pytest.approx(row.raw, abs=6e-4) and final == pytest.approx(row.share, abs=6e-4)
        await person.press("t")
        assert f"‹{person.moment.name(person.trace.steps[-1].id)}›" in await told(person, SamplingStages)


async def test_a_dimension_a_layer_and_a_surprise(open_app: OpenApp) -> None:
    async with open_app("A dog ran", max_new_tokens=4, size=(200, 60)) as person:
        await person.has_ended()
        position = person.moment.positions(person.moment.last_token or pytest.fail()) - 1
        parts = [part for part in embedding_parts(person.trace, position) if part is not None]
        best = int(np.abs(parts[-1]).argmax())
        assert numbers_in(await told(person, EmbeddingStrips)) == [
            best, *(pytest.approx(float(part[best]), abs=1e-6) for part in parts),
        ]  # fmt: skip
        lens = lens_table(person.trace, position, position + 1, 4)
        sentence = await told(person, LayerTable)
        layer = person.screen.cursor.layer
        assert sentence.startswith(f"L{layer}: its stream, ") and "the last norm" in sentence
        assert numbers_in(sentence)[-1] == pytest.approx(float(lens.probabilities[layer, 0, 0]), abs=6e-4)
        share, bits, _ = numbers_in(await told(person, TokenStream))
        assert -math.log2(share) == pytest.approx(bits, abs=0.01)
        assert bits == pytest.approx(-person.trace.steps[-1].raw_logprob / math.log(2), abs=0.006)


async def test_what_is_tried_is_what_is_written_out(open_app: OpenApp) -> None:
    """Other sampling settings hold for the arithmetic as they do for what the panels show."""
    async with open_app("A dog ran", max_new_tokens=4, size=(200, 60)) as person:
        await person.has_ended()
        await person.press("t", "right", "right", "right", "right")
        await person.until(lambda: person.candidates.changed)
        drawn = person.candidates.rows[person.candidates.drawn or 0]
        await person.press("equals_sign")
        assert f"‹{drawn.text}›" in person.notice
        assert numbers_in(person.notice)[3] == pytest.approx(drawn.share, abs=6e-4)


async def test_a_model_without_a_last_norm_has_none_in_its_lens(open_app: OpenApp) -> None:
    async with open_app("hello", model="tinymind", max_new_tokens=2, size=(200, 60)) as person:
        await person.has_ended()
        sentence = await told(person, LayerTable)
        assert "unembedding" in sentence and "norm" not in sentence


async def test_in_the_text_it_is_about_the_token_that_the_text_shows(open_app: OpenApp) -> None:
    """Not about the cell that somebody points at in the map."""
    async with open_app("A dog ran", max_new_tokens=4, size=(200, 60)) as person:
        await person.has_ended()
        person.screen.cursor = person.screen.cursor.to_cell((1, 0))
        assert f"‹{person.moment.label(len(person.trace.token_ids) - 1)}›" in await told(person, TokenStream)
        for _ in range(5):
            await person.press("left")
        await person.press("equals_sign")
        assert f"‹{person.moment.label(1)}›" in person.notice


async def test_where_there_is_no_number_it_says_so(open_app: OpenApp) -> None:
    async with open_app("A dog ran", step=True, size=(200, 60)) as person:
        await person.press("equals_sign")
        assert "there is no number under the cursor" in person.notice
        await person.press("right")
        await person.has_steps(1)
        assert "there is no number" in await told(person, HeadsMap)
        await person.press("escape", "6")
        await person.until(lambda: person.screen.query_one(EmbeddingStrips).view is not None)
        await person.press("equals_sign")
        assert "dimension" in person.notice


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_it_is_never_cut_off(open_app: OpenApp, size: tuple[int, int]) -> None:
    async with open_app("A dog ran", max_new_tokens=4, size=size) as person:
        await person.has_ended()
        panels: list[tuple[str, type[Panel[Any]]]] = [
            ("1", TokenStream), ("2", AttentionMap), ("3", CandidateBars), ("5", LayerTable), ("6", EmbeddingStrips)
        ]  # fmt: skip
        for key, panel in panels:
            await person.press(key)
            await person.rests()
            sentence = await told(person, panel)
            assert "…" not in sentence and "no number" not in sentence
