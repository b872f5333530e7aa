"""The app: one run after another of one model, on one screen."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import signal
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

START_SPEED = 8.0
"""Tokens a second a run begins with."""


class CutawayApp(App[None]):
    """Opens the main screen and keeps what outlives it: options, look, the first prompt."""

    TITLE = "Cutaway"
    CSS_PATH = str(files(assets) / "cutaway.tcss")
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, options: argparse.Namespace, prompt: str | None = None) -> None:
        super().__init__()
        self.options = options
        self.prompt = prompt
        self.failure: Failed | None = None
        """Why there was nothing to show, where that ended the app."""
        self.look: Look = look(options.theme, options.colormap)
        self.register_theme(_theme(self.look))
        self.theme = f"cutaway-{self.look.name}"

    def on_mount(self) -> None:
        self.push_screen(MainScreen(self.options, self.look, self._first_runner(), self.fail))
        self.call_after_refresh(gc.freeze)  # what lives as long as the app need not be looked through again
        self._leave_on_signals()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette offers what the keys do, and nothing else."""
        for key in KEYS:
            if key.help and not key.action.startswith(("app.", "focus")):
                yield SystemCommand(
                    tr(key.label) if key.label else key.shown,
                    f"{tr(key.help)} ({key.shown})",
                    partial(screen.run_action, key.action),
                )

    def _first_runner(self) -> Runner:
        from .start import prepare

        return Runner(lambda: prepare(self.options, self.prompt), running=not self.options.step, speed=START_SPEED)

    def fail(self, failure: Failed) -> None:
        """Leave, because there is nothing to show."""
        self.failure = failure
        self.exit(return_code=1)

    def _leave_on_signals(self) -> None:
        """A closed terminal or a polite kill leaves as `q` does."""
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            if number := getattr(signal, name, None):
                with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                    loop.add_signal_handler(number, self.exit)


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
