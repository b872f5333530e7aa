"""Every format that a model's folder may hold its tokenizer in, and every way it may be broken."""

from __future__ import annotations

import json
import random
import shutil
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from cutaway.core.errors import ModelError
from cutaway.core.tokenizer import Tokenizer, load_tokenizer

REPOSITORY = Path(__file__).resolve().parents[2]
COPIES = REPOSITORY / "tests" / "data" / "tokenizers"
FABLE = REPOSITORY.parent / "shared" / "model" / "fable"
GPT2 = COPIES / "gpt2_style"
SIZE = 640
END = "<|endoftext|>"


def random_texts(count: int) -> list[str]:
    generator = random.Random(7)
    pieces = [
        "the ",
        "rabbit",
        " said",
        ", ",
        "\n",
        "  ",
        "'s",
        "1234",
        "é",
        "天空",
        "😀",
        "\t",
        "\0",
        "\ud800",
        END,
        "Q",
    ]
    return ["".join(generator.choices(pieces, k=generator.randrange(1, 40))) for _ in range(count)]


def folder_with(folder: Path, *names: str, source: Path = GPT2) -> Path:
    for name in names:
        shutil.copy(source / name, folder / name)
    return folder


def write_json(folder: Path, name: str, value: object) -> Path:
    (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder


def description() -> dict[str, Any]:
    return dict(json.loads((GPT2 / "tokenizer.json").read_text(encoding="utf-8")))


def assert_same(subject: Tokenizer, other: Tokenizer, texts: list[str]) -> None:
    for text in texts:
        for special in (False, True):
            assert subject.encode(text, special) == other.encode(text, special)
    assert subject.vocabulary.data.tobytes() == other.vocabulary.data.tobytes()
    assert subject.vocabulary.offsets.tolist() == other.vocabulary.offsets.tolist()
    assert subject.special_tokens == other.special_tokens


@pytest.fixture
def reference() -> Tokenizer:
    return load_tokenizer(GPT2, SIZE)


@pytest.mark.parametrize("names", [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")])
def test_vocabulary_and_merges(tmp_path: Path, names: tuple[str, str], reference: Tokenizer) -> None:
    shutil.copy(GPT2 / "vocab.json", tmp_path / names[0])
    shutil.copy(GPT2 / "merges.txt", tmp_path / names[1])
    subject = load_tokenizer(tmp_path, SIZE)
    assert_same(subject, reference, random_texts(200))
    assert (subject.bos_token, subject.eos_token, subject.notice) == (END, END, None)


def test_carriage_returns_in_merges(tmp_path: Path, reference: Tokenizer) -> None:
    shutil.copy(GPT2 / "vocab.json", tmp_path)
    (tmp_path / "merges.txt").write_bytes((GPT2 / "merges.txt").read_bytes().replace(b"\n", b"\r\n"))
    assert_same(load_tokenizer(tmp_path, SIZE), reference, random_texts(20))


@pytest.mark.skipif(not (FABLE / "vocab.json").is_file(), reason="needs the embedded model's vocab.json")
def test_embedded_model(tmp_path: Path) -> None:
    """Its end token is in neither file; the model's configuration says which id it has."""
    names = ("vocab.json", "merges.txt", "generation_config.json")
    subject = load_tokenizer(folder_with(tmp_path, *names, source=FABLE), 4096)
    assert_same(subject, load_tokenizer(FABLE, 4096), random_texts(400))
    assert subject.special_tokens == {END: 4095}


def test_rank_file(tmp_path: Path, reference: Tokenizer) -> None:
    """A rank file has no special tokens: the end token is the model's, or else the next id."""
    vocabulary = reference.vocabulary
    lines = [f"{b64encode(vocabulary.token_bytes(id)).decode()} {id}" for id in range(SIZE - 1)]
    (tmp_path / "ranks.tiktoken").write_text("\n".join(lines) + "\n", encoding="ascii")
    assert_same(load_tokenizer(tmp_path, SIZE), reference, random_texts(200))
    write_json(tmp_path, "generation_config.json", {"eos_token_id": 700})
    assert load_tokenizer(tmp_path, 701).special_tokens == {END: 700}
    added = {"690": {"content": "<a>", "special": True}, "691": {"content": "<b>", "special": False}}
    write_json(tmp_path, "tokenizer_config.json", {"eos_token": "<a>", "added_tokens_decoder": added})
    subject = load_tokenizer(tmp_path, 701)
    assert subject.special_tokens == {"<a>": 690}
    assert subject.encode("<b>") == [691]
    assert subject.encode("<a>", special=True) == [690]
    write_json(tmp_path, "tokenizer_config.json", {"pat_str": r"\S|\s"})
    assert len(load_tokenizer(tmp_path, SIZE).encode("a the")) == 5


def test_ids_need_not_be_in_the_order_of_the_merges(tmp_path: Path, reference: Tokenizer) -> None:
    spec = description()
    vocab = spec["model"]["vocab"]
    ids = {text: SIZE - 1 - id for text, id in vocab.items()}
    spec["model"]["vocab"] = ids
    spec["added_tokens"][0]["id"] = ids[END]
    subject = load_tokenizer(write_json(tmp_path, "tokenizer.json", spec), SIZE)
    for text in random_texts(100):
        assert subject.encode(text) == [SIZE - 1 - id for id in reference.encode(text)]


def test_merges_as_lines_or_pairs(tmp_path: Path, reference: Tokenizer) -> None:
    spec = description()
    merges = spec["model"]["merges"]
    assert isinstance(merges[0], list)
    spec["model"]["merges"] = [" ".join(pair) for pair in merges]
    assert_same(load_tokenizer(write_json(tmp_path, "tokenizer.json", spec), SIZE), reference, random_texts(50))


def test_model_with_more_ids_than_the_tokenizer() -> None:
    subject = load_tokenizer(GPT2, 704)
    assert len(subject.vocabulary) == 704
    assert subject.decode([65, 650]) == subject.decode([65])


def test_added_token_that_the_model_lacks(tmp_path: Path) -> None:
    """Its name stays text, and the notice says so."""
    spec = description()
    spec["added_tokens"].append({"id": 640, "content": "[PAD]", "special": True})
    subject = load_tokenizer(write_json(tmp_path, "tokenizer.json", spec), SIZE)
    assert subject.notice is not None and "[PAD]" in subject.notice
    assert max(subject.encode("[PAD]", special=True)) < SIZE
    assert load_tokenizer(tmp_path, SIZE + 1).encode("[PAD]", special=True) == [640]


def test_special_tokens_of_the_settings(tmp_path: Path) -> None:
    """Those without an id take the next ones; the others in added_tokens.json are not special."""
    folder_with(tmp_path, "vocab.json", "merges.txt")
    write_json(tmp_path, "added_tokens.json", {"<x>": 640, "<y>": 641})
    write_json(tmp_path, "special_tokens_map.json", {"eos_token": {"content": "<x>"}, "pad_token": "<pad>"})
    subject = load_tokenizer(tmp_path, 650)
    assert subject.special_tokens == {END: 639, "<x>": 640, "<pad>": 642}
    assert subject.encode("<x><y>") == [*subject.encode("<x>"), 641]
    assert subject.encode("<x><y><pad>", special=True) == [640, 641, 642]
    assert subject.eos_token == "<x>"


def test_post_processor(tmp_path: Path) -> None:
    """What it puts around a prompt is told apart from the prompt."""
    spec = description()
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "B"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "E"}}],
        "special_tokens": {"B": {"id": "B", "ids": [639, 5], "tokens": []}, "E": {"id": "E", "ids": [7], "tokens": []}},
    }
    spec["post_processor"] = {"type": "Sequence", "processors": [{"type": "ByteLevel"}, template]}
    subject = load_tokenizer(write_json(tmp_path, "tokenizer.json", spec), SIZE)
    assert subject.encode("a") == [64]
    assert subject.encode_prompt("ab") == (
        [639, 5, *subject.encode("ab"), 7],
        frozenset({0, 1, 2 + len(subject.encode("ab"))}),
    )
    assert subject.encode_prompt("") == ([639, 5, 7], frozenset({0, 1, 2}))


