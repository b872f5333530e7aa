"""Chat templates render as Hugging Face renders them, and cannot do harm."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from cutaway.core.chat import render_chat
from cutaway.core.errors import ModelError
from cutaway.core.tokenizer import load_tokenizer

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
    began = time.monotonic()
    with pytest.raises(ModelError, match="chat template fails"):
        render_chat(template, HELLO)
    assert time.monotonic() - began < 20
