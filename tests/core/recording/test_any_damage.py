"""Whatever happens to the header of a recording: one line refuses it, or it is a trace that can be looked at."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.core import RecordingError, Trace
from tests.core.recording.recordings import usable
from tests.core.strategies import json_values

MANY = settings(max_examples=60)


def header_of(data: bytes) -> tuple[bytes, bytes]:
    """The header of the recording *data*, and what follows it."""
    stop = 8 + int.from_bytes(data[:8], "little")
    return data[8:stop], data[stop:]


def with_header(header: bytes, rest: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + rest


def looked_at(path: Path, data: bytes) -> bool:
    """Whether *data* is a recording; if it is not, one line says so. Nothing is warned of."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return usable(Trace.load(path))
        except RecordingError as error:
            line = str(error).replace(str(path), "")
            assert line.isprintable() and len(line) < 1000
            return False


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "x.cutaway"


@MANY
@given(data=st.data())
def test_bytes_flipped_cut_out_or_put_in(saved: Path, path: Path, data: st.DataObject) -> None:
    """Anywhere in the header, its length right or wrong."""
    whole = saved.read_bytes()
    header, rest = header_of(whole)
    damaged = bytearray(whole[: 8 + len(header)])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        byte = st.sampled_from(b'0179-e."[]{},:tn\\\0\n\xff') | st.integers(0, 255)
        match data.draw(st.sampled_from(("flip", "cut", "put"))):
            case "flip":
                damaged[place] = data.draw(byte)
            case "cut":
                del damaged[place : place + data.draw(st.integers(1, 40))]
            case "put":
                damaged[place:place] = bytes(data.draw(st.lists(byte, min_size=1, max_size=9)))
        if len(damaged) < 9:
            break
    fitting = with_header(bytes(damaged[8:]), rest)
    looked_at(path, fitting if data.draw(st.booleans()) else bytes(damaged) + rest)


@MANY
@given(data=st.data())
def test_any_value_in_the_metadata(saved: Path, path: Path, data: st.DataObject) -> None:
    """Instead of a text, of what it spells in JSON, or of a part of that."""
    header, rest = header_of(saved.read_bytes())
    changed = json.loads(header)
    metadata = changed["__metadata__"]
    name = data.draw(st.sampled_from(sorted(metadata)))
    try:
        spelt = json.loads(metadata[name])
    except ValueError:
        spelt = None
    value: Any = data.draw(json_values())
    if isinstance(spelt, dict | list) and spelt and data.draw(st.booleans()):
        metadata[name] = json.dumps(with_part(spelt, value, data))
    else:
        metadata[name] = data.draw(st.sampled_from((value, json.dumps(value), str(value))))
    looked_at(path, with_header(json.dumps(changed).encode(), rest))


def with_part(spelt: Any, value: Any, data: st.DataObject) -> Any:
    """*spelt* with *value* somewhere in it."""
    if not isinstance(spelt, dict | list) or not spelt:
        return value
    places = sorted(spelt) if isinstance(spelt, dict) else range(len(spelt))
    place = data.draw(st.sampled_from(places))
    spelt[place] = with_part(spelt[place], value, data) if data.draw(st.booleans()) else value
    return spelt


@MANY
@given(data=st.data())
def test_any_value_in_the_entry_of_a_tensor(saved: Path, path: Path, data: st.DataObject) -> None:
    header, rest = header_of(saved.read_bytes())
    changed = json.loads(header)
    name = data.draw(st.sampled_from(sorted(changed)))
    value = data.draw(json_values() | st.lists(st.integers(0, 2000), max_size=4))
    match data.draw(st.sampled_from(("dtype", "shape", "data_offsets", "all", "absent", "renamed"))):
        case "all":
            changed[name] = value
        case "absent":
            del changed[name]
        case "renamed":
            changed[data.draw(st.text(max_size=9))] = changed.pop(name)
        case place if name != "__metadata__":
            changed[name][place] = value
    looked_at(path, with_header(json.dumps(changed).encode(), rest))
