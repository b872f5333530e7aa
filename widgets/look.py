"""The look: colours for things and a scale for numbers. One accent for where you are, one hue for what is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from rich.color import Color
from rich.style import Style

LEVELS = 64
"""Steps of a scale: the eye sees no more in a terminal, and every pair of them fits the caches."""

RGB = tuple[int, int, int]


@dataclass(frozen=True)
class Look:
    """The colours of one theme, as #rrggbb."""

    name: str
    ground: str
    """Behind everything."""
    panel: str
    """Inside panels."""
    line: str
    """Borders, and what is barely there."""
    text: str
    quiet: str
    """Text that stands back; still 4.5:1 on `panel`."""
    here: str
    """Where you are."""
    what: str
    """What is."""
    warm: str
    """Surprise, as a tint under the text."""
    ink: str
    """Text on `here` and on `what`."""
    colormap: str
    scale: tuple[str, ...]
    """The colormap's stops from low to high, evenly spaced."""

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The scale in `LEVELS` steps."""
        return tuple(_between(self.scale, level / (LEVELS - 1)) for level in range(LEVELS))

    def tint(self, strength: float) -> str:
        """`warm` laid over `panel` with *strength* from 0 to 1, in sixteen steps."""
        return _mix(self.panel, self.warm, round(min(max(strength, 0.0), 1.0) * 15) / 15)


_SCALES: dict[str, dict[str, tuple[str, ...]]] = {
    "dark": {
        "lagoon": ("#1a2436", "#1d3f5e", "#1f7a8c", "#6bbf8a", "#f5d76e"),
        "viridis": (
            "#440154",
            "#472d7b",
            "#3b528b",
            "#2c728e",
            "#21918c",
            "#28ae80",
            "#5ec962",
            "#addc30",
            "#fde725",
        ),
        "cividis": (
            "#00224e",
            "#123570",
            "#3b496c",
            "#575d6d",
            "#707173",
            "#8a8678",
            "#a59c74",
            "#c3b369",
            "#fee838",
        ),
        "grey": ("#232936", "#eef1f6"),
    },
    "light": {
        "lagoon": ("#efece2", "#c9dfe3", "#6fb3c0", "#23748a", "#0b2f4a"),
        "viridis": (
            "#fde725",
            "#addc30",
            "#5ec962",
            "#28ae80",
            "#21918c",
            "#2c728e",
            "#3b528b",
            "#472d7b",
            "#440154",
        ),
        "cividis": (
            "#fee838",
            "#c3b369",
            "#a59c74",
            "#8a8678",
            "#707173",
            "#575d6d",
            "#3b496c",
            "#123570",
            "#00224e",
        ),
        "grey": ("#e9e7e0", "#14171f"),
    },
}
"""Every scale is monotone in lightness, so that it reads without colour and with any colour vision.

viridis (Smith and van der Walt 2015) and cividis (Nuñez et al. 2018) by nine of their published stops.
"""

THEMES = tuple(_SCALES)
COLORMAPS = tuple(_SCALES["dark"])


@lru_cache
def look(theme: str = "dark", colormap: str = "lagoon") -> Look:
    """The look of a *theme* (one of `THEMES`) with a *colormap* (one of `COLORMAPS`)."""
    scale = _SCALES[theme][colormap]
    if theme == "light":
        return Look(
            name="light", ground="#f4f2ec", panel="#fdfcf9", line="#d3cfc3", text="#232733", quiet="#63687a",
            here="#a85f00", what="#1c7080", warm="#f0a58f", ink="#ffffff", colormap=colormap, scale=scale,
        )  # fmt: skip
    return Look(
        name="dark", ground="#0f1218", panel="#141923", line="#2f384b", text="#d7dce5", quiet="#8490a6",
        here="#f2b84b", what="#4fb7c5", warm="#8e4763", ink="#10141b", colormap=colormap, scale=scale,
    )  # fmt: skip


@lru_cache(1 << 14)
def style(foreground: str, background: str, bold: bool = False, italic: bool = False) -> Style:
    """A Rich style, made once for each combination."""
    return Style.from_color(Color.parse(foreground), Color.parse(background)) + Style(bold=bold, italic=italic)


def _between(stops: tuple[str, ...], place: float) -> str:
    """The colour at *place*, from 0 to 1, along evenly spaced *stops*."""
    index = min(int(place * (len(stops) - 1)), len(stops) - 2)
    return _mix(stops[index], stops[index + 1], place * (len(stops) - 1) - index)


def _mix(low: str, high: str, share: float) -> str:
    channels = zip(_rgb(low), _rgb(high), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in channels)


def _rgb(colour: str) -> RGB:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
