"""Taking another token, or other sampling settings: a branch that keeps the old text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textual import on

from ..core.catalogue import tr
from ..core.errors import CutawayError
from ..core.events import Event, TokenChosen
from ..core.generation import Generation
from ..core.overview import Overview
from ..core.sampling import SamplingConfig
from ..widgets.candidate_bars import CandidateBars
from ..widgets.drawable import drawable
from ..widgets.sampling_stages import SamplingStages
from .prompt_surprisal import ask_surprisal
from .runs import Run
from .screen import RunScreen
from .settings_draft import SETTINGS, Draft


@dataclass(frozen=True, slots=True, eq=False)
class Branched:
    """A run that leaves the one it was asked of."""

    parent: Run
    generation: Generation
    step: int
    overview: Overview
    change: str
    """What is another from there on, as words."""
    candidate: int
    """Row of the token that was taken."""


class Choosing(RunScreen):
    """What keys do that make a run leave another, and that walk between them."""

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self._leaving = False
        """Whether a branch was asked for and is not there yet."""
        self._wanted: CandidateBars.Taken | None = None
        """A token that is to be taken as soon as the draw it is for has been made."""
        self._left: Branched | None = None
        """How the run that is shown has just left another one, until its own first token is there."""

    @on(CandidateBars.Taken)
    def _taken(self, message: CandidateBars.Taken) -> None:
        moment, step, id = self.moment, message.step, message.id
        if moment is None or step > moment.steps:
            return
        if step == moment.steps:  # its scores are there, its token is not drawn yet
            self._wanted = message
            self.pause()
            self.runner.gate.step()
            return
        if moment.trace.steps[step].id == id:
            self.say(tr("‹{token}› is what was taken here", token=moment.name(id)))
            return
        self._branch(step, tr("token {step} is ‹{token}› now", step=step, token=moment.name(id)), token=id)

    def _follow(self, event: Event) -> None:
        super()._follow(event)
        if not isinstance(event, TokenChosen):
            return
        if self._left and event.forced and self.following:
            self.cursor = self.cursor.to_candidate(self._left.candidate)
        self._left = None
        if wanted := self._wanted:
            self._wanted = None
            self._taken(wanted)

    def say_the_end(self, why: str) -> None:
        if self._left is None:
            super().say_the_end(why)
            return
        words: dict[str, object] = {"change": self._left.change, "why": why, "back": self.key("previous_branch")}
        sentence = tr("{change}, and the run is at its end: {why} · {back} walks back", **words)
        self.say(sentence, "here", short=tr("{change} · {back} walks back", **words), lasting=True)

    @on(SamplingStages.Applied)
    def _applied(self) -> None:
        if self.draft is None:
            self.say(tr("nothing was changed"))
            return
        change = tr("these settings hold from token {step} on", step=self.draft.step)
        self._branch(self.draft.step, change, sampling=self.draft.settings)

    def _branch(
        self, step: int, change: str, *, token: int | None = None, sampling: SamplingConfig | None = None
    ) -> None:
        """Have the engine's thread leave the run at generated *step*, and show the new one when it is there."""
        run = self.run_shown
        assert run is not None
        source = run.source
        if not isinstance(source, Generation):
            self.say(tr("another text needs the weights: open the recording with --model"), "here")
            return
        if run.left_at is not None and run.moment.steps <= run.left_at:
            return  # its own first token is on its way: this was meant for the text it left
        if step >= run.moment.steps:
            self.say(tr("the token is not drawn yet; {key} draws it", key=self.key("next_token")), "here")
            return
        if self._leaving:
            return
        self._leaving = True
        self.pause()
        candidate = self.cursor.candidate

        def leave() -> Branched:
            generation = source.branch(step, token=token, sampling=sampling)
            return Branched(run, generation, step, run.moment.overview.fork(generation.trace), change, candidate)

        run.runner.ask(leave)

    def refused(self) -> None:
        self._leaving = False

    def opened(self, run: Run) -> None:
        super().opened(run)
        self._leaving, self._wanted, self._left = False, None, None

    def answered(self, value: object) -> None:
        super().answered(value)
        if isinstance(value, Branched) and value.parent is self.run_shown:
            self._leaving = False
            self._runs.fork(value.parent, value.generation, value.step, value.overview, self.runner.gate.speed)
            words = {"change": value.change, "run": self.key("run"), "back": self.key("previous_branch")}
            self._shown_anew(tr("{change}; {run} goes on, {back} walks back", **words))
            self._left = value
            self.runner.gate.step()

    def action_walk(self, change: int) -> None:
        if len(self._runs.all) < 2:
            self.say(tr("there is one text only: take another candidate, or start again"))
            return
        self.pause()
        run = self._runs.walk(change)
        number = self._runs.all.index(run)
        self._shown_anew(tr("text {number} of {count}", number=number + 1, count=len(self._runs.all)))

    def _shown_anew(self, sentence: str) -> None:
        """Another run is on the screen."""
        self._leaving, self._wanted, self._left = False, None, None
        self.draft = self._target = None
        self.cursor = self.cursor.to_place(None)
        if self._painter:
            self._painter.forget()
        if self.moment:
            ask_surprisal(self.runner, self.moment)
        self.redraw()
        self.say(sentence, "here")

    def action_sampling(self) -> None:
        self.sampling_open = not self.sampling_open
        self.draft = None
        self.lay_out()
        self.set_focus(self.query_one(SamplingStages) if self.sampling_open else None)
        moment, place = self.moment, self.place
        if self.sampling_open and moment and place and place.stage < moment.stages.index("logits"):
            keys = {name: self.key(name) for name in ("leave_panel", "next_token")}
            self.say(tr("nothing to draw from yet: {leave_panel}, then {next_token}, goes on to the draw", **keys))

    @on(SamplingStages.Selected)
    def _setting_selected(self, message: SamplingStages.Selected) -> None:
        self.selected = message.index
        self.redraw()

    @on(SamplingStages.Changed)
    def _setting_changed(self, message: SamplingStages.Changed) -> None:
        moment, place = self.moment, self.place
        if moment is None or place is None or message.action not in SETTINGS:
            return
        self.pause()
        if not moment.can_try(place.step):
            self.say(tr("this recording kept the best scores only: open it with --model to try settings"), "here")
            return
        draft = self.draft or Draft(moment.trace, place.step, moment.trace.settings_at(place.step))
        changed = draft.changed(message.action, message.change)
        try:
            moment.draw(place.step, changed.settings)
        except CutawayError as error:
            self.say(drawable(str(error), spaces=False), "here")
            return
        self.draft = None if changed.settings == moment.trace.settings_at(place.step) else changed
        self.redraw()
