"""Locating a model: what a person types becomes the folder or the file to open."""

import os
from importlib.resources import files
from pathlib import Path

from ... import assets
from ..catalogue import tr
from ..errors import ModelError
from .formats import foreign_format
from .hub import cached_snapshot, hub_cache
from .json_text import shown


def locate(name: str | os.PathLike[str]) -> Path:
    """Return the folder, or the safetensors file, of the model called *name*.

    An existing path wins; then the embedded models; then a hub id that lies in the local Hugging Face cache.

    Raises:
        ModelError: nothing of that name, or a file that is not safetensors.
    """
    text = os.fspath(name)
    if text.strip() and "\0" not in text:
        path = os.path.expanduser(text)
        if os.path.exists(path):
            return _checked(Path(path))
        if text in embedded_models():
            return _embedded_folder() / text
        if snapshot := cached_snapshot(text):
            return snapshot
    raise _not_found(text)


def embedded_models() -> list[str]:
    """Return the names of the models that Cutaway brings along, in alphabetical order."""
    folder = _embedded_folder()
    return sorted(config.parent.name for config in folder.glob("*/config.json"))


def _embedded_folder() -> Path:
    """Return where the embedded models lie."""
    return Path(str(files(assets))) / "models"


def _checked(path: Path) -> Path:
    """Return *path* if it may hold a model: a folder, or a safetensors file."""
    if os.path.isdir(path) or path.suffix.lower() == ".safetensors":
        return path
    raise foreign_format(path)


def _not_found(name: str) -> ModelError:
    """Return the error that says where *name* was looked for, and which names there are."""
    return ModelError(
        tr("no model is called {name}", name=shown(name)),
        where=tr("neither a path, nor an embedded model, nor in the cache {folder}", folder=hub_cache()),
        hint=tr(
            "embedded: {names}; otherwise give a folder with config.json and model.safetensors, or fill the cache with "
            "hf download OWNER/NAME",
            names=", ".join(embedded_models()),
        ),
    )
