"""A chat of several turns: the tokens of a run from scratch, for less work."""

from __future__ import annotations

import gc
import json
import shutil
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from safetensors.numpy import save_file

from cutaway.core import Generation, ModelError, SamplingConfig, Trace, load_model
from cutaway.core.attention_stages import attention_output
from cutaway.core.conversation import Conversation, Turn
from cutaway.core.edits import AblateHead, AblateMlp, Edit, ForceToken
from cutaway.core.events import ChatRendered, Embedded, Finished, Tokenized
from cutaway.core.models.model import Model

TOKENIZERS = Path(__file__).resolve().parents[1] / "data" / "tokenizers"
POEMS = ["写一首五言绝句，里面有“明月”", "再写一首，里面有“春风”", "谢谢"]
GREEDY = SamplingConfig(greedy=True, seed=1)
END = 2
"""``<|im_end|>`` in both models."""


@pytest.fixture(scope="module")
def verse() -> Model:
    return load_model("verse")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of random weights with a chat template: 2 layers of 4 heads in 2 groups, 800 tokens, 256 positions."""
    folder = tmp_path_factory.mktemp("models") / "small"
    shutil.copytree(TOKENIZERS / "minimind_style", folder)
    D, F, V, kv = 32, 48, 800, 16
    shapes = {"q": (D, D), "k": (kv, D), "v": (kv, D), "o": (D, D)}
    weights: dict[str, tuple[int, ...]] = {"embed_tokens": (V, D), "norm": (D,)}
    for layer in (f"layers.{number}." for number in range(2)):
        weights |= {f"{layer}self_attn.{name}_proj": shape for name, shape in shapes.items()}
        weights |= {f"{layer}mlp.{name}_proj": (F, D) for name in ("gate", "up")} | {f"{layer}mlp.down_proj": (D, F)}
        weights |= {f"{layer}input_layernorm": (D,), f"{layer}post_attention_layernorm": (D,)}
    random = np.random.default_rng(5)
    tensors = {
        f"model.{name}.weight": random.normal(int(len(shape) == 1), 0.3, shape).astype("f4")
        for name, shape in weights.items()
    }
    save_file(tensors, folder / "model.safetensors")
    config = {
        "model_type": "llama", "hidden_size": D, "intermediate_size": F, "num_hidden_layers": 2, "vocab_size": V,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 0,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def chatty(small: Path) -> Model:
    return load_model(small)


def with_template(model: Model, folder: Path, template: str) -> Model:
    """The model with another template."""
    tokenizer = load_model(folder).tokenizer
    tokenizer.chat_template = template
    return replace(model, tokenizer=tokenizer)


def run_of(turn: Turn) -> Generation:
    assert turn.generation is not None
    return turn.generation


def first_rows(run: Generation) -> range:
    """The positions of the first pass; the run goes to its end."""
    [first, *_] = [event.positions for event in run if isinstance(event, Embedded)]
    return range(int(first[0]), int(first[-1]) + 1)


def from_scratch(run: Generation, **settings: Any) -> Generation:
    """The same prompt with an empty cache, run to its end."""
    given: dict[str, Any] = {"max_new_tokens": run.max_new_tokens, "edits": run.trace.edits, "end_ids": run.end_ids}
    again = Generation(run.model, run.trace.prompt_ids, run.trace.sampling[0][1], **given | settings)
    list(again)
    return again


def check_against_scratch(run: Generation) -> None:
    truth = from_scratch(run)
    assert run.trace.token_ids == truth.trace.token_ids and run.trace.finish_reason == truth.trace.finish_reason
    for layer in range(run.model.config.layers):
        np.testing.assert_allclose(run.trace.residual(layer), truth.trace.residual(layer), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("sampling", [GREEDY, SamplingConfig(0.8, 40, 0.95, seed=3)], ids=["greedy", "drawn"])
def test_poems(verse: Model, sampling: SamplingConfig) -> None:
    chat = Conversation(verse, sampling=sampling)
    kept: list[int] = []
    prompt = 0
    for number, text in enumerate(POEMS):
        run = chat.say(text)
        rows, ids = first_rows(run), run.trace.prompt_ids
        alike = [one == other for one, other in zip(kept, ids, strict=False)]
        assert rows == range(alike.index(False) if False in alike else len(kept), len(ids))
        assert rows.start >= prompt
        prompt = len(ids)
        check_against_scratch(run)
        assert number == 2 or (run.trace.finish_reason == "eos" and run.trace.steps[-1].id == END)
        assert run.trace.prompt == text and run.trace.sampling[0][1].seed == (sampling.seed or 0) + number
        kept = run.trace.token_ids[: run.trace.positions]  # all but the end token went through the model
    assert [turn.question for turn in chat.turns] == POEMS
    assert not any("<|" in turn.answer for turn in chat.turns)


def test_events_of_a_later_turn(verse: Model) -> None:
    chat = Conversation(verse, sampling=GREEDY)
    list(chat.say(POEMS[0]))
    first = chat.turns[0].answer
    rendered, tokenized, embedded, *_, last = chat.say(POEMS[1])
    assert isinstance(rendered, ChatRendered) and isinstance(tokenized, Tokenized) and isinstance(last, Finished)
    expected = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in
                       (("user", POEMS[0]), ("assistant", first), ("user", POEMS[1])))  # fmt: skip
    assert rendered.text == expected + "<|im_start|>assistant\n"
    assert b"".join(tokenized.pieces).decode() == rendered.text  # the whole text, not only what is new
    assert isinstance(embedded, Embedded) and len(embedded.sum) < len(tokenized.ids) - 34
    assert run_of(chat.turns[1]).trace.text.startswith(rendered.text)


def test_random_weights(chatty: Model) -> None:
    chat = Conversation(chatty, "Be brief.", GREEDY, max_new_tokens=12)
    for text in ("hello", "and then?", "why"):
        run = chat.say(text)
        rows = first_rows(run)
        assert len(chat.turns) == 1 or rows.start > 10
        check_against_scratch(run)


def test_the_template_s_end_token_ends_an_answer_whatever_the_configuration_says(chatty: Model) -> None:
    assert chatty.config.eos_ids == (0,)
    run = Conversation(chatty, sampling=GREEDY, edits=[ForceToken(3, END)]).say("hello")
    list(run)
    assert run.trace.finish_reason == "eos" and len(run.trace.steps) == 4
    onwards = Conversation(chatty, sampling=GREEDY, edits=[ForceToken(3, END)], ignore_eos=True, max_new_tokens=6)
    list(run := onwards.say("hello"))
    assert run.trace.finish_reason == "length"


def test_a_template_that_rewrites_what_was_said_is_obeyed(verse: Model, chatty: Model, small: Path) -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{{ m.content if m.role == 'user' or loop.last else '...' }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    chat = Conversation(with_template(chatty, small, template), sampling=GREEDY, max_new_tokens=8)
    list(chat.say("hello there"))
    prompt = len(run_of(chat.turns[0]).trace.prompt_ids)
    run = chat.say("again")
    assert first_rows(run).start == prompt  # as far as the texts agree: to where the answer began
    check_against_scratch(run)


def test_an_answer_that_was_stopped_is_gone_on_from(chatty: Model) -> None:
    chat = Conversation(chatty, sampling=GREEDY, max_new_tokens=9)
    run = chat.say("hello")
    for event in run:
        if len(run.trace.steps) == 4 and isinstance(event, Embedded):
            break  # in the middle of a pass
    following = chat.say("stop")
    assert run.trace.finish_reason == "stopped" and chat.messages[1]["content"] == chat.turns[0].answer
    first_rows(following)
    check_against_scratch(following)


def test_a_branch_can_be_the_answer(chatty: Model) -> None:
    chat = Conversation(chatty, sampling=GREEDY, max_new_tokens=8)
    run = chat.say("hello")
    list(run)
    branch = run.branch(3, token=500)
    list(branch)
    chat.take(branch)
    assert chat.turns[0].answer == chatty.tokenizer.decode([step.id for step in branch.trace.steps])
    following = chat.say("again")
    first_rows(following)
    check_against_scratch(following)
    list(run.branch(2, token=400))  # and the rows of the first answer are still its own
    assert from_scratch(run).trace.token_ids == run.trace.token_ids


@pytest.mark.parametrize("since", [0, 3])
def test_ablations_hold_in_every_turn(chatty: Model, since: int) -> None:
    chat = Conversation(chatty, sampling=GREEDY, max_new_tokens=8)
    list(chat.say("hello"))
    branch = run_of(chat.turns[0]).branch(since, edits=[AblateHead(1, 2)])
    list(branch)
    chat.take(branch)
    run = chat.say("again")
    assert first_rows(run).start == 0  # the first turn's prompt was read with that head
    assert run.trace.edits == (AblateHead(1, 2),)
    check_against_scratch(run)
    run = chat.say("and again")
    assert first_rows(run).start > 20
    check_against_scratch(run)


def test_the_recording_of_a_turn(chatty: Model, tmp_path: Path) -> None:
    chat = Conversation(chatty, sampling=GREEDY, max_new_tokens=6, capture="all")
    list(chat.say("hello"))
    run = chat.say("again")
    assert first_rows(run).start > 0
    run.trace.save(tmp_path / "turn.cutaway")
    from_scratch(run, capture="all").trace.save(tmp_path / "scratch.cutaway")
    one, other = Trace.load(tmp_path / "turn.cutaway"), Trace.load(tmp_path / "scratch.cutaway")
    assert one.token_ids == other.token_ids and one.prompt == "again"
    T = one.positions
    for name in ("embedding", "residual", "hidden", "normalized", "logits"):
        mine, theirs = getattr(one.cache.rows, name), getattr(other.cache.rows, name)
        np.testing.assert_allclose(mine[..., :T, :], theirs[..., :T, :], atol=2e-4, rtol=1e-4)
    for layer in range(2):
        np.testing.assert_allclose(
            attention_output(one, layer, 0, T), attention_output(other, layer, 0, T), atol=2e-4, rtol=1e-4
        )


def test_of_turns_long_over_the_words_are_kept(chatty: Model) -> None:
    chat = Conversation(chatty, sampling=GREEDY, max_new_tokens=3)
    runs, answers = [], []
    for text in ("a", "b", "c", "d", "e"):
        run = chat.say(text)
        list(run)
        runs.append(ref(run))
        answers.append(chat.turns[-1].answer)
    del run
    gc.collect()
    assert [run() is not None for run in runs] == [False, False, False, True, True]
    assert [turn.answer for turn in chat.turns] == answers and all(answers)
    assert [message["content"] for message in chat.messages] == [*chain(*zip("abcde", answers, strict=True))]


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4])
def test_a_message_is_answered_once_more(turns: int, chatty: Model) -> None:
    """As it was, whether the turn before it still has its rows or not; what was changed in the model stays so."""
    edits: list[Edit] = [AblateHead(1, 2), ForceToken(0, 9)]
    chat = Conversation(chatty, sampling=replace(GREEDY, temperature=0.9), max_new_tokens=4, edits=edits)
    list(chat.say("hello"))
    branch = run_of(chat.turns[0]).branch(2, edits=[AblateMlp(0)])
    list(branch)
    chat.take(branch)
    truth = [branch.trace.token_ids]
    for text in "bcde":
        run = chat.say(text)
        list(run)
        truth.append(run.trace.token_ids)
    fork = chat.fork(turns)
    again = fork.say("hbcde"[turns] if turns else "hello")
    list(again)
    assert len(fork.turns) == turns + 1 and len(chat.turns) == 5
    if turns:  # the first turn was a branch, made by hand
        assert again.trace.token_ids == truth[turns]
        assert again.trace.edits == (AblateHead(1, 2), AblateMlp(0))
    check_against_scratch(again)


def test_a_full_context_leaves_the_conversation_as_it_was(chatty: Model) -> None:
    chat = Conversation(chatty, sampling=GREEDY, max_new_tokens=5)
    list(chat.say("hello"))
    before = chat.messages
    with pytest.raises(ModelError, match="reads at most 256"):
        chat.say("word " * 300)
    assert chat.messages == before and len(chat.turns) == 1
    list(chat.say("go on"))
    assert len(chat.turns) == 2


def test_what_a_template_refuses_is_told_and_forgotten(chatty: Model, small: Path) -> None:
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}x"
    chat = Conversation(with_template(chatty, small, refusing), "Be brief.")
    with pytest.raises(ModelError, match="no system"):
        chat.say("hello")
    assert chat.turns == [] and [message["role"] for message in chat.messages] == ["system"]


def test_a_model_without_a_template_has_no_conversation(tiny: Model) -> None:
    with pytest.raises(ModelError, match="no chat template"):
        Conversation(tiny).say("hello")


def test_the_same_words_twice_are_still_read(chatty: Model) -> None:
    """The last token is run even where the cache holds it: somebody has to say what follows."""
    run = Generation(chatty, [1, 5, 6, 7], GREEDY, max_new_tokens=4, ignore_eos=True)
    list(run)
    again = run.follow([1, 5, 6, 7])
    assert first_rows(again) == range(3, 4)
    assert again.trace.token_ids == run.trace.token_ids
    assert first_rows(run.follow([9])) == range(0, 1)
    assert first_rows(run.follow(run.trace.token_ids)) == range(7, 8)
