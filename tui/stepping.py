"""Going on and back through a run, by token, layer and stage, and looking at another layer or head."""

from __future__ import annotations

from math import isinf
from time import monotonic
from typing import Any

from ..core.catalogue import tr
from ..widgets.notice_line import NoticeLine
from .gate import SPEEDS, Grain
from .screen import RunScreen
from .stages import Place


class Stepping(RunScreen):
    """What keys do that go from place to place. A place that is not there yet is computed first."""

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self._due = 0.0
        """When the next token of a run that is over may be shown."""

    def action_toggle_run(self) -> None:
        gate, run = self.runner.gate, self.run_shown
        if run is not None and run.over and self.following and not gate.running:
            if run.model is not None:
                self._say_over()
                return
            self.action_first_token()  # a recording is told again
        gate.run(not gate.running)
        if not gate.running:
            self.say(self.paused)
            self.redraw()
        elif run is not None and not run.over:
            self.look_at(None)
            self.query_one(NoticeLine).hush()
        else:
            self.redraw()

    def play(self) -> None:
        gate, run, now = self.runner.gate, self.run_shown, monotonic()
        if run is None or not run.over or not gate.running or now < self._due:
            return
        self._due = max(self._due, now - 0.05) + 1 / gate.speed
        place = self.place or Place(-1, 0)
        if place.step + 1 < run.moment.steps:
            self.look_at(Place(place.step + 1, run.moment.stages.last))
        if self.following:
            gate.run(False)
            self._say_over()

    def action_next_token(self) -> None:
        moment, place = self.moment, self.place
        if moment is None:
            return
        if place is None:
            self._go_to(Place(0, moment.stages.last), Grain.TOKEN)
        elif place.stage < moment.stages.last:
            self._go_to(Place(place.step, moment.stages.last), Grain.TOKEN)
        elif self.following:
            self._more_tokens()
        else:
            self._go_to(Place(place.step + 1, moment.stages.last), Grain.TOKEN)

    def action_next_layer(self) -> None:
        if moment := self.moment:
            self._go_to(moment.stages.next_layer(self.place or Place(-1, moment.stages.last)), Grain.LAYER)

    def action_next_stage(self) -> None:
        if moment := self.moment:
            self._go_to(moment.stages.next_stage(self.place or Place(-1, moment.stages.last)), Grain.STAGE)

    def _more_tokens(self) -> None:
        """Compute one more; several presses compute several."""
        if self._over:
            self._say_over()
            return
        self.pause()
        self.query_one(NoticeLine).hush()
        self.runner.gate.step()

    def _go_to(self, place: Place, grain: Grain) -> None:
        """Look at *place*, once the engine has come there if need be."""
        moment = self.moment
        assert moment is not None
        self.pause()
        if moment.has(place):
            self.look_at(place)
        elif self._over:
            self._say_over()
        elif self._target is None or not place <= self._target:
            self._target, self._grain = place, grain
            self.runner.gate.step(grain)

    def action_previous_token(self) -> None:
        if (moment := self.moment) and (place := self.place):
            at_first = place.step == 0 and place.stage == moment.stages.last
            back = Place(place.step - 1, moment.stages.last) if place.step else Place(0, moment.stages.first(0))
            self._back_to(None if at_first else back)

    def action_previous_layer(self) -> None:
        if (moment := self.moment) and (place := self.place):
            self._back_to(moment.stages.previous_layer(place))

    def action_previous_stage(self) -> None:
        if (moment := self.moment) and (place := self.place):
            self._back_to(moment.stages.previous_stage(place))

    def _back_to(self, place: Place | None) -> None:
        self.pause()
        if place is None:
            self.say(tr("this is where the run begins"))
        else:
            self.look_at(place)

    def action_first_token(self) -> None:
        if self.moment and self.moment.steps > 1:
            self.pause()
            self.look_at(Place(0, self.moment.stages.last))

    def action_last_token(self) -> None:
        self.look_at(None)

    def action_layer(self, change: int) -> None:
        if moment := self.moment:
            self.move_to(self.cursor.to_layer(self.cursor.layer + change, moment.stages.layers))

    def action_head(self, change: int) -> None:
        if moment := self.moment:
            self.move_to(self.cursor.to_head(self.cursor.head + change, moment.trace.model.config.heads))

    def action_speed(self, change: int) -> None:
        gate = self.runner.gate
        speed = SPEEDS[min(max(SPEEDS.index(gate.speed) + change, 0), len(SPEEDS) - 1)]
        gate.set_speed(speed)
        self._due = 0.0
        self.say(tr("as fast as it goes") if isinf(speed) else tr("at most {speed:g} tokens a second", speed=speed))
        self.redraw()

    @property
    def _over(self) -> bool:
        return self.run_shown is not None and self.run_shown.over

    def _say_over(self) -> None:
        run = self.run_shown
        if run is not None and run.model is None:
            words = {"first": self.key("first_token"), "back": self.key("previous_token")}
            self.say(tr("the recording is at its end · {first} goes to its start · {back} goes back", **words), "here")
            return
        self.say(tr("the run is at its end · {ways}", ways=self.ways_on), "here", short=tr("the run is at its end"))
