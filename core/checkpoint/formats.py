"""Weight files that are not safetensors, and why they are not opened."""

from pathlib import Path

from ..catalogue import tr
from ..errors import ModelError

PICKLES = frozenset({".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth"})


def is_foreign(file: Path) -> bool:
    """Return whether *file* holds weights in a format that is known but not opened."""
    return file.suffix.lower() in PICKLES | {".gguf"}


def foreign_format(file: Path) -> ModelError:
    """Return what to raise for weights that lie in *file*, which is not a safetensors file."""
    if file.suffix.lower() in PICKLES:
        return ModelError(
            tr("{file} is a pickle, and opening a pickle can run any code", file=file.name),
            where=str(file),
            hint=tr("convert the weights to safetensors (save_pretrained does) and open that folder"),
        )
    if file.suffix.lower() == ".gguf":
        return ModelError(
            tr("{file} is in the GGUF format, which this version cannot read", file=file.name),
            where=str(file),
            hint=tr("open the model's folder with config.json and model.safetensors instead"),
        )
    return ModelError(
        tr("{file} is not a model", file=file.name),
        where=str(file),
        hint=tr("open a .safetensors file, or a folder with config.json and model.safetensors"),
    )
