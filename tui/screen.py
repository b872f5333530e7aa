"""The main screen: keys move the cursor or the gate, a timer folds news into the moment, panels draw it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from math import isinf
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer
from textual.widgets import Static

from ..core.catalogue import tr
from ..core.errors import CutawayError
from ..core.events import Event, FinishReason, TokenChosen
from ..core.generation import Generation
from ..core.lens import surprisal
from ..core.models.model import Model
from ..core.session import Session
from ..core.trace import REASONS, Trace
from ..widgets.attention_map import AttentionMap
from ..widgets.bars import KeyLine, NoticeLine, NoticeView, StageStrip, TitleLine
from ..widgets.candidate_bars import CandidateBars
from ..widgets.drawable import drawable
from ..widgets.look import Look
from ..widgets.panel import Panel
from ..widgets.picture import screen_lines
from ..widgets.token_stream import TokenStream
from .cursor import Cursor
from .headlines import stages_view, title_view
from .keys import bindings, footer
from .moment import Moment
from .pictures import save_picture
from .runner import SPEEDS, Answer, Failed, News, Ready, Runner
from .views import attention_view, candidates_view, draw_notice, text_view

Tone = Literal["quiet", "here", "plain"]

SMALLEST = (60, 18)
"""Columns and rows below which nothing could be read."""
SAID_SECONDS = 4.0
"""How long a passing sentence stays."""
READABLE_SPEED = 8.0
"""Tokens a second at which a sentence about each can still be followed."""


@dataclass(frozen=True, slots=True, eq=False)
class PromptSurprisal:
    """How unexpected each token of a prompt was, in bits; computed on the engine's thread."""

    trace: Trace
    bits: NDArray[np.float64]


