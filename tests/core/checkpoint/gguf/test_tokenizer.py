"""The tokenizer inside a GGUF file gives the ids of the tokenizer.json that it was converted from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutaway.core import ModelError
from cutaway.core.checkpoint.gguf.checkpoint import open_gguf
from cutaway.core.checkpoint.gguf.tokenizer import load_tokenizer
from cutaway.core.tokenizer import Tokenizer
from cutaway.core.tokenizer.tokenizer import Tokenizer as AnyTokenizer

STYLES = Path(__file__).parents[3] / "data" / "tokenizers"
PRE = {"gpt2_style": "gpt-2", "minimind_style": "gpt-2", "smollm2_style": "smollm"}
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4

Load = Callable[..., Tokenizer]


def described(style: str) -> tuple[dict[str, Any], int]:
    """The fields that conversion makes of a tokenizer.json, and the number of its ids."""
    given = json.loads((STYLES / style / "tokenizer.json").read_text("utf-8"))
    texts = {id: text for text, id in given["model"]["vocab"].items()}
    types = dict.fromkeys(texts, NORMAL)
    for token in given["added_tokens"]:
        texts[token["id"]] = token["content"]
        types[token["id"]] = CONTROL if token["special"] else USER_DEFINED
    merges = [line if isinstance(line, str) else " ".join(line) for line in given["model"]["merges"]]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": PRE[style],
        "tokenizer.ggml.tokens": [texts[id] for id in range(len(texts))],
        "tokenizer.ggml.token_type": [types[id] for id in range(len(texts))],
        "tokenizer.ggml.merges": merges,
    }, len(texts)


@pytest.fixture
def load(write_gguf: Callable[..., Path]) -> Load:
    """A function that loads the tokenizer of a style, with changes to its fields (None: left out)."""

    def read(
        style: str = "smollm2_style", changes: dict[str, object] | None = None, size: int | None = None
    ) -> Tokenizer:
        fields, count = described(style)
        kept = {key: value for key, value in (fields | (changes or {})).items() if value is not None}
        return load_tokenizer(open_gguf(write_gguf(kept, {"a": np.ones(4, np.float32)})), size or count)

    return read


@pytest.mark.parametrize("style", PRE)
def test_the_ids_of_the_reference(style: str, load: Load) -> None:
    tokenizer = load(style)
    expected = json.loads((STYLES / style / "expected.json").read_text("utf-8"))
    assert tokenizer.notice is None
    assert len(tokenizer.vocabulary) == expected["vocab_size_with_added"]
    for case in expected["encode"]:
        assert tokenizer.encode(case["text"], special=True) == case["ids"]
        assert tokenizer.encode(case["text"]) == case["ids_special_text_as_plain"]
        assert tokenizer.decode(case["ids"], skip_special=True) == case["decoded_skip_special"]
    for case in expected["decode"]:
        assert tokenizer.decode(case["ids"]) == case["decoded"]


def test_chat_and_special_tokens(load: Load) -> None:
    tokenizer = load(changes={"tokenizer.chat_template": "{{ messages }}", "tokenizer.ggml.bos_token_id": 1,
                              "tokenizer.ggml.eos_token_id": 2})  # fmt: skip
    assert tokenizer.chat_template == "{{ messages }}"
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert tokenizer.special_tokens["<|im_end|>"] == 2
    assert tokenizer.encode_prompt("a") == (tokenizer.encode("a"), frozenset())


def test_special_tokens_where_no_types_are_told(load: Load) -> None:
    changes: dict[str, object] = {"tokenizer.ggml.token_type": None, "tokenizer.ggml.eos_token_id": 2}
    assert load(changes=changes).special_tokens == {"<|im_end|>": 2}


def test_tokens_around_a_prompt(load: Load) -> None:
    ends: dict[str, object] = {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2}
    inner = load().encode("a")
    both = load(changes=ends | {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True})
    assert both.encode_prompt("a") == ([1, *inner, 2], frozenset({0, len(inner) + 1}))
    llama3 = {"tokenizer.ggml.pre": "llama-bpe"}
    assert load(changes=ends | llama3).encode_prompt("a")[0][0] == 1
    assert load(changes=ends | llama3 | {"tokenizer.ggml.add_bos_token": False}).encode_prompt("a")[0] == inner


def test_how_text_is_cut(load: Load) -> None:
    """Pieces are merged on their own, so a merge across a cut tells the patterns apart."""
    tokens = ["1", "2", "3", "4", "'", "S", "a", "12", "123", "1234", "'S", "'Sa"]
    merges = ["1 2", "12 3", "123 4", "' S", "'S a"]
    fields: dict[str, object] = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": None,
                                 "tokenizer.ggml.merges": merges}  # fmt: skip
    cuts = {
        "gpt-2": [["1234"], ["'", "S", "a"]],
        "smollm": [["1", "2", "3", "4"], ["'", "S", "a"]],
        "llama-bpe": [["123", "4"], ["'S", "a"]],
        "qwen2": [["1", "2", "3", "4"], ["'S", "a"]],
        "tekken": [["1", "2", "3", "4"], ["'Sa"]],
    }
    for pre, expected in cuts.items():
        tokenizer = load(changes=fields | {"tokenizer.ggml.pre": pre})
        for text, pieces in zip(("1234", "'Sa"), expected, strict=True):
            assert [tokens[id] for id in tokenizer.encode(text)] == pieces, pre


def test_an_untold_cut_is_noticed(load: Load) -> None:
    for changes in ({"tokenizer.ggml.pre": None}, {"tokenizer.ggml.pre": "default"}):
        tokenizer = load("gpt2_style", changes)
        assert tokenizer.encode("to be") == load("gpt2_style").encode("to be")
        assert tokenizer.notice is not None and "GPT-2" in tokenizer.notice


def test_an_unknown_cut_opens_with_ids_and_names(load: Load) -> None:
    for pre in ("deepseek-llm", "3x", "", "a\nb"):
        tokenizer = load(changes={"tokenizer.ggml.pre": pre})
        assert not tokenizer.can_encode
        assert tokenizer.notice is not None and tokenizer.notice.isprintable()
        assert tokenizer.encode("5 6") == [5, 6]
        assert tokenizer.decode([2]) == "<|im_end|>"
    assert "deepseek_llm" in str(load(changes={"tokenizer.ggml.pre": "deepseek-llm"}).notice)


@pytest.mark.parametrize(
    ("kind", "word"), [("llama", "SentencePiece"), ("bert", "WordPiece"), ("rwkv", "rwkv"), (None, "no tokenizer")]
)
def test_other_kinds_open_with_ids(kind: str | None, word: str, load: Load) -> None:
    tokenizer: AnyTokenizer = load(changes={"tokenizer.ggml.model": kind})
    assert not tokenizer.can_encode
    assert tokenizer.notice is not None and word in tokenizer.notice
    assert len(tokenizer.vocabulary) == described("smollm2_style")[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"tokenizer.ggml.tokens": [1, 2]},
        {"tokenizer.ggml.tokens": "x"},
        {"tokenizer.ggml.token_type": ["x"]},
        {"tokenizer.ggml.merges": ["a b c"]},
        {"tokenizer.ggml.merges": ["nothing here"]},
        {"tokenizer.ggml.bos_token_id": "x"},
        {"tokenizer.chat_template": 5},
        {"tokenizer.ggml.pre": 5},
        {"tokenizer.ggml.model": 5},
        {"tokenizer.ggml.add_bos_token": 5},
    ],
    ids=str,
)
def test_broken_tokenizers(changes: dict[str, object], load: Load) -> None:
    with pytest.raises(ModelError, match="tokenizer cannot be read") as caught:
        load(changes=changes)
    assert "\n" not in str(caught.value)


def test_more_tokens_than_the_model_has(load: Load) -> None:
    with pytest.raises(ModelError, match="ids? "):
        load(size=10)


def test_fewer_tokens_than_the_model_has(load: Load) -> None:
    assert len(load(size=1000).vocabulary) == 1000
