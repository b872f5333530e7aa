"""What is on the main screen: a timer folds the engine's news into the moment, panels draw it at the cursor."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantBlur, DescendantFocus, Resize
from textual.screen import Screen
from textual.widgets import Static

from ..core.catalogue import tr
from ..core.events import Event, FinishReason, TokenChosen
from ..core.trace import REASONS, Trace
from ..widgets.attention_map import AttentionMap
from ..widgets.candidate_bars import CandidateBars
from ..widgets.card import Card, CardView
from ..widgets.drawable import drawable
from ..widgets.embedding_strips import EmbeddingStrips
from ..widgets.heads_map import HeadsMap
from ..widgets.key_line import KeyLine
from ..widgets.layer_table import LayerTable
from ..widgets.look import Look
from ..widgets.notice_line import NoticeLine, NoticeView, Tone
from ..widgets.panel import Panel
from ..widgets.sampling_stages import SamplingStages
from ..widgets.stage_strip import StageStrip
from ..widgets.title_line import TitleLine
from ..widgets.token_stream import TokenStream
from .commentary import comment, comment_draft
from .cursor import Cursor
from .gate import Grain
from .headlines import stages_view, title_view
from .inquiries import Found
from .keys import KEYS, Key, footer, hidden_views
from .layout import LOWER, PANELS, SMALLEST, UPPER, shown_panels
from .moment import Moment
from .pacing import Pacing, can_be_followed, is_remote
from .painter import Painter, Scene
from .prompt_surprisal import PromptSurprisal, ask_surprisal, lacks_surprisal, take_surprisal
from .runner import Answer, Failed, News, Refused, Runner
from .runs import Run, Runs
from .settings_draft import Draft
from .stages import Place
from .start import Source
from .welcome import SECONDS, WORDS


class RunScreen(Screen[None]):
    """One run at a time, followed by the panels that have room. What keys do is in `main_screen.py`."""

    AUTO_FOCUS = ""

    def __init__(
        self,
        options: argparse.Namespace,
        look: Look,
        runner: Runner,
        origin: Source | None,
        give_up: Callable[[Failed], None],
        keys: tuple[Key, ...] = KEYS,
    ) -> None:
        """Show *runner*, which continues *origin*; *give_up* is called where there is nothing to show."""
        super().__init__()
        self.options = options
        self.look = look
        self.keys = keys
        self.cursor = Cursor()
        self.alone = ""
        """The panel that is shown without the others."""
        self.sampling_open = False
        self.draft: Draft | None = None
        """Sampling settings that are being tried on the token looked at."""
        self.selected = 0
        """The sampling setting that keys are at."""
        self._target: Place | None = None
        """Where to look as soon as the engine has come there."""
        self._grain = Grain.STAGE
        """How the engine was asked to go there."""
        self.opening = str(options.model)
        """What is being opened, as the panels say meanwhile."""
        self.timed = True
        """Whether to show how long things took, and whether they go on; a picture may not want to."""
        self.welcome = False
        """Whether to say hello."""
        self._runs = Runs(runner, origin)
        self._give_up = give_up
        self._stale = True
        self._pacing = Pacing(self)
        self._painter: Painter | None = None

    @property
    def runner(self) -> Runner:
        """The thread and gate of the run that is shown."""
        return self._runs.runner

    @property
    def run_shown(self) -> Run | None:
        """The run that is shown."""
        return self._runs.shown

    @property
    def moment(self) -> Moment | None:
        """How far the run that is shown has been heard."""
        return self._runs.shown.moment if self._runs.shown else None

    @property
    def place(self) -> Place | None:
        """The place that is looked at: the cursor's, or the newest whole token, or where a first pass stands."""
        moment, wanted = self.moment, self.cursor.place
        if moment is None:
            return None
        if wanted is not None and moment.has(wanted):
            return wanted
        return moment.last_token or (None if self.runner.gate.running else moment.newest)

    @property
    def following(self) -> bool:
        """Whether the newest token is looked at."""
        return self.cursor.place is None

    @property
    def settled(self) -> bool:
        """Whether everything that is shown is about the place that is looked at."""
        run, painter = self._runs.shown, self._painter
        if run is None or painter is None or lacks_surprisal(run.moment):
            return False
        return painter.settled(Scene(run, self.cursor, self.place))

    def compose(self) -> ComposeResult:
        yield TitleLine(id="title")
        yield StageStrip(id="stages")
        yield TokenStream(id="text")
        with Horizontal(id="upper"):
            yield AttentionMap(id="attention")
            yield CandidateBars(id="candidates")
        with Horizontal(id="lower"):
            yield HeadsMap(id="heads")
            yield LayerTable(id="layers")
            yield EmbeddingStrips(id="embedding")
            yield SamplingStages(id="sampling")
        yield Card(id="welcome")
        yield KeyLine(id="views")
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
        for number, name in enumerate(PANELS, 1):
            self.query_one(f"#{name}", Panel).number = str(number)
        for panel in self.query(Panel):
            panel.wear(self.look)
            panel.wait(tr("opening {what} …", what=drawable(self.opening, spaces=False)))
        self._painter = Painter(self)
        self.show_keys()
        self.lay_out()
        frames = self.options.fps or (10 if is_remote() else 20)
        self.set_interval(1 / frames, self._tick)
        self.call_after_refresh(self.runner.start)
        if self.welcome and not self.has_class("-too-small"):
            self._say_hello()

    def show_keys(self) -> None:
        """The last line: what keys do, those of the panel one is in first."""
        inside = self.focused.id if self.focused is not None else None
        self.query_one("#keys", KeyLine).show(footer(self.keys, inside or ""))

    @on(DescendantFocus)
    @on(DescendantBlur)
    def _focus_moved(self) -> None:
        self.call_later(self.show_keys)

    def _say_hello(self) -> None:
        """A few words for somebody who has never seen this, until a key is pressed or some seconds have gone by."""
        rows = tuple((" ".join(map(self.key, names)), tr(word)) for names, word in WORDS)
        card, view = self.query_one(Card), CardView(tr("welcome"), rows)
        columns, lines = view.size
        card.styles.width, card.styles.height = columns, lines
        card.styles.offset = (max((self.size.width - columns) // 2, 0), max(self.size.height - lines - 4, 0))
        card.display = True
        card.show(view)
        self.set_timer(SECONDS, self._wave)

    def _wave(self) -> None:
        self.query_one(Card).display = False

    def on_key(self) -> None:
        if self.welcome:
            self.welcome = False
            self._wave()

    def on_unmount(self) -> None:
        self._runs.cancel()

    @on(Resize)
    def _fit(self, event: Resize) -> None:
        width, height = event.size
        self.set_class(width < SMALLEST[0] or height < SMALLEST[1], "-too-small")
        self.set_class(height < 30, "-short")
        self.set_class(height >= 50, "-tall")
        self.lay_out()

    def lay_out(self) -> None:
        """Show the panels that have room, or the one that is wanted alone, and say how to see the others."""
        too_small = self.has_class("-too-small")
        shown = frozenset[str]() if too_small else shown_panels(*self.size, self.alone, self.sampling_open)
        for name in PANELS:
            self.query_one(f"#{name}").display = name in shown
        self.query_one("#upper").display = not shown.isdisjoint(UPPER)
        self.query_one("#lower").display = not shown.isdisjoint(LOWER)
        self.set_class(bool(self.alone), "-alone")
        if self.focused is not None and self.focused.id not in shown:
            self.set_focus(None)
        if too_small:
            self._wave()
        self.query_one("#views", KeyLine).show(hidden_views(shown, self.alone, self.keys))
        self.redraw()  # a key may follow at once, and is for what the panels are about to show
        self.call_after_refresh(self.redraw)

    # What happened

    def _tick(self) -> None:
        """Fold in everything the engine has said since the last tick, then draw once."""
        for news in self._runs.news(self.opened):
            self._stale = True
            self._hear(news)
        self.play()
        gate = self.runner.gate
        if gate.running and self._pacing.terminal_lags:
            return  # what is not out yet would only grow, and keys wait behind it
        if self._stale and self._pacing.is_due(gate):
            self.redraw()
            if not self.settled:  # an answer takes a few milliseconds: do not wait for the next tick
                self.set_timer(0.01, self._tick)

    def _hear(self, news: News) -> None:
        if isinstance(news, Event):
            self._follow(news)
            return
        match news:
            case Failed():
                self._fail(news)
            case Refused(sentence):
                self.refused()
                self.say(drawable(sentence, spaces=False), "here", lasting=True)
            case Answer(value=PromptSurprisal() as found):
                if self.moment is not None:
                    take_surprisal(self.runner, self.moment, found)
            case Answer(value=Found() as found):
                found.inquiry.take(found)
                if found.problem:
                    self.say(drawable(found.problem, spaces=False), "here")
            case Answer(value=value):
                self.answered(value)

    def answered(self, value: object) -> None:
        """The engine's thread has done something that was asked for."""

    def refused(self) -> None:
        """What was asked for could not be done."""

    def play(self) -> None:
        """Go on by what is already known, where a run that is over is being looked through."""

    def opened(self, run: Run) -> None:
        """A run begins: forget the moment before, keep where we look. What is over already is told from its start."""
        config = run.moment.trace.model.config
        if self.cursor == Cursor():
            self.cursor = Cursor(layer=config.layers // 2, head=config.heads // 2)
        self.cursor = self.cursor.to_place(Place(0, run.moment.stages.last) if run.moment.steps > 1 else None)
        self.draft = self._target = None
        self._stale = True
        if self._painter:
            self._painter.forget()
            self._painter.wait(tr("{key} reads the prompt and draws the first token", key=self.key("next_token")))
        self.query_one(NoticeLine).hush()
        notice = run.model.tokenizer.notice if run.model else None
        if notice:
            self.say(drawable(notice, spaces=False), "here", lasting=True)
        elif not self.runner.gate.running and not run.over:
            self.say(self.paused, lasting=True)
        ask_surprisal(self.runner, run.moment)

    def _follow(self, event: Event) -> None:
        """One event: where the pass is, and how many tokens there are."""
        run = self._runs.shown
        assert run is not None
        run.moment.hear(event)
        if isinstance(event, TokenChosen):
            self.cursor = self.cursor if self.cursor.place else self.cursor.to_candidate(0)
            if run.moment.steps == 1:
                ask_surprisal(self.runner, run.moment)
        if self._target is not None:
            self._reach(run, self._target)
        if isinstance(event, TokenChosen) and run.over and run.moment.trace.finish_reason:
            self.runner.gate.run(False)
            self.say_the_end(_why_it_ended(run.moment.trace, run.moment.trace.finish_reason))

    def _reach(self, run: Run, target: Place) -> None:
        """Look at *target* now that the run has come there, or have it go on by another event."""
        if run.moment.has(target):
            self.look_at(target)
        elif self._grain is Grain.STAGE:
            run.runner.gate.step(Grain.STAGE)

    def say_the_end(self, why: str) -> None:
        """The run has come to its end, for the reason *why*."""
        sentence = tr("the run is at its end: {what} · {ways}", what=why, ways=self.ways_on)
        self.say(sentence, "here", short=tr("the run is at its end: {what}", what=why), lasting=True)

    def _fail(self, failure: Failed) -> None:
        """The run could not begin or go on. Without a model there is nothing to show, so the app ends."""
        if self._runs.shown is None:
            self._give_up(failure)
            return
        self.runner.gate.run(False)
        self._target = None
        self.say(drawable(failure.sentence, spaces=False), "here", lasting=True)

    @property
    def paused(self) -> str:
        """What a person can do while nothing goes on."""
        keys = {name: self.key(name) for name in ("run", "next_token", "next_stage")}
        return tr("paused; {run} runs, {next_token} goes on by one token, {next_stage} by one stage", **keys)

    @property
    def ways_on(self) -> str:
        """What a person can do at the end of a run."""
        keys = {name: self.key(name) for name in ("restart", "edit_prompt", "previous_token")}
        return tr("{restart} starts again · {edit_prompt} takes another prompt · {previous_token} goes back", **keys)

    def key(self, name: str) -> str:
        """How the key called *name* is written."""
        return next(key.shown for key in self.keys if key.name == name)

    # What is drawn

    def redraw(self) -> None:
        """Draw everything that is on the screen, and work out when the next picture of a run may follow."""
        self._stale = False
        if self.has_class("-too-small") or not self.is_mounted or self._painter is None:
            return
        with self._pacing.picture(), self.app.batch_update():
            self._draw(self._painter)

    def _draw(self, painter: Painter) -> None:
        gate, run, place = self.runner.gate, self._runs.shown, self.place
        if self.draft and run and not (place and self.draft.is_about(run.moment.trace, place.step)):
            self.draft = None  # it was tried on another token
        number = (self._runs.all.index(run), len(self._runs.all)) if run else (0, 1)
        title = title_view(run, place, self.following, gate.running, gate.speed, number, timed=self.timed)
        self.query_one(TitleLine).show(title)
        if run is None:
            return
        settings = run.moment.trace.settings_at(max(place.step if place else 0, 0))
        self.query_one(StageStrip).show(stages_view(run, settings, place))
        painter.draw(Scene(run, self.cursor, place, self.draft, self.selected))
        told = comment(run.moment, self.cursor, place) if can_be_followed(gate) else NoticeView("")
        if self.draft is not None and place is not None:
            told = NoticeView(comment_draft(run.moment, place, self.draft.settings), "here")
        self.query_one(NoticeLine).idle(told)

    def say(self, sentence: str, tone: Tone = "quiet", *, short: str = "", lasting: bool = False) -> None:
        """One drawable sentence above the keys, for a few seconds, or *lasting* until something else is said.

        *short* is said in its place where that is too long.
        """
        self.query_one(NoticeLine).say(NoticeView(sentence, tone, short), lasting=lasting)

    def look_at(self, place: Place | None) -> None:
        """Look at *place*; in a layer's own stages, at that layer."""
        self._target = None
        moment = self.moment
        if moment is None:
            return
        if place == moment.last_token:
            place = None
        layer = moment.stages.all[place.stage].layer if place else None
        cursor = self.cursor.to_place(place)
        self.move_to(cursor if layer is None else cursor.to_layer(layer, moment.stages.layers))

    def move_to(self, cursor: Cursor) -> None:
        """Look elsewhere; what was said and tried at another moment no longer matters."""
        if cursor.place != self.cursor.place:
            self.query_one(NoticeLine).hush()
            self.draft = None
        self.cursor = cursor
        self.redraw()

    def pause(self) -> None:
        """Have the run stop at its next token."""
        if self.runner.gate.running:
            self.runner.gate.run(False)
            self.redraw()


def _why_it_ended(trace: Trace, reason: FinishReason) -> str:
    """What *reason* means, in words."""
    if reason == "context":
        return tr("the context is full, all {count} positions are used", count=trace.model.config.positions)
    return tr(REASONS[reason])
