"""Layouts: how a family names and shapes its tensors, and whether a checkpoint has them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..catalogue import tr
from ..errors import ModelError
from .config import ModelConfig
from .json_text import shown
from .safetensors import TensorInfo
from .tensors import Checkpoint

PARAMETER_DTYPES = frozenset({"BF16", "F16", "F32", "F64"})


@dataclass(frozen=True, slots=True)
class Layout:
    """How the files of one family spell their tensors."""

    canonical: Callable[[str], str | None]
    """The canonical name of a tensor in a file, or None for a buffer that is not a parameter."""
    expected: Callable[[ModelConfig], Mapping[str, tuple[int, ...]]]
    """Canonical name and shape of every parameter; a tied head is not among them."""
    embedding: str
    """Canonical name of the token embedding."""
    head: str
    """Canonical name of the head's matrix, which may stand in for the embedding where they are tied."""
    part: Callable[[str], str]
    """Where the parameter of that canonical name sits: embedding, attention, mlp, norms or head."""


class Weights(Mapping[str, npt.NDArray[np.float32]]):
    """The parameters of a model by canonical name, complete and of the right shapes.

    Looking one up reads it: a read-only float32 array in the layout of the file, mapped where the file
    is float32 and otherwise widened anew each time, so look up once and keep.
    """

    checkpoint: Checkpoint

    def __init__(self, checkpoint: Checkpoint, names: Mapping[str, str]) -> None:
        self.checkpoint = checkpoint
        self._names = names

    def __getitem__(self, name: str) -> npt.NDArray[np.float32]:
        return self.checkpoint.array(self._names[name]).astype(np.float32, copy=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def info(self, name: str) -> TensorInfo:
        """Return how the file stores the parameter called *name* here, without reading it."""
        return self.checkpoint[self._names[name]]


def bind_layout(checkpoint: Checkpoint, config: ModelConfig, layout: Layout) -> Weights:
    """Return the parameters that *config* needs, found in *checkpoint* through *layout*.

    Only names, dtypes and shapes are looked at; tensors that the model does not need are left alone.

    Raises:
        ModelError: naming the parameter that is missing, has the wrong shape or is stored as integers.
    """
    found = _by_canonical_name(checkpoint, layout)
    if config.tied_head and layout.embedding not in found and layout.head in found:
        found[layout.embedding] = found[layout.head]
    names: dict[str, str] = {}
    for name, shape in layout.expected(config).items():
        if name not in found:
            raise _missing(name, checkpoint, is_head=name == layout.head)
        _check(checkpoint[found[name]], shape)
        names[name] = found[name]
    return Weights(checkpoint, names)


def _by_canonical_name(checkpoint: Checkpoint, layout: Layout) -> dict[str, str]:
    """Return the files' name of every tensor that may be a parameter, by canonical name."""
    found: dict[str, str] = {}
    for name in checkpoint:
        canonical = layout.canonical(name)
        if canonical is None:
            continue
        if canonical in found:
            what = tr("tensors {one} and {two} are the same parameter", one=shown(found[canonical]), two=shown(name))
            raise ModelError(what, where=str(checkpoint[name].file))
        found[canonical] = name
    return found


def _missing(name: str, checkpoint: Checkpoint, *, is_head: bool) -> ModelError:
    """Return the error for a parameter that no file has."""
    if is_head:
        what = tr("tensor {name} is missing, and the configuration does not tie the head", name=name)
    else:
        what = tr("tensor {name} is missing", name=name)
    hint = tr("config.json and the weights do not belong together, or the weights are incomplete")
    return ModelError(what, where=str(checkpoint.files[0].parent), hint=hint)


def _check(info: TensorInfo, shape: tuple[int, ...]) -> None:
    """Check that a stored tensor can be the parameter of that *shape*."""
    if info.shape != shape:
        what = tr(
            "tensor {name} has shape {found} where config.json asks for {expected}",
            name=shown(info.name),
            found=list(info.shape),
            expected=list(shape),
        )
        raise ModelError(what, where=str(info.file))
    if info.dtype not in PARAMETER_DTYPES:
        what = tr("tensor {name} has dtype {dtype}, no floating-point one", name=shown(info.name), dtype=info.dtype)
        raise ModelError(what, where=str(info.file), hint=tr("quantised weights are not supported"))
