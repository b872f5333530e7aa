"""The families of models that open, and reading a folder of any of them."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ..catalogue import tr
from ..errors import ModelError
from .config import ModelConfig
from .fields import Fields
from .gpt2 import BOS_ID, EOS_ID, GPT2, read_gpt2
from .json_text import read_object, shown
from .layout import Layout, Weights, bind_layout
from .tensors import Checkpoint
from .unsupported import refuse_unsupported


@dataclass(frozen=True, slots=True)
class Family:
    """What to know about the files of one ``model_type``."""

    read: Callable[[Fields], ModelConfig]
    """Normalises config.json, all but the begin and end tokens."""
    layout: Layout
    bos_id: int | None
    """The begin token of a config.json that does not mention one."""
    eos_id: int | None
    """The end token of a config.json that does not mention one."""


FAMILIES = {"gpt2": Family(read_gpt2, GPT2, BOS_ID, EOS_ID)}
"""By the ``model_type`` of their config.json."""


def read_config(path: Path) -> ModelConfig:
    """Return the configuration of the model at *path*, a folder or the weights file in it.

    config.json decides what is computed; generation_config.json, where there is one, adds end tokens.

    Raises:
        ModelError: no config.json, a family that does not open, or a field whose value is wrong or asks for
            something that is not implemented.
    """
    folder = path.parent if os.path.isfile(path) else path
    fields = _fields(folder / "config.json")
    family = _family(fields)
    config = family.read(fields)
    refuse_unsupported(fields, config.positions)
    generation = folder / "generation_config.json"
    defaults = _fields(generation) if os.path.isfile(generation) else Fields({}, str(generation))
    ends = fields.ids("eos_token_id", family.eos_id) + defaults.ids("eos_token_id")
    begins = fields.ids("bos_token_id", family.bos_id) + defaults.ids("bos_token_id")
    begin = next(iter(_possible(begins, config)), None)
    return replace(config, bos_id=begin, eos_ids=tuple(sorted(set(_possible(ends, config)))))


def bind(checkpoint: Checkpoint, config: ModelConfig) -> Weights:
    """Return the parameters of the model that *config* describes, all found in *checkpoint* and checked.

    Raises:
        ModelError: naming a parameter that is missing, has the wrong shape or is stored as integers.
    """
    return bind_layout(checkpoint, config, FAMILIES[config.family].layout)


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
