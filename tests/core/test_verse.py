"""The embedded Chinese model, and the whole way of a chat on it: question, template, tokens, draw, end token."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from cutaway.core import Generation, SamplingConfig, Trace, load_model
from cutaway.core.chat import render_chat
from cutaway.core.checkpoint.locate import locate
from cutaway.core.events import ChatRendered, Finished, Tokenized
from cutaway.core.models import open_model
from cutaway.core.models.model import Model

QUESTION = "写一首五言绝句，里面有“明月”"
RENDERED = f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def verse() -> Model:
    return load_model("verse")


def ask(verse: Model, seed: int) -> Generation:
    template = verse.tokenizer.chat_template
    assert template is not None
    text = render_chat(template, [{"role": "user", "content": QUESTION}])
    ids = verse.tokenizer.encode(text, special=True)
    return Generation(verse, ids, SamplingConfig(0.8, 40, 0.95, seed=seed), prompt=QUESTION, chat=text)


def test_the_question_becomes_template_becomes_tokens(verse: Model) -> None:
    events = iter(ask(verse, 0))
    rendered, tokenized = next(events), next(events)
    assert isinstance(rendered, ChatRendered) and rendered.text == RENDERED
    assert isinstance(tokenized, Tokenized)
    assert tokenized.ids[0] == 1 and tokenized.ids.count(2) == 1 and len(tokenized.ids) == 34
    assert b"".join(tokenized.pieces).decode() == RENDERED


@pytest.mark.parametrize("seed", range(5))
def test_an_answer_keeps_its_form_and_ends_with_the_templates_end_token(seed: int, verse: Model) -> None:
    run = ask(verse, seed)
    *_, last = run
    assert isinstance(last, Finished) and last.reason == "eos" and run.trace.steps[-1].id == 2
    answer = verse.tokenizer.decode([step.id for step in run.trace.steps], skip_special=True)
    assert re.fullmatch(r"(\w{5}，\w{5}[。？！]\n?){2}", answer), answer


def test_a_recording_of_it(verse: Model, tmp_path: Path) -> None:
    run = ask(verse, 3)
    list(run)
    run.trace.save(tmp_path / "x.cutaway")
    loaded = Trace.load(tmp_path / "x.cutaway")
    assert loaded.text == run.trace.text and loaded.prompt == QUESTION
    assert loaded.model.name == "verse" and loaded.model.config == verse.config


def test_what_its_card_says(verse: Model) -> None:
    name, opened = open_model("verse")
    card = (locate("verse") / "README.md").read_text("utf-8")
    count = sum(math.prod(opened.weights.info(tensor).shape) for tensor in opened.weights)
    assert name == "verse" and f"{count:,}" in card and count == 4_458_752
    assert {opened.weights.info(tensor).dtype for tensor in opened.weights} == {"F16"}
    c = verse.config
    sizes = (c.layers, c.heads, c.kv_heads, c.head_size, c.width, c.mlp_width, c.positions, c.vocabulary)
    assert sizes == (4, 8, 2, 32, 256, 704, 512, 6400) and c.bos_id == 1 and c.eos_ids == (2,)
