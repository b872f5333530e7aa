"""Tensors of a recording taken by name, each checked before any of its bytes are read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..catalogue import tr
from ..checkpoint.json_text import shown
from ..errors import RecordingError

Tensors = dict[str, NDArray[Any]]

LARGEST = float(np.finfo(np.float32).max)
"""No finite number is larger, nor its opposite smaller."""

_SPELLED: dict[type[np.generic], str] = {
    **{np.uint8: "U8", np.int64: "I64"},
    **{np.float32: "F32", np.float64: "F64"},
}
"""How the format spells the types that recordings have."""


class Reader:
    """The tensors of an open file; those that nobody takes are never read."""

    def __init__(self, file: Any) -> None:
        """*file* is what ``safetensors.safe_open`` gives."""
        self._file = file
        self._names = frozenset(file.keys())

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def take(self, name: str, dtype: type[np.generic], *shape: int | None) -> NDArray[Any]:
        """Tensor *name*; None in *shape* takes any length. Raises `RecordingError` if it has another type or shape."""
        if name not in self._names:
            raise RecordingError(tr("this recording is damaged: the tensor {name} is missing", name=name))
        tensor = self._file.get_slice(name)
        found, kind = tensor.get_shape(), tensor.get_dtype()
        fits = len(found) == len(shape) and all(want in (None, have) for want, have in zip(shape, found, strict=True))
        if kind != _SPELLED[dtype] or not fits:
            raise RecordingError(
                tr(
                    "this recording is damaged: the tensor {name} is {dtype} {shape}",
                    name=name,
                    dtype=kind,
                    shape=shown(found),
                )
            )
        array: NDArray[Any] = self._file.get_tensor(name)
        return array

    def numbers(
        self, name: str, dtype: type[np.generic], least: float, most: float, *shape: int | None, start: int = 0
    ) -> NDArray[Any]:
        """Tensor *name*, whose numbers from *start* on lie from *least* to *most*.

        Raises `RecordingError` as `take`, and for any other number, NaN too.
        """
        array = self.take(name, dtype, *shape)
        checked = array[start:]
        with np.errstate(invalid="ignore"):  # comparing NaN is how it is found
            wrong = checked[~((checked >= least) & (checked <= most))]
        if wrong.size:
            raise RecordingError(
                tr("this recording is damaged: the tensor {name} cannot hold {value}", name=name, value=wrong[0].item())
            )
        return array
