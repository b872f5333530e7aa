"""Another prompt, the same one again, or the next message of a chat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..core.catalogue import tr
from ..core.conversation import Conversation, Turn
from ..core.errors import CutawayError
from ..core.generation import Generation
from ..core.models.model import Model
from .runner import Runner
from .runs import Run
from .screen import RunScreen
from .stages import Place
from .start import Source, converse, default_prompt, encode, generate


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """A turn of a chat that is ready to be answered."""

    conversation: Conversation
    text: str
    generation: Generation


class Prompting(RunScreen):
    """What keys do that begin another run."""

    def opened(self, run: Run) -> None:
        """A run begins; one that a chat template wrote is the first turn of a chat."""
        super().opened(run)
        source, origin = run.source, run.origin
        if self.options.chat and run.conversation is None and isinstance(source, Generation):
            question = origin if isinstance(origin, str) else default_prompt(source.model)
            run.conversation = converse(source.model, self.options)
            run.conversation.turns.append(Turn(question, source))

    def action_restart(self) -> None:
        run = self.run_shown
        if run is None:
            return
        if run.model is None:
            self.look_at(Place(0, run.moment.stages.last))
        elif run.conversation and (turns := run.conversation.turns):
            self._say_next(run.conversation.fork(len(turns) - 1), turns[-1].question)
        else:
            self._begin(run.origin)

    def action_edit_prompt(self) -> None:
        run = self.run_shown
        if run is None:
            return
        if run.model is None:
            self.say(tr("another prompt needs the weights: open the recording with --model"), "here")
        elif run.conversation:
            self._edit_message(run.conversation, run.model)
        else:
            self._edit_prompt(run.origin, run.model)

    def _edit_prompt(self, origin: Source | None, model: Model) -> None:
        """Have another prompt written, with the present one to begin from."""
        assert self.moment is not None
        text = origin if isinstance(origin, str) else model.tokenizer.decode(self.moment.trace.prompt_ids)

        def given(prompt: str) -> None:
            self._begin(origin if prompt == text else prompt)

        self._write(
            model,
            text,
            tr("prompt · type another, → keeps this one"),
            lambda text: encode(model, self.options, text)[0],
            given,
        )

    def _edit_message(self, conversation: Conversation, model: Model) -> None:
        """Have the next message of a chat written; what the model has said so far is its answer."""

        def given(text: str) -> None:
            self._say_next(conversation.fork(), text)

        def read(text: str) -> list[int]:
            if not text:
                raise CutawayError(tr("there is nothing to answer yet"), hint=tr("write something"))
            return conversation.preview(text)

        self._write(model, "", tr("your next message"), read, given)

    def _write(
        self, model: Model, text: str, title: str, count: Callable[[str], list[int]], given: Callable[[str], None]
    ) -> None:
        """Open the editor on *text*; *given* is called with what was written, unless it was left."""
        from .prompt_screen import PromptScreen

        was_running = self.runner.gate.running
        self.pause()

        def done(written: str | None) -> None:
            if written is not None:
                given(written)
            elif was_running:
                self.runner.gate.run(True)
            self._stale = True

        self.app.push_screen(PromptScreen(model, text, title, count, self.look), done)

    def _begin(self, source: Source | None) -> None:
        """Begin another run of the same model; the present one can be walked back to."""
        assert self.run_shown is not None and self.run_shown.model is not None
        model, options = self.run_shown.model, self.options
        if options.chat and (source is None or isinstance(source, str)):
            self._say_next(converse(model, options), default_prompt(model) if source is None else source)
            return
        runner = Runner(
            lambda: generate(model, options, source), running=not options.step, speed=self.runner.gate.speed
        )
        self._runs.begin(runner, source)

    def _say_next(self, conversation: Conversation, text: str) -> None:
        """Have the engine's thread, which may still be at the last turn, prepare the run that answers *text*."""
        self.runner.ask(lambda: Said(conversation, text, conversation.say(text)))

    def answered(self, value: object) -> None:
        if isinstance(value, Said):
            generation = value.generation
            runner = Runner(lambda: generation, running=not self.options.step, speed=self.runner.gate.speed)
            self._runs.begin(runner, value.text, value.conversation)
        super().answered(value)
