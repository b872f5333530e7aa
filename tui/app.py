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
from pathlib import Path
from typing import Any

from textual.app import App, SystemCommand
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.screen import Screen
from textual.theme import Theme
from textual.worker import WorkerFailed

from .. import assets
from ..core.catalogue import tr
from ..core.generation import Generation
from ..core.trace import Trace
from ..widgets.look import Depth, Look, look
from .keys import remapped
from .main_screen import MainScreen
from .runner import Failed, Runner
from .start import Source, open_recording, prepare

START_SPEED = 8.0
"""Tokens a second a run begins with."""


class Palette(CommandPalette):
    """Textual's palette, in which a page key does no harm while the list is being filled."""

    def _action_command_list(self, action: str) -> None:
        with contextlib.suppress(KeyError):
            super()._action_command_list(action)


class CutawayApp(App[None]):
    """Opens the main screen and keeps what outlives it: options, look, the first prompt."""

    TITLE = "Cutaway"
    CSS_PATH = str(files(assets) / "cutaway.tcss")
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        options: argparse.Namespace,
        source: Source | None = None,
        *,
        recording: Path | None = None,
        depth: Depth = "truecolor",
        welcome: bool = False,
    ) -> None:
        """Show a run that continues *source*, or the *recording* at a path.

        *depth* says how many colours there are to draw with, *welcome* whether to say hello first.
        """
        super().__init__()
        self.options = options
        self.source = source
        self.recording = recording
        self.welcome = welcome
        self.prepared: Generation | Trace | None = None
        """A run that is ready, to be shown in place of all that."""
        self.failure: Failed | None = None
        """Why there was nothing to show, or what went wrong inside, where that ended the app."""
        self.look: Look = look(options.theme, options.colormap, depth)
        self.keys = remapped(options.keys)
        self.set_keymap({key.name: key.keys for key in self.keys})
        self.register_theme(_theme(self.look))
        self.theme = f"cutaway-{self.look.name}"

    def on_mount(self) -> None:
        first = Runner(self._prepare, running=not self.options.step, speed=START_SPEED)
        screen = MainScreen(self.options, self.look, first, self.source, self.fail, self.keys)
        screen.welcome = self.welcome
        if self.recording is not None:
            screen.opening = str(self.recording)
        self.push_screen(screen)
        self.call_after_refresh(gc.freeze)  # what lives as long as the app need not be looked through again
        self._leave_on_sigterm()

    def _prepare(self) -> Generation | Trace:
        """The first run; called on the engine's thread."""
        if self.prepared is not None:
            return self.prepared
        if self.recording is not None:
            return open_recording(self.options, self.recording)
        return prepare(self.options, self.source)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette offers what the keys do, and nothing else."""
        for key in self.keys:
            if key.name != "palette":
                sentence = f"{tr(key.help)} ({key.shown})"
                yield SystemCommand(tr(key.title), sentence, partial(screen.run_action, key.action))

    def action_command_palette(self) -> None:
        """Open the palette, unless it is open."""
        if not any(isinstance(screen, CommandPalette) for screen in self.screen_stack):
            self.push_screen(Palette(id="--command-palette"))

    def pop_screen(self) -> AwaitComplete:
        """Leave the screen on top, but never the main one: a click or a key that came twice asks for that."""
        return AwaitComplete() if isinstance(self.screen, MainScreen) else super().pop_screen()

    def fail(self, failure: Failed) -> None:
        """Leave, because there is nothing to show."""
        self.failure = failure
        self.exit(return_code=1)

    def _handle_exception(self, error: Exception) -> None:
        """Leave with one sentence; the whole story, locals and all, is for ``--debug`` and for tests.

        What goes wrong inside Textual's palette, which clicks upset while its list is being filled, ends the palette
        alone: a run is worth more.
        """
        if _is_the_palette_s(error):
            self.call_later(self._leave_palette)
        elif self.options.debug or (self.is_headless and self.prepared is None):
            super()._handle_exception(error)
        elif self.failure is None:
            what = tr("something went wrong inside Cutaway: {kind}: {reason}", kind=type(error).__name__, reason=error)
            self.fail(Failed(f"{what}; {tr('run it again with --debug to see where')}", traceback.format_exc()))

    def _leave_palette(self) -> None:
        if isinstance(self.screen, CommandPalette):
            self.pop_screen()

    def _leave_on_sigterm(self) -> None:
        """A polite kill leaves as `q` does. A closed terminal kills at once: nobody is there to say goodbye to."""
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.exit)


def _is_the_palette_s(error: Exception) -> bool:
    """Whether *error* came about inside the palette, and in none of our own code that it called."""
    cause = error.error if isinstance(error, WorkerFailed) else error
    frames = [frame for frame, _ in traceback.walk_tb(cause.__traceback__)]
    ours = any(str(frame.f_globals.get("__name__")).startswith(f"{__package__}.") for frame in frames)
    return not ours and any(isinstance(frame.f_locals.get("self"), CommandPalette | CommandList) for frame in frames)


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
