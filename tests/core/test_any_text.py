"""Whatever the text: the embedded tokenizers read it without a word, and give it back."""

from __future__ import annotations

import pytest
from hypothesis import example, given

from cutaway.core import load_model
from cutaway.core.models.characters import CharacterTokenizer
from cutaway.core.models.model import Model
from cutaway.core.models.tinymind import ALPHABET, END
from tests.core.strategies import texts


def meant(text: str) -> str:
    """*text* as it can be written down: pairs of surrogates are characters, single ones U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@pytest.fixture(scope="module", params=["fable", "verse"])
def model(request: pytest.FixtureRequest) -> Model:
    name: str = request.param
    return load_model(name)


def test_any_text_comes_back(model: Model, capfd: pytest.CaptureFixture[str]) -> None:
    """As text and byte for byte, whether or not special tokens are found; nothing is printed."""
    tokenizer = model.tokenizer

    @given(texts())
    @example("\ud83d\ude00 \ude00\ud83d")
    @example("<|im_start|>user<|endoftext|>")
    def comes_back(text: str) -> None:
        for special in (False, True):
            ids = tokenizer.encode(text, special)
            assert all(0 <= id < model.config.vocabulary for id in ids)
            assert tokenizer.decode(ids) == meant(text)
            assert b"".join(map(tokenizer.token_bytes, ids)) == meant(text).encode()
            prompt, added = tokenizer.encode_prompt(text, special)
            assert [id for position, id in enumerate(prompt) if position not in added] == ids
        assert not set(tokenizer.encode(text)) & model.tokenizer.vocabulary.special

    comes_back()
    assert capfd.readouterr() == ("", "")


@given(texts())
def test_a_tokenizer_of_characters_reads_any_text(text: str) -> None:
    """A token for each UTF-16 unit; what is not in its alphabet is a space."""
    tokenizer = CharacterTokenizer(ALPHABET, END)
    ids = tokenizer.encode(text)
    assert len(ids) == len(text.encode("utf-16-le", "surrogatepass")) // 2
    expected = "".join((each if each in ALPHABET else " ") * (1 + (each > "\uffff")) for each in text)
    assert tokenizer.decode(ids) == expected
    for id in tokenizer.encode(text, special=True):
        assert 0 <= id <= len(ALPHABET)
