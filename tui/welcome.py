"""The first launch: whether this is it, and what to say then."""

from __future__ import annotations

import contextlib

from ..core.catalogue import mark

SECONDS = 10.0
"""How long the words stay, unless a key is pressed."""

WORDS = (
    ((), mark("A language model is writing, one token at a time.")),
    (("run",), mark("stops it, and lets it go on")),
    (("next_token", "previous_token"), mark("one token on, one token back")),
    (("next_stage", "next_layer"), mark("one stage on, one layer on")),
    (("layer_before", "layer_after"), mark("look at another layer")),
    (("head_before", "head_after"), mark("look at another head")),
    (("enter_panel", "zoom"), mark("go into a panel, show it alone")),
    (("help",), mark("lists every key")),
)
"""Names of keys and what they do, for somebody who has never seen this."""


def is_first_launch() -> bool:
    """Whether the app was never opened here before; from now on it was. Where that cannot be kept, it was too."""
    from platformdirs import user_state_path

    with contextlib.suppress(OSError):
        path = user_state_path("cutaway", appauthor=False) / "welcomed"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            return True
    return False
