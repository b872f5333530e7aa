"""Tensors out of a GGUF file: every type that the package dequantises, and what is left in the file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from cutaway.core import ModelError
from cutaway.core.checkpoint.gguf import checkpoint as module
from cutaway.core.checkpoint.gguf.checkpoint import open_gguf
from cutaway.core.checkpoint.gguf.reader import can_be_read

Write = Callable[..., Path]

QUANTISED = [kind for kind in gguf.GGMLQuantizationType if can_be_read(kind) and gguf.GGML_QUANT_SIZES[kind][0] > 1]


def test_the_package_dequantises_the_types_in_use() -> None:
    names = {kind.name for kind in QUANTISED}
    assert {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "MXFP4"} <= names
    assert not can_be_read(gguf.GGMLQuantizationType.Q8_1)


@pytest.mark.parametrize("kind", QUANTISED, ids=lambda kind: kind.name)
def test_every_type_gives_the_packages_numbers(
    kind: gguf.GGMLQuantizationType, write_gguf: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are random, so some numbers are infinite or none; pieces are small, so there are several."""
    monkeypatch.setattr(module, "AT_ONCE", 600)
    numbers, nbytes = gguf.GGML_QUANT_SIZES[kind]
    stored = np.random.default_rng(3).integers(0, 256, (5, 3 * nbytes), np.uint8)
    path = write_gguf({}, {"a": np.zeros(4, np.float32)}, name="other.gguf")
    writer = gguf.GGUFWriter(path, "none")
    writer.add_tensor("a", stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    checkpoint = open_gguf(path)
    assert checkpoint["a"].dtype == kind.name
    assert checkpoint["a"].shape == (5, 3 * numbers)
    with np.errstate(all="ignore"):
        found, expected = checkpoint.array("a"), gguf.dequantize(stored, kind)
    assert found.dtype == np.float32
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i2", "i4", "i8"])
def test_what_is_not_quantised(dtype: str, write_gguf: Write) -> None:
    array = (np.arange(6).reshape(2, 3) - 2).astype(dtype)
    found = open_gguf(write_gguf({}, {"a": array})).array("a")
    np.testing.assert_array_equal(found, array)
    assert found.dtype == (np.float32 if dtype[0] == "f" else array.dtype)


def test_float32_is_mapped(write_gguf: Write) -> None:
    checkpoint = open_gguf(write_gguf({}, {"a": np.ones((3, 4), np.float32)}))
    assert np.shares_memory(checkpoint.array("a"), checkpoint.array("a"))


def test_the_digest_is_that_of_the_file(write_gguf: Write) -> None:
    path = write_gguf({}, {"a": np.ones(4, np.float32)})
    assert open_gguf(path).digest() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_that_changes_while_it_is_open(write_gguf: Write) -> None:
    path = write_gguf({}, {"a": np.ones((4, 32), np.float32)}, "Q8_0")
    checkpoint = open_gguf(path)
    path.write_bytes(path.read_bytes()[:-32])
    with pytest.raises(ModelError, match="has become shorter"):
        checkpoint.array("a")
    path.unlink()
    for read in (lambda: checkpoint.array("a"), checkpoint.digest):
        with pytest.raises(ModelError, match="cannot be read"):
            read()
