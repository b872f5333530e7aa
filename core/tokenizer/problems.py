"""The two ways a tokenizer's description fails us, and typed access to its JSON.

Parts raise these where they find the fault; the loader, which knows the file, turns a `Malformed` into a
`ModelError` and an `Unsupported` into the notice of a model that opens with ids.
"""

from typing import Any, TypeVar

from ..catalogue import tr

T = TypeVar("T")


class Malformed(ValueError):
    """A description that contradicts itself or its format. Its text is a sentence for the user."""


class Unsupported(Exception):
    """A kind of tokenizer, or of a part of one, that is not implemented. Its text names the kind."""


def member(spec: object, name: str, kind: type[T], default: T | None = None) -> T:
    """Return the value called *name* of the JSON object *spec*, checked to be of type *kind*.

    A missing or null value is *default*; without a default it is `Malformed`, as a wrong type is.
    """
    value = mapping(spec, name).get(name)
    if value is None and default is not None:
        return default
    # JSON knows true and 1 apart; Python's isinstance does not.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Malformed(tr('"{name}" is missing or has the wrong type', name=name))
    return value


def mapping(value: object, name: str) -> dict[str, Any]:
    """Return *value*, checked to be a JSON object; *name* says in the error what it is."""
    if not isinstance(value, dict):
        raise Malformed(tr('"{name}" is missing or has the wrong type', name=name))
    return value


def kind_of(spec: object, default: str | None = None) -> str:
    """Return the ``type`` of a part of a tokenizer.json (a normalizer, a pre-tokenizer, ...), or *default*."""
    kind = member(spec, "type", str, default)
    if not kind.isidentifier():
        raise Malformed(tr("{kind!r} is no type", kind=kind))
    return kind
