"""The one place every visible string passes through, so that Cutaway can speak other languages.

A message is an English sentence with named gaps; translators receive whole sentences, never fragments.
"""

import gettext
from collections.abc import Callable

_translate: Callable[[str], str] = gettext.NullTranslations().gettext


def tr(message: str, /, **values: object) -> str:
    """Return *message* in the chosen language, its ``{name}`` gaps filled from *values*.

    A message without values is returned as it is, braces and all.
    """
    translated = _translate(message)
    return translated.format(**values) if values else translated


def mark(message: str) -> str:
    """Return *message* as it is: a table lists it here, and whoever shows it passes it through `tr`.

    A table is filled before anybody has said which language to speak.
    """
    return message


def use(translate: Callable[[str], str]) -> None:
    """Let *translate* turn each English message into the reader's language from now on."""
    global _translate
    _translate = translate
