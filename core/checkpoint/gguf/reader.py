"""The header of a GGUF file, through the reader of the ``gguf`` package without what makes it slow.

That reader makes several arrays of a mapped file for every token and every merge, 4.6 s for the 150,000 of SmolLM2.
Here a list is one piece of the file, and texts are cut out of it when somebody asks for them. Nothing in a header is
believed before it agrees with the size of the file.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFValueType, ReaderField, dequantize

from ...catalogue import tr
from ...errors import ModelError
from ..json_text import LARGEST_JSON, shown, unreadable
from ..safetensors import MOST_NUMBERS, TensorInfo

MOST_ENTRIES = 1_000
"""Fields in a header; real ones have less than a hundred."""
MOST_TENSORS = 20_000
MOST_TEXTS = 4_000_000
"""Items of one list of texts; the largest vocabularies have 300,000 tokens."""
MOST_DIMENSIONS = 4

_COUNT = struct.Struct("<Q")
_START = struct.Struct("<4sIQQ")


def read_gguf(path: Path) -> tuple[dict[str, TensorInfo], Metadata]:
    """Return the tensors of the GGUF file at *path* by name, in the order of the file, and what else its header says.

    Raises:
        ModelError: the header is broken, disagrees with the file, or has a tensor of a type that cannot be read.
    """
    try:
        _check_start(path)
        reader = _Reader(path)
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, LookupError, OverflowError, RecursionError, struct.error) as error:
        raise broken(path) from error
    return reader.infos, Metadata(reader.fields, path)


def broken(path: Path) -> ModelError:
    """Return the error for a header that contradicts itself or its format."""
    return _damaged(path, tr("the header of {file} is damaged", file=path.name))


class Metadata(Mapping[str, object]):
    """What a header says beside its tensors, by the names of the format; looking a field up reads it."""

    def __init__(self, fields: Mapping[str, ReaderField], path: Path) -> None:
        self._fields = {name: field for name, field in fields.items() if not name.startswith("GGUF.")}
        self._path = path

    def __getitem__(self, name: str) -> object:
        """Return numbers, texts, or lists of them; `ModelError` for a text that is not UTF-8."""
        field = self._fields[name]
        try:
            match field.types:
                case [GGUFValueType.ARRAY, GGUFValueType.STRING]:
                    return _texts(field.parts[-1].tobytes(), int(field.parts[-2][0]))
                case [GGUFValueType.FLOAT32]:  # 9.99999e-06 was written as 1e-05
                    return float(str(field.parts[-1][0]))
            return field.contents()
        except UnicodeDecodeError as error:
            raise broken(self._path) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def _check_start(path: Path) -> None:
    """Check the first bytes of a file: that it is GGUF, of a version and a size that can be read."""
    with path.open("rb") as stream:
        raw = stream.read(_START.size)
    if not raw.startswith(b"GGUF"):
        raise ModelError(tr("{file} is no GGUF file, whatever its name", file=path.name), where=str(path))
    if len(raw) < _START.size:
        raise _damaged(path, tr("{file} is truncated: it ends in its header", file=path.name))
    _, version, tensors, entries = _START.unpack(raw)
    if version not in (2, 3):
        big_endian = version & 0xFFFF == 0
        kind = tr("for big-endian machines") if big_endian else tr("version {version}", version=version)
        what = tr("{file} is GGUF {kind}, which is not supported", file=path.name, kind=kind)
        raise ModelError(what, where=str(path), hint=tr("convert the model again"))
    if tensors > MOST_TENSORS or entries > MOST_ENTRIES:
        raise broken(path)


class _Reader(GGUFReader):
    """The package's reader, with bounds, whole lists, and tensors that stay in the file."""

    infos: dict[str, TensorInfo]

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(path)

    def _get(self, offset: int, dtype: npt.DTypeLike, count: int = 1, override_order: Any = None) -> npt.NDArray[Any]:
        """Return *count* numbers that begin at *offset*."""
        count = int(count)
        nbytes = count * np.dtype(dtype).itemsize
        if offset + nbytes > self.data.size:
            raise _damaged(self._path, tr("{file} is truncated: it ends in its header", file=self._path.name))
        if nbytes > LARGEST_JSON:
            raise broken(self._path)
        return np.frombuffer(self.data, dtype, count, offset)

    def _get_field_parts(
        self, orig_offs: int, raw_type: int
    ) -> tuple[int, list[npt.NDArray[Any]], list[int], list[GGUFValueType]]:
        """Return a field's size, its parts, which of them are its content, and its types; a list is one part."""
        if raw_type != GGUFValueType.ARRAY:
            return super()._get_field_parts(orig_offs, raw_type)
        kind, length = self._get(orig_offs, np.uint32), self._get(orig_offs + 4, np.uint64)
        start, item = orig_offs + 12, GGUFValueType(kind[0])
        if item == GGUFValueType.STRING:
            items = self._get(start, np.uint8, self._end_of_texts(start, int(length[0])) - start)
        else:
            items = self._get(start, self.gguf_scalar_to_np[item], int(length[0]))
        return 12 + items.nbytes, [kind, length, items], [2], [GGUFValueType.ARRAY, item]

    def _end_of_texts(self, place: int, count: int) -> int:
        """Return where *count* texts end that begin at *place*."""
        if count > MOST_TEXTS:
            raise broken(self._path)
        data, length_at = self.data.data, _COUNT.unpack_from
        for _ in range(count):
            place += 8 + length_at(data, place)[0]
        return place

    def _build_tensors(self, start_offs: int, fields: list[ReaderField]) -> None:
        """Keep where every tensor lies; the package would make an array of each."""
        self.infos = {}
        for field in fields:
            info = self._info(start_offs, field)
            if info.name in self.infos:
                raise ValueError(info.name)
            self.infos[info.name] = info

    def _info(self, data_start: int, field: ReaderField) -> TensorInfo:
        """Return one tensor of the header, once its type, its shape and the size of the file agree."""
        _, _, _, lengths, code, offset = field.parts
        shape = tuple(reversed(lengths.tolist()))
        if not 0 < len(shape) <= MOST_DIMENSIONS or math.prod(shape) > MOST_NUMBERS or 0 in shape:
            what = tr("tensor {name} has an impossible shape, {shape}", name=shown(field.name), shape=shown(shape))
            raise _damaged(self._path, what)
        kind = self._type(field.name, int(code[0]))
        numbers, nbytes = GGML_QUANT_SIZES[kind]
        if shape[-1] % numbers:
            raise ValueError(shape)
        start, size = data_start + int(offset[0]), math.prod(shape) // numbers * nbytes
        if start + size > self.data.size:
            what = tr(
                "{file} is truncated: tensor {name} ends at byte {needed:,} of {size:,}",
                file=self._path.name,
                name=shown(field.name),
                needed=start + size,
                size=self.data.size,
            )
            raise _damaged(self._path, what)
        return TensorInfo(field.name, kind.name, shape, self._path, start, size)

    def _type(self, name: str, code: int) -> GGMLQuantizationType:
        """Return the type of a tensor, one that the package dequantises."""
        try:
            kind = GGMLQuantizationType(code)
        except ValueError:
            self._refuse_type(name, str(code))
        if not can_be_read(kind):
            self._refuse_type(name, kind.name)
        return kind

    def _refuse_type(self, name: str, kind: str) -> NoReturn:
        what = tr("tensor {name} is of type {kind}, which cannot be read", name=shown(name), kind=kind)
        raise ModelError(what, where=str(self._path), hint=tr("open the model in another quantisation"))


_PLAIN = frozenset(("F32", "F16", "F64", "I8", "I16", "I32", "I64"))


def can_be_read(kind: GGMLQuantizationType) -> bool:
    """Whether the package dequantises *kind*, found out on nothing at all."""
    if kind.name in _PLAIN:
        return True
    try:
        dequantize(np.zeros((1, GGML_QUANT_SIZES[kind][1]), np.uint8), kind)
    except NotImplementedError:
        return False
    return True


def _texts(data: bytes, count: int) -> list[str]:
    """Return the *count* texts in *data*, each after its length."""
    texts, place = [], 0
    for _ in range(count):
        start = place + 8
        place = start + _COUNT.unpack_from(data, place)[0]
        texts.append(data[start:place].decode())
    return texts


def _damaged(path: Path, what: str) -> ModelError:
    return ModelError(what, where=str(path), hint=tr("download it again"))
