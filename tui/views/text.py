"""The text, token by token."""

from __future__ import annotations

from ...core.catalogue import tr
from ...core.trace import REASONS
from ...widgets.attention_map import AttentionView
from ...widgets.token_stream import TokenStreamView
from ...widgets.vector_blocks import VectorsView
from ..moment import Moment
from ..stages import Place

COMING = "▁"
"""Stands where the token will be that a pass is computing."""


def text_view(
    moment: Moment, place: Place | None, attention: AttentionView | VectorsView | None = None
) -> TokenStreamView:
    """The whole text, the token of the moment looked at, and the tokens that *attention* is looked at."""
    marked = frozenset[int]()
    if isinstance(attention, AttentionView):
        marked = frozenset({attention.query, attention.key})
    elif attention is not None:
        marked = frozenset({attention.query})
    current = None if place is None or place.step >= moment.steps else moment.prompt_length + place.step
    return TokenStreamView(tuple(moment.cells), current, marked, _coming(moment, place))


def _coming(moment: Moment, place: Place | None) -> str:
    """What stands behind the last token: the next one's place, or why there is none."""
    if place is not None and place.step >= moment.steps:
        return COMING
    reason = moment.trace.finish_reason
    if reason and moment.steps == len(moment.trace.steps):
        return f" ■ {tr(REASONS[reason])}"
    return ""
