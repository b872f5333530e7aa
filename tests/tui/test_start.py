"""From options to a run."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutaway.core import CutawayError, ModelError, load_model
from cutaway.core.edits import AblateHead, AblateMlp, ScaleMlp
from cutaway.core.events import ChatRendered, Tokenized
from cutaway.core.models.model import Model
from cutaway.core.tokenizer import load_tokenizer
from cutaway.tui.options import DEFAULTS
from cutaway.tui.start import PROMPTS, generate, prepare

FABLE = Path(__file__).parents[2] / "assets" / "models" / "fable"
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|endoftext|>{% endif %}"
)


def options(**changed: Any) -> Namespace:
    return Namespace(**(DEFAULTS | {"max_new_tokens": 2, "seed": 1} | changed))


@pytest.fixture(scope="module")
def chatty(fable: Model) -> Model:
    """The embedded model with a chat template."""
    tokenizer = load_tokenizer(FABLE, fable.config.vocabulary)
    tokenizer.chat_template = TEMPLATE
    return replace(fable, tokenizer=tokenizer)


def text_of(model: Model, ids: tuple[int, ...]) -> str:
    return model.tokenizer.decode(ids)


def test_a_prompt_is_continued(fable: Model) -> None:
    run = generate(fable, options(), "A dog")
    assert text_of(fable, run.trace.prompt_ids) == run.trace.prompt == "A dog"
    assert run.trace.added == () and run.max_new_tokens == 2


def test_without_a_prompt_it_continues_the_model_s_own() -> None:
    run = prepare(options(), None)
    assert run.trace.prompt == PROMPTS["fable"]


def test_another_model_gets_a_story_and_one_without_a_tokenizer_its_start(fable: Model, tiny: Path) -> None:
    assert generate(replace(fable, name="other"), options(), None).trace.prompt == "Once upon a time"
    run = prepare(options(model=str(tiny)), None)
    assert run.trace.prompt_ids == (0,) and run.trace.added == (0,)


def test_an_empty_prompt_is_the_start_token(fable: Model) -> None:
    run = generate(fable, options(), "")
    assert run.trace.prompt_ids == (4095,) and run.trace.added == (0,)


def test_ids_are_taken_exactly(fable: Model) -> None:
    run = generate(fable, options(), (4095, 1, 1))
    assert run.trace.prompt_ids == (4095, 1, 1)
    assert run.trace.added == () and run.trace.prompt == ""


def test_special_tokens_in_a_prompt_are_ordinary_text(fable: Model) -> None:
    assert 4095 not in generate(fable, options(), "a<|endoftext|>b").trace.prompt_ids


def test_options_reach_the_run(fable: Model) -> None:
    run = generate(
        fable,
        options(
            temperature=0.5, top_k=3, top_p=0.5, min_p=0.2, repetition_penalty=1.5, greedy=True, seed=9,
            ignore_eos=True, ablate=["1.2", "3.mlp"], scale=["0.mlp=2"], max_new_tokens=7,
        ),
        "A",
        "all",
    )  # fmt: skip
    [(begin, sampling)] = run.trace.sampling
    assert begin == 0
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) == (0.5, 3, 0.5, 0.2)
    assert (sampling.repetition_penalty, sampling.greedy, sampling.seed) == (1.5, True, 9)
    assert run.trace.edits == (AblateHead(1, 2), AblateMlp(3), ScaleMlp(0, 2.0))
    assert run.ignore_eos and run.max_new_tokens == 7 and run.trace.capture == "all"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"top_p": 2.0}, "top_p"),
        ({"ablate": ["x"]}, "names no head"),
        ({"scale": ["0.0"]}, "names no head or MLP with a factor"),
        ({"ablate": ["99.0"]}, "no layer 99"),
        ({"ablate": ["0.99"]}, "no head 99"),
        ({"model": "nowhere"}, "no model is called"),
        ({"chat": True}, "no chat template"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(CutawayError, match=said) as caught:
        prepare(options(**changed), None)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("ids", "said"), [((4096,), "4096 is not in the vocabulary"), ((1,) * 513, "at most 512")])
def test_ids_that_make_no_sense_are_one_sentence(fable: Model, ids: tuple[int, ...], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        generate(fable, options(), ids)


def test_words_for_a_model_without_a_tokenizer_are_refused(tiny: Path) -> None:
    with pytest.raises(ModelError, match="no tokenizer.*--prompt-ids"):
        prepare(options(model=str(tiny)), "words")
    assert prepare(options(model=str(tiny)), "5, 6").trace.prompt_ids == (5, 6)


def test_a_chat_begins_with_what_the_template_made_of_it(chatty: Model) -> None:
    run = generate(chatty, options(chat=True, system="Be brief."), "Hello <|endoftext|>")
    first, second = next(run), next(run)
    assert isinstance(first, ChatRendered) and isinstance(second, Tokenized)
    assert first.text == "<system>Be brief.<user>Hello <|endoftext|><|endoftext|>"
    assert second.ids[-1] == 4095
    assert text_of(chatty, second.ids) == first.text
    assert run.trace.prompt == "Hello <|endoftext|>"


def test_without_a_system_message_there_is_none(chatty: Model) -> None:
    first = next(generate(chatty, options(chat=True), "Hi"))
    assert isinstance(first, ChatRendered) and first.text == "<user>Hi<|endoftext|>"


def test_a_template_that_fails_is_one_sentence(chatty: Model) -> None:
    tokenizer = load_tokenizer(FABLE, 4096)
    tokenizer.chat_template = "{{ raise_exception('no system \\n please') }}"
    with pytest.raises(ModelError, match="no system") as caught:
        generate(replace(chatty, tokenizer=tokenizer), options(chat=True), "Hi")
    assert "\n" not in str(caught.value)


def test_ids_are_no_question(chatty: Model) -> None:
    with pytest.raises(CutawayError, match="--prompt-ids are exactly the ids.*leave out --chat"):
        generate(chatty, options(chat=True), (1, 2))


def test_a_chat_ends_at_the_template_s_end_token(fable: Model) -> None:
    tokenizer = load_tokenizer(FABLE, 4096)
    tokenizer.chat_template = TEMPLATE.replace("{% endfor %}", "<|endoftext|>{% endfor %}")
    silent = replace(fable, tokenizer=tokenizer, config=replace(fable.config, eos_ids=()))
    assert generate(silent, options(chat=True), "Hi").end_ids == {4095}
    assert generate(silent, options(), "Hi").end_ids == set()


def test_the_model_s_folder_may_be_a_path(tiny: Path) -> None:
    assert prepare(options(model=str(tiny)), (1,)).model.name == load_model(tiny).name == "gpt2_base"
