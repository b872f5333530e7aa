"""The tensors of a GGUF file, dequantised when someone asks for them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

from ...catalogue import tr
from ...errors import ModelError
from ..json_text import unreadable
from ..safetensors import ITEM_SIZE, TensorInfo
from ..tensors import Checkpoint
from .reader import Metadata, read_gguf

AT_ONCE = 1 << 17
"""Numbers dequantised in one go: what is in between stays in the processor's cache, four times as fast."""


class GgufCheckpoint(Checkpoint):
    """The tensors of one GGUF file, named, ordered and laid as they are there; a Q4_1, say, is read as float32."""

    header: Metadata
    """What the file says about the model and its tokenizer."""

    def __init__(self, path: Path, tensors: dict[str, TensorInfo], header: Metadata) -> None:
        super().__init__(tensors, metadata={}, files=[path])
        self.header = header

    @property
    def path(self) -> Path:
        """The file."""
        return self.files[0]

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return tensor *name* as a read-only array of its shape, float32 unless it holds integers.

        What is not quantised is a view of the mapped file, or widened. Quantised bytes are read, not mapped, so
        that the file takes no memory beside the numbers.

        Raises:
            KeyError: there is no tensor of that name.
            ModelError: the file can no longer be read.
        """
        info = self[name]
        if info.dtype in ITEM_SIZE:
            return super().array(name)
        array = _dequantised(_stored(info), GGMLQuantizationType[info.dtype]).reshape(info.shape)
        array.flags.writeable = False
        return array

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes, in hexadecimal; they are read once, and not mapped."""
        if self._digest is None:
            try:
                with self.path.open("rb") as stream:
                    self._digest = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise unreadable(self.path, error) from error
        return self._digest


def open_gguf(path: Path) -> GgufCheckpoint:
    """Return the tensors of the GGUF file at *path*; only its header is read.

    Raises:
        ModelError: the file is damaged, or holds a type of tensor that cannot be read.
    """
    return GgufCheckpoint(path, *read_gguf(path))


def _stored(info: TensorInfo) -> npt.NDArray[np.uint8]:
    """Return the bytes of a tensor."""
    try:
        stored = np.fromfile(info.file, np.uint8, info.nbytes, offset=info.start)
    except OSError as error:
        raise unreadable(info.file, error) from error
    if stored.size < info.nbytes:
        what = tr("{file} has become shorter since it was opened", file=info.file.name)
        raise ModelError(what, where=str(info.file))
    return stored


def _dequantised(stored: npt.NDArray[np.uint8], kind: GGMLQuantizationType) -> npt.NDArray[np.float32]:
    """Return the numbers of quantised blocks, all in one row.

    Blocks do not know of rows. The package takes 16 rows at a time; here it is given one long one after the other.
    """
    numbers, nbytes = GGML_QUANT_SIZES[kind]
    blocks = stored.reshape(-1, nbytes)
    result = np.empty((len(blocks), numbers), np.float32)
    step = max(AT_ONCE // numbers, 1)
    for start in range(0, len(blocks), step):
        some = blocks[start : start + step]
        result[start : start + step] = dequantize(some.reshape(1, -1), kind).reshape(-1, numbers)
    return result.reshape(-1)
