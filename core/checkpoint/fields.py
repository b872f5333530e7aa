"""Reading fields of a JSON object with their types and ranges checked.

A configuration decides what is computed, so nothing in it is guessed: a number written as text, a ``null``
where a number belongs, or an infinity is an error that names the field.
"""

from collections.abc import Mapping
from typing import TypeVar

from ..catalogue import tr
from ..errors import ModelError
from .json_text import shown

MOST = 2**31 - 1
"""The largest count of anything that a model is believed to have."""

LEAST = 1e-30
"""The smallest number above 0 that is believed, and the largest is 1 over it: float32 holds both."""

T = TypeVar("T")


class Fields:
    """The fields of one JSON object; *where* says in errors which object it is.

    Each reader takes the value that an absent field stands for; without one, the field must be there.
    All raise ``ModelError``, which names the field.
    """

    def __init__(self, values: Mapping[str, object], where: str) -> None:
        self.values = values
        self.where = where

    def get(self, name: str) -> object:
        """Return the field as it stands, None where there is none."""
        return self.values.get(name)

    def count(self, name: str, default: int | None = None, *, most: int = MOST) -> int:
        """Return a whole number from 1 to *most*."""
        value = self.values.get(name, default)
        if type(value) is int and 1 <= value <= most:
            return value
        message = tr(
            "{field} should be a whole number from 1 to {most}, but is {value}",
            field=name,
            most=most,
            value=shown(value),
        )
        raise self.wrong(name, message)

    def fraction(self, name: str, default: float | None = None) -> float:
        """Return a number from `LEAST` to 1."""
        return self.positive(name, default, most=1)

    def positive(self, name: str, default: float | None = None, *, most: float = 1 / LEAST) -> float:
        """Return a number from `LEAST` to *most*."""
        value = self.values.get(name, default)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and LEAST <= value <= most:
            return float(value)
        message = tr(
            "{field} should be a number from {least:g} to {most:g}, but is {value}",
            field=name,
            least=LEAST,
            most=most,
            value=shown(value),
        )
        raise self.wrong(name, message)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return true or false."""
        value = self.values.get(name, default)
        if isinstance(value, bool):
            return value
        message = tr("{field} should be true or false, but is {value}", field=name, value=shown(value))
        raise self.wrong(name, message)

    def text(self, name: str) -> str:
        """Return a string."""
        value = self.values.get(name)
        if isinstance(value, str):
            return value
        message = tr("{field} should be a string, but is {value}", field=name, value=shown(value))
        raise self.wrong(name, message)

    def one_of(self, name: str, choices: Mapping[str, T], default: str | None = None) -> T:
        """Return what *choices* makes of a string."""
        value = self.values.get(name, default)
        if isinstance(value, str) and value in choices:
            return choices[value]
        message = tr("{field} {value} is not supported", field=name, value=shown(value))
        raise self.wrong(name, message, hint=tr("these are: {choices}", choices=", ".join(choices)))

    def ids(self, name: str, default: int | None = None) -> tuple[int, ...]:
        """Return token ids: one number, a list of numbers, or ``null`` for none."""
        value = self.values.get(name, default)
        ids = [] if value is None else value if isinstance(value, list) else [value]
        if all(type(token) is int for token in ids):
            return tuple(ids)
        message = tr(
            "{field} should be a token id or a list of token ids, but is {value}",
            field=name,
            value=shown(value),
        )
        raise self.wrong(name, message)

    def spelling(self, name: str, *others: str) -> str:
        """Return which of several names of one field is used, *name* where none is.

        Two of them must not contradict each other.
        """
        used = [one for one in (name, *others) if one in self.values]
        for other in used[1:]:
            if self.get(other) != self.get(used[0]):
                what = tr("{name} and {other} are one field with two values", name=used[0], other=other)
                raise ModelError(what, where=self.where)
        return used[0] if used else name

    def wrong(self, name: str, message: str, *, hint: str | None = None) -> ModelError:
        """Return the error for field *name*, with *message* unless the field is simply missing."""
        if name not in self.values:
            message = tr("{field} is missing", field=name)
        return ModelError(message, where=self.where, hint=hint)
