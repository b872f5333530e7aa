"""Safetensors headers: which tensors a file holds, and where their bytes lie.

A file is 8 bytes of header length, a JSON header, and one block of bytes without holes
(https://huggingface.co/docs/safetensors). The header is all that is read here, and nothing in it is
believed before it agrees with the size of the file.

The safetensors library would copy float32 tensors, which we map, and cannot give NumPy a bfloat16.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..catalogue import tr
from ..errors import ModelError
from .json_text import LARGEST_JSON, parse_object, shown, unreadable

ITEM_SIZE = {
    **{"BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "U32": 4, "I32": 4, "U64": 8, "I64": 8},
    **{"BF16": 2, "F16": 2, "F32": 4, "F64": 8},
}
"""Bytes of one number of every dtype that can be read."""

MOST_DIMENSIONS = 64
MOST_NUMBERS = 2**60
"""NumPy makes no array beyond these, not even an empty one."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What a header says about one tensor."""

    name: str
    """As the file spells it."""
    dtype: str
    """As the format spells it: ``F32``, ``BF16``, ``I64`` …"""
    shape: tuple[int, ...]
    file: Path
    start: int
    """Of its first byte, counted from the start of the file."""
    nbytes: int


def read_header(path: Path) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    """Return the tensors of the safetensors file at *path* by name, and its metadata.

    Raises:
        ModelError: the header is broken, disagrees with itself, or promises bytes that the file lacks.
    """
    try:
        header, data_start, size = _read_json(path)
    except OSError as error:
        raise unreadable(path, error) from error
    metadata = _metadata(header.pop("__metadata__", None), path)
    tensors = {name: _tensor(name, entry, data_start, path) for name, entry in header.items()}
    _check_spans(tensors.values(), data_start, size, path)
    return tensors, metadata


def _read_json(path: Path) -> tuple[dict[str, object], int, int]:
    """Return the header's JSON object, where the block of bytes begins, and the size of the file."""
    with path.open("rb") as stream:
        size = path.stat().st_size
        length = int.from_bytes(stream.read(8), "little")
        if size < 8:
            raise _broken(tr("the file is truncated: {size} bytes are too short for a header", size=size), path)
        if 8 + length > size:
            what = tr("the header is longer than the file: {length:,} of {size:,} bytes", length=length, size=size)
            raise _broken(what, path)
        if length > LARGEST_JSON:
            raise _broken(tr("the header is too large: {length:,} bytes", length=length), path)
        raw = stream.read(length)
    header = parse_object(raw, name=tr("the header"), where=str(path), unique=True)
    return header, 8 + length, size


def _metadata(value: object, path: Path) -> dict[str, str]:
    """Return the header's free-form part, which maps strings to strings."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise _broken(tr("the header's __metadata__ is not a map of strings"), path)
    return value


def _tensor(name: str, value: object, data_start: int, path: Path) -> TensorInfo:
    """Return one tensor of the header, once its dtype, shape and span of bytes agree."""
    entry = value if isinstance(value, dict) else {}
    dtype = _dtype(name, entry.get("dtype"), path)
    shape = _shape(name, entry.get("shape"), path)
    begin, end = _span(name, entry.get("data_offsets"), path)
    needed = math.prod(shape) * ITEM_SIZE[dtype]
    if end - begin != needed:
        what = tr(
            "tensor {name} has {found:,} bytes, but its shape {shape} needs {needed:,}",
            name=shown(name),
            found=end - begin,
            shape=list(shape),
            needed=needed,
        )
        raise _broken(what, path)
    return TensorInfo(name, dtype, shape, path, data_start + begin, needed)


def _dtype(name: str, value: object, path: Path) -> str:
    """Return a dtype that can be read."""
    if isinstance(value, str) and value in ITEM_SIZE:
        return value
    what = tr("tensor {name} has an unknown dtype, {dtype}", name=shown(name), dtype=shown(value))
    hint = tr("these can be read: {dtypes}", dtypes=", ".join(ITEM_SIZE))
    raise ModelError(what, where=str(path), hint=hint)


def _shape(name: str, value: object, path: Path) -> tuple[int, ...]:
    """Return a shape that NumPy can hold."""
    if (
        isinstance(value, list)
        and len(value) <= MOST_DIMENSIONS
        and all(type(length) is int and length >= 0 for length in value)
        and math.prod(length or 1 for length in value) <= MOST_NUMBERS
    ):
        return tuple(value)
    raise _broken(tr("tensor {name} has an impossible shape, {shape}", name=shown(name), shape=shown(value)), path)


def _span(name: str, value: object, path: Path) -> tuple[int, int]:
    """Return the offsets of a tensor's first byte and of the byte after its last."""
    match value:
        case [int(begin), int(end)] if 0 <= begin <= end:
            return begin, end
    what = tr("tensor {name} has impossible offsets, {offsets}", name=shown(name), offsets=shown(value))
    raise _broken(what, path)


def _check_spans(tensors: Iterable[TensorInfo], data_start: int, size: int, path: Path) -> None:
    """Check that the tensors, one after the other, are the whole rest of the file."""
    position = data_start
    for tensor in sorted(tensors, key=lambda tensor: (tensor.start, tensor.nbytes)):
        if tensor.start != position:
            what = tr("the offsets of tensor {name} leave a gap or overlap", name=shown(tensor.name))
            raise _broken(what, path)
        position += tensor.nbytes
    if size < position:
        what = tr(
            "the file is truncated: it should have {needed:,} bytes and has {size:,}",
            needed=position,
            size=size,
        )
        raise _broken(what, path)
    if size > position:
        what = tr("the file has {size:,} bytes where its header accounts for {needed:,}", needed=position, size=size)
        raise _broken(what, path)


def _broken(what: str, path: Path) -> ModelError:
    """Return the error for a damaged file."""
    return ModelError(what, where=str(path), hint=tr("download or convert it again"))
