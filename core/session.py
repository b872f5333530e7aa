"""What has been tried from one prompt: a tree of runs that share the text up to where they part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .edits import Edit
from .generation import Generation
from .sampling import SamplingConfig
from .trace import Trace


@dataclass(eq=False)
class Branch:
    """One path through the tree."""

    generation: Generation
    parent: Branch | None = None
    step: int = 0
    """The generated step at which it left its parent."""
    children: list[Branch] = field(default_factory=list)

    @property
    def trace(self) -> Trace:
        """What this path has left so far."""
        return self.generation.trace


class Session:
    """A prompt's runs: the first one is the root, every other one leaves an older one at some step."""

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
        return self.add(self.current.generation.branch(step, token=token, sampling=sampling, edits=edits), step)

    def add(self, generation: Generation, step: int) -> Branch:
        """Make *generation*, which left the current branch at generated *step*, the current branch."""
        branch = Branch(generation, self.current, step)
        self.current.children.append(branch)
        self.current = branch
        return branch

    def branches(self) -> list[Branch]:
        """Every branch, each before its children, in the order they were made."""
        found, waiting = [], [self.root]
        while waiting:
            branch = waiting.pop(0)
            found.append(branch)
            waiting = [*branch.children, *waiting]
        return found
