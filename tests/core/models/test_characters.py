"""The tokenizer of single characters: any text becomes ids, and ids become text up to the end token."""

from __future__ import annotations

import random
import sys

import pytest

from cutaway.core.models.characters import CharacterTokenizer
from cutaway.core.models.tinymind import ALPHABET, END


@pytest.fixture
def tokenizer() -> CharacterTokenizer:
    return CharacterTokenizer(ALPHABET, END)


def test_every_token_is_its_character(tokenizer: CharacterTokenizer) -> None:
    assert tokenizer.can_encode and tokenizer.notice is None and len(tokenizer.vocabulary) == 30
    assert [tokenizer.token_bytes(id).decode() for id in range(30)] == [*ALPHABET, END]
    assert tokenizer.vocabulary.special == {29} and tokenizer.token_bytes(30) == b""
    assert tokenizer.encode(ALPHABET) == list(range(29)) and tokenizer.decode(range(29)) == ALPHABET


@pytest.mark.parametrize(
    ("text", "ids"),
    [("A", [26]), ("\n", [26]), ("é", [26]), ("e\u0301", [4, 26]), ("😀", [26, 26]), ("\ud83d\ude00", [26, 26]),
     ("\ud800", [26]), ("\x00", [26]), ("", [])],
)  # fmt: skip
def test_what_is_not_in_the_alphabet(text: str, ids: list[int], tokenizer: CharacterTokenizer) -> None:
    assert tokenizer.encode(text) == tokenizer.encode(text, special=True) == ids


def test_the_end_token_in_a_text(tokenizer: CharacterTokenizer) -> None:
    assert tokenizer.encode("a<eos>b") == [0, 26, 4, 14, 18, 26, 1]
    assert tokenizer.encode("a<eos>b<eos>", special=True) == [0, 29, 1, 29]
    assert tokenizer.encode("<eos>", special=True) == [29]
    assert tokenizer.encode_prompt("hi") == ([7, 8], frozenset())
    assert tokenizer.decode([7, 29, 4]) == "h" and tokenizer.decode(iter([29, 4]), skip_special=True) == ""


def test_any_text_becomes_an_id_for_each_utf16_unit(tokenizer: CharacterTokenizer) -> None:
    chance = random.Random(0)
    for _ in range(200):
        text = "".join(chr(chance.randrange(sys.maxunicode + 1)) for _ in range(chance.randrange(40)))
        assert len(tokenizer.encode(text)) == len(text.encode("utf-16-le", "surrogatepass")) // 2
    assert len(tokenizer.encode(" " * 1_000_000)) == 1_000_000
