"""The metadata of a recording: strings by name, each read as what it should be, or refused by its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf
from typing import Any

from ..catalogue import tr
from ..checkpoint.json_text import shown
from ..errors import RecordingError


class Metadata:
    """The strings beside the tensors. Every reader raises `RecordingError`, which names the field."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, default: str | None = None) -> str:
        """The field *name* as it stands, or *default* where there is none."""
        value = self._values.get(name, default)
        if value is None:
            raise RecordingError(tr("this recording is damaged: its {name} is missing", name=name))
        return value

    def count(self, name: str) -> int:
        """A whole number, 0 or more."""
        text = self.text(name)
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise impossible(name, text)
        return int(text)

    def object(self, name: str) -> dict[str, Any]:
        """A JSON object."""
        value = self._json(name)
        if not isinstance(value, dict):
            raise impossible(name, value)
        return value

    def objects(self, name: str) -> list[dict[str, Any]]:
        """A JSON list of objects."""
        values = self._list(name)
        for value in values:
            if not isinstance(value, dict):
                raise impossible(name, value)
        return values

    def ids(self, name: str, limit: float = inf) -> list[int]:
        """A JSON list of whole numbers, 0 or more and below *limit*; empty where there is no such field."""
        values = self._list(name, "[]")
        for value in values:
            if type(value) is not int or not 0 <= value < limit:
                raise impossible(name, value)
        return values

    def _list(self, name: str, default: str | None = None) -> list[Any]:
        value = self._json(name, default)
        if not isinstance(value, list):
            raise impossible(name, value)
        return value

    def _json(self, name: str, default: str | None = None) -> Any:
        try:
            return json.loads(self.text(name, default))
        except (ValueError, RecursionError) as error:
            raise RecordingError(tr("this recording is damaged: its {name} is not valid JSON", name=name)) from error


def impossible(name: str, value: object) -> RecordingError:
    """What to raise for *value* in the field *name*, where it cannot be."""
    return RecordingError(
        tr("this recording is damaged: its {name} cannot hold {value}", name=name, value=shown(value))
    )


def refused(name: str, reason: str) -> RecordingError:
    """What to raise for the field *name*, which was read and found wrong for that *reason*."""
    return RecordingError(tr("this recording is damaged: in its {name}, {reason}", name=name, reason=reason))
