"""The steps of encoding one by one; expected pieces are those of Hugging Face's tokenizers 0.23."""

from __future__ import annotations

import random
from typing import Any

import pytest

from cutaway.core.tokenizer.added import AddedToken, AddedTokens
from cutaway.core.tokenizer.bpe import BytePairEncoder
from cutaway.core.tokenizer.byte_level import to_bytes, to_characters
from cutaway.core.tokenizer.description import build_tokenizer
from cutaway.core.tokenizer.normalizers import build_normalizer
from cutaway.core.tokenizer.patterns import CL100K, GPT2, QWEN2, compile_pattern
from cutaway.core.tokenizer.pretokenizers import build_splitters, split
from cutaway.core.tokenizer.problems import Malformed, Unsupported

BYTE_LEVEL: dict[str, Any] = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}


def pieces(spec: dict[str, Any], text: str) -> list[str]:
    steps = [spec] if spec["type"] == "ByteLevel" else [spec, BYTE_LEVEL]
    return split(text, build_splitters({"type": "Sequence", "pretokenizers": steps}))


def split_at(pattern: dict[str, str], behavior: str, invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def test_alphabet() -> None:
    """A character for each byte, and back; anything else is not in it."""
    every = bytes(range(256))
    characters = to_characters(every)
    assert len(set(characters)) == 256
    assert all(character.isprintable() and not character.isspace() for character in characters)
    assert to_bytes(characters) == every
    assert to_characters(b" \n\x00a") == "ĠĊĀa"
    for text in (" ", "\n", "\xad", "\u2581", "a b", "\ud800", "\uffff"):
        assert to_bytes(text) is None


DASH = {"String": "-"}


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [
        (BYTE_LEVEL, "a b", ["a b"]),
        (BYTE_LEVEL, "", []),
        ({"type": "ByteLevel", "add_prefix_space": False}, "I'm 12  ok", ["I", "'m", " 12", " ", " ok"]),
        ({"type": "ByteLevel"}, "I'm", [" I", "'m"]),
        ({"type": "ByteLevel"}, " I", [" I"]),
        ({"type": "Digits", "individual_digits": True}, "a12½ b", ["a", "1", "2", "½", " b"]),
        ({"type": "Digits", "individual_digits": False}, "a12½ b", ["a", "12½", " b"]),
        ({"type": "Punctuation"}, "a--b,$", ["a", "-", "-", "b", ",", "$"]),
        ({"type": "Punctuation", "behavior": "Contiguous"}, "a--b,$", ["a", "--", "b", ",$"]),
        ({"type": "WhitespaceSplit"}, " a\tb-c\xa0d ", ["a", "b-c", "d"]),
        ({"type": "Whitespace"}, " a\tb-c ", ["a", "b", "-", "c"]),
        (split_at(DASH, "Isolated"), "-a--b", ["-", "a", "-", "-", "b"]),
        (split_at(DASH, "Removed"), "-a--b", ["a", "b"]),
        (split_at(DASH, "Contiguous"), "-a--b", ["-", "a", "--", "b"]),
        (split_at(DASH, "MergedWithPrevious"), "-a--b", ["-", "a-", "-", "b"]),
        (split_at(DASH, "MergedWithNext"), "-a--b", ["-a", "-", "-b"]),
        (split_at(DASH, "Removed", invert=True), "-a--b", ["-", "-", "-"]),
        (split_at({"Regex": r"\p{L}+"}, "Isolated"), "aé1天 b", ["aé", "1", "天", " ", "b"]),
        (split_at({"Regex": "^a|b$"}, "Isolated"), "aab\naab", ["a", "a", "b", "\n", "a", "a", "b"]),
        (split_at({"Regex": "[a-c&&[^b]]+"}, "Isolated"), "acbca", ["ac", "b", "ca"]),
        (split_at({"Regex": "b*"}, "Isolated"), "abba", ["a", "bb", "a"]),
        (split_at({"String": ".*"}, "Isolated"), "a.*b", ["a", ".*", "b"]),
    ],
)
def test_splitting(spec: dict[str, Any], text: str, expected: list[str]) -> None:
    assert pieces(spec, text) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (GPT2, ["I", "'", "M", " 123456", "\n\n", " x"]),
        (QWEN2, ["I", "'M", " ", "1", "2", "3", "4", "5", "6", "\n\n", " x"]),
        (CL100K, ["I", "'M", " ", "123", "456", "\n\n", " x"]),
    ],
)
def test_known_patterns(pattern: str, expected: list[str]) -> None:
    assert compile_pattern({"Regex": pattern}).findall("I'M 123456\n\n x") == expected


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [
        (None, "e\u0301 Å", "e\u0301 Å"),
        ({"type": "NFC"}, "e\u0301", "é"),
        ({"type": "NFKD"}, "é½", "e\u03011\u20442"),
        ({"type": "Lowercase"}, "ΑΣ İ", "ασ i\u0307"),
        ({"type": "Prepend", "prepend": "_"}, "a", "_a"),
        ({"type": "Prepend", "prepend": "_"}, "", ""),
        ({"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": r"\1"}, "a \n b", r"a\1b"),
        ({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]}, "É", "e\u0301"),
    ],
)
def test_normalizing(spec: object, text: str, expected: str) -> None:
    assert build_normalizer(spec)(text) == expected


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "UnicodeScripts"},
        {"type": "Sequence", "pretokenizers": [{"type": "BertPreTokenizer"}, BYTE_LEVEL]},
        {"type": "Sequence", "pretokenizers": [BYTE_LEVEL, BYTE_LEVEL]},
        {"type": "Sequence", "pretokenizers": [split_at(DASH, "Twisted"), BYTE_LEVEL]},
        # Oniguruma reads it as any number of groups of one to three, Python as one possessive group.
        {"type": "Sequence", "pretokenizers": [split_at({"Regex": r"\p{N}{1,3}+"}, "Isolated"), BYTE_LEVEL]},
    ],
)
def test_unsupported_splitting(spec: object) -> None:
    with pytest.raises(Unsupported):
        build_splitters(spec)


