"""Writing a prompt, with its tokens shown while it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from ..core.catalogue import tr, trn
from ..core.errors import CutawayError
from ..core.models.model import Model
from ..widgets.drawable import draw_token, drawable
from ..widgets.look import LEVELS, Look
from .stand_ins import StandIns

SHOWN = 400
"""Tokens that are drawn below the text; the count goes on."""


class PromptScreen(ModalScreen[str | None]):
    """Gives the new prompt, or None where it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    @dataclass
    class Counted(Message):
        """A text has been turned into tokens."""

        text: str
        ids: list[int]
        problem: str
        """Why it could not, drawable; empty where it could."""

    def __init__(self, model: Model, prompt: str, title: str, count: Callable[[str], list[int]], look: Look) -> None:
        """Edit *prompt*, which *title* names; *count* turns a text into the ids that a run of it would read."""
        super().__init__()
        self.model = model
        self.prompt = prompt
        self.heading = title
        self.count = count
        self.look = look
        self._counted: str | None = None
        """The text whose tokens are shown."""
        self._counting = False
        self._fits = True
        self._accepted = False
        self._left = False
        self._stand_ins = StandIns()

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            yield PromptArea(self.prompt, self._stand_ins)
            yield Static(id="tokens", markup=False)
            yield Static(id="count", markup=False)
        box.border_title = Content(tr("{what} · enter runs it · ctrl+j new line · esc leaves", what=self.heading))

    def on_mount(self) -> None:
        area = self.query_one(PromptArea)
        area.select_all()  # typing replaces the old prompt, an arrow keeps it
        area.focus()
        self._count_anew()

    @on(TextArea.Changed)
    def _changed(self) -> None:
        self._accepted = False
        self._count_anew()

    @property
    def text(self) -> str:
        """The prompt as it stands."""
        return self._stand_ins.reveal(self.query_one(PromptArea).text)

    def _count_anew(self) -> None:
        """Count the text as it stands, one count at a time: the newest text waits for the one under way."""
        if not self._counting and self._counted != self.text:
            self._counting = True
            self._count(self.text)

    @work(thread=True, group="count", exit_on_error=False)
    def _count(self, text: str) -> None:
        """Tokenise on a thread of its own: a pasted novel must not stop the keys."""
        try:
            ids, problem = self.count(text), ""
        except CutawayError as error:
            ids, problem = [], drawable(str(error), spaces=False)
        self.post_message(self.Counted(text, ids, problem))

    @on(Counted)
    def _show_count(self, message: Counted) -> None:
        self._counting, self._counted = False, message.text
        self._show_tokens(message)
        if self._accepted and message.text == self.text:
            self.accept()
        self._count_anew()

    def _show_tokens(self, message: Counted) -> None:
        vocabulary, look = self.model.tokenizer.vocabulary, self.look
        pieces = [
            (
                draw_token(vocabulary.token_bytes(id), id=id),
                f"{look.text} on {look.line if place % 2 else look.levels[LEVELS // 4]}",
            )
            for place, id in enumerate(message.ids[:SHOWN])
        ]
        self.query_one("#tokens", Static).update(Content.assemble(*pieces, "…" if len(message.ids) > SHOWN else ""))
        limit = self.model.config.positions
        self._fits = len(message.ids) <= limit and not message.problem
        count = trn(
            "1 token · {left:,} of {limit:,} positions left",
            "{count} tokens · {left:,} of {limit:,} positions left",
            len(message.ids),
            left=limit - len(message.ids),
            limit=limit,
        )
        over = trn(
            "1 token · {over:,} more than the {limit:,} that fit",
            "{count} tokens · {over:,} more than the {limit:,} that fit",
            len(message.ids),
            over=len(message.ids) - limit,
            limit=limit,
        )
        empty = tr("an empty prompt starts from the model's own start token")
        sentence = message.problem or (over if not self._fits else count if message.ids else empty)
        self.query_one("#count", Static).update(Content.styled(sentence, look.quiet if self._fits else look.here))

    def action_leave(self) -> None:
        self._leave(None)

    def _leave(self, prompt: str | None) -> None:
        """Give *prompt* back, once, however often that is asked for."""
        if not self._left and self.app.screen is self:
            self._left = True
            self.dismiss(prompt)

    def accept(self) -> None:
        """Give the prompt back as soon as it is known to fit."""
        self._accepted = self._counted != self.text
        if self._fits and not self._accepted:
            self._leave(self.text)


class PromptArea(TextArea):
    """A text area in which enter is done and ctrl+j a new line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "accept", show=False, priority=True),
        Binding("ctrl+j", "new_line", show=False, priority=True),
    ]

    def __init__(self, text: str, stand_ins: StandIns) -> None:
        self._stand_ins = stand_ins
        super().__init__(stand_ins.hide(text), soft_wrap=True, show_line_numbers=False)

    def get_line(self, line_index: int) -> Text:
        """A line as it is drawn."""
        return Text(self._stand_ins.draw(self.document.get_line(line_index)), end="", no_wrap=True)

    def action_accept(self) -> None:
        screen = self.screen
        assert isinstance(screen, PromptScreen)
        screen.accept()

    def action_new_line(self) -> None:
        self.insert("\n")

    async def _on_paste(self, event: events.Paste) -> None:
        """Pasted text may hold anything, escape sequences included."""
        event.prevent_default()
        event.stop()
        self.replace(self._stand_ins.hide(event.text), *self.selection)
