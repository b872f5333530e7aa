"""Messages in other languages: whole sentences, and the form that goes with a number."""

from __future__ import annotations

import gettext
from collections.abc import Iterator

import pytest

from cutaway.core.catalogue import tr, trn, use


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    yield
    nothing = gettext.NullTranslations()
    use(nothing.gettext, nothing.ngettext)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 tokens of fable"), (1, "1 token of fable"), (2, "2 tokens of fable"), (1234, "1,234 tokens of fable")],
)
def test_one_and_many(count: int, text: str) -> None:
    assert trn("1 token of {model}", "{count} tokens of {model}", count, model="fable") == text


def test_a_language_with_three_forms() -> None:
    """gettext knows the rule of a language; here it is that of Polish."""
    forms = ("{count} token", "{count} tokeny", "{count} tokenów")

    def plural(one: str, many: str, count: int) -> str:
        few = count % 10 in (2, 3, 4) and count % 100 not in (12, 13, 14)
        return forms[0 if count == 1 else 1 if few else 2]

    use(lambda message: message.upper(), plural)
    found = [trn("1 token", "{count} tokens", count) for count in (1, 3, 5, 12, 22)]
    assert found == ["1 token", "3 tokeny", "5 tokenów", "12 tokenów", "22 tokeny"]
    assert tr("a token") == "A TOKEN"


def test_without_a_rule_a_language_has_the_two_forms_of_english() -> None:
    use({"1 token": "1 Token", "{count} tokens": "{count} Tokens"}.__getitem__)
    assert [trn("1 token", "{count} tokens", count) for count in (1, 2)] == ["1 Token", "2 Tokens"]
