"""Weight files that are not safetensors: which of them open, and why the others do not."""

from pathlib import Path

from ..catalogue import tr
from ..errors import ModelError

PICKLES = frozenset({".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth"})


def is_gguf(file: Path) -> bool:
    """Return whether *file* is called like a GGUF file, which holds a whole model."""
    return file.suffix.lower() == ".gguf"


def is_foreign(file: Path) -> bool:
    """Return whether *file* holds weights in a format that does not lie beside a config.json."""
    return file.suffix.lower() in PICKLES or is_gguf(file)


def foreign_format(file: Path) -> ModelError:
    """Return what to raise for weights that lie in *file*, where a safetensors file should be."""
    if file.suffix.lower() in PICKLES:
        return ModelError(
            tr("{file} is a pickle, and opening a pickle can run any code", file=file.name),
            where=str(file),
            hint=tr("convert the weights to safetensors (save_pretrained does) and open that folder"),
        )
    if is_gguf(file):
        return ModelError(
            tr("{file} is a GGUF file, which is a model by itself and no part of a folder", file=file.name),
            where=str(file),
            hint=tr("open the file instead of its folder"),
        )
    return ModelError(
        tr("{file} is not a model", file=file.name),
        where=str(file),
        hint=tr("open a folder with config.json and model.safetensors, a .safetensors file in one, or a .gguf file"),
    )
