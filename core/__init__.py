"""The engine: models, tokens, events, traces. Numbers and files only; it knows no screen.

The public surface is loaded when it is first used, so that importing a part does not import the whole.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conversation import Conversation as Conversation
    from .errors import CutawayError as CutawayError
    from .errors import ModelError as ModelError
    from .errors import RecordingError as RecordingError
    from .generation import Generation as Generation
    from .models import load_model as load_model
    from .sampling import SamplingConfig as SamplingConfig
    from .session import Session as Session
    from .trace import Trace as Trace

_HOMES = {
    "CutawayError": ".errors",
    "Conversation": ".conversation",
    "Generation": ".generation",
    "ModelError": ".errors",
    "RecordingError": ".errors",
    "SamplingConfig": ".sampling",
    "Session": ".session",
    "Trace": ".trace",
    "load_model": ".models",
}

__all__ = list(_HOMES)  # noqa: PLE0604 - names of the table above


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
