"""Chat templates render as Hugging Face renders them, and cannot do harm."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutaway.core import load_model
from cutaway.core.chat import answer_end, messages_of, render_chat, write_chat
from cutaway.core.errors import ModelError
from cutaway.core.models.model import Model
from cutaway.core.tokenizer import Tokenizer, load_tokenizer
from tests.soon import soon

COPIES = Path(__file__).resolve().parents[1] / "data" / "tokenizers"
SIZES = {"minimind_style": 800, "smollm2_style": 700}
HELLO = [{"role": "user", "content": "hello"}]


def cases() -> list[Any]:
    return [
        pytest.param(style, case, id=f"{style}-{number}")
        for style in SIZES
        for number, case in enumerate(json.loads((COPIES / style / "chat_expected.json").read_text(encoding="utf-8")))
    ]


@pytest.mark.parametrize(("style", "case"), cases())
def test_reference(style: str, case: dict[str, Any]) -> None:
    tokenizer = load_tokenizer(COPIES / style, SIZES[style])
    assert tokenizer.chat_template is not None
    text = render_chat(
        tokenizer.chat_template,
        case["messages"],
        add_generation_prompt=case["add_generation_prompt"],
        bos_token=tokenizer.bos_token or "",
        eos_token=tokenizer.eos_token or "",
    )
    assert text == case["text"]
    assert tokenizer.encode(text, special=True) == case["ids"]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ bos_token }}{{ messages[0].content | trim }}{{ eos_token }}", "<s>hello</s>"),
        ("{% if true %}\n  {% set x = 1 %}\nx\n{% endif %}", "x\n"),
        ("{{ messages[0] | tojson }}", '{"role": "user", "content": "hello"}'),
        ("{{ {'b': '<é&>', 'a': 1} | tojson(indent=1) }}", '{\n "b": "<é&>",\n "a": 1\n}'),
        ("{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "012"),
        (
            "{% for i in 'abc' %}{{ loop.index }}{{ loop.last }}{{ loop.length }} {% endfor %}",
            "1False3 2False3 3True3 ",
        ),
        ("{% for i in none_such %}{{ i }}{% else %}nothing{% endfor %}", "nothing"),
        ("{% generation %}answer{% endgeneration %}", "answer"),
        ("{{ 'a' ~ 1 ~ none }}{{ [1] + [2] }}{{ 'ab' * 2 }}{{ 2 ** 3 }}", "a1None[1, 2]abab8"),
        ("{{ tools }}{{ documents }}", "NoneNone"),
        ("{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(1) }}", "[1]"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "1"),
    ],
)
def test_what_templates_use(template: str, text: str) -> None:
    assert render_chat(template, HELLO, bos_token="<s>", eos_token="</s>") == text


def test_the_date() -> None:
    assert re.fullmatch(r"\d{4}", render_chat("{{ strftime_now('%Y') }}", HELLO))


def test_generation_prompt() -> None:
    template = "{% if add_generation_prompt %}yes{% endif %}"
    assert render_chat(template, HELLO) == "yes"
    assert render_chat(template, HELLO, add_generation_prompt=False) == ""


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ raise_exception('No\n\x1b[2J system  role') }}", "No [2J system role"),
        ("{% for", "unexpected"),
        ("{{ messages[7].content }}", "no element 7"),
        ("{{ 1 / 0 }}", "zero"),
        ("{% include 'x' %}", "loader"),
        ("{{ messages.append(1) }}", "append"),
        ("{{ ''.__class__.__mro__ }}", "__class__"),
        ("{{ " + "(" * 1000 + "1" + ")" * 1000 + " }}", "recursion"),
        ("{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", "recursion"),
    ],
)
def test_failing_templates(template: str, reason: str) -> None:
    with pytest.raises(ModelError) as error:
        render_chat(template, HELLO)
    assert reason in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
        "{{ 'x' * 10000000000 }}",
        "{{ 10000000000 * [1] }}",
        "{{ 9 ** (9 ** 9) }}",
        "{% for i in range(99999) %}{{ 'x' * 9999 }}{% endfor %}",
        "{% set ns = namespace(s='xy') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(s='xy') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(n=9) %}{% for i in range(99) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
    ],
)
def test_what_a_template_may_use_up_is_limited(template: str) -> None:
    with soon(), pytest.raises(ModelError, match="chat template fails"):
        render_chat(template, HELLO)


def tokenizer_with(folder: Path, files: dict[str, Any]) -> Tokenizer:
    """The tokenizer of a folder that has these files and no other place for a template."""
    shutil.copytree(COPIES / "minimind_style", folder, dirs_exist_ok=True)
    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    del config["chat_template"]
    for name, content in ({"tokenizer_config.json": {}} | files).items():
        if name == "tokenizer_config.json":
            content = json.dumps(config | content)
        (folder / name).write_text(content, "utf-8")
    return load_tokenizer(folder, 800)


NAMED = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "default"}]
SOURCES = [
    ({}, None),
    ({"tokenizer_config.json": {"chat_template": "text"}}, "text"),
    ({"tokenizer_config.json": {"chat_template": NAMED}}, "default"),
    ({"tokenizer_config.json": {"chat_template": NAMED[:1]}}, "tools"),
    ({"tokenizer_config.json": {"chat_template": []}}, None),
    ({"chat_template.jinja": "file é"}, "file é"),
    ({"chat_template.jinja": "file", "tokenizer_config.json": {"chat_template": NAMED}}, "file"),
]


@pytest.mark.parametrize(("files", "template"), SOURCES)
def test_where_a_template_comes_from(files: dict[str, Any], template: str | None, tmp_path: Path) -> None:
    assert tokenizer_with(tmp_path, files).chat_template == template


@pytest.mark.parametrize("value", [5, {"a": "b"}, [5], [{"name": "default"}], [{"name": 1, "template": "x"}]])
def test_a_template_that_is_no_text_is_one_sentence(value: object, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="tokenizer cannot be read") as error:
        tokenizer_with(tmp_path, {"tokenizer_config.json": {"chat_template": value}})
    assert "tokenizer_config.json" in str(error.value) and str(error.value).isprintable()


def test_a_template_that_is_not_utf8_is_one_sentence(tmp_path: Path) -> None:
    shutil.copytree(COPIES / "minimind_style", tmp_path, dirs_exist_ok=True)
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(ModelError, match=r"chat_template\.jinja"):
        load_tokenizer(tmp_path, 800)


@pytest.fixture(scope="module")
def verse() -> Model:
    return load_model("verse")


def speaking(model: Model, template: str | None, *, can_encode: bool = True) -> Model:
    """The model with another template, and maybe no tokenizer that reads."""
    own = model.tokenizer
    other = Tokenizer(
        own.vocabulary,
        own._pipeline if can_encode else None,
        special_tokens=own.special_tokens,
        chat_template=template,
        eos_token=own.eos_token,
    )
    return replace(model, tokenizer=other)


def test_a_conversation_as_the_model_s_template_writes_it(verse: Model) -> None:
    messages = messages_of("hi", "Be brief.")
    assert [message["role"] for message in messages] == ["system", "user"] and len(messages_of("hi")) == 1
    assert write_chat(verse, messages).endswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")
    assert write_chat(speaking(verse, "{{ messages[0].content }}{{ eos_token }}"), messages) == "Be brief.<|im_end|>"


@pytest.mark.parametrize(
    ("template", "can_encode", "said"),
    [(None, True, "verse has no chat template; leave out --chat"), ("x", False, "no tokenizer that turns text")],
)
def test_models_that_cannot_chat(verse: Model, template: str | None, can_encode: bool, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        write_chat(speaking(verse, template, can_encode=can_encode), messages_of("hi"))


TURNS = "{% for m in messages %}[{{ m.role }}]{{ m.content }}END{% endfor %}"


@pytest.mark.parametrize(
    ("template", "end"),
    [
        (TURNS.replace("END", "<|im_end|>\n"), 2),
        (TURNS.replace("END", "\n <|endoftext|>"), 0),
        (TURNS.replace("END", "{{ eos_token }}"), 2),
        (TURNS.replace("END", "\n"), None),
        (TURNS.replace("END", ". <|im_end|>"), None),
        ("<|im_start|>no answer here", None),
        ("{{ raise_exception('no assistant') }}", None),
        (None, None),
    ],
)
def test_the_token_that_ends_an_answer(verse: Model, template: str | None, end: int | None) -> None:
    assert answer_end(speaking(verse, template)) == end


def test_the_token_that_ends_an_answer_of_the_models_here(verse: Model, tmp_path: Path) -> None:
    assert answer_end(verse) == 2
    for style, size in SIZES.items():
        tokenizer = load_tokenizer(COPIES / style, size)
        assert answer_end(replace(verse, tokenizer=tokenizer)) == tokenizer.special_tokens["<|im_end|>"]
