"""A chat of several turns: every turn is a run over the whole text so far, of which only what is new is computed.

The model's own template writes the conversation as text at every turn, and that text decides: where it agrees with
what the last turn left in the cache, rows are reused; from where it differs, they are computed. A template that
leaves out what a model thought, or cuts old messages short, is thereby obeyed. So is the tokenizer: what a model wrote
in unusual tokens is read again in the usual ones.

A run holds its rows and scores, so a conversation keeps those of its last two turns: the one to go on from, and the one
to answer the last message from once more. Of older turns it keeps the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from .cache import Capture
from .chat import Message, answer_end, messages_of, write_chat
from .edits import Edit, next_turn
from .generation import Generation
from .models.model import Model
from .sampling import SamplingConfig


@dataclass(frozen=True, slots=True)
class Turn:
    """What was said to the model, and the run that answers."""

    question: str
    generation: Generation | None
    """None in a turn that is long over."""
    said: str = ""
    """The answer, where the run is gone."""
    edits: tuple[Edit, ...] = ()
    """What the next turn takes over of the run's edits, where the run is gone."""

    @property
    def answer(self) -> str:
        """The model's answer so far, without the token that ends it."""
        run = self.generation
        if run is None:
            return self.said
        ids = [step.id for step in run.trace.steps]
        if ids and ids[-1] in run.end_ids:
            ids.pop()
        return run.model.tokenizer.decode(ids)

    def without_run(self) -> Turn:
        """The turn in words, for when nobody will go on from its rows."""
        if self.generation is None:
            return self
        return Turn(self.question, None, self.answer, next_turn(self.generation.trace.edits))


class Conversation:
    """A chat with a model: `say` something, run what it returns, and say the next thing."""

    def __init__(
        self,
        model: Model,
        system: str | None = None,
        sampling: SamplingConfig | None = None,
        *,
        max_new_tokens: int = 64,
        ignore_eos: bool = False,
        capture: Capture = "default",
        edits: Sequence[Edit] = (),
    ) -> None:
        """Begin a chat, with *system* as its system message if there is one.

        The first turn draws by the seed of *sampling*, every further one by the next number. *edits* that force a
        token hold in the first turn, the others in all.
        """
        self.model = model
        self.system = system
        self.sampling = sampling or SamplingConfig()
        self.turns: list[Turn] = []
        self._settings: dict[str, Any] = {
            "max_new_tokens": max_new_tokens,
            "ignore_eos": ignore_eos,
            "capture": capture,
            "edits": edits,
        }

    @property
    def messages(self) -> list[Message]:
        """Everything that has been said, as templates take it."""
        said: list[Message] = [] if self.system is None else [{"role": "system", "content": self.system}]
        for turn in self.turns:
            said += [*messages_of(turn.question), {"role": "assistant", "content": turn.answer}]
        return said

    def say(self, text: str) -> Generation:
        """The run that answers *text*; its prompt is the whole conversation.

        A last answer that is not at its end stops where it is. Raises `ModelError`, and leaves the conversation as
        it was, where the template refuses the message or the context has no room for it.
        """
        chat = self._written(text)
        ids = self.model.tokenizer.encode(chat, special=True)
        generation = self._answer(ids, self._sampling(), prompt=text, chat=chat)
        self.turns = [*(turn.without_run() for turn in self.turns[:-1]), *self.turns[-1:], Turn(text, generation)]
        return generation

    def preview(self, text: str) -> list[int]:
        """The ids that a run which answers *text* would read. Raises as `say`."""
        return self.model.tokenizer.encode(self._written(text), special=True)

    def _written(self, text: str) -> str:
        """The whole conversation with *text* as its last message, as the model's template writes it."""
        return write_chat(self.model, [*self.messages, *messages_of(text)])

    def take(self, generation: Generation) -> None:
        """Let *generation*, a branch of the last turn's, be the answer that the conversation goes on from."""
        self.turns[-1] = replace(self.turns[-1], generation=generation)

    def fork(self, turns: int | None = None) -> Conversation:
        """Another conversation that has had the same turns, or only the first so many, and goes its own way.

        Where the last of them has no run any more, the next one computes the whole text.
        """
        fork = copy(self)
        fork.turns = self.turns[:turns]
        return fork

    def _answer(self, ids: Sequence[int], sampling: SamplingConfig, *, prompt: str, chat: str) -> Generation:
        last = self.turns[-1] if self.turns else None
        if last and last.generation:
            following = last.generation.follow(ids, sampling, prompt=prompt, chat=chat)
            last.generation.close()
            return following
        end = answer_end(self.model)
        ends = () if end is None else (end,)
        settings = self._settings | ({"edits": last.edits} if last else {})
        return Generation(self.model, ids, sampling, prompt=prompt, chat=chat, end_ids=ends, **settings)

    def _sampling(self) -> SamplingConfig:
        """Every turn draws other numbers, and the same ones when the conversation is had again."""
        if self.sampling.seed is None:
            return self.sampling
        return replace(self.sampling, seed=self.sampling.seed + len(self.turns))