class MainScreen(Screen[None]):
    """One run at a time; what it is about stands in `moment`, where we look in `cursor`."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]
    AUTO_FOCUS = ""

    def __init__(
        self, options: argparse.Namespace, look: Look, runner: Runner, give_up: Callable[[Failed], None]
    ) -> None:
        super().__init__()
        self._give_up = give_up
        self.options = options
        self.look = look
        self.runner = runner
        self.session: Session | None = None
        self.moment: Moment | None = None
        self.cursor = Cursor()
        self.last_event: Event | None = None
        self._next_runner: Runner | None = None
        self._notice = NoticeView("")
        self._hush: Timer | None = None
        self._stale = True

    def compose(self) -> ComposeResult:
        yield TitleLine(id="title")
        yield StageStrip(id="stages")
        yield TokenStream(id="text")
        with Horizontal(id="panels"):
            yield AttentionMap(id="attention")
            yield CandidateBars(id="candidates")
        yield NoticeLine(id="notice")
        yield KeyLine(id="keys")
        yield Static(
            tr(
                "Cutaway needs {columns} × {rows} cells; make the terminal larger.",
                columns=SMALLEST[0],
                rows=SMALLEST[1],
            ),
            id="too-small",
            markup=False,
        )

    def on_mount(self) -> None:
        for panel in self.query(Panel):
            panel.wear(self.look)
            panel.wait(tr("opening {model} …", model=drawable(self.options.model, spaces=False)))
        self.query_one(KeyLine).show(footer())
        frames = self.options.fps or (10 if "SSH_CONNECTION" in os.environ else 20)
        self.set_interval(1 / frames, self._tick)
        self.call_after_refresh(self.runner.start)

    def on_unmount(self) -> None:
        self.runner.cancel()
        if self._next_runner is not None:
            self._next_runner.cancel()

    @on(Resize)
    def _fit(self, event: Resize) -> None:
        width, height = event.size
        self.set_class(width < SMALLEST[0] or height < SMALLEST[1], "-too-small")
        self.set_class(height < 30, "-short")
        self.set_class(height >= 50, "-tall")
        self._stale = True

    # What happened

    def _tick(self) -> None:
        """Fold in everything the engine has said since the last tick, then draw once."""
        if self._next_runner is not None:
            self._hear_next(self._next_runner)
        for news in self.runner.drain():
            self._stale = True
            self._hear(news)
        if self._stale:
            self._stale = False
            self._draw()

    def _hear_next(self, runner: Runner) -> None:
        """A run that was asked for takes over once it is ready; until then, and if it fails, the old one stays."""
        match next(iter(runner.drain()), None):
            case Ready(generation):
                self.runner.cancel()
                self.runner, self._next_runner = runner, None
                self._open(generation)
            case Failed(sentence):
                self._next_runner = None
                self.say(drawable(sentence, spaces=False), "here")

    def _hear(self, news: News) -> None:
        match news:
            case Ready(generation):
                self._open(generation)
            case Failed(sentence, details):
                self._fail(sentence, details)
            case Answer(value=PromptSurprisal() as found):
                self._take_surprisal(found)
            case Event():
                self._follow(news)

    def _open(self, generation: Generation) -> None:
        """A new run begins: forget the moment before, keep where we look."""
        config = generation.model.config
        if self.session is None:
            self.cursor = Cursor(layer=config.layers // 2, head=config.heads // 2)
        self.session = Session(generation)
        self.moment = Moment(generation.trace)
        self.last_event = None
        self.cursor = self.cursor.to_step(None)
        for panel in (self.query_one(AttentionMap), self.query_one(CandidateBars)):
            panel.wait(tr("→ reads the prompt and draws the first token"))
        paused = "" if self.runner.gate.running else tr("paused; space runs, → computes one token")
        self.say(drawable(generation.model.tokenizer.notice or paused, spaces=False))
        self._stale = True

    def _follow(self, event: Event) -> None:
        """One event: where the pass is, and how many tokens there are."""
        assert self.moment is not None
        self.last_event = event
        if not isinstance(event, TokenChosen):
            return
        self.moment.hear_token()
        if self.moment.steps == 1:
            self._ask_prompt_surprisal()
        trace = self.moment.trace
        if trace.finish_reason and self.moment.steps == len(trace.steps):
            self.runner.gate.run(False)
            self._say_why_it_ended(trace.finish_reason)

    def _say_why_it_ended(self, reason: FinishReason) -> None:
        assert self.moment is not None
        what = tr(REASONS[reason])
        if reason == "context":
            what = tr(
                "the context is full, all {count} positions are used",
                count=self.moment.trace.model.config.positions,
            )
        sentence = tr(
            "the run is at its end: {what} · r starts again · e takes another prompt · ← goes back", what=what
        )
        self.say(sentence, "here", short=tr("the run is at its end: {what}", what=what), lasting=True)

    def _fail(self, sentence: str, details: str) -> None:
        """The run could not begin or go on. Without a model there is nothing to show, so the app ends."""
        if self.session is None:
            self._give_up(Failed(sentence, details))
            return
        self.runner.gate.run(False)
        self.say(drawable(sentence, spaces=False), "here", lasting=True)

    def _ask_prompt_surprisal(self) -> None:
        assert self.moment is not None and self.session is not None
        trace, decoder = self.moment.trace, self.session.root.generation.model.decoder
        length = self.moment.prompt_length
        self.runner.ask(lambda: PromptSurprisal(trace, surprisal(trace, decoder, 0, length)))

    def _take_surprisal(self, found: PromptSurprisal) -> None:
        if self.moment is not None and found.trace is self.moment.trace:
            self.moment.learn_surprisal(found.bits.tolist())

    # What is drawn

    def _draw(self) -> None:
        if self.has_class("-too-small") or not self.is_mounted:
            return
        with self.app.batch_update():
            self._draw_title()
            if self.session is not None and self.moment is not None:
                self._draw_moment(self.session.current.generation.model, self.moment)

    def _draw_title(self) -> None:
        gate = self.runner.gate
        generation = self.session.current.generation if self.session else None
        self.query_one(TitleLine).show(title_view(generation, self.moment, self.cursor, gate.running, gate.speed))

    def _draw_moment(self, model: Model, moment: Moment) -> None:
        looking_back = self.cursor.step is not None
        self.query_one(StageStrip).show(stages_view(model, None if looking_back else self.last_event))
        self.query_one(TokenStream).show(text_view(moment, self.cursor))
        attention, candidates = self.query_one(AttentionMap), self.query_one(CandidateBars)
        if view := attention_view(moment, self.cursor, attention.visible_queries):
            attention.show(view)
        if bars := candidates_view(moment, self.cursor, candidates.visible_rows()):
            candidates.show(bars)
        self._draw_notice()

    def say(self, sentence: str, tone: Tone = "quiet", *, short: str = "", lasting: bool = False) -> None:
        """One drawable sentence above the keys, for a few seconds, or *lasting* until something else is said.

        *short* is said in its place where that is too long.
        """
        if self._hush is not None:
            self._hush.stop()
        self._notice = NoticeView(sentence, tone, short)
        self._hush = None if lasting else self.set_timer(SAID_SECONDS, lambda: self.say("", lasting=True))
        self._draw_notice()

    def _draw_notice(self) -> None:
        """What was said; else what happened at this moment, unless moments pass faster than one can read."""
        notice, gate = self._notice, self.runner.gate
        readable = not gate.running or gate.speed <= READABLE_SPEED
        if not notice.text and self.moment is not None and readable:
            notice = draw_notice(self.moment, self.cursor)
        self.query_one(NoticeLine).show(notice)

    def _look(self, cursor: Cursor) -> None:
        """Look elsewhere; what was said at another moment no longer matters."""
        if cursor.step != self.cursor.step:
            self.say("", lasting=True)
        self.cursor = cursor
        self._draw()

    # What keys do

    def action_toggle_run(self) -> None:
        gate = self.runner.gate
        if self._over:
            self._say_over()
            return
        gate.run(not gate.running)
        self._look(self.cursor.to_step(None) if gate.running else self.cursor)
        self.say("" if gate.running else tr("paused; space runs, → computes one token"))

    def action_next_token(self) -> None:
        if self.cursor.step is not None and self.moment:
            self._look(self.cursor.moved_by(1, self.moment.steps))
        elif self._over:
            self._say_over()
        else:
            self._pause()
            self.runner.gate.step()

    def action_previous_token(self) -> None:
        if self.moment and self.moment.steps:
            self._pause()
            self._look(self.cursor.moved_by(-1, self.moment.steps))

    def action_first_token(self) -> None:
        if self.moment and self.moment.steps > 1:
            self._pause()
            self._look(self.cursor.to_step(0))

    def action_last_token(self) -> None:
        self._look(self.cursor.to_step(None))

    def action_layer(self, change: int) -> None:
        if self.moment:
            self._look(self.cursor.to_layer(self.cursor.layer + change, self.moment.trace.model.config.layers))

    def action_head(self, change: int) -> None:
        if self.moment:
            self._look(self.cursor.to_head(self.cursor.head + change, self.moment.trace.model.config.heads))

    def action_speed(self, change: int) -> None:
        gate = self.runner.gate
        speed = SPEEDS[min(max(SPEEDS.index(gate.speed) + change, 0), len(SPEEDS) - 1)]
        gate.set_speed(speed)
        self.say(tr("as fast as it goes") if isinf(speed) else tr("at most {speed:g} tokens a second", speed=speed))
        self._draw()

    def action_restart(self) -> None:
        if self.session:
            trace = self.session.root.trace
            exact = self.options.prompt_ids is not None and not trace.prompt
            self._run_prompt(None if exact else trace.prompt)

    def action_edit_prompt(self) -> None:
        from .prompt_screen import PromptScreen

        if self.session:
            self._pause()
            generation = self.session.root.generation
            self.app.push_screen(
                PromptScreen(generation.model, generation.trace.prompt, self.look), self._run_prompt_given
            )

    def action_save_picture(self) -> None:
        """Take the picture now, write it elsewhere: a slow disk stops nothing."""
        steps = self.moment.steps if self.moment else 0
        name = self.moment.trace.model.name if self.moment else "model"
        stem = f"cutaway-{name}-L{self.cursor.layer}H{self.cursor.head}-token{max(self.cursor.at_step(steps), 0)}"
        lines, width = screen_lines(self), self.size.width
        self._write_picture(lines, width, stem)

    @work(thread=True, group="pictures", exit_on_error=False)
    def _write_picture(self, lines: list[Strip], width: int, stem: str) -> None:
        short = ""
        try:
            folder = Path(self.options.output_dir).expanduser()
            path = save_picture(lines, width, self.look, folder, stem)
            sentence = tr("saved {path}", path=drawable(str(path), spaces=False))
            short = tr("saved {path}", path=drawable(path.name, spaces=False))
        except CutawayError as error:
            sentence = drawable(str(error), spaces=False)
        except (OSError, RuntimeError, ValueError) as error:  # no path at all: a name too long, ~nobody
            sentence = drawable(tr("the picture cannot be saved: {reason}", reason=error), spaces=False)
        self.app.call_from_thread(self.say, sentence, "here", short=short)

    def action_help(self) -> None:
        from .help_screen import HelpScreen

        self.app.push_screen(HelpScreen(self.look))

    def action_leave_panel(self) -> None:
        self.set_focus(None)
        self._look(self.cursor.to_cell(None))

    def action_quit(self) -> None:
        self.runner.cancel()
        self.app.exit()

    @on(KeyLine.Asked)
    async def _asked(self, message: KeyLine.Asked) -> None:
        await self.run_action(message.action)

    @on(AttentionMap.Pointed)
    def _pointed(self, message: AttentionMap.Pointed) -> None:
        self._look(self.cursor.to_cell(message.cell))

    @property
    def _over(self) -> bool:
        return self.moment is not None and self.moment.trace.finish_reason is not None

    def _say_over(self) -> None:
        sentence = tr("the run is at its end · r starts again · e takes another prompt · ← goes back")
        self.say(sentence, "here", short=tr("the run is at its end · r starts again"))

    def _pause(self) -> None:
        if self.runner.gate.running:
            self.runner.gate.run(False)
            self._draw()

    def _run_prompt_given(self, prompt: str | None) -> None:
        if prompt is not None:
            self._run_prompt(prompt)

    def _run_prompt(self, prompt: str | None) -> None:
        """Begin another run of the same model; the present one stays until it is ready."""
        from .start import generate

        assert self.session is not None
        model, options = self.session.root.generation.model, self.options
        if self._next_runner is not None:
            self._next_runner.cancel()
        running = not options.step
        self._next_runner = Runner(
            lambda: generate(model, options, prompt), running=running, speed=self.runner.gate.speed
        )
        self._next_runner.start()
