"""The look: colours for things and a scale for numbers. One accent for where you are, one hue for what is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from rich.color import Color
from rich.style import Style

from .palette import SCALES, SIGNED, THEME_COLOURS, TINTS
from .palette import Depth as Depth

LEVELS = 64
"""Steps of a scale: the eye sees no more in a terminal, and every pair of them fits the caches."""
MIDDLE = LEVELS // 2
"""The level of zero on a signed scale."""

THEMES = tuple(SCALES["truecolor"])
COLORMAPS = tuple(SCALES["truecolor"]["dark"])

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
    """Borders."""
    text: str
    quiet: str
    """Text that stands back; still 4.5:1 on `panel`."""
    faint: str
    """Text that is not there yet, or does nothing; still 3:1 on `panel` where there are colours enough."""
    here: str
    """Where you are."""
    what: str
    """What is."""
    warm: str
    """Surprise, as a tint under the text."""
    ink: str
    """Text on `here` and on `what`."""
    colormap: str
    depth: Depth = "truecolor"

    @property
    def glyphs(self) -> bool:
        """Whether numbers are drawn as glyphs, because there are too few colours."""
        return self.depth == "none"

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The scale in `LEVELS` steps, from low to high. Without colour, the panel's ground throughout."""
        if self.glyphs:
            return (self.panel,) * LEVELS
        stops = SCALES[self.depth][self.name][self.colormap]
        return tuple(self._along(stops, level / (LEVELS - 1)) for level in range(LEVELS))

    @cached_property
    def signed_levels(self) -> tuple[str, ...]:
        """The scale of signed numbers in `LEVELS` steps: lowest first, zero at `MIDDLE`."""
        if self.glyphs:
            return (self.panel,) * LEVELS
        below, above = SIGNED[self.depth][self.name]
        low = (self._along(below, (MIDDLE - level) / MIDDLE) for level in range(MIDDLE))
        high = (self._along(above, (level - MIDDLE) / (LEVELS - 1 - MIDDLE)) for level in range(MIDDLE, LEVELS))
        return (*low, *high)

    def tint(self, strength: float) -> str:
        """`warm` laid over `panel` with *strength* from 0 to 1, in sixteen steps or as many as there are colours."""
        strength = min(max(strength, 0.0), 1.0)
        if self.depth == "256":
            tints = TINTS[self.name]
            return tints[round(strength * (len(tints) - 1))]
        return _mix(self.panel, self.warm, round(strength * 15) / 15)

    def _along(self, stops: tuple[str, ...], place: float) -> str:
        """The colour at *place*, from 0 to 1: between two *stops*, or one of them where there are only these."""
        if self.depth == "256":
            return stops[min(int(place * len(stops)), len(stops) - 1)]
        return _between(stops, place)


@lru_cache
def look(theme: str = "dark", colormap: str = "lagoon", depth: Depth = "truecolor") -> Look:
    """The look of a *theme* (one of `THEMES`) with a *colormap* (one of `COLORMAPS`)."""
    return Look(name=theme, colormap=colormap, depth=depth, **THEME_COLOURS[depth][theme])


def depth_of(color_system: str | None, no_color: bool) -> Depth:
    """The depth for what Rich found the terminal to be capable of, and whether somebody asked for no colour."""
    if no_color:
        return "none"
    return "truecolor" if color_system == "truecolor" else "256" if color_system == "256" else "none"


@lru_cache(1 << 14)
def style(foreground: str, background: str, bold: bool = False, italic: bool = False) -> Style:
    """A Rich style, made once for each combination."""
    return Style.from_color(Color.parse(foreground), Color.parse(background)) + Style(bold=bold, italic=italic)


@lru_cache(1 << 12)
def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, from 1 to 21, as WCAG 2 defines it."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance, from 0 to 1."""
    shares = (channel / 255 for channel in _rgb(colour))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _between(stops: tuple[str, ...], place: float) -> str:
    """The colour at *place*, from 0 to 1, along evenly spaced *stops*."""
    index = min(int(place * (len(stops) - 1)), len(stops) - 2)
    return _mix(stops[index], stops[index + 1], place * (len(stops) - 1) - index)


def _mix(low: str, high: str, share: float) -> str:
    channels = zip(_rgb(low), _rgb(high), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in channels)


def _rgb(colour: str) -> RGB:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
