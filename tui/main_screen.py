"""What can be asked of the main screen: going on, going back, looking elsewhere, choosing, saving."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from math import isinf
from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip

from ..core.catalogue import tr
from ..core.conversation import Conversation, Turn
from ..core.errors import CutawayError
from ..core.events import Event, TokenChosen
from ..core.generation import Generation
from ..core.models.model import Model
from ..core.overview import Overview
from ..core.sampling import SamplingConfig
from ..widgets.attention_map import AttentionMap, AttentionView
from ..widgets.candidate_bars import CandidateBars
from ..widgets.drawable import drawable
from ..widgets.embedding_strips import EmbeddingStrips
from ..widgets.heads_map import HeadsMap
from ..widgets.key_line import KeyLine
from ..widgets.layer_table import LayerTable
from ..widgets.look import Look
from ..widgets.notice_line import NoticeLine
from ..widgets.panel import Panel
from ..widgets.picture import screen_lines
from ..widgets.sampling_stages import SamplingStages
from ..widgets.stage_strip import StageStrip
from ..widgets.token_stream import TokenStream
from .arithmetic import share_arithmetic, weight_arithmetic
from .captions import caption, picture_name
from .headlines import strip_stage
from .keys import KEYS, Key, bindings
from .layout import PANELS
from .pictures import save_picture
from .runner import SPEEDS, Failed, Grain, Runner
from .runs import Run
from .screen import RunScreen
from .settings_draft import SETTINGS, Draft
from .stages import Place
from .start import Source, converse, default_prompt, encode, generate


@dataclass(frozen=True, slots=True, eq=False)
class Branched:
    """A run that leaves the one it was asked of."""

    parent: Run
    generation: Generation
    step: int
    overview: Overview
    sentence: str
    """What to say about it."""


class MainScreen(RunScreen):
    """The screen with its keys."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]

    @dataclass
    class PictureWritten(Message):
        """A picture was written, or could not be."""

        sentence: str
        short: str

    def __init__(
        self,
        options: argparse.Namespace,
        look: Look,
        runner: Runner,
        source: Source | None,
        give_up: Callable[[Failed], None],
        keys: tuple[Key, ...] = KEYS,
    ) -> None:
        """Show *runner*, which continues *source*."""
        super().__init__(options, look, runner, source, give_up, keys)
        self._due = 0.0
        """When the next token of a run that is over may be shown."""
        self._leaving = False
        """Whether a branch was asked for and is not there yet."""
        self._wanted: CandidateBars.Taken | None = None
        """A token that is to be taken as soon as the draw it is for has been made."""

    # Going on

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

    # Going back, and elsewhere in the text

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

    def action_arithmetic(self) -> None:
        """Write out how the number under the cursor comes about."""
        moment, view = self.moment, self.query_one(AttentionMap).view
        sentence = None
        if moment and isinstance(self.focused, CandidateBars) and (bars := self.focused.view):
            sentence = share_arithmetic(moment, bars.step, bars.rows[bars.pointed].id)
        elif moment and isinstance(view, AttentionView) and view.seen(view.query):
            sentence = weight_arithmetic(moment, view)
        self.say(sentence or tr("there is no number under the cursor: point at a cell or a candidate"), lasting=True)

    # Panels

    def action_view(self, name: str) -> None:
        """Show a panel alone, or all of them again."""
        self.alone = "" if self.alone == name else name
        self.lay_out()

    def action_zoom(self) -> None:
        if self.alone:
            self.action_view("")
        elif self.focused is not None and self.focused.id in PANELS:
            self.action_view(self.focused.id)
        else:
            self.say(tr("tab enters a panel, z shows it alone; 1 to {last} show one each", last=len(PANELS)))

    def action_leave_panel(self) -> None:
        """Step out of the innermost thing one is in."""
        if self.draft is not None:
            self.draft = None
            self.say(tr("the settings are as they were"))
        elif self.alone:
            self.alone = ""
            self.lay_out()
        elif self.sampling_open:
            self.action_sampling()
        else:
            self.set_focus(None)
            self.cursor = self.cursor.to_cell(None).to_dimension(None)
        self.redraw()

    def action_sampling(self) -> None:
        self.sampling_open = not self.sampling_open
        self.draft = None
        self.lay_out()
        self.set_focus(self.query_one(SamplingStages) if self.sampling_open else None)

    # Choosing: branches

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
        words: dict[str, object] = {"step": step, "token": moment.name(id)}
        words |= {"run": self.key("run"), "back": self.key("next_branch")}
        sentence = tr("token {step} is ‹{token}› now; {run} goes on, {back} walks back", **words)
        self._branch(step, sentence, token=id)

    def _follow(self, event: Event) -> None:
        super()._follow(event)
        if isinstance(event, TokenChosen) and (wanted := self._wanted):
            self._wanted = None
            self._taken(wanted)

    @on(SamplingStages.Applied)
    def _applied(self) -> None:
        if self.draft is None:
            self.say(tr("nothing was changed"))
            return
        words: dict[str, object] = {"step": self.draft.step, "run": self.key("run"), "back": self.key("next_branch")}
        sentence = tr("these settings hold from token {step} on; {run} goes on, {back} walks back", **words)
        self._branch(self.draft.step, sentence, sampling=self.draft.settings)

    def _branch(
        self, step: int, sentence: str, *, token: int | None = None, sampling: SamplingConfig | None = None
    ) -> None:
        """Have the engine's thread leave the run at generated *step*, and show the new one when it is there."""
        run = self.run_shown
        assert run is not None
        source = run.source
        if not isinstance(source, Generation):
            self.say(tr("another text needs the weights: open the recording with --model"), "here")
            return
        branch = run.branch
        if branch is not None and branch.parent is not None and run.moment.steps <= branch.step:
            return  # its own first token is on its way: this was meant for the text it left
        if step >= run.moment.steps:
            self.say(tr("the token is not drawn yet; {key} draws it", key=self.key("next_token")), "here")
            return
        if self._leaving:
            return
        self._leaving = True
        self.pause()

        def leave() -> Branched:
            generation = source.branch(step, token=token, sampling=sampling)
            return Branched(run, generation, step, run.moment.overview.fork(generation.trace), sentence)

        run.runner.ask(leave)

    def refused(self) -> None:
        self._leaving = False

    def opened(self, run: Run) -> None:
        """A run begins; one that a chat template wrote is the first turn of a chat."""
        super().opened(run)
        source, origin = run.source, run.origin
        if self.options.chat and run.conversation is None and isinstance(source, Generation):
            question = origin if isinstance(origin, str) else default_prompt(source.model)
            run.conversation = converse(source.model, self.options)
            run.conversation.turns.append(Turn(question, source))

    def answered(self, value: object) -> None:
        if isinstance(value, Branched):
            self._leaving = False
            self._runs.fork(value.parent, value.generation, value.step, value.overview, self.runner.gate.speed)
            self._shown_anew(value.sentence)
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
        """Another run of the same prompt is on the screen."""
        self.draft = self._target = None
        self.cursor = self.cursor.to_place(None)
        if self._painter:
            self._painter.forget()
        if self.moment:
            self.ask_surprisal(self.moment)
        self.redraw()
        self.say(sentence, "here")

    # Sampling

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

    # Pointing

    @on(AttentionMap.Pointed)
    def _cell_pointed(self, message: AttentionMap.Pointed) -> None:
        """The mouse says so many times a second; the next tick is soon enough."""
        self.cursor = self.cursor.to_cell(message.cell)
        self._stale = True

    @on(CandidateBars.Pointed)
    def _candidate_pointed(self, message: CandidateBars.Pointed) -> None:
        self.move_to(self.cursor.to_candidate(message.row))

    @on(HeadsMap.Chosen)
    def _head_chosen(self, message: HeadsMap.Chosen) -> None:
        self._look_at_head(message.layer, message.head)

    @on(HeadsMap.Opened)
    def _head_opened(self, message: HeadsMap.Opened) -> None:
        self._look_at_head(message.layer, message.head)
        if self.alone:
            self.action_view("attention")
        self.set_focus(self.query_one(AttentionMap))

    def _look_at_head(self, layer: int, head: int) -> None:
        if moment := self.moment:
            config = moment.trace.model.config
            self.move_to(self.cursor.to_layer(layer, config.layers).to_head(head, config.heads))

    @on(LayerTable.Chosen)
    def _layer_chosen(self, message: LayerTable.Chosen) -> None:
        if moment := self.moment:
            self.move_to(self.cursor.to_layer(message.layer, moment.stages.layers))

    @on(EmbeddingStrips.Pointed)
    def _dimension_pointed(self, message: EmbeddingStrips.Pointed) -> None:
        self.cursor = self.cursor.to_dimension(message.dimension)
        self._stale = True

    @on(TokenStream.Chosen)
    def _token_chosen(self, message: TokenStream.Chosen) -> None:
        """A written token is a moment to go back to; one of the prompt is a position to look at."""
        moment = self.moment
        if moment is None:
            return
        step = message.index - moment.prompt_length
        if step >= 0:
            self.pause()
            self.look_at(Place(step, moment.stages.last))
        else:
            self.move_to(self.cursor.to_cell((message.index, -1)))

    @on(StageStrip.Chosen)
    def _stage_chosen(self, message: StageStrip.Chosen) -> None:
        """A layer of the strip is the end of that layer."""
        moment, place = self.moment, self.place
        if moment is None or place is None:
            return
        target = Place(place.step, strip_stage(moment.stages, message.index))
        if moment.has(target):
            self.pause()
            self.look_at(target)
        else:
            self.say(tr("the pass has not come to that stage yet"))

    @on(KeyLine.Asked)
    async def _asked(self, message: KeyLine.Asked) -> None:
        await self.run_action(message.action)

    # Prompt, pictures, help

    def action_restart(self) -> None:
        run = self.run_shown
        if run is None:
            return
        if run.model is None:
            self.action_first_token()
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

        self._write(model, "", tr("your next message"), lambda text: conversation.preview(text) if text else [], given)

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

    def action_save_picture(self, panel_only: bool) -> None:
        """Take the picture now, write it elsewhere: a slow disk stops nothing."""
        panel = self._panel_in_focus() if panel_only else None
        if panel_only and panel is None:
            self.say(tr("tab enters a panel, S then saves its picture"))
            return
        lines = screen_lines(self) if panel is None else panel.portrait()
        width = self.size.width if panel is None else panel.size.width
        about = (self.moment, self.place, self.cursor, (panel.id or "") if panel else "")
        self._write_picture(lines, width, picture_name(*about), caption(*about))

    def _panel_in_focus(self) -> Panel[object] | None:
        name = self.focused.id if self.focused is not None and self.focused.id in PANELS else self.alone
        return self.query_one(f"#{name}", Panel) if name else None

    @work(thread=True, group="pictures", exit_on_error=False)
    def _write_picture(self, lines: list[Strip], width: int, stem: str, told: str) -> None:
        short = ""
        try:
            folder = Path(self.options.output_dir).expanduser()
            path = save_picture(lines, width, self.look, folder, stem, caption=told)
            sentence = tr("saved {path}", path=drawable(str(path), spaces=False))
            short = tr("saved {path}", path=drawable(path.name, spaces=False))
        except CutawayError as error:
            sentence = drawable(str(error), spaces=False)
        except (OSError, RuntimeError, ValueError) as error:  # no path at all: a name too long, ~nobody
            sentence = drawable(tr("the picture cannot be saved: {reason}", reason=error), spaces=False)
        self.post_message(self.PictureWritten(sentence, short))  # a call would wait, for good if the app is leaving

    @on(PictureWritten)
    def _picture_written(self, message: PictureWritten) -> None:
        self.say(message.sentence, "here", short=message.short)

    def action_help(self) -> None:
        from .help_screen import HelpScreen

        self.app.push_screen(HelpScreen(self.look, self.keys))

    def action_quit(self) -> None:
        self._runs.cancel()
        self.app.exit()

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

    def pause(self) -> None:
        if self.runner.gate.running:
            self.runner.gate.run(False)
            self.redraw()

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
        """Begin the run that answers *text* in a *conversation*."""
        runner = Runner(lambda: conversation.say(text), running=not self.options.step, speed=self.runner.gate.speed)
        self._runs.begin(runner, text, conversation)