def test_beginning_token_of_the_settings(tmp_path: Path) -> None:
    folder_with(tmp_path, "vocab.json", "merges.txt")
    write_json(tmp_path, "tokenizer_config.json", {"add_bos_token": True, "add_prefix_space": True})
    subject = load_tokenizer(tmp_path, SIZE)
    assert subject.encode_prompt("a") == ([639, *subject.encode("a")], frozenset({0}))
    assert subject.decode(subject.encode("a")) == " a"


@pytest.mark.parametrize(
    ("value", "template"),
    [
        ("T", "T"),
        ([{"name": "tool_use", "template": "U"}, {"name": "default", "template": "D"}], "D"),
        ([{"name": "tool_use", "template": "U"}], "U"),
        ([], None),
        (None, None),
    ],
)
def test_chat_template(tmp_path: Path, value: object, template: str | None) -> None:
    folder_with(tmp_path, "tokenizer.json")
    write_json(
        tmp_path, "tokenizer_config.json", {"chat_template": value, "bos_token": {"content": "<s>"}, "eos_token": None}
    )
    subject = load_tokenizer(tmp_path, SIZE)
    assert (subject.chat_template, subject.bos_token, subject.eos_token) == (template, "<s>", None)
    (tmp_path / "chat_template.jinja").write_text("天", encoding="utf-8")
    assert load_tokenizer(tmp_path, SIZE).chat_template == "天"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 0}}, "SentencePiece Unigram"),
        ({"model": {"type": "WordPiece", "vocab": {"a": 0}}}, "WordPiece"),
        ({"model": {"vocab": {"a": 0}, "continuing_subword_prefix": "##"}}, "WordPiece"),
        ({"pre_tokenizer": {"type": "Metaspace"}, "decoder": None}, "BPE without ByteLevel"),
        ({"pre_tokenizer": None, "decoder": {"type": "Sequence", "decoders": []}}, "BPE without ByteLevel"),
    ],
)
def test_other_kinds_open_with_ids(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    subject = load_tokenizer(write_json(tmp_path, "tokenizer.json", description() | changes), SIZE)
    assert subject.notice is not None and named in subject.notice
    assert not subject.can_encode
    assert (len(subject.vocabulary), subject.decode([1, 2]), subject.encode("3 4")) == (SIZE, "", [3, 4])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"pre_tokenizer": {"type": "Metaspace"}}, "Metaspace"),
        (
            {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]}},
            "ByteLevel",
        ),
        ({"normalizer": {"type": "Precompiled"}}, "Precompiled"),
        ({"post_processor": {"type": "BertProcessing"}}, "BertProcessing"),
    ],
)
def test_parts_that_are_not_supported(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    """The tokens are known then, so texts can be shown, but not read."""
    subject = load_tokenizer(write_json(tmp_path, "tokenizer.json", description() | changes), SIZE)
    assert subject.notice is not None and named in subject.notice
    assert not subject.can_encode
    assert subject.decode([64, 65]) == "ab"


@pytest.mark.parametrize(
    ("names", "named"),
    [
        ([], "no tokenizer"),
        (["tokenizer.model"], "SentencePiece"),
        (["vocab.txt"], "WordPiece"),
        (["vocab.json"], "no"),
    ],
)
def test_folders_without_a_tokenizer(tmp_path: Path, names: list[str], named: str) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"\0")
    subject = load_tokenizer(tmp_path, 10)
    assert subject.notice is not None and named in subject.notice
    assert (subject.can_encode, len(subject.vocabulary), subject.encode("any")) == (False, 10, [])


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer.json", b"{"),
        ("tokenizer.json", b"[]"),
        ("tokenizer.json", b"\xff{}"),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b'{"model": 3}'),
        ("tokenizer.json", b"[" * 100_000),
        ("tokenizer.json", b'{"a": ' + b"9" * 5000 + b"}"),
        ("tokenizer_config.json", b"nothing"),
        ("tokenizer_config.json", b'{"chat_template": 3}'),
        ("tokenizer_config.json", b'{"eos_token": 3}'),
        ("tokenizer_config.json", b'{"added_tokens_decoder": {"x": {"content": "y"}}}'),
        ("tokenizer_config.json", b'{"added_tokens_decoder": {"3": "y"}}'),
        ("special_tokens_map.json", b"[1]"),
        ("generation_config.json", b"\xfe"),
        ("chat_template.jinja", b"\xff"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, file: str, content: bytes) -> None:
    folder_with(tmp_path, "tokenizer.json")
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ModelError) as error:
        load_tokenizer(tmp_path, SIZE)
    assert file in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"vocab": []}, "vocab"),
        ({"vocab": {"a": "b"}}, "'a'"),
        ({"vocab": {"a": True}}, "'a'"),
        ({"vocab": {"a": 0, "b": 0}}, "same id"),
        ({"vocab": {"a": 640}, "merges": []}, "640"),
        ({"vocab": {"a": -1}, "merges": []}, "-1"),
        ({"merges": None}, "merges"),
        ({"merges": ["a"]}, "'a'"),
        ({"merges": ["a b c"]}, "a b c"),
        ({"merges": [["a", "b", "c"]]}, "'c'"),
        ({"merges": [["a", 3]]}, "3"),
        ({"merges": [3]}, "3"),
        ({"merges": ["a \u2603"]}, "\u2603"),
        ({"ignore_merges": "yes"}, "ignore_merges"),
    ],
)
def test_broken_models_say_what_is_wrong(tmp_path: Path, changes: dict[str, Any], hint: str) -> None:
    spec = description()
    spec["model"] |= changes
    with pytest.raises(ModelError, match="tokenizer.json") as error:
        load_tokenizer(write_json(tmp_path, "tokenizer.json", spec), SIZE)
    assert hint in error.value.what


