"""What a tokenizer does to the text before anything else: the ``normalizer`` of a tokenizer.json."""

import unicodedata
from collections.abc import Callable
from functools import partial
from typing import Literal

from .patterns import compile_pattern
from .problems import Unsupported, kind_of, member

Normalizer = Callable[[str], str]


def build_normalizer(spec: object) -> Normalizer:
    """Return the function that *spec* describes (None: the text stays as it is).

    `Unsupported` names a kind that is not implemented, `Malformed` says what is wrong with the description.
    """
    if spec is None:
        return str
    kind = kind_of(spec)
    if kind not in _KINDS:
        raise Unsupported(f"normalizer {kind}")
    return _KINDS[kind](spec)


def _sequence(spec: object) -> Normalizer:
    steps = [build_normalizer(step) for step in member(spec, "normalizers", list)]

    def normalize(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return normalize


def _form(form: Literal["NFC", "NFD", "NFKC", "NFKD"], spec: object) -> Normalizer:
    return partial(unicodedata.normalize, form)


def _lowercase(spec: object) -> Normalizer:
    # Letter by letter: str.lower() of a whole word knows the Greek final sigma, the reference does not.
    return lambda text: "".join(letter.lower() for letter in text)


def _prepend(spec: object) -> Normalizer:
    beginning = member(spec, "prepend", str)
    return lambda text: beginning + text if text else text


def _replace(spec: object) -> Normalizer:
    pattern = compile_pattern(member(spec, "pattern", dict))
    content = member(spec, "content", str)
    return lambda text: pattern.sub(lambda match: content, text)


_KINDS: dict[str, Callable[[object], Normalizer]] = {
    "Sequence": _sequence,
    "NFC": partial(_form, "NFC"),
    "NFD": partial(_form, "NFD"),
    "NFKC": partial(_form, "NFKC"),
    "NFKD": partial(_form, "NFKD"),
    "Lowercase": _lowercase,
    "Prepend": _prepend,
    "Replace": _replace,
}