@pytest.mark.parametrize("spec", [{"type": "Replace"}, {"type": "Sequence"}, {}, "NFC", {"type": 1}])
def test_malformed_normalizers(spec: object) -> None:
    with pytest.raises(Malformed):
        build_normalizer(spec)


def added(text: str, special: bool = False, **options: Any) -> tuple[str, AddedToken]:
    return text, AddedToken(9, text, special=special, **options)


@pytest.mark.parametrize(
    ("tokens", "text", "expected"),
    [
        ([added("<a>")], "x<a>y<a>", ["x", "<a>", "y", "<a>"]),
        ([added("<a>"), added("<a>b")], "<a>b<a>", ["<a>b", "<a>"]),
        ([added("<a>", lstrip=True)], "x  <a> y", ["x", "<a>", " y"]),
        ([added("<a>", rstrip=True)], "x <a> \n y", ["x ", "<a>", "y"]),
        ([added("<a>", lstrip=True, rstrip=True)], " <a>  <a> ", ["<a>", "<a>"]),
        ([added("ab", single_word=True)], "ab cab ab, ab\u0301 ab½", ["ab", " cab ", "ab", ", ab\u0301 ", "ab", "½"]),
        ([], "x", ["x"]),
        ([added("")], "x", ["x"]),
        ([added("<a>")], "", []),
    ],
)
def test_added_tokens(tokens: list[tuple[str, AddedToken]], text: str, expected: list[str]) -> None:
    found = AddedTokens(tokens).split(text, special=False)
    assert [part if isinstance(part, str) else part.text for part in found] == expected


def test_special_tokens_that_are_not_asked_for_hide_others() -> None:
    """As in the reference: what a special token's name covers is not searched for shorter ones."""
    subject = AddedTokens([added("<a>", special=True), added("a>")])
    assert list(subject.split("<a>", special=False)) == ["<a>"]
    assert [part if isinstance(part, str) else part.text for part in subject.split("a>", special=False)] == ["a>"]


