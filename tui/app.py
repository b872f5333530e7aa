"""The app: one run after another of one model, on one screen."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import signal
import traceback
from collections.abc import Iterable
from functools import partial
from importlib.resources import files
from typing import Any

from textual.app import App, SystemCommand
from textual.screen import Screen
from textual.theme import Theme

from .. import assets
from ..core.catalogue import tr
from ..widgets.look import Look, look
from .keys import KEYS
from .runner import Failed, Runner
from .screen import MainScreen
from .start import Source, prepare

START_SPEED = 8.0
"""Tokens a second a run begins with."""


class CutawayApp(App[None]):
    """Opens the main screen and keeps what outlives it: options, look, the first prompt."""

    TITLE = "Cutaway"
    CSS_PATH = str(files(assets) / "cutaway.tcss")
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, options: argparse.Namespace, source: Source | None = None) -> None:
        super().__init__()
        self.options = options
        self.source = source
        self.failure: Failed | None = None
        """Why there was nothing to show, or what went wrong inside, where that ended the app."""
        self.look: Look = look(options.theme, options.colormap)
        self.register_theme(_theme(self.look))
        self.theme = f"cutaway-{self.look.name}"

    def on_mount(self) -> None:
        first = Runner(lambda: prepare(self.options, self.source), running=not self.options.step, speed=START_SPEED)
        self.push_screen(MainScreen(self.options, self.look, first, self.source, self.fail))
        self.call_after_refresh(gc.freeze)  # what lives as long as the app need not be looked through again
        self._leave_on_sigterm()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette offers what the keys do, and nothing else."""
        for key in KEYS:
            if not key.action.startswith("app."):
                sentence = f"{tr(key.help)} ({key.shown})"
                yield SystemCommand(tr(key.title), sentence, partial(screen.run_action, key.action))

    def fail(self, failure: Failed) -> None:
        """Leave, because there is nothing to show."""
        self.failure = failure
        self.exit(return_code=1)

    def _handle_exception(self, error: Exception) -> None:
        """Leave with one sentence; the whole story, locals and all, is for ``--debug`` and for tests."""
        if self.is_headless or self.options.debug:
            super()._handle_exception(error)
        elif self.failure is None:
            what = tr("something went wrong inside Cutaway: {kind}: {reason}", kind=type(error).__name__, reason=error)
            self.fail(Failed(f"{what}; {tr('run it again with --debug to see where')}", traceback.format_exc()))

    def _leave_on_sigterm(self) -> None:
        """A polite kill leaves as `q` does. A closed terminal kills at once: nobody is there to say goodbye to."""
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.exit)


def _theme(look: Look) -> Theme:
    """The look for the parts that Textual draws itself."""
    return Theme(
        name=f"cutaway-{look.name}",
        primary=look.here,
        secondary=look.what,
        accent=look.here,
        foreground=look.text,
        background=look.ground,
        surface=look.panel,
        panel=look.panel,
        dark=look.name == "dark",
        variables={"text-muted": look.quiet, "footer-key-foreground": look.here},
    )
