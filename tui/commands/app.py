"""``cutaway``: the app itself."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from ...core.catalogue import tr
from ...core.errors import CutawayError, UsageError
from ..cli import DONE, complain
from ..options import add_app_options, add_model_options, check_usage, read_source, resolve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    add_app_options(parser)


def run(arguments: argparse.Namespace) -> int:
    options = resolve(arguments)
    check_usage(options)
    _check(options)
    source = read_source(options)
    _reopen_keyboard()
    if hasattr(signal, "SIGHUP"):  # even under nohup: without its terminal the app has nobody left to serve
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    options.threads = options.threads or max(_processors() - 1, 1)
    from ..app import CutawayApp

    app = CutawayApp(options, source)
    app.run()
    if app.failure is None:
        return app.return_code or DONE
    if options.debug:
        print(app.failure.details, file=sys.stderr)
    return complain(app.failure.sentence)


def _check(options: argparse.Namespace) -> None:
    """Refuse now, before a screen opens, what could not be shown on it. Raises `CutawayError`."""
    if not sys.stdout.isatty():
        raise CutawayError(
            tr("the app needs a terminal to draw on"),
            where=tr("standard output"),
            hint=tr("use cutaway trace without one"),
        )
    from ...core.checkpoint.locate import locate
    from ...widgets.look import COLORMAPS, THEMES

    locate(options.model)
    if not os.path.isdir(os.path.expanduser(options.output_dir)):
        raise CutawayError(
            tr("there is no such folder for pictures"), where=str(options.output_dir), hint=tr("make it first")
        )
    for name, value, known in (
        ("--theme", options.theme, THEMES),
        ("--colormap", options.colormap, COLORMAPS),
        ("--lang", options.lang, ("en",)),
    ):
        if value not in known:
            raise UsageError(
                tr("there is no {value}", value=repr(value)),
                where=name,
                hint=tr("choose from {names}", names=", ".join(known)),
            )


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
