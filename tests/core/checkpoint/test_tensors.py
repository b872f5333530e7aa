"""Arrays out of a checkpoint: mapped where the file allows it, widened exactly where it does not."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from cutaway.core.checkpoint.open import open_checkpoint
from cutaway.core.checkpoint.tensors import Checkpoint
from cutaway.core.errors import ModelError

Write = Callable[..., Path]
Matrix = npt.NDArray[np.float32]

ALL_HALVES = np.arange(2**16, dtype=np.uint32).astype("<u2")
"""The bits of every 16-bit number."""


@pytest.fixture
def open_tensors(write_tensors: Write, tmp_path: Path) -> Callable[..., Checkpoint]:
    """A function that writes tensors into a file and opens it."""
    return lambda tensors, remainder=0: open_checkpoint(write_tensors(tmp_path / "x.safetensors", tensors, remainder))


def test_float32_is_a_read_only_view_of_one_map(open_tensors: Callable[..., Checkpoint], floats: Matrix) -> None:
    stored = ("F32", (3, 4), floats.tobytes())
    checkpoint = open_tensors({"a": stored, "b": stored})
    a, b = checkpoint.array("a"), checkpoint.array("b")
    assert np.array_equal(a, floats) and np.array_equal(b, floats)
    assert np.shares_memory(a, checkpoint.array("a"))
    assert type(a) is np.ndarray
    assert a.dtype == np.float32
    assert b.ctypes.data - a.ctypes.data == floats.nbytes  # neighbours in the file, so one map
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1


def test_the_view_shows_the_file(open_tensors: Callable[..., Checkpoint], floats: Matrix, tmp_path: Path) -> None:
    array = open_tensors({"a": ("F32", (3, 4), floats.tobytes())}).array("a")
    with (tmp_path / "x.safetensors").open("r+b") as stream:
        stream.seek(-4, 2)
        stream.write(np.float32(42).tobytes())
    assert array[-1, -1] == 42


@pytest.mark.parametrize("remainder", range(8))
def test_any_alignment_gives_aligned_arrays(
    open_tensors: Callable[..., Checkpoint], floats: Matrix, remainder: int
) -> None:
    ids = np.arange(5, dtype=np.int64)
    checkpoint = open_tensors(
        {
            "floats": ("F32", (3, 4), floats.tobytes()),
            "byte": ("U8", (1,), b"\x07"),
            "halves": ("F16", (3, 4), floats.astype("<f2").tobytes()),
            "ids": ("I64", (5,), ids.tobytes()),
        },
        remainder,
    )
    assert np.array_equal(checkpoint.array("floats"), floats)
    assert np.array_equal(checkpoint.array("halves"), floats.astype(np.float16).astype(np.float32))
    assert np.array_equal(checkpoint.array("ids"), ids)
    assert all(checkpoint.array(name).flags.aligned for name in checkpoint)
    assert not any(checkpoint.array(name).flags.writeable for name in checkpoint)


def test_every_bfloat16_is_widened_exactly(open_tensors: Callable[..., Checkpoint]) -> None:
    wide = open_tensors({"a": ("BF16", (2**16,), ALL_HALVES.tobytes())}).array("a")
    assert wide.dtype == np.float32
    assert np.array_equal(wide.view(np.uint32), ALL_HALVES.astype(np.uint32) << 16)


def test_every_float16_is_widened_exactly(open_tensors: Callable[..., Checkpoint]) -> None:
    wide = open_tensors({"a": ("F16", (2**16,), ALL_HALVES.tobytes())}).array("a")
    assert wide.dtype == np.float32
    assert np.array_equal(wide, ALL_HALVES.view("<f2").astype(np.float64), equal_nan=True)


def test_float64_is_rounded_to_float32(open_tensors: Callable[..., Checkpoint]) -> None:
    stored = np.array([1 / 3, 1e300, -0.0])
    narrow = open_tensors({"a": ("F64", (3,), stored.tobytes())}).array("a")
    assert narrow.dtype == np.float32
    assert list(narrow) == [np.float32(1 / 3), np.inf, 0]


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("U8", "u1"),
        ("I8", "i1"),
        ("U16", "<u2"),
        ("I16", "<i2"),
        ("U32", "<u4"),
        ("I32", "<i4"),
        ("U64", "<u8"),
    ],
)
def test_integers_stay_what_they_are(open_tensors: Callable[..., Checkpoint], dtype: str, kind: str) -> None:
    numbers = np.array([0, 1, 100]).astype(kind)
    array = open_tensors({"a": (dtype, (3,), numbers.tobytes())}).array("a")
    assert array.dtype == numbers.dtype
    assert list(array) == [0, 1, 100]


def test_any_nonzero_byte_is_true(open_tensors: Callable[..., Checkpoint]) -> None:
    array = open_tensors({"a": ("BOOL", (3,), b"\x00\x01\x02")}).array("a")
    assert array.dtype == np.bool_
    assert list(array.astype(int)) == [0, 1, 1]


def test_scalars_and_empty_tensors(open_tensors: Callable[..., Checkpoint]) -> None:
    checkpoint = open_tensors({"none": ("F32", (0, 3), b""), "one": ("F32", (), np.float32(2).tobytes())})
    assert checkpoint.array("none").shape == (0, 3)
    assert checkpoint.array("one") == 2


def test_digest_is_of_the_bytes_and_not_of_the_place(
    open_tensors: Callable[..., Checkpoint], floats: Matrix, tmp_path: Path
) -> None:
    checkpoint = open_tensors({"a": ("F32", (3, 4), floats.tobytes())})
    data = (tmp_path / "x.safetensors").read_bytes()
    (tmp_path / "elsewhere.safetensors").write_bytes(data)
    assert checkpoint.digest() == hashlib.sha256(data).hexdigest()
    assert open_checkpoint(tmp_path / "elsewhere.safetensors").digest() == checkpoint.digest()


def test_a_file_that_shrinks_or_goes_away_is_a_model_error(
    open_tensors: Callable[..., Checkpoint], floats: Matrix, tmp_path: Path
) -> None:
    stored = {"a": ("F32", (3, 4), floats.tobytes())}
    checkpoint = open_tensors(stored)
    file = tmp_path / "x.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(ModelError, match="shorter"):
        checkpoint.array("a")
    checkpoint = open_tensors(stored)
    file.unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        checkpoint.array("a")
