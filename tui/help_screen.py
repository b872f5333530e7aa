"""Every key and what it does, and what the words on the screen mean, on one page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ..core.catalogue import tr
from ..widgets.look import Look
from .keys import KEYS, WHAT_YOU_SEE, Key, help_rows


class HelpScreen(ModalScreen[None]):
    """Shows the keys until one is pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q,enter,space", "leave", show=False),
    ]

    def __init__(self, look: Look, keys: tuple[Key, ...] = KEYS) -> None:
        super().__init__()
        self.look = look
        self.keys = keys
        self._left = False

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            yield from self._table(help_rows(self.keys))
            yield Static(Content.styled(tr("what you see"), "bold"), classes="heading")
            yield from self._table((tr(word), tr(sentence)) for word, sentence in WHAT_YOU_SEE)
        box.border_title = Content(tr("keys"))
        box.border_subtitle = Content(tr("esc leaves this list"))

    def _table(self, rows: Iterable[tuple[str, str]]) -> ComposeResult:
        """Two columns, so that a sentence that wraps stays in its own."""
        with Grid():
            for word, sentence in rows:
                yield Static(Content.styled(word, f"bold {self.look.here}"))
                yield Static(Content.styled(sentence, self.look.text))

    def on_click(self) -> None:
        self.action_leave()

    def action_leave(self) -> None:
        """Leave, once, however often that is asked for."""
        if not self._left and self.app.screen is self:
            self._left = True
            self.dismiss()
