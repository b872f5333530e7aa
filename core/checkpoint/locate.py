"""Locating a model: what a person types becomes the folder or the file to open."""

import os
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from ... import assets
from ..catalogue import tr
from ..errors import ModelError
from .formats import foreign_format, is_gguf
from .gguf.installed import SMOLLM2, not_installed, smollm2_file
from .hub import cached_snapshot, hub_cache, is_hub_id, missing_file
from .json_text import shown


class AbsentError(ModelError):
    """A model that is not here, or not all of it; if it is on the hub, it can be downloaded."""


def locate(name: str | os.PathLike[str]) -> Path:
    """Return the folder, or the safetensors or GGUF file, of the model called *name*.

    An existing path wins; then the embedded models and SmolLM2, where it is installed; then a hub id that lies in the
    local Hugging Face cache.

    Raises:
        AbsentError: nothing of that name, or a download that did not come to its end.
        ModelError: a file of another format, or SmolLM2 where it is not installed.
    """
    text = os.fspath(name)
    if text.strip() and "\0" not in text:
        path = os.path.expanduser(text)
        if os.path.exists(path):
            return _checked(Path(path))
        if text in embedded_models():
            return _embedded_folder() / text
        if text == SMOLLM2:
            if (file := smollm2_file()) is None:
                raise not_installed()
            return file
        if snapshot := cached_snapshot(text):
            return _whole(text, snapshot)
    raise _not_found(text)


def embedded_models() -> list[str]:
    """Return the names of the models that Cutaway brings along, in alphabetical order."""
    folder = _embedded_folder()
    return sorted(config.parent.name for config in folder.glob("*/config.json"))


def _embedded_folder() -> Path:
    """Return where the embedded models lie."""
    return Path(str(files(assets))) / "models"


def _checked(path: Path) -> Path:
    """Return *path* if it may hold a model: a folder, or a safetensors or GGUF file."""
    if os.path.isdir(path) or path.suffix.lower() == ".safetensors" or is_gguf(path):
        return path
    raise foreign_format(path)


def _whole(name: str, snapshot: Path) -> Path:
    """Return *snapshot* of the hub's model *name* unless its download was interrupted."""
    if file := missing_file(snapshot):
        raise AbsentError(
            tr("of {name} only a part has been downloaded: {file} is missing", name=shown(name), file=shown(file)),
            where=str(snapshot),
            hint=tr("{how} to fetch the rest", how=_how_to_download()),
        )
    return snapshot


def _not_found(name: str) -> AbsentError:
    """Return the error that says where *name* was looked for, and which names there are."""
    names = ", ".join(embedded_models())
    if is_hub_id(name) and "/" in name:
        hint = tr("{how} to fetch it from the hub; embedded: {names}", how=_how_to_download(), names=names)
    else:
        hint = tr(
            "embedded: {names}; otherwise give a folder with config.json and model.safetensors, or OWNER/NAME of a "
            "model on the hub",
            names=names,
        )
    return AbsentError(
        tr("no model is called {name}", name=shown(name)),
        where=tr("neither a path, nor an embedded model, nor in the cache {folder}", folder=hub_cache()),
        hint=hint,
    )


def _how_to_download() -> str:
    """Return what to do first: ask for it, and before that install what is needed."""
    if find_spec("huggingface_hub") is None:
        return tr("pip install 'cutaway[hub]' and add --download")
    return tr("add --download")
