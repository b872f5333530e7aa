"""The one place every visible string passes through, so that Cutaway can speak other languages.

A message is an English sentence with named gaps; translators receive whole sentences, never fragments.
"""

import gettext
from collections.abc import Callable

_translate: Callable[[str], str] = gettext.NullTranslations().gettext
_translate_plural: Callable[[str, str, int], str] = gettext.NullTranslations().ngettext


def tr(message: str, /, **values: object) -> str:
    """Return *message* in the chosen language, its ``{name}`` gaps filled from *values*.

    A message without values is returned as it is, braces and all.
    """
    translated = _translate(message)
    return translated.format(**values) if values else translated


def trn(one: str, many: str, count: int, /, **values: object) -> str:
    """Return the form of a message that goes with *count* things, *one* or *many* of them, gaps filled as `tr` does.

    The gap ``{count}`` is filled with *count*, thousands apart.
    """
    return _translate_plural(one, many, count).format(**{"count": f"{count:,}"} | values)


def mark(message: str) -> str:
    """Return *message* as it is: a table lists it here, and whoever shows it passes it through `tr`.

    A table is filled before anybody has said which language to speak.
    """
    return message


def use(translate: Callable[[str], str], plural: Callable[[str, str, int], str] | None = None) -> None:
    """Let *translate* turn each English message into the reader's language from now on.

    *plural* turns a message with one form for one thing and another for many into the form that goes with a number of
    them, as gettext's ``ngettext`` does; without it, the language is taken to have the same two forms.
    """
    global _translate, _translate_plural
    _translate = translate
    _translate_plural = plural or (lambda one, many, count: translate(one if count == 1 else many))
