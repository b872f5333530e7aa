"""The families of models that open, and opening a folder or GGUF file of any of them without reading its weights.

A family more is a file more that describes it as a `Family`, and its name in the list here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..catalogue import mark, tr
from ..checkpoint.config import ModelConfig
from ..checkpoint.fields import Fields
from ..checkpoint.formats import is_gguf
from ..checkpoint.json_text import read_object, shown
from ..checkpoint.layout import Weights, bind_layout
from ..checkpoint.tensors import Checkpoint
from ..checkpoint.unsupported import refuse_unsupported
from ..errors import ModelError
from ..tokenizer import Tokenizer
from .family import Family
from .gpt2 import GPT2
from .llama import LLAMA, MINIMIND, MISTRAL, QWEN2, QWEN3
from .tinymind import TINYMIND

FAMILIES: dict[str, Family] = {
    family.name: family for family in (GPT2, LLAMA, MISTRAL, QWEN2, QWEN3, MINIMIND, TINYMIND)
}
"""By the ``model_type`` of their config.json."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A model whose headers have been read and checked, and none of its weights."""

    folder: Path
    family: Family
    config: ModelConfig
    checkpoint: Checkpoint
    """The tensors as the files have them."""
    weights: Weights
    load_tokenizer: Callable[[], Tokenizer]


def open_folder(path: Path) -> Opened:
    """Read the headers of the model at *path*: a folder, the weights file in it, or a GGUF file.

    Raises:
        ModelError: for everything that can be wrong with the files of a model.
    """
    if is_gguf(path) and os.path.isfile(path):
        return _open_gguf(path)
    config = read_config(path)
    family = FAMILIES[config.family]
    checkpoint = family.open(path)
    config = family.told_by_tensors(config, checkpoint)
    tokenizer = partial(family.tokenizer, _folder(path), config.vocabulary)
    return Opened(_folder(path), family, config, checkpoint, bind(checkpoint, config), tokenizer)


def _open_gguf(file: Path) -> Opened:
    """Read the header of the GGUF file *file*; the package that does is loaded for nothing else."""
    from ..checkpoint.gguf.checkpoint import open_gguf
    from ..checkpoint.gguf.config import config_fields
    from ..checkpoint.gguf.conversion import converted
    from ..checkpoint.gguf.tokenizer import load_tokenizer

    stored = open_gguf(file)
    config = _normalised(Fields(config_fields(stored), str(file)), Fields({}, str(file)))
    family = FAMILIES[config.family]
    weights = bind(converted(stored, family.layout, config), config)
    return Opened(file.parent, family, config, stored, weights, partial(load_tokenizer, stored, config.vocabulary))


def read_config(path: Path) -> ModelConfig:
    """Return what the configuration files of the model at *path* say, a folder or the weights file in it.

    config.json decides what is computed; generation_config.json, where there is one, adds end tokens.

    Raises:
        ModelError: no config.json, a family that does not open, or a field whose value is wrong or asks for
            something that is not implemented.
    """
    folder = _folder(path)
    given = _fields(folder / "config.json")
    generation = folder / "generation_config.json"
    return _normalised(given, _fields(generation) if os.path.isfile(generation) else Fields({}, str(generation)))


def _normalised(given: Fields, more: Fields) -> ModelConfig:
    """Return the configuration that a config.json says; *more* has begin and end tokens beside those in it."""
    family = _family(given)
    fields = Fields({**family.defaults, **given.values}, given.where)
    config = family.read(fields)
    refuse_unsupported(fields, config.positions)
    ends = fields.ids("eos_token_id") + more.ids("eos_token_id")
    begins = fields.ids("bos_token_id") + more.ids("bos_token_id")
    begin = next(iter(_possible(begins, config)), None)
    return replace(config, bos_id=begin, eos_ids=tuple(sorted(set(_possible(ends, config)))))


def bind(checkpoint: Checkpoint, config: ModelConfig) -> Weights:
    """Return the parameters of the model that *config* describes, all found in *checkpoint* and checked.

    Raises:
        ModelError: naming a parameter that is missing, has the wrong shape or is stored as integers.
    """
    return bind_layout(checkpoint, config, FAMILIES[config.family].layout)


def family_title(name: str) -> str:
    """What people call the family *name*; a recording may be of one that is not known here."""
    return FAMILIES[name].title if name in FAMILIES else name


_SHAPES = {
    (True, True): mark("1 layer × 1 head × {width}"),
    (True, False): mark("1 layer × {heads} heads × {width}"),
    (False, True): mark("{layers} layers × 1 head × {width}"),
    (False, False): mark("{layers} layers × {heads} heads × {width}"),
}
"""The size of a model, by whether it has one layer, and whether one head."""


def shape_title(layers: int, heads: int, width: int) -> str:
    """How people say the size of a model: 4 layers × 8 heads × 256."""
    return tr(_SHAPES[layers == 1, heads == 1], layers=layers, heads=heads, width=width)


def _folder(path: Path) -> Path:
    return path.parent if os.path.isfile(path) else path


def _fields(file: Path) -> Fields:
    """Return the fields of a JSON file."""
    return Fields(read_object(file), str(file))


def _family(fields: Fields) -> Family:
    """Return the family that config.json names."""
    kind = fields.get("model_type")
    if isinstance(kind, str) and kind in FAMILIES:
        return FAMILIES[kind]
    hint = tr("these families open: {families}", families=", ".join(FAMILIES))
    if "model_type" not in fields.values:
        raise ModelError(tr("model_type is missing"), where=fields.where, hint=hint)
    raise ModelError(tr("model_type {kind} is not supported", kind=shown(kind)), where=fields.where, hint=hint)


def _possible(ids: Iterable[int], config: ModelConfig) -> list[int]:
    """Return the ids that the vocabulary has.

    Small models often keep GPT-2's 50256 in their configuration, which then never comes up.
    """
    return [token for token in ids if 0 <= token < config.vocabulary]
