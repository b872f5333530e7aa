"""How unexpected the tokens of a prompt were: asked of the engine's thread, a few positions between two tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.lens import surprisal
from ..core.trace import Trace
from .moment import Moment
from .runner import Runner

ROWS = 32
"""Prompt positions that are computed at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class PromptSurprisal:
    """The surprisal of some tokens of a prompt, in bits."""

    trace: Trace
    start: int
    bits: NDArray[np.float64]


def ask_surprisal(runner: Runner, moment: Moment) -> None:
    """Have the surprisal of the next few prompt tokens computed, if any is missing."""
    trace, start = moment.trace, moment.surprisal_known
    stop = min(start + ROWS, len(trace.prompt_ids))
    if lacks_surprisal(moment):
        decoder = trace.decoder if trace.has_weights else None
        runner.ask(lambda: PromptSurprisal(trace, start, surprisal(trace, decoder, start, stop)))


def take_surprisal(runner: Runner, moment: Moment, found: PromptSurprisal) -> None:
    """Learn what was *found*, unless it is about another run, and ask for more."""
    if found.trace is moment.trace:
        moment.learn_surprisal(found.start, found.bits.tolist())
        ask_surprisal(runner, moment)


def lacks_surprisal(moment: Moment) -> bool:
    """Whether there is surprisal that can be computed and is not known yet."""
    return moment.steps > 0 and moment.knows_outputs and moment.surprisal_known < moment.prompt_length
