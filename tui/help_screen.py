"""Every key and what it does, on one page."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ..core.catalogue import tr
from ..widgets.drawable import cell_width
from ..widgets.look import Look
from .keys import help_rows


class HelpScreen(ModalScreen[None]):
    """Shows the keys until one is pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q,enter,space", "dismiss", show=False),
    ]

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look

    def compose(self) -> ComposeResult:
        rows = list(help_rows())
        column = max(cell_width(keys) for keys, _ in rows) + 3
        lines = []
        for keys, sentence in rows:
            key = (keys + " " * (column - cell_width(keys)), f"bold {self.look.here}")
            lines.append(Content.assemble(key, (sentence, self.look.text)))
        with VerticalScroll() as box:
            yield Static(Content("\n").join(lines))
        box.border_title = Content(tr("keys"))
        box.border_subtitle = Content(tr("esc leaves this list"))

    def on_click(self) -> None:
        self.dismiss()
