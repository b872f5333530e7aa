"""Python's own numbers, whatever a caller computed them with.

`argmax`, `unravel_index` and friends give NumPy's, which compare like the others and which no recording can hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from numbers import Real
from operator import index
from typing import Any

import numpy as np

from .catalogue import mark, tr
from .errors import CutawayError

LONGEST = 128
"""Bits of a number that is written out."""


def make_plain(settings: Any, error: type[CutawayError]) -> None:
    """Turn the numbers of *settings*, a new frozen dataclass, into Python's own, each as its field is declared.

    Raises *error* for a value that is no such number; True and False are none.
    """
    for field in fields(settings):
        value = getattr(settings, field.name)
        plain, expected = _KINDS[str(field.type)]
        try:
            object.__setattr__(settings, field.name, plain(value))
        except (TypeError, ValueError, OverflowError) as problem:
            what = tr("{name} is {value}", name=field.name, value=written(value))
            hint = tr("it must be {expected}", expected=tr(expected))
            raise error(what, where=type(settings).__name__, hint=hint) from problem


def whole(value: Any, name: str, error: type[CutawayError]) -> int:
    """*value*, which people call *name*, as an int. Raises *error* where it is no whole number."""
    try:
        return _whole(value)
    except TypeError as problem:
        what = tr("{name} is {value}", name=name, value=written(value))
        raise error(what, hint=tr("it must be {expected}", expected=tr("a whole number"))) from problem


def written(value: object) -> str:
    """*value* in a short line; Python itself writes no number of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > LONGEST:
        return tr("a number of {bits} bits", bits=value.bit_length())
    return " ".join(repr(value).split())[:60]


def _whole(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError(value)
    return int(index(value))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(value)
    return float(value)


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(map(_number, values))


def _truth(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(value)
    return bool(value)


def _whole_or_none(value: Any) -> int | None:
    return None if value is None else _whole(value)


_KINDS: dict[str, tuple[Callable[[Any], object], str]] = {
    "int": (_whole, mark("a whole number")),
    "int | None": (_whole_or_none, mark("a whole number, or None")),
    "float": (_number, mark("a number")),
    "bool": (_truth, mark("True or False")),
    "tuple[float, ...]": (_numbers, mark("numbers")),
}
"""What makes the numbers of a field plain, by how it is declared, and what it takes."""
