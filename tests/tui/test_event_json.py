"""Events as lines of JSON: key first, valid whatever they hold, arrays whole or summed up."""

from __future__ import annotations

import json
import math
import unicodedata
from typing import Any

import numpy as np
import pytest

from cutaway.core import Generation, SamplingConfig
from cutaway.core.events import ChatRendered, LogitsReady, TokenChosen, Tokenized
from cutaway.core.models.model import Model
from cutaway.tui.event_json import event_line, summary


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def read(line: str) -> dict[str, Any]:
    assert "\n" not in line
    value = json.loads(line, parse_constant=no_constant)
    assert isinstance(value, dict)
    assert next(iter(value)) == "event" and line.startswith('{"event": "')
    return value


@pytest.mark.parametrize("arrays", [False, True])
def test_every_event_of_a_run(fable: Model, arrays: bool) -> None:
    settings = SamplingConfig(temperature=0.8, top_k=5, top_p=0.9, seed=1)
    for event in Generation(fable, [610, 573], settings, max_new_tokens=2, ignore_eos=True):
        value = read(event_line(event, arrays=arrays))
        assert list(value) == ["event", *event.told()]
        assert value["event"] == type(event).__name__
        for name in event.told():
            field = getattr(event, name)
            if isinstance(field, np.ndarray) and arrays:
                numbers = np.array(value[name], dtype=object)
                assert numbers.shape == field.shape
                np.testing.assert_array_equal(numbers.astype(field.dtype), field)
            elif isinstance(field, np.ndarray):
                assert value[name]["shape"] == list(field.shape)


def test_whole_arrays_lose_no_precision() -> None:
    logits = np.random.default_rng(1).standard_normal((1, 50)).astype(np.float32)
    value = read(event_line(LogitsReady(logits), arrays=True))
    np.testing.assert_array_equal(np.array(value["logits"], np.float32), logits)


def test_infinities_and_nan_are_strings() -> None:
    logits = np.array([[0.5, -np.inf, np.inf, np.nan]], np.float32)
    assert read(event_line(LogitsReady(logits), arrays=True))["logits"] == [[0.5, "-inf", "inf", "nan"]]
    value = read(event_line(LogitsReady(logits[:, :3]), arrays=False))
    assert value["logits"] == {"shape": [1, 3], "min": "-inf", "max": "inf", "mean": "nan"}
    assert read(event_line(TokenChosen(1, 0.0, -math.inf, 0.5, True), arrays=False)) == {
        "event": "TokenChosen", "id": 1, "probability": 0.0, "raw_logprob": "-inf", "uniform": 0.5, "forced": True
    }  # fmt: skip


def test_summaries() -> None:
    values = np.array([[1.0, 2.0], [4.0, 5.0]], np.float32)
    assert summary(values) == {"shape": [2, 2], "min": 1.0, "max": 5.0, "mean": 3.0}
    assert summary(np.array([True, False, True])) == {
        "shape": [3],
        "min": 0.0,
        "max": 1.0,
        "mean": pytest.approx(2 / 3),
    }
    assert summary(np.zeros((0, 4))) == {"shape": [0, 4], "min": None, "max": None, "mean": None}
    assert summary(np.arange(3)) == {"shape": [3], "min": 0.0, "max": 2.0, "mean": 1.0}


def test_bytes_are_text_where_they_are_text() -> None:
    pieces = (b" the", "漢".encode(), b"\xe6\xbc", b"\xff", b"", b"hex:00")
    value = read(event_line(Tokenized((1, 2, 3, 4, 5, 6), pieces, (0,)), arrays=False))
    assert value["pieces"] == [" the", "漢", "hex:e6bc", "hex:ff", "", "hex:00"]
    assert value["ids"] == [1, 2, 3, 4, 5, 6] and value["added"] == [0]


@pytest.mark.parametrize(
    "text", ["\x1b]0;evil\x07\x1b[2J", "\u009b2J\u202e\u2028\x7f", "\ud800 lone", "</script>", '"\\']
)
def test_a_line_steers_no_terminal_and_can_be_encoded(text: str) -> None:
    line = event_line(ChatRendered(text), arrays=False)
    assert not [c for c in line if unicodedata.category(c)[0] == "C" or c in "\u2028\u2029"], ascii(line)
    line.encode("utf-8")
    assert read(line)["text"] == text
