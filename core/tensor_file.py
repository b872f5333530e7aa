"""Writing safetensors files: a length, a header of JSON that says what lies where, then the tensors' bytes.

The format is https://github.com/huggingface/safetensors#format. Its own library makes two copies of everything
before it writes, and tells of a full disk without an error number; this writes from the arrays themselves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NAMES = {"f8": "F64", "f4": "F32", "i8": "I64", "u1": "U8"}


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write *tensors* (float64, float32, int64 or uint8) and *metadata* at *path*. Raises OSError."""
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))  # widest first: all are aligned
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name in order:
        array = tensors[name]
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype.str[1:]],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            array = tensors[name]
            file.write(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data)
        file.flush()
        os.fsync(file.fileno())
