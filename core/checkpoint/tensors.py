"""The tensors of a checkpoint, mapped or widened when someone asks for them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..catalogue import tr
from ..errors import ModelError
from .json_text import unreadable
from .safetensors import TensorInfo

_STORED: dict[str, npt.DTypeLike] = {
    **{"BOOL": "?", "U8": "<u1", "I8": "<i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4"},
    **{"U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8"},
}


class Checkpoint(Mapping[str, TensorInfo]):
    """The tensors of one or several files, by the names the files give them.

    Iterating and looking up cost nothing: only ``array`` and ``digest`` read weights.
    """

    metadata: Mapping[str, str]
    """What the files say about themselves in their headers."""

    files: tuple[Path, ...]
    """The files that hold the weights, in the order of their names."""

    def __init__(
        self, tensors: Mapping[str, TensorInfo], *, metadata: Mapping[str, str], files: Iterable[Path]
    ) -> None:
        self.metadata = metadata
        self.files = tuple(sorted(files, key=lambda file: file.name))
        self._tensors = tensors
        self._maps: dict[Path, npt.NDArray[np.uint8]] = {}
        self._digest: str | None = None

    @classmethod
    def made(cls, name: str, arrays: Mapping[str, npt.NDArray[np.float64]]) -> "Checkpoint":
        """Return tensors that were computed and lie in no file, as if a file called *name* held them."""
        file, start, tensors = Path(name), 0, {}
        for tensor, array in arrays.items():
            tensors[tensor] = TensorInfo(tensor, "F64", array.shape, file, start, array.nbytes)
            start += array.nbytes
        checkpoint = cls(tensors, metadata={}, files=[file])
        data = b"".join(array.astype("<f8").tobytes() for array in arrays.values())
        checkpoint._maps[file] = np.frombuffer(data, np.uint8)
        return checkpoint

    def __getitem__(self, name: str) -> TensorInfo:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return tensor *name* as a read-only array of its shape.

        F32 and integers are a view of the mapped file (a copy where the file does not align them);
        F16 and BF16 are widened to float32 exactly, F64 is rounded to float32.

        Raises:
            KeyError: there is no tensor of that name.
            ModelError: the file can no longer be read.
        """
        info = self._tensors[name]
        stored = self._map(info.file)[info.start : info.start + info.nbytes]
        if stored.size < info.nbytes:
            what = tr("{file} has become shorter since it was opened", file=info.file.name)
            raise ModelError(what, where=str(info.file))
        array = _decoded(stored, info.dtype).reshape(info.shape)
        array.flags.writeable = False
        return array

    def digest(self) -> str:
        """Return the SHA-256 of the files' bytes, one file after the other, in hexadecimal.

        It names the weights wherever they lie: neither paths nor file names go into it. All the bytes are
        read, once.
        """
        if self._digest is None:
            sha256 = hashlib.sha256()
            for file in self.files:
                sha256.update(self._map(file).data)
            self._digest = sha256.hexdigest()
        return self._digest

    def _map(self, file: Path) -> npt.NDArray[np.uint8]:
        """Return the bytes of *file*, mapped once."""
        if file not in self._maps:
            try:
                self._maps[file] = np.memmap(file, np.uint8, mode="r").view(np.ndarray)
            except OSError as error:
                raise unreadable(file, error) from error
        return self._maps[file]


def _decoded(stored: npt.NDArray[np.uint8], dtype: str) -> npt.NDArray[Any]:
    """Return the numbers that *stored* holds as *dtype*, in one dimension."""
    if dtype == "BF16":  # the upper half of a float32
        wide = stored.view("<u2").astype(np.uint32)
        wide <<= 16
        return wide.view(np.float32)
    if dtype == "BOOL":  # a stored 2 is true as well, and would confuse NumPy
        return stored.astype(np.bool_)
    numbers = stored.view(_STORED[dtype])
    if dtype in ("F16", "F64"):
        with np.errstate(over="ignore", invalid="ignore"):
            return numbers.astype(np.float32)
    return numbers if numbers.flags.aligned else numbers.copy()
