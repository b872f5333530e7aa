"""What there is to know about a family of models: one `Family` says it all, in the family's own file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..checkpoint.config import ModelConfig
from ..checkpoint.fields import Fields
from ..checkpoint.layout import Layout
from ..checkpoint.open import open_checkpoint
from ..checkpoint.tensors import Checkpoint
from ..tokenizer import Tokenizer, load_tokenizer
from .decoder import Decoder

Parameters = Mapping[str, NDArray[np.float32]]
"""What a decoder is built from, by canonical name: those of a checkpoint (`Weights`), or any others of their shapes."""


def _as_configured(config: ModelConfig, checkpoint: Checkpoint) -> ModelConfig:
    return config


@dataclass(frozen=True, slots=True)
class Family:
    """How the folders of one ``model_type`` become a decoder."""

    name: str
    """The ``model_type`` of their config.json."""
    title: str
    """What people call it."""
    read: Callable[[Fields], ModelConfig]
    """Normalises config.json, all but the begin and end tokens."""
    layout: Layout
    """How the files name and shape the tensors."""
    build: Callable[[ModelConfig, Parameters], Decoder]
    """Puts the parts together."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """What fields that a config.json does not mention stand for."""
    told_by_tensors: Callable[[ModelConfig, Checkpoint], ModelConfig] = _as_configured
    """Completes a configuration that does not tell all that the tensors' names do."""
    open: Callable[[Path], Checkpoint] = open_checkpoint
    """Opens the tensors of a folder, or of a weights file."""
    tokenizer: Callable[[Path, int], Tokenizer] = load_tokenizer
    """Loads the tokenizer of a folder, for so many token ids."""
