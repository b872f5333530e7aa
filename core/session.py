"""What has been tried from one prompt: a tree of runs that share the text up to where they part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .edits import Edit
from .generation import Generation
from .sampling import SamplingConfig
from .trace import Trace


@dataclass(eq=False)
class Branch:
    """One path through the tree. It keeps what it came from, and nothing of what came from it."""

    generation: Generation
    parent: Branch | None = None
    step: int = 0
    """The generated step at which it left its parent."""

    @property
    def trace(self) -> Trace:
        """What this path has left so far."""
        return self.generation.trace


class Session:
    """A prompt's runs: the first one is the root, every other one leaves an older one at some step.

    It keeps the first one and the way to the current one; a path beside it is kept by whoever wants to go back there.
    """

    def __init__(self, generation: Generation) -> None:
        self.root = Branch(generation)
        self.current = self.root

    def branch(
        self,
        step: int,
        *,
        token: int | None = None,
        sampling: SamplingConfig | None = None,
        edits: Sequence[Edit] = (),
    ) -> Branch:
        """Leave the current branch at generated *step* (see `Generation.branch`) and make the new one current."""
        generation = self.current.generation.branch(step, token=token, sampling=sampling, edits=edits)
        self.current = Branch(generation, self.current, step)
        return self.current