def merge_by_the_list(text: str, merges: list[tuple[str, str]]) -> list[str]:
    """Merge as the definition says: over and over, the earliest merge in the list, leftmost first."""
    tokens = list(text)
    while possible := [pair for pair in zip(tokens, tokens[1:], strict=False) if pair in merges]:
        pair = min(possible, key=lambda pair: max(place for place, merge in enumerate(merges) if merge == pair))
        place = list(zip(tokens, tokens[1:], strict=False)).index(pair)
        tokens[place : place + 2] = ["".join(pair)]
    return tokens


@pytest.mark.parametrize("seed", range(150))
def test_any_list_of_merges(seed: int) -> None:
    """Lists that no training writes too: out of order, ambiguous, with merges that never come to pass."""
    generator = random.Random(seed)
    letters = "abc"[: generator.randint(1, 3)]
    tokens, merges = list(letters), []
    for _ in range(generator.randint(1, 14)):
        left, right = generator.choice(tokens), generator.choice(tokens)
        if len(left + right) <= 8:
            merges.append((left, right))
            tokens += [left + right] if left + right not in tokens else []
    splits = [(token[:cut], token[cut:]) for token in tokens for cut in range(1, len(token))]
    merges += [pair for pair in splits if generator.random() < 0.4 and set(pair) <= set(tokens)]
    if seed % 2:
        generator.shuffle(merges)
    generator.shuffle(tokens)
    model = {"type": "BPE", "vocab": {token: id for id, token in enumerate(tokens)}, "merges": merges}
    subject = build_tokenizer({"model": model, "pre_tokenizer": BYTE_LEVEL}, len(tokens))
    for _ in range(25):
        text = "".join(generator.choices(letters, k=generator.randint(1, 20)))
        assert [tokens[id] for id in subject.encode(text)] == merge_by_the_list(text, merges)


@pytest.mark.parametrize("seed", range(20))
def test_merging_what_is_not_utf8(seed: int) -> None:
    """The merging that is done here agrees with tiktoken's, on pieces that could go to either."""
    generator = random.Random(seed)
    ranks = {bytes([byte]): byte for byte in range(256)}
    tokens = [b"a", b"b", b"\xc3", b"\xa9"]
    for rank in range(256, 280):
        token = generator.choice(tokens) + generator.choice(tokens)
        if token not in ranks:
            ranks[token] = rank
            tokens.append(token)
    subject = BytePairEncoder(ranks, range(280))
    for _ in range(50):
        text = "".join(generator.choices("abé", k=generator.randint(1, 150)))
        assert subject._merge_bytes(text.encode()) == subject.encode(text)


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({}, "abc", ["ab", "c"]),
        ({"ignore_merges": True}, "abc", ["abc"]),
        ({"ignore_merges": True}, "abcc", ["ab", "c", "c"]),
        ({}, "a!!b", ["ab"]),
        ({"unk_token": "?"}, "a!!b", ["a", "?", "?", "b"]),
        ({"unk_token": "?", "fuse_unk": True}, "!a!!b", ["?", "a", "?", "b"]),
        ({"unk_token": "?"}, "!", ["?"]),
        ({}, "!", []),
    ],
)
def test_options_of_the_model(options: dict[str, Any], text: str, expected: list[str]) -> None:
    tokens = ["a", "b", "c", "ab", "abc", "?"]
    vocab = {token: id for id, token in enumerate(tokens)}
    model = {"type": "BPE", "vocab": vocab, "merges": [["a", "b"]], **options}
    subject = build_tokenizer({"model": model, "pre_tokenizer": BYTE_LEVEL}, 6)
    assert [tokens[id] for id in subject.encode(text)] == expected


@pytest.mark.parametrize(
    "options",
    [
        {"continuing_subword_prefix": "##"},
        {"end_of_word_suffix": "</w>"},
        {"byte_fallback": True, "vocab": {"<0x00>": 0, "a": 1}, "merges": []},
        {"vocab": {"<s>": 0}, "merges": []},
    ],
)
def test_models_that_are_not_supported(options: dict[str, Any]) -> None:
    model = {"type": "BPE", "vocab": {"a": 0}, "merges": [], **options}
    subject = build_tokenizer({"model": model, "pre_tokenizer": BYTE_LEVEL}, 2)
    assert not subject.can_encode
    assert subject.notice is not None and "BPE" in subject.notice
