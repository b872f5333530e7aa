"""``cutaway``: the app itself."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.catalogue import tr
from ...core.errors import CutawayError
from ..cli import DONE, complain
from ..options import add_app_options, add_model_options, check_look, check_usage, read_source, resolve

if TYPE_CHECKING:
    from ..start import Source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    add_app_options(parser)


def run(arguments: argparse.Namespace) -> int:
    options = resolve(arguments)
    check_usage(options)
    check_screen(options)
    source = read_source(options)
    from ...core.checkpoint.locate import locate
    from ..downloads import obtain_model

    obtain_model(options)
    locate(options.model)
    return show(options, source)


def show(options: argparse.Namespace, source: Source | None = None, recording: Path | None = None) -> int:
    """Run the app until somebody leaves it; return the exit status."""
    _reopen_keyboard()
    if hasattr(signal, "SIGHUP"):  # even under nohup: without its terminal the app has nobody left to serve
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    options.threads = options.threads or max(_processors() - 1, 1)
    sys.setswitchinterval(0.001)  # a key must not wait for the engine's Python for long
    from rich.console import Console

    from ...widgets.look import depth_of
    from ..app import CutawayApp
    from ..welcome import is_first_launch

    depth = depth_of(Console(force_terminal=True).color_system, "NO_COLOR" in os.environ)
    app = CutawayApp(options, source, recording=recording, depth=depth, welcome=is_first_launch())
    app.run()
    if app.failure is None:
        return app.return_code or DONE
    if options.debug:
        print(app.failure.details, file=sys.stderr)
    return complain(app.failure.sentence)


def check_screen(options: argparse.Namespace) -> None:
    """Refuse now, before a screen opens, what could not be shown on it. Raises `CutawayError`."""
    if not sys.stdout.isatty():
        raise CutawayError(
            tr("the app needs a terminal to draw on"),
            where=tr("standard output"),
            hint=tr("use cutaway trace without one"),
        )
    if not os.path.isdir(os.path.expanduser(options.output_dir)):
        raise CutawayError(
            tr("there is no such folder for pictures"), where=str(options.output_dir), hint=tr("make it first")
        )
    check_look(options)


def _processors() -> int:
    """Processors this process may use, which may be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 2


def _reopen_keyboard() -> None:
    """Where the prompt came through a pipe, take the keys from the terminal itself."""
    if sys.stdin is not None and sys.stdin.isatty():
        return
    try:
        os.dup2(os.open("/dev/tty", os.O_RDONLY), 0)
    except OSError as error:
        raise CutawayError(
            tr("there is no keyboard to read keys from"), hint=tr("use cutaway trace without one")
        ) from error
    sys.stdin = open(0, closefd=False)
