"""Opening a checkpoint: one file, safetensors or GGUF, or the shards that an index names."""

import os
from collections.abc import Mapping
from pathlib import Path

from ..catalogue import tr
from ..errors import ModelError
from .formats import foreign_format, is_foreign
from .json_text import read_object, shown, unreadable
from .safetensors import TensorInfo, read_header
from .tensors import Checkpoint

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def open_checkpoint(path: Path) -> Checkpoint:
    """Return the tensors at *path*, a safetensors file or a folder that holds a model.

    In a folder, ``model.safetensors`` is taken before an index with its shards, and that before a single
    safetensors file of another name. Only headers are read.

    Raises:
        ModelError: no weights, weights in another format, or files that are broken or do not belong together.
    """
    if os.path.isfile(path):
        return _open_file(path)
    if os.path.isfile(path / WHOLE):
        return _open_file(path / WHOLE)
    if os.path.isfile(path / INDEX):
        return _open_shards(path / INDEX)
    return _open_file(_only_file(path))


def holds_weights(path: Path) -> bool:
    """Whether there are weights at *path*, in any format and whether or not they can be opened."""
    if os.path.isfile(path):
        return True
    try:
        files = [file for file in path.iterdir() if os.path.isfile(file)]
    except OSError as error:
        raise unreadable(path, error) from error
    return any(file.suffix.lower() == ".safetensors" or file.name == INDEX or is_foreign(file) for file in files)


def _open_file(file: Path) -> Checkpoint:
    """Open one safetensors file."""
    if file.suffix.lower() != ".safetensors":
        raise foreign_format(file)
    tensors, metadata = read_header(file)
    return Checkpoint(tensors, metadata=metadata, files=[file])


def _only_file(folder: Path) -> Path:
    """Return the one safetensors file of *folder*, whatever it is called."""
    try:
        files = sorted(file for file in folder.iterdir() if os.path.isfile(file))
    except OSError as error:
        raise unreadable(folder, error) from error
    weights = [file for file in files if file.suffix.lower() == ".safetensors"]
    if len(weights) == 1:
        return weights[0]
    if weights:
        what = tr("{count} safetensors files and no {index} that joins them", count=len(weights), index=INDEX)
        raise ModelError(what, where=str(folder), hint=tr("name the one to open, or add the index"))
    for file in files:
        if is_foreign(file):
            raise foreign_format(file)
    raise ModelError(
        tr("the folder has no weights: {file} is missing", file=WHOLE),
        where=str(folder),
        hint=tr("a model folder holds config.json and safetensors files"),
    )


def _open_shards(index: Path) -> Checkpoint:
    """Open the shards that *index* names, and take each tensor from the shard it gives."""
    shard_of = _weight_map(index)
    headers = {shard: _read_shard(index.parent / shard) for shard in sorted(set(shard_of.values()))}
    tensors: dict[str, TensorInfo] = {}
    for name, shard in shard_of.items():
        found = headers[shard][0]
        if name not in found:
            what = tr(
                "tensor {name} is missing from {shard}, where the index says it is",
                name=shown(name),
                shard=shard,
            )
            raise ModelError(what, where=str(index), hint=tr("download the shard and the index again"))
        tensors[name] = found[name]
    metadata = {key: text for _, about in headers.values() for key, text in about.items()}
    return Checkpoint(tensors, metadata=metadata, files=[index.parent / shard for shard in headers])


def _read_shard(file: Path) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    """Read the header of a shard, which must be there."""
    if not os.path.isfile(file):
        what = tr("the shard {file} is missing, though the index names it", file=file.name)
        raise ModelError(what, where=str(file.parent), hint=tr("download the missing shard"))
    return read_header(file)


def _weight_map(index: Path) -> Mapping[str, str]:
    """Return which shard holds each tensor; shards are plain names of files beside *index*."""
    shards = read_object(index).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise ModelError(tr("{file} has no weight_map", file=index.name), where=str(index))
    for shard in shards.values():
        if not _is_plain_name(shard):
            what = tr("the index names a shard that is a path or no safetensors file, {shard}", shard=shown(shard))
            hint = tr("shards are safetensors files in the model's own folder")
            raise ModelError(what, where=str(index), hint=hint)
    return shards


def _is_plain_name(shard: object) -> bool:
    """Return whether *shard* names a safetensors file in the same folder, and nothing elsewhere."""
    return (
        isinstance(shard, str)
        and shard.isprintable()
        and not set(shard) & set("/\\:")
        and shard.endswith(".safetensors")
    )