@pytest.mark.parametrize(
    "changes",
    [
        {"added_tokens": [{"content": "x"}]},
        {"added_tokens": {}},
        {"pre_tokenizer": {"type": 3}},
        {"pre_tokenizer": {"type": "\x1b[2J"}},
        {"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "("}}},
        {"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {}}, {"SpecialToken": {"id": "B"}}]}},
        {
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{"Sequence": {}}, {"SpecialToken": {"id": "B"}}],
                "special_tokens": {"B": {"ids": [640]}},
            }
        },
    ],
)
def test_broken_parts(tmp_path: Path, changes: dict[str, Any]) -> None:
    spec = description() | changes
    if spec["pre_tokenizer"]["type"] == "Split":
        spec["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [spec["pre_tokenizer"], {"type": "ByteLevel"}]}
    with pytest.raises(ModelError, match="tokenizer.json"):
        load_tokenizer(write_json(tmp_path, "tokenizer.json", spec), SIZE)


@pytest.mark.parametrize("text", ["", "YQ==", "YQ== x", "Y 1", "YQ== 1\nYg== 1", "YQ== -1", "YQ== 640", "YQ== 1 2"])
def test_broken_rank_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.tiktoken").write_text(text, encoding="ascii")
    with pytest.raises(ModelError, match="x.tiktoken"):
        load_tokenizer(tmp_path, SIZE)


def test_broken_merges_file(tmp_path: Path) -> None:
    folder_with(tmp_path, "vocab.json")
    (tmp_path / "merges.txt").write_text("#version: 0.2\na\n", encoding="utf-8")
    with pytest.raises(ModelError, match="merges.txt"):
        load_tokenizer(tmp_path, SIZE)
