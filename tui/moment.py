"""A trace as far as the screen has followed it.

The engine's thread is always a little ahead; what is drawn stops at the last event that was heard of, so that
nothing is half seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, log

from ..core.trace import Trace
from ..widgets.drawable import draw_token
from ..widgets.token_stream import Kind, TokenCell


class Moment:
    """A trace, and its text as cells up to the newest token that was heard of."""

    def __init__(self, trace: Trace, steps: int = 0) -> None:
        """Begin with the prompt and the first *steps* generated tokens."""
        self.trace = trace
        self.cells = [self._prompt_cell(position, None) for position in range(self.prompt_length)]
        """Every token of the text so far."""
        for _ in range(steps):
            self.hear_token()

    @property
    def prompt_length(self) -> int:
        """P."""
        return len(self.trace.prompt_ids)

    @property
    def steps(self) -> int:
        """Generated tokens that have been heard of."""
        return len(self.cells) - self.prompt_length

    def hear_token(self) -> None:
        """One more token was chosen."""
        step = self.trace.steps[self.steps]
        self.cells.append(self._cell(step.id, "written", -step.raw_logprob / log(2)))

    def learn_surprisal(self, start: int, bits: Sequence[float]) -> None:
        """Take in how unexpected each token of the prompt from *start* on was; NaN where that is not known."""
        for position, surprisal in enumerate(bits, start):
            self.cells[position] = self._prompt_cell(position, None if isnan(surprisal) else float(surprisal))

    def label(self, position: int) -> str:
        """Drawable text of the token at *position*."""
        return self.cells[position].text

    def name(self, id: int) -> str:
        """Drawable text of token *id*."""
        return draw_token(self.trace.model.vocabulary.token_bytes(id), id=id)

    def _prompt_cell(self, position: int, surprisal: float | None) -> TokenCell:
        kind: Kind = "added" if position in self.trace.added else "prompt"
        return self._cell(self.trace.prompt_ids[position], kind, surprisal)

    def _cell(self, id: int, kind: Kind, surprisal: float | None) -> TokenCell:
        breaks = self.trace.model.vocabulary.token_bytes(id).endswith(b"\n")
        return TokenCell(self.name(id), kind, surprisal, breaks)
