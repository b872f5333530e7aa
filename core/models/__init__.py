"""Models: from a name to something that runs."""

from __future__ import annotations

import os
from pathlib import Path

from ..checkpoint.formats import is_gguf
from ..checkpoint.locate import locate
from .families import Opened, open_folder
from .model import Model


def load_model(name: str | os.PathLike[str]) -> Model:
    """Open the model called *name*: an existing path, a model that is embedded or installed, or a cached hub id.

    Raises `ModelError`, in one sentence, for everything that can be wrong with a name or its files.
    """
    called, opened = open_model(name)
    return Model(
        name=called,
        config=opened.config,
        decoder=opened.family.build(opened.config, opened.weights),
        tokenizer=opened.load_tokenizer(),
        compute_digest=opened.checkpoint.digest,
    )


def open_model(name: str | os.PathLike[str]) -> tuple[str, Opened]:
    """What the model *name* is called, and the model with nothing but its headers read. Raises `ModelError`."""
    path = locate(name)
    return _called(name, path), open_folder(path)


def _called(name: str | os.PathLike[str], path: Path) -> str:
    """What the model is called: as it was asked for where that is no path, else like its folder or GGUF file."""
    text = os.fspath(name)
    if not os.path.exists(os.path.expanduser(text)):
        return text
    if is_gguf(path) and path.is_file():
        return path.stem
    return (path if path.is_dir() else path.parent).resolve().name
