"""Sampling settings somebody tries out: changed one step at a time, put to use only when they are applied."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..core.catalogue import mark, tr
from ..core.sampling import SamplingConfig
from ..core.trace import Trace
from .stage_names import NAMES


@dataclass(frozen=True, slots=True)
class Setting:
    """How one setting is named, written and changed."""

    label: str
    """Translated when it is shown."""
    marks: tuple[float, ...]
    """The values that keys go to, ascending; empty for a switch and for whole numbers without end."""
    off: float | None = None
    """The value at which it does nothing."""
    whole: bool = False

    def written(self, value: Any) -> str:
        """*value* as the screen shows it."""
        if isinstance(value, bool):
            return tr("on") if value else tr("off")
        if value is None or value == self.off:
            return tr("off")
        return f"{value:g}" if not self.whole else str(value)

    def changed(self, value: Any, by: int) -> Any:
        """The value *by* steps from *value*."""
        if isinstance(value, bool):
            return not value
        if not self.marks:
            return max(int(value or 0) + by, 0)
        further = [mark for mark in self.marks if (mark > value if by > 0 else mark < value)]
        found = value if not further else further[0] if by > 0 else further[-1]
        return int(found) if self.whole else found


SETTINGS: dict[str, Setting] = {
    "temperature": Setting(NAMES["temperature"], tuple(round(0.05 * step, 2) for step in range(1, 61))),
    "repetition_penalty": Setting(
        NAMES["repetition_penalty"], tuple(round(1 + 0.05 * step, 2) for step in range(21)), 1.0
    ),
    "top_k": Setting(
        NAMES["top_k"], (0, 1, 2, 3, 5, 8, 10, 15, 20, 30, 40, 50, 60, 80, 100, 150, 200, 500, 1000), 0, whole=True
    ),
    "top_p": Setting(NAMES["top_p"], (*(round(0.05 * step, 2) for step in range(1, 20)), 0.97, 0.99, 1.0), 1.0),
    "min_p": Setting(NAMES["min_p"], (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9), 0.0),
    "seed": Setting(mark("seed"), (), whole=True),
    "greedy": Setting(mark("greedy"), ()),
}
"""The settings of `SamplingConfig`, in the order of the stages they belong to."""


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Settings that are tried on one draw."""

    trace: Trace
    step: int
    """The generated token they are tried on."""
    settings: SamplingConfig

    def is_about(self, trace: Trace, step: int) -> bool:
        """Whether it is tried on generated *step* of *trace*."""
        return self.trace is trace and self.step == step

    def changed(self, name: str, by: int) -> Draft:
        """With the setting *name* changed by so many steps."""
        value = SETTINGS[name].changed(getattr(self.settings, name), by)
        return replace(self, settings=replace(self.settings, **{name: value}))
