"""Models: from a name to something that runs."""

from __future__ import annotations

import os
from pathlib import Path

from ..checkpoint.locate import locate
from .families import Opened, open_folder
from .model import Model


def load_model(name: str | os.PathLike[str]) -> Model:
    """Open the model called *name*: an existing path, an embedded model, or a hub id in the local cache.

    Raises `ModelError`, in one sentence, for everything that can be wrong with a name or its files.
    """
    called, opened = open_model(name)
    return Model(
        name=called,
        config=opened.config,
        decoder=opened.family.build(opened.config, opened.weights),
        tokenizer=opened.family.tokenizer(opened.folder, opened.config.vocabulary),
        compute_digest=opened.checkpoint.digest,
    )


def open_model(name: str | os.PathLike[str]) -> tuple[str, Opened]:
    """What the model *name* is called, and the model with nothing but its headers read. Raises `ModelError`."""
    path = locate(name)
    return _called(name, path), open_folder(path)


def _called(name: str | os.PathLike[str], path: Path) -> str:
    """What the model is called: its hub id where it was asked for by one, else its folder's name."""
    text = os.fspath(name)
    if not os.path.exists(os.path.expanduser(text)):
        return text
    return (path if path.is_dir() else path.parent).resolve().name
