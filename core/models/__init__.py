"""Models: from a name to something that runs."""

from __future__ import annotations

import os
from pathlib import Path

from ..checkpoint.families import bind, read_config
from ..checkpoint.locate import locate
from ..checkpoint.open import open_checkpoint
from ..tokenizer import load_tokenizer
from .gpt2 import build_gpt2
from .model import Model

_BUILDERS = {"gpt2": build_gpt2}
"""How each family's decoder is put together."""


def load_model(name: str | os.PathLike[str]) -> Model:
    """Open the model called *name*: an existing path, an embedded model, or a hub id in the local cache.

    Raises `ModelError`, in one sentence, for everything that can be wrong with a name or its files.
    """
    path = locate(name)
    config = read_config(path)
    checkpoint = open_checkpoint(path)
    weights = bind(checkpoint, config)
    folder = path if path.is_dir() else path.parent
    return Model(
        name=called(name, path),
        config=config,
        decoder=_BUILDERS[config.family](config, weights),
        tokenizer=load_tokenizer(folder, config.vocabulary),
        compute_digest=checkpoint.digest,
    )


def called(name: str | os.PathLike[str], path: Path) -> str:
    """What the model is called: its hub id where it was asked for by one, else its folder's name."""
    text = os.fspath(name)
    if not os.path.exists(os.path.expanduser(text)):
        return text
    return (path if path.is_dir() else path.parent).resolve().name
