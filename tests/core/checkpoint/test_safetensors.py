"""Headers: what a good one says, and that nothing in a bad one is believed."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from cutaway.core.checkpoint.safetensors import read_header
from cutaway.core.errors import ModelError

Write = Callable[..., Path]

GOOD = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


@pytest.fixture
def good_file(write_header: Write, tmp_path: Path) -> Path:
    """A file with metadata and two tensors, 24 and 4 bytes of data."""
    header = {
        "__metadata__": {"format": "pt"},
        "b": {"dtype": "BF16", "shape": [2], "data_offsets": [24, 28]},
        "a": GOOD,
    }
    return write_header(tmp_path / "good.safetensors", header, bytes(28))


def test_good_header(good_file: Path) -> None:
    tensors, metadata = read_header(good_file)
    start = good_file.stat().st_size - 28
    assert metadata == {"format": "pt"}
    assert {name: (info.dtype, info.shape, info.nbytes) for name, info in tensors.items()} == {
        "a": ("F32", (2, 3), 24),
        "b": ("BF16", (2,), 4),
    }
    assert tensors["a"].start == start
    assert tensors["b"].start == start + 24
    assert tensors["a"].file == good_file


def test_scalars_and_empty_tensors(write_header: Write, tmp_path: Path) -> None:
    header = {
        "empty": {"dtype": "F32", "shape": [0, 5], "data_offsets": [0, 0]},
        "scalar": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
    }
    tensors, _ = read_header(write_header(tmp_path / "x", header, bytes(4)))
    assert tensors["scalar"].shape == ()
    assert tensors["empty"].nbytes == 0


def entry(**changes: object) -> dict[str, object]:
    """A header whose only tensor, ``weight``, is like ``GOOD`` but for *changes*."""
    return {"weight": GOOD | changes}


@pytest.mark.parametrize(
    ("header", "size", "words"),
    [
        (b"\xff\xfe{}", 0, ["header", "JSON"]),
        (b"not json", 0, ["header", "JSON"]),
        (b"[" * 200_000, 0, ["header", "JSON"]),
        (b'{"a": ' + b"9" * 5000 + b"}", 0, ["header", "JSON"]),
        (b"[]", 0, ["header", "object"]),
        (b'{"weight": {}, "weight": {}}', 0, ["weight", "twice"]),
        ({"__metadata__": {"format": 1}}, 0, ["__metadata__"]),
        ({"__metadata__": []}, 0, ["__metadata__"]),
        ({"weight": 3}, 0, ["weight", "dtype"]),
        (entry(dtype="F8_E4M3"), 24, ["weight", "dtype", "F8_E4M3"]),
        (entry(dtype=["F32"]), 24, ["weight", "dtype"]),
        (entry(shape=[2, -3]), 24, ["weight", "shape"]),
        (entry(shape=[2, 3.0]), 24, ["weight", "shape"]),
        (entry(shape=[2, True]), 24, ["weight", "shape"]),
        (entry(shape="23"), 24, ["weight", "shape"]),
        (entry(shape=None), 24, ["weight", "shape"]),
        (entry(shape=[0, 2**70]), 24, ["weight", "shape"]),
        (entry(shape=[0] + [1] * 99), 24, ["weight", "shape"]),
        (entry(shape=[2, 4]), 24, ["weight", "shape", "32"]),
        (entry(data_offsets=[24, 0]), 24, ["weight", "offsets"]),
        (entry(data_offsets=[-24, 0]), 24, ["weight", "offsets"]),
        (entry(data_offsets=[0, 24, 24]), 24, ["weight", "offsets"]),
        (entry(data_offsets=[0, 24.0]), 24, ["weight", "offsets"]),
        (entry(data_offsets=None), 24, ["weight", "offsets"]),
        (entry(data_offsets=[8, 32]), 32, ["weight", "offsets", "gap"]),
        ({"one": GOOD, "two": GOOD}, 24, ["offsets", "overlap"]),
        (entry(), 20, ["truncated", "bytes"]),
        (entry(shape=[2**30, 2**20], data_offsets=[0, 2**52]), 24, ["truncated", "bytes"]),
        (entry(), 25, ["bytes", "accounts"]),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_broken_headers_are_refused(
    header: object, size: int, words: list[str], write_header: Write, tmp_path: Path
) -> None:
    file = write_header(tmp_path / "x", header, bytes(size))
    with pytest.raises(ModelError) as caught:
        read_header(file)
    assert all(word in caught.value.what for word in words), caught.value
    assert caught.value.where == str(file)


def test_a_truncated_file_says_how_much_is_there(good_file: Path) -> None:
    size = good_file.stat().st_size
    good_file.write_bytes(good_file.read_bytes()[:-5])
    with pytest.raises(ModelError, match=rf"should have {size} bytes and has {size - 5}\b"):
        read_header(good_file)


def test_lengths_are_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes((10**12).to_bytes(8, "little") + b"{}")
    with pytest.raises(ModelError, match="header is longer than the file"):
        read_header(file)
    with file.open("wb") as stream:  # long enough, and nothing but holes
        stream.write((200_000_000).to_bytes(8, "little"))
        stream.truncate(200_000_100)
    with pytest.raises(ModelError, match="header is too large"):
        read_header(file)


def test_names_cannot_write_to_the_terminal(write_header: Write, tmp_path: Path) -> None:
    header: dict[str, object] = {"\x1b]0;hi\x07\ud800" + "x" * 5000: {}}
    with pytest.raises(ModelError) as caught:
        read_header(write_header(tmp_path / "x", header))
    assert caught.value.what.isprintable()
    assert len(caught.value.what) < 300


def test_an_absent_file_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no\.safetensors cannot be read"):
        read_header(tmp_path / "no.safetensors")


def test_every_truncation_is_refused(good_file: Path, tmp_path: Path) -> None:
    data = good_file.read_bytes()
    cut = tmp_path / "cut"
    for length in range(len(data)):
        cut.write_bytes(data[:length])
        with pytest.raises(ModelError):
            read_header(cut)


def test_every_seventh_truncation_of_a_model_is_refused(tmp_path: Path) -> None:
    whole = Path(__file__).parents[2] / "data" / "broken_models" / "config_absent" / "model.safetensors"
    data = whole.read_bytes()
    assert len(read_header(whole)[0]) == 16
    cut = tmp_path / "cut"
    for length in range(0, len(data), 7):
        cut.write_bytes(data[:length])
        with pytest.raises(ModelError):
            read_header(cut)


def test_flipped_bits_are_refused_or_harmless(good_file: Path, tmp_path: Path) -> None:
    rng = random.Random(11)
    data = good_file.read_bytes()
    header = len(data) - 28
    flipped = tmp_path / "flipped"
    refused = 0
    for _ in range(1000):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(header)] ^= 1 << rng.randrange(8)
        flipped.write_bytes(damaged)
        try:
            tensors, _ = read_header(flipped)
        except ModelError:
            refused += 1
        else:
            assert sum(info.nbytes for info in tensors.values()) <= 28
    assert refused > 300


def test_agrees_with_the_safetensors_library(good_file: Path) -> None:
    from safetensors import safe_open

    with safe_open(good_file, "numpy") as reference:
        assert set(reference.keys()) == set(read_header(good_file)[0])
        assert reference.metadata() == json.loads('{"format": "pt"}')
