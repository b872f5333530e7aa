"""The main screen: keys move the cursor or the gate, a timer folds news into the moment, panels draw it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from math import isinf
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.screen import Screen
from textual.strip import Strip
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
from ..widgets.candidate_bars import CandidateBars
from ..widgets.drawable import drawable
from ..widgets.key_line import KeyLine
from ..widgets.look import Look
from ..widgets.notice_line import NoticeLine, NoticeView, Tone
from ..widgets.panel import Panel
from ..widgets.picture import screen_lines
from ..widgets.stage_strip import StageStrip
from ..widgets.title_line import TitleLine
from ..widgets.token_stream import TokenStream
from .cursor import Cursor
from .headlines import stages_view, title_view
from .keys import bindings, footer
from .moment import Moment
from .pictures import save_picture
from .runner import SPEEDS, Answer, Failed, News, Ready, Refused, Runner
from .runs import Runs
from .start import Source, encode, generate
from .views import attention_view, candidates_view, draw_notice, text_view

SMALLEST = (60, 18)
"""Columns and rows below which nothing could be read."""
READABLE_SPEED = 8.0
"""Tokens a second at which a sentence about each can still be followed."""
SURPRISAL_ROWS = 32
"""Prompt positions whose surprisal is computed between two tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class PromptSurprisal:
    """How unexpected the tokens of a prompt were, in bits; computed on the engine's thread."""

    trace: Trace
    start: int
    bits: NDArray[np.float64]


