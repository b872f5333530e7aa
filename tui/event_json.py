"""Events as JSON, one object a line, for programs that read along."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np

from ..core.events import Event


def event_line(event: Event, *, arrays: bool) -> str:
    """*event* as one line of JSON, key ``event`` first; arrays whole or summed up. Infinities are strings."""
    fields = {name: _plain(value, arrays) for name, value in event.told().items()}
    return to_json({"event": type(event).__name__} | fields)


def to_json(value: object, indent: int | None = None) -> str:
    """*value* as JSON. It may be read on a terminal, so anything that could steer one is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    if all(line.isprintable() for line in text.split("\n")) and _can_be_written(text):
        return text
    return json.dumps(value, allow_nan=False, indent=indent).replace("\x7f", "\\u007f")


def _can_be_written(text: str) -> bool:
    """Whether the output's encoding has all of *text*."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: Any, arrays: bool) -> Any:
    """*value* as JSON has it. Bytes become text where they are UTF-8, else hexadecimal after ``hex:``."""
    match value:
        case np.ndarray():
            return _nested(value.tolist()) if arrays else summary(value)
        case bytes():
            return _text(value)
        case tuple():
            return [_plain(item, arrays) for item in value]
        case float():
            return _number(value)
        case _:
            return value


def summary(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Shape, smallest, largest and mean of *array*; of truth values, 0, 1 and the share that is true."""
    if not array.size:
        return {"shape": list(array.shape), "min": None, "max": None, "mean": None}
    with np.errstate(invalid="ignore"):
        numbers = {"min": array.min(), "max": array.max(), "mean": array.mean(dtype=np.float64)}
    return {"shape": list(array.shape)} | {name: _number(float(number)) for name, number in numbers.items()}


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _nested(value: Any) -> Any:
    if isinstance(value, list):
        return [_nested(item) for item in value]
    return _number(value) if isinstance(value, float) else value


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return f"hex:{data.hex()}"
