"""The colours themselves, by depth and theme: tables to look things up in, and nothing else.

The tables for 256 colours hold colours of xterm's palette only, and of those only what Rich leaves alone when it
reduces colours: the cube's saturated colours, greys up to #949494, and white. They are picked by hand, since the
nearest colour of the palette often has another lightness, and lightness is what a scale is read by.
"""

from typing import Literal

Depth = Literal["truecolor", "256", "none"]
"""How many colours there are. ``none`` is for terminals with few or none: cells are glyphs there."""

Theme = dict[str, str]
Arms = tuple[tuple[str, ...], tuple[str, ...]]
"""From the middle outward: below zero, above zero."""

# fmt: off
THEME_COLOURS: dict[Depth, dict[str, Theme]] = {
    "truecolor": {
        "dark": {
            "ground": "#0f1218", "panel": "#141923", "line": "#2f384b", "text": "#d7dce5", "quiet": "#8793a9",
            "faint": "#5d6880", "here": "#f2b84b", "what": "#4fb7c5", "warm": "#8e4763", "ink": "#10141b",
        },
        "light": {
            "ground": "#f4f2ec", "panel": "#fdfcf9", "line": "#d3cfc3", "text": "#232733", "quiet": "#63687a",
            "faint": "#949083", "here": "#a55c00", "what": "#1c7080", "warm": "#f0a58f", "ink": "#ffffff",
        },
    },
    "256": {
        "dark": {
            "ground": "#121212", "panel": "#1c1c1c", "line": "#444444", "text": "#ffffff", "quiet": "#949494",
            "faint": "#6c6c6c", "here": "#ffaf5f", "what": "#5fafd7", "warm": "#87005f", "ink": "#121212",
        },
        "light": {
            "ground": "#ffffff", "panel": "#ffffff", "line": "#d7d7af", "text": "#1c1c1c", "quiet": "#626262",
            "faint": "#949494", "here": "#af5f00", "what": "#005f87", "warm": "#ffafaf", "ink": "#ffffff",
        },
    },
    "none": {
        "dark": {
            "ground": "#000000", "panel": "#000000", "line": "#555555", "text": "#ffffff", "quiet": "#aaaaaa",
            "faint": "#555555", "here": "#ffffff", "what": "#ffffff", "warm": "#000000", "ink": "#000000",
        },
        "light": {
            "ground": "#ffffff", "panel": "#ffffff", "line": "#aaaaaa", "text": "#000000", "quiet": "#555555",
            "faint": "#aaaaaa", "here": "#000000", "what": "#000000", "warm": "#ffffff", "ink": "#ffffff",
        },
    },
}
"""What things are drawn in; `look.Look` says which is for what. Without colour these are greys of 16 colours."""

_VIRIDIS = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")
_CIVIDIS = ("#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#fee838")
_VIRIDIS_256 = (
    "#5f005f", "#5f0087", "#5f00af", "#005f87", "#005faf", "#008787", "#5f8787",
    "#00af87", "#5faf5f", "#5fd75f", "#87d75f", "#afd75f", "#d7d700", "#ffff00",
)
_CIVIDIS_256 = (
    "#00005f", "#000087", "#444444", "#585858", "#5f5f87", "#767676", "#8a8a8a",
    "#949494", "#afaf87", "#d7d75f", "#ffd75f", "#ffff5f",
)

SCALES: dict[Depth, dict[str, dict[str, tuple[str, ...]]]] = {
    "truecolor": {
        "dark": {
            "lagoon": ("#1a2436", "#1d3f5e", "#1f7a8c", "#6bbf8a", "#f5d76e"),
            "viridis": _VIRIDIS,
            "cividis": _CIVIDIS,
            "grey": ("#232936", "#eef1f6"),
        },
        "light": {
            "lagoon": ("#efece2", "#c9dfe3", "#6fb3c0", "#23748a", "#0b2f4a"),
            "viridis": _VIRIDIS[::-1],
            "cividis": _CIVIDIS[::-1],
            "grey": ("#e9e7e0", "#14171f"),
        },
    },
    "256": {
        "dark": {
            "lagoon": (
                "#262626", "#303030", "#3a3a3a", "#005f87", "#008787",
                "#00af87", "#5fd787", "#afd787", "#d7d75f", "#ffd75f",
            ),
            "viridis": _VIRIDIS_256,
            "cividis": _CIVIDIS_256,
            "grey": (
                "#262626", "#303030", "#3a3a3a", "#4e4e4e", "#626262", "#767676",
                "#8a8a8a", "#949494", "#afafd7", "#d7d7ff", "#ffffff",
            ),
        },
        "light": {
            "lagoon": (
                "#d7ffff", "#afd7d7", "#87d7d7", "#5fafd7", "#5fafaf",
                "#0087af", "#008787", "#005f87", "#005f5f", "#00005f",
            ),
            "viridis": _VIRIDIS_256[::-1],
            "cividis": _CIVIDIS_256[::-1],
            "grey": (
                "#d7d7ff", "#afafd7", "#949494", "#808080", "#6c6c6c", "#585858",
                "#444444", "#303030", "#1c1c1c", "#080808",
            ),
        },
    },
}
"""Stops from low to high. Every scale is monotone in lightness, so that it reads with any colour vision.

viridis (Smith and van der Walt 2015) and cividis (Nuñez et al. 2018) by nine of their published stops; with 256
colours after their likeness.
"""

SIGNED: dict[Depth, dict[str, Arms]] = {
    "truecolor": {
        "dark": (("#1c2331", "#234a86", "#4a90dd", "#b5dbff"), ("#1c2331", "#7a4416", "#dd8a2e", "#ffe0a8")),
        "light": (("#f1efe8", "#a9c8ec", "#4586c9", "#123f7a"), ("#f1efe8", "#f3c48c", "#c8731a", "#7a3500")),
    },
    "256": {
        "dark": (
            ("#262626", "#00005f", "#005f87", "#005faf", "#0087d7", "#5fafff", "#87d7ff"),
            ("#262626", "#5f0000", "#875f00", "#af5f00", "#d78700", "#ffaf00", "#ffd787"),
        ),
        "light": (
            ("#ffffff", "#d7d7ff", "#afd7ff", "#87afd7", "#5f87d7", "#005faf", "#0000af"),
            ("#ffffff", "#ffd7af", "#ffaf5f", "#d78700", "#d75f00", "#875f00", "#870000"),
        ),
    },
}
"""Blue below zero, orange above: a pair that every colour vision tells apart; lightness tells how far from zero."""

TINTS: dict[str, tuple[str, ...]] = {
    "dark": ("#1c1c1c", "#5f005f", "#87005f"),
    "light": ("#ffffff", "#ffd7d7", "#ffafaf"),
}
"""Steps from `panel` to `warm` in 256 colours."""
# fmt: on
