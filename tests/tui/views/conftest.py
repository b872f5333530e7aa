"""Runs of the embedded model, and what their events said: what every view is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, SamplingConfig, Trace
from cutaway.core.edits import Edit
from cutaway.core.events import AttentionDone, BlockDone, Embedded, Event, LogitsReady
from cutaway.core.models.model import Model
from cutaway.tui.moment import Moment
from cutaway.tui.stages import Place

PROMPT = [610, 573, 258, 440, 11, 421, 293, 258, 401, 1486, 520]
"""Once upon a time, there was a little fox who"""

SETTINGS = [
    SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, seed=3),
    SamplingConfig(temperature=1.3, min_p=0.02, repetition_penalty=1.3, seed=4),
    SamplingConfig(top_k=3, seed=5),
    SamplingConfig(greedy=True),
    SamplingConfig(temperature=0.0),
    SamplingConfig(seed=6),
]
STEPS = 9


@dataclass
class Run:
    """A run, and what its events said."""

    generation: Generation
    attention: list[list[AttentionDone]] = field(default_factory=list)
    """By step and layer."""
    residual: list[list[NDArray[np.float32]]] = field(default_factory=list)
    """By step and layer [n, D]."""
    embedded: list[Embedded] = field(default_factory=list)
    logits: list[NDArray[np.float32]] = field(default_factory=list)
    """By step [V]."""

    @property
    def trace(self) -> Trace:
        return self.generation.trace

    @property
    def prompt_length(self) -> int:
        return len(self.trace.prompt_ids)

    def hear(self, event: Event) -> None:
        match event:
            case Embedded():
                self.attention.append([])
                self.residual.append([])
                self.embedded.append(event)
            case AttentionDone():
                self.attention[-1].append(event)
            case BlockDone():
                self.residual[-1].append(event.residual)
            case LogitsReady():
                self.logits.append(event.logits[-1])

    def weights(self, step: int, layer: int, head: int) -> NDArray[np.float32]:
        """The whole map [T, T] as it stood at *step*."""
        T = self.prompt_length + step
        rows = np.zeros((T, T), np.float32)
        for events in self.attention[: step + 1]:
            n, keys = events[layer].pattern.shape[1:]
            rows[keys - n : keys, :keys] = events[layer].pattern[head]
        return rows

    def vectors(self, name: str, step: int, layer: int, head: int) -> NDArray[np.float32]:
        """Queries, keys or values [T, d] of a head as they stood at *step*."""
        return np.concatenate([getattr(events[layer], name)[head] for events in self.attention[: step + 1]])

    def end(self, step: int) -> Place:
        """The place at the end of the pass for generated token *step*."""
        return self.place(step, "draw")

    def place(self, step: int, name: str, layer: int | None = None) -> Place:
        return Place(step, Moment(self.trace).stages.index(name, layer))


MakeRun = Callable[..., Run]


@pytest.fixture(scope="session")
def a_run(fable: Model) -> MakeRun:
    """A function that runs the model to its end under some settings; the same ones give the same run."""

    @cache
    def run(settings: SamplingConfig = SETTINGS[0], edits: tuple[Edit, ...] = (), steps: int = STEPS) -> Run:
        run = Run(Generation(fable, PROMPT, settings, max_new_tokens=steps, ignore_eos=True, edits=edits))
        for event in run.generation:
            run.hear(event)
        return run

    return run


@pytest.fixture(scope="session")
def run(a_run: MakeRun) -> Run:
    """A run at its end."""
    return a_run()


@pytest.fixture
def moment(run: Run) -> Moment:
    """All of that run."""
    return Moment(run.trace, STEPS)


@pytest.fixture(params=SETTINGS, ids=lambda settings: f"T{settings.temperature:g}-{settings.seed}")
def settings(request: pytest.FixtureRequest) -> SamplingConfig:
    """Every way of sampling."""
    assert isinstance(request.param, SamplingConfig)
    return request.param


@pytest.fixture
def settings_run(a_run: MakeRun, settings: SamplingConfig) -> Run:
    """A run under each of them."""
    return a_run(settings)


@dataclass
class Step:
    """A run that goes on one event at a time, and the moment that hears it."""

    run: Run
    moment: Moment

    def to(self, name: str, layer: int | None = None, step: int = 0) -> Place:
        """Go on until *name* of the pass for *step* can be looked at."""
        place = self.run.place(step, name, layer)
        while not self.moment.has(place):
            event = next(self.run.generation)
            self.run.hear(event)
            self.moment.hear(event)
        return place


@pytest.fixture
def under_way(fable: Model) -> Step:
    """A run that has not begun yet."""
    generation = Generation(fable, PROMPT, SETTINGS[0], max_new_tokens=STEPS, ignore_eos=True)
    return Step(Run(generation), Moment(generation.trace))


@pytest.fixture(scope="session")
def recorded(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Moment]:
    """A function that gives that run as a recording, with its tables or without them."""
    path = tmp_path_factory.mktemp("recordings") / "run.cutaway"
    run.trace.save(path)

    def load(tables: bool = True) -> Moment:
        trace = Trace.load(Path(path))
        if not tables:
            trace.tables = None
        return Moment(trace, STEPS)

    return load