class MainScreen(Screen[None]):
    """One run at a time; what it is about stands in `moment`, where we look in `cursor`."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]
    AUTO_FOCUS = ""

    def __init__(
        self,
        options: argparse.Namespace,
        look: Look,
        runner: Runner,
        source: Source | None,
        give_up: Callable[[Failed], None],
    ) -> None:
        """Show *runner*, which continues *source*; *give_up* is called where there is nothing to show."""
        super().__init__()
        self.options = options
        self.look = look
        self.source = source
        """What the present run continues, or the one that is being prepared."""
        self.session: Session | None = None
        self.moment: Moment | None = None
        self.cursor = Cursor()
        self.last_event: Event | None = None
        self._runs = Runs(runner)
        self._give_up = give_up
        self._stale = True

    @property
    def runner(self) -> Runner:
        """The present run's thread and gate."""
        return self._runs.current

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
        self._runs.cancel()

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
        for news in self._runs.news():
            self._stale = True
            self._hear(news)
        if self._stale:
            self._stale = False
            self._draw()

    def _hear(self, news: News) -> None:
        match news:
            case Ready(generation):
                self._open(generation)
            case Failed():
                self._fail(news)
            case Refused(sentence):
                self.say(drawable(sentence, spaces=False), "here", lasting=True)
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
        self.query_one(NoticeLine).hush()
        if notice := generation.model.tokenizer.notice:
            self.say(drawable(notice, spaces=False), "here", lasting=True)
        elif not self.runner.gate.running:
            self.say(tr("paused; space runs, → computes one token"), lasting=True)

    def _follow(self, event: Event) -> None:
        """One event: where the pass is, and how many tokens there are."""
        assert self.moment is not None
        self.last_event = event
        if not isinstance(event, TokenChosen):
            return
        self.moment.hear_token()
        trace = self.moment.trace
        if self.moment.steps == 1:
            self._ask_surprisal(trace, 0)
        if trace.finish_reason and self.moment.steps == len(trace.steps):
            self.runner.gate.run(False)
            self._say_why_it_ended(trace.finish_reason)

    def _say_why_it_ended(self, reason: FinishReason) -> None:
        assert self.moment is not None
        what = tr(REASONS[reason])
        if reason == "context":
            limit = self.moment.trace.model.config.positions
            what = tr("the context is full, all {count} positions are used", count=limit)
        sentence = tr(
            "the run is at its end: {what} · r starts again · e takes another prompt · ← goes back", what=what
        )
        self.say(sentence, "here", short=tr("the run is at its end: {what}", what=what), lasting=True)

    def _fail(self, failure: Failed) -> None:
        """The run could not begin or go on. Without a model there is nothing to show, so the app ends."""
        if self.session is None:
            self._give_up(failure)
            return
        self.runner.gate.run(False)
        self.say(drawable(failure.sentence, spaces=False), "here", lasting=True)

    def _ask_surprisal(self, trace: Trace, start: int) -> None:
        """Have the surprisal of the next few prompt tokens computed between two tokens of the run."""
        assert self.session is not None
        decoder = self.session.root.generation.model.decoder
        stop = min(start + SURPRISAL_ROWS, len(trace.prompt_ids))
        if start < stop:
            self.runner.ask(lambda: PromptSurprisal(trace, start, surprisal(trace, decoder, start, stop)))

    def _take_surprisal(self, found: PromptSurprisal) -> None:
        if self.moment is not None and found.trace is self.moment.trace:
            self.moment.learn_surprisal(found.start, found.bits.tolist())
            self._ask_surprisal(found.trace, found.start + len(found.bits))

    # What is drawn

    def _draw(self) -> None:
        if self.has_class("-too-small") or not self.is_mounted:
            return
        with self.app.batch_update():
            gate = self.runner.gate
            generation = self.session.current.generation if self.session else None
            title = title_view(generation, self.moment, self.cursor, gate.running, gate.speed)
            self.query_one(TitleLine).show(title)
            if generation is not None and self.moment is not None:
                self._draw_moment(generation.model, self.moment)

    def _draw_moment(self, model: Model, moment: Moment) -> None:
        looking_back = self.cursor.step is not None
        settings = moment.trace.settings_at(max(self.cursor.at_step(moment.steps), 0))
        self.query_one(StageStrip).show(stages_view(model, settings, self.last_event, looking_back=looking_back))
        attention, candidates = self.query_one(AttentionMap), self.query_one(CandidateBars)
        view = attention_view(moment, self.cursor, attention.visible_queries, attention.view)
        self.query_one(TokenStream).show(text_view(moment, self.cursor, view))
        if view:
            attention.show(view)
        if bars := candidates_view(moment, self.cursor, candidates.visible_rows()):
            candidates.show(bars)
        gate = self.runner.gate
        readable = not gate.running or gate.speed <= READABLE_SPEED
        self.query_one(NoticeLine).idle(draw_notice(moment, self.cursor) if readable else NoticeView(""))

    def say(self, sentence: str, tone: Tone = "quiet", *, short: str = "", lasting: bool = False) -> None:
        """One drawable sentence above the keys, for a few seconds, or *lasting* until something else is said.

        *short* is said in its place where that is too long.
        """
        self.query_one(NoticeLine).say(NoticeView(sentence, tone, short), lasting=lasting)

    def _move_to(self, cursor: Cursor) -> None:
        """Look elsewhere; what was said at another moment no longer matters."""
        if cursor.step != self.cursor.step:
            self.query_one(NoticeLine).hush()
        self.cursor = cursor
        self._draw()

    # What keys do

    def action_toggle_run(self) -> None:
        gate = self.runner.gate
        if self._over:
            self._say_over()
            return
        gate.run(not gate.running)
        if gate.running:
            self._move_to(self.cursor.to_step(None))
            self.query_one(NoticeLine).hush()
        else:
            self.say(tr("paused; space runs, → computes one token"))
            self._draw()

    def action_next_token(self) -> None:
        if self.cursor.step is not None and self.moment:
            self._move_to(self.cursor.moved_by(1, self.moment.steps))
        elif self._over:
            self._say_over()
        else:
            self._pause()
            self.query_one(NoticeLine).hush()
            self.runner.gate.step()

    def action_previous_token(self) -> None:
        if self.moment and self.moment.steps:
            self._pause()
            self._move_to(self.cursor.moved_by(-1, self.moment.steps))

    def action_first_token(self) -> None:
        if self.moment and self.moment.steps > 1:
            self._pause()
            self._move_to(self.cursor.to_step(0))

    def action_last_token(self) -> None:
        self._move_to(self.cursor.to_step(None))

    def action_layer(self, change: int) -> None:
        if self.moment:
            self._move_to(self.cursor.to_layer(self.cursor.layer + change, self.moment.trace.model.config.layers))

    def action_head(self, change: int) -> None:
        if self.moment:
            self._move_to(self.cursor.to_head(self.cursor.head + change, self.moment.trace.model.config.heads))

    def action_speed(self, change: int) -> None:
        gate = self.runner.gate
        speed = SPEEDS[min(max(SPEEDS.index(gate.speed) + change, 0), len(SPEEDS) - 1)]
        gate.set_speed(speed)
        self.say(tr("as fast as it goes") if isinf(speed) else tr("at most {speed:g} tokens a second", speed=speed))
        self._draw()

    def action_restart(self) -> None:
        if self.session:
            self._begin(self.source)

    def action_edit_prompt(self) -> None:
        from .prompt_screen import PromptScreen

        if self.session is None:
            return
        model, options = self.session.root.generation.model, self.options
        text = (
            self.source if isinstance(self.source, str) else model.tokenizer.decode(self.session.root.trace.prompt_ids)
        )
        was_running = self.runner.gate.running
        self._pause()

        def given(prompt: str | None) -> None:
            if prompt is not None:
                self._begin(self.source if prompt == text else prompt)
            elif was_running:
                self.runner.gate.run(True)
            self._stale = True

        self.app.push_screen(PromptScreen(model, text, lambda text: encode(model, options, text)[0], self.look), given)

    def action_save_picture(self) -> None:
        """Take the picture now, write it elsewhere: a slow disk stops nothing."""
        steps = self.moment.steps if self.moment else 0
        name = self.moment.trace.model.name if self.moment else "model"
        stem = f"cutaway-{name}-L{self.cursor.layer}H{self.cursor.head}-token{max(self.cursor.at_step(steps), 0)}"
        self._write_picture(screen_lines(self), self.size.width, stem)

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
        self._move_to(self.cursor.to_cell(None))

    def action_quit(self) -> None:
        self._runs.cancel()
        self.app.exit()

    @on(KeyLine.Asked)
    async def _asked(self, message: KeyLine.Asked) -> None:
        await self.run_action(message.action)

    @on(AttentionMap.Pointed)
    def _pointed(self, message: AttentionMap.Pointed) -> None:
        """The mouse says so many times a second; the next tick is soon enough."""
        self.cursor = self.cursor.to_cell(message.cell)
        self._stale = True

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

    def _begin(self, source: Source | None) -> None:
        """Begin another run of the same model; the present one stays until it is ready."""
        assert self.session is not None
        model, options, gate = self.session.root.generation.model, self.options, self.runner.gate
        self.source = source
        running = not options.step
        self._runs.begin(Runner(lambda: generate(model, options, source), running=running, speed=gate.speed))
