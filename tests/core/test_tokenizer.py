"""Tokenizers give the ids and texts that the reference (Hugging Face's tokenizers) gives."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutaway.core.tokenizer import Tokenizer, Vocabulary, load_tokenizer

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared"
COPIES = REPOSITORY / "tests" / "data" / "tokenizers"
FIXTURES = next(folder for folder in (SHARED / "fixtures" / "tokenizers", COPIES) if folder.is_dir())

STYLES = ("gpt2_style", "minimind_style", "smollm2_style")
REAL = {"gpt2": 50257, "minimind": 6400}
"""Real tokenizers and their sizes; they are too large to be kept with the tests."""


@cache
def expected(style: str) -> Any:
    return json.loads((FIXTURES / style / "expected.json").read_text(encoding="utf-8"))


@cache
def tokenizer(style: str) -> Tokenizer:
    return load_tokenizer(FIXTURES / style, expected(style)["vocab_size_with_added"])


@cache
def real_tokenizer(name: str) -> Tokenizer:
    return load_tokenizer(SHARED / "tokenizers" / name, REAL[name])


@cache
def symbols(style: str) -> bytes:
    """The bytes that have a token of their own."""
    vocabulary = tokenizer(style).vocabulary
    tokens = [vocabulary.token_bytes(id) for id in range(len(vocabulary))]
    return b"".join(token for token in tokens if len(token) == 1)


def kept(style: str, text: str) -> bytes:
    """What of *text* a tokenizer can express: all but the bytes that have no token."""
    missing = bytes(byte for byte in range(256) if byte not in symbols(style))
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode().translate(None, missing)


def cases(kind: str) -> list[Any]:
    return [
        pytest.param(style, case, id=f"{style}-{kind}-{number}")
        for style in STYLES
        for number, case in enumerate(expected(style)[kind])
    ]


def real_cases() -> list[Any]:
    paths = {name: SHARED / "fixtures" / "real_tokenizers" / f"{name}.json" for name in REAL}
    return [
        pytest.param(name, row, id=f"{name}-{number}")
        for name, path in paths.items()
        if path.is_file() and (SHARED / "tokenizers" / name).is_dir()
        for number, row in enumerate(json.loads(path.read_text(encoding="utf-8"))["rows"])
    ]


@pytest.mark.parametrize(("style", "case"), cases("encode"))
def test_ids(style: str, case: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    """Special tokens by name if asked for, else their names as ordinary text; nothing is printed."""
    subject = tokenizer(style)
    assert subject.encode(case["text"], special=True) == case["ids"]
    assert subject.encode(case["text"]) == case["ids_special_text_as_plain"]
    assert subject.encode_prompt(case["text"], special=True) == (case["ids_with_special"], frozenset())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("style", "case"), [*cases("encode"), *cases("decode")])
def test_decode(style: str, case: dict[str, Any]) -> None:
    """Cut multi-byte sequences become U+FFFD, as often as in the reference."""
    subject = tokenizer(style)
    assert subject.decode(case["ids"]) == case["decoded"]
    assert subject.decode(np.array(case["ids"], np.int64), skip_special=True) == case["decoded_skip_special"]


@pytest.mark.parametrize(("name", "row"), real_cases())
def test_ids_of_real_tokenizers(name: str, row: dict[str, Any]) -> None:
    assert real_tokenizer(name).encode(row["text"], special=True) == row["ids"]


@pytest.mark.parametrize("style", STYLES)
def test_unknown_ids_are_no_text(style: str) -> None:
    for id in (-1, -640, *map(int, expected(style)["decode_unknown_id_hf"])):
        assert tokenizer(style).token_bytes(id) == b""
        assert tokenizer(style).decode([id]) == ""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("\ud800", "\ufffd"),
        ("ok\udfffno", "ok\ufffdno"),
        ("\ud83d alone", "\ufffd alone"),
        ("a\ud83d\ude00b", "a😀b"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("\ufeffBOM \ud800", "\ufeffBOM \ufffd"),
    ],
)
@pytest.mark.parametrize("style", STYLES)
def test_surrogates(style: str, text: str, meant: str) -> None:
    """Pairs are joined, single ones become U+FFFD."""
    for special in (False, True):
        assert tokenizer(style).encode(text, special) == tokenizer(style).encode(meant, special)


@pytest.mark.parametrize(
    "text",
    [" " * 1_000_000, " " * 999_999 + "x", "a" * 1_000_000, "ab" * 500_000, "é" * 500_000, "\0\ud800" * 100_000],
    ids=["spaces", "spaces and a letter", "a", "ab", "é", "NUL and a surrogate"],
)
@pytest.mark.parametrize("style", STYLES)
def test_a_million_characters(style: str, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """No length of a run is too much for the pattern or for the merges."""
    subject = tokenizer(style)
    assert subject.decode_bytes(subject.encode(text)) == kept(style, text)
    assert capfd.readouterr() == ("", "")


def test_bytes_without_a_token_are_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    """In smollm2_style 77 bytes have no token; their neighbours merge, and what is left may not be UTF-8."""
    subject = tokenizer("smollm2_style")
    assert subject.encode("-\x01-") == subject.encode("--")
    assert len(subject.encode("--")) == 1
    generator = random.Random(3)
    for _ in range(300):
        text = "".join(chr(generator.choice((0xA0, 0xD7FF, 0x10FFFF)) - generator.randrange(0xA0)) for _ in range(9))
        assert subject.decode_bytes(subject.encode(text)) == kept("smollm2_style", text)
    assert capfd.readouterr() == ("", "")


def test_special_tokens_are_known_by_name() -> None:
    subject = tokenizer("minimind_style")
    assert subject.special_tokens == {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2}
    assert subject.vocabulary.special == {0, 1, 2}
    assert (subject.bos_token, subject.eos_token, subject.notice) == ("<|im_start|>", "<|im_end|>", None)
    assert subject.token_bytes(1) == b"<|im_start|>"
    assert subject.token_bytes(5) == b"<think>"
    assert subject.chat_template is not None
    assert subject.can_encode


def test_without_an_encoder_text_is_a_list_of_ids() -> None:
    subject = Tokenizer(Vocabulary.empty(100))
    assert not subject.can_encode
    assert subject.encode("12, 0 99") == [12, 0, 99]
    assert subject.encode_prompt(" 7\n") == ([7], frozenset())
    for text in ("", "hello", "12 100", "-1", "٣", "1.5", "9" * 5000, "\ud800"):
        assert subject.encode(text) == []
    assert subject.decode([1, 2, 99]) == ""


def test_importing_costs_no_engine() -> None:
    """The libraries that split, merge and render are loaded by the first tokenizer that needs them."""
    heavy = "{'tiktoken', 'regex', 'jinja2', 'textual', 'rich'}"
    program = f"import cutaway.core.tokenizer, cutaway.core.chat, sys; print({heavy} & set(sys.modules) or '')"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""


class TestVocabulary:
    """Two arrays that name every token, with or without a tokenizer."""

    def test_tokens(self) -> None:
        subject = Vocabulary.from_tokens([b"a", b"", b"\xff\xfe", b"<s>"], special=[3])
        assert len(subject) == 4
        assert [subject.token_bytes(id) for id in range(-1, 5)] == [b"", b"a", b"", b"\xff\xfe", b"<s>", b""]
        assert subject.data.tobytes() == b"a\xff\xfe<s>"
        assert subject.offsets.tolist() == [0, 1, 1, 3, 6]
        assert subject.data.dtype == np.uint8
        assert subject.offsets.dtype == np.int64
        assert not subject.data.flags.writeable
        assert not subject.offsets.flags.writeable

    def test_survives_its_arrays(self) -> None:
        before = Vocabulary.from_tokens([b"ab", b"c"])
        after = Vocabulary(before.data, before.offsets)
        assert [after.token_bytes(id) for id in range(2)] == [b"ab", b"c"]

    @pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
    def test_padded(self, size: int) -> None:
        subject = Vocabulary.from_tokens([b"ab", b"c", b"<s>"], special=[2]).padded(size)
        assert len(subject) == size
        assert [subject.token_bytes(id) for id in range(5)] == [b"ab", b"c", b"<s>", b"", b""][:size] + [b""] * (
            5 - size
        )
        assert subject.special == ({2} if size > 2 else set())
        assert subject.offsets[-1] == len(subject.data)

    def test_empty(self) -> None:
        assert len(Vocabulary.empty(3)) == 3
        assert Vocabulary.empty(3).token_bytes(0) == b""

    @pytest.mark.parametrize("offsets", [[], [0], [1, 3], [0, 2], [0, 4], [0, 2, 1, 3]])
    def test_offsets_that_do_not_fit(self, offsets: list[int]) -> None:
        with pytest.raises(ValueError, match="vocabulary"):
            Vocabulary(np.zeros(3, np.uint8), np.array(offsets, np.int64))
