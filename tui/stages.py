"""The stages of one pass, in order: the finest places somebody can stop at, look at and come back to.

The engine says what each of its parts computed in one event; the six stages inside attention are all there once
its event is out, since they are computed again from queries, keys and values when somebody looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..core.checkpoint.config import ModelConfig
from ..core.events import (
    AttentionDone,
    BlockDone,
    ChatRendered,
    Embedded,
    Event,
    LogitsReady,
    MlpDone,
    Normalized,
    SamplingStage,
    TokenChosen,
    Tokenized,
)
from ..core.sampling import STAGES as SAMPLING

ATTENTION = ("qkv", "scores", "mask", "softmax", "mix", "projection")
"""What happens inside attention, in order."""

LAYER = (*ATTENTION, "mlp", "residual")
"""What happens inside a layer, in order."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a pass."""

    name: str
    layer: int | None = None
    """The layer it is part of; None outside of the layers."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A moment of a run: *stage* of the pass that computes generated token *step*."""

    step: int
    stage: int
    """Index into `Stages.all`."""


class Stages:
    """Every stage of a pass through a model of so many layers, with a last norm or without."""

    def __init__(self, layers: int, final_norm: bool = True) -> None:
        inside = [Stage(name, layer) for layer in range(layers) for name in LAYER]
        after = (*SAMPLING, "draw")
        self.layers = layers
        self.all: tuple[Stage, ...] = (
            Stage("tokens"),
            Stage("embedding"),
            *inside,
            *([Stage("norm")] if final_norm else []),
            Stage("logits"),
            *map(Stage, after),
        )
        self.last = len(self.all) - 1
        self._index = {stage: index for index, stage in enumerate(self.all)}

    def index(self, name: str, layer: int | None = None) -> int:
        """Where stage *name* of *layer* stands."""
        return self._index[Stage(name, layer)]

    def after(self, event: Event) -> int:
        """The last stage that can be looked at once *event* is out."""
        match event:
            case ChatRendered() | Tokenized():
                return self.index("tokens")
            case Embedded():
                return self.index("embedding")
            case AttentionDone(layer=layer):
                return self.index("projection", layer)
            case MlpDone(layer=layer):
                return self.index("mlp", layer)
            case BlockDone(layer=layer):
                return self.index("residual", layer)
            case Normalized():
                return self.index("norm")
            case LogitsReady():
                return self.index("logits")
            case SamplingStage(name=name):
                return self.index(name)
            case TokenChosen():
                return self.last
        return -1

    def attended(self, stage: int) -> int:
        """How many layers' attention weights are there at *stage*."""
        return self._layers_past("softmax", stage)

    def passed(self, stage: int) -> int:
        """How many layers a pass at *stage* has left behind."""
        return self._layers_past("residual", stage)

    def first(self, step: int) -> int:
        """The first stage of the pass for generated token *step*: only the prompt has to be cut into tokens."""
        return self.index("tokens") if step == 0 else self.index("embedding")

    def next_stage(self, place: Place) -> Place:
        """One stage further, into the next pass where this one is at its end."""
        if place.stage < self.last:
            return Place(place.step, place.stage + 1)
        return Place(place.step + 1, self.first(place.step + 1))

    def previous_stage(self, place: Place) -> Place | None:
        """One stage back; None at the very first."""
        if place.stage > self.first(place.step):
            return Place(place.step, place.stage - 1)
        return Place(place.step - 1, self.last) if place.step > 0 else None

    def next_layer(self, place: Place) -> Place:
        """The end of the next layer; behind the last one the end of the pass, then the next pass."""
        begun = place if place.stage < self.last else Place(place.step + 1, -1)
        ends = [self.index("residual", layer) for layer in range(self.layers)]
        return Place(begun.step, next((end for end in ends if end > begun.stage), self.last))

    def previous_layer(self, place: Place) -> Place | None:
        """The end of the layer before, or of the embedding, or of the pass before; None at the very first."""
        stops = [self.index("embedding"), *(self.index("residual", layer) for layer in range(self.layers))]
        before = [stop for stop in stops if stop < place.stage]
        if before:
            return Place(place.step, before[-1])
        return Place(place.step - 1, self.last) if place.step > 0 else None

    def _layers_past(self, name: str, stage: int) -> int:
        return sum(stage >= self.index(name, layer) for layer in range(self.layers))


@lru_cache(8)
def stages_of(config: ModelConfig) -> Stages:
    """The stages of a model."""
    return Stages(config.layers, config.final_norm)
