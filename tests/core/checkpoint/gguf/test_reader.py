"""Headers: read quickly, and not believed."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import thread_time
from typing import Any

import gguf
import numpy as np
import pytest

from cutaway.core import ModelError
from cutaway.core.checkpoint.gguf.checkpoint import open_gguf
from cutaway.core.checkpoint.gguf.reader import read_gguf
from tests.soon import soon

Write = Callable[..., Path]

TENSORS = {"a": np.ones((4, 32), np.float32), "b": np.ones(8, np.float32)}
FIELDS: dict[str, Any] = {
    "general.architecture": "llama",
    "text": "Ω\n",
    "none": "",
    "number": 7,
    "small": 1e-5,
    "flag": True,
    "signed": (-3, gguf.GGUFValueType.INT64),
    "texts": ["a", "", "日本"],
    "numbers": [1, 2, 3],
    "fractions": [0.5, 0.25],
    "flags": [True, False],
}


@contextmanager
def refused(match: str = "") -> Iterator[None]:
    """It raises a `ModelError` of one line, and soon."""
    with soon(), pytest.raises(ModelError, match=match) as caught:
        yield
    assert "\n" not in str(caught.value)


def start(version: int = 3, tensors: int = 0, fields: int = 1) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, fields)


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def test_fields_and_tensors(write_gguf: Write) -> None:
    path = write_gguf(FIELDS, TENSORS, "Q8_0")
    tensors, header = read_gguf(path)
    assert {name: header[name] for name in FIELDS} == FIELDS | {"signed": -3}
    assert "GGUF.version" not in header
    assert [(info.name, info.dtype, info.shape, info.nbytes) for info in tensors.values()] == [
        ("a", "Q8_0", (4, 32), 136),
        ("b", "F32", (8,), 32),
    ]
    assert {info.file for info in tensors.values()} == {path}


def test_a_large_vocabulary_is_read_at_once(write_gguf: Write) -> None:
    """The package's own reader takes seconds for it; here it is given the hundredth part."""
    words = [f"word{number}" for number in range(50_000)]

    def written(count: int) -> Path:
        return write_gguf({"tokens": words[:count], "types": [1] * count, "scores": [0.5] * count}, TENSORS)

    few = written(len(words) // 100)
    begun = thread_time()
    gguf.GGUFReader(few)
    hundredth = max(thread_time() - begun, 0.05)  # a coarse clock may not have moved
    path = written(len(words))
    begun = thread_time()
    header = read_gguf(path)[1]
    assert header["tokens"] == words
    assert header["types"] == [1] * len(words)
    assert thread_time() - begun < 10 * hundredth


def test_an_empty_list_and_a_list_at_the_end(write_gguf: Write) -> None:
    writer = start(fields=2) + text(b"x") + struct.pack("<IIQ", 9, 8, 0) + text(b"y") + struct.pack("<IIQ", 9, 8, 1)
    path = write_gguf({}, {})
    path.write_bytes(writer + text(b"end"))
    header = read_gguf(path)[1]
    assert header["x"] == []
    assert header["y"] == ["end"]


def test_every_shorter_file_is_refused(write_gguf: Write) -> None:
    path = write_gguf(FIELDS, TENSORS, "Q8_0")
    whole = path.read_bytes()
    end = max(info.start + info.nbytes for info in read_gguf(path)[0].values())
    for size in [*range(0, end, 7), end - 1]:
        path.write_bytes(whole[:size])
        with refused("GGUF" if size < 4 else "truncated|damaged"):
            open_gguf(path)


def test_damaged_headers_are_refused_or_read(write_gguf: Write) -> None:
    """Whatever a byte is changed to: no other error, no wait."""
    path = write_gguf(FIELDS, TENSORS, "Q8_0")
    whole = path.read_bytes()
    first = min(info.start for info in read_gguf(path)[0].values())
    choose = random.Random(5)
    for _ in range(400):
        changed = bytearray(whole)
        for _ in range(choose.choice((1, 1, 4))):
            changed[choose.randrange(first)] = choose.choice((0, 1, 0x7F, 0x80, 0xFF, choose.randrange(256)))
        path.write_bytes(changed)
        with soon():
            try:
                dict(read_gguf(path)[1])
            except ModelError as error:
                assert "\n" not in str(error)


HUGE = 2**62
HOSTILE = {
    "no GGUF": (b"\x80\x02}q\x00." * 10, "no GGUF file"),
    "empty": (b"", "no GGUF file"),
    "version 1": (start(1), "version 1"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "many tensors": (start(tensors=HUGE, fields=0), "damaged"),
    "many fields": (start(fields=HUGE), "damaged"),
    "long key": (start() + struct.pack("<Q", HUGE), "truncated"),
    "long text": (start() + text(b"x") + struct.pack("<IQ", 8, 2**63), "truncated"),
    "many texts": (start() + text(b"x") + struct.pack("<IIQ", 9, 8, HUGE), "damaged"),
    "many empty texts": (start() + text(b"x") + struct.pack("<IIQ", 9, 8, 10**6) + bytes(10**6), "damaged"),
    "long text in a list": (start() + text(b"x") + struct.pack("<IIQQ", 9, 8, 1, 2**64 - 1), "damaged|truncated"),
    "many numbers": (start() + text(b"x") + struct.pack("<IIQ", 9, 4, HUGE), "truncated"),
    "lists of lists": (start() + text(b"x") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 9999, "damaged"),
    "unknown field type": (start() + text(b"x") + struct.pack("<IQ", 77, 0), "damaged"),
    "no UTF-8": (start() + text(b"\xff\xfe") + struct.pack("<IQ", 4, 0), "damaged"),
    "twice": (start(fields=2) + (text(b"x") + struct.pack("<IB", 7, 0)) * 2, "damaged"),
    "alignment 0": (start() + text(b"general.alignment") + struct.pack("<II", 4, 0), "damaged"),
}


@pytest.mark.parametrize(("data", "match"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_headers(data: bytes, match: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    with refused(match):
        open_gguf(path)


def tensor(name: bytes = b"a", shape: tuple[int, ...] = (32,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


BAD_TENSORS = {
    "unknown type": (tensor(kind=999), "a.*type 999"),
    "type without numbers": (tensor(kind=9), "a.*type Q8_1"),
    "half a block": (tensor(shape=(33,), kind=8), "damaged"),
    "no dimension": (tensor(shape=()), r"impossible shape, \(\)"),
    "five dimensions": (tensor(shape=(1,) * 5), "impossible shape"),
    "nothing": (tensor(shape=(0,)), "impossible shape"),
    "too much": (tensor(shape=(2**32, 2**32)), "impossible shape"),
    "beyond the end": (tensor(shape=(4, 64)), "truncated.*'a'"),
    "far beyond the end": (tensor(offset=2**64 - 32), "truncated.*'a'"),
}


@pytest.mark.parametrize(("entry", "match"), BAD_TENSORS.values(), ids=BAD_TENSORS)
def test_bad_tensors(entry: bytes, match: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(start(tensors=1, fields=0) + entry + bytes(512))
    with refused(match):
        open_gguf(path)


def test_a_tensor_that_comes_twice(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(start(tensors=2, fields=0) + tensor() * 2 + bytes(512))
    with refused("damaged"):
        open_gguf(path)


def test_a_text_that_is_no_utf8_is_met_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(start() + text(b"x") + struct.pack("<I", 8) + text(b"\xff"))
    header = read_gguf(path)[1]
    with refused("damaged"):
        header["x"]
    with pytest.raises(KeyError):
        header["y"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with refused("cannot be read"):
        open_gguf(tmp_path / "model.gguf")
    (tmp_path / "folder.gguf").mkdir()
    with refused("cannot be read"):
        open_gguf(tmp_path / "folder.gguf")
