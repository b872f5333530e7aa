"""``cutaway open``: a recording in the app."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...core.catalogue import tr
from ..options import add_app_options, add_weights_options, check_look, resolve
from .app import check_screen, show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", type=Path, metavar="RUN.cutaway", help=tr("what cutaway trace has written"))
    add_weights_options(parser)
    add_app_options(parser)


def run(arguments: argparse.Namespace) -> int:
    wanted = getattr(arguments, "model", None)
    options = resolve(arguments)
    options.model = wanted  # without --model a recording is shown as it is, whatever model is the default
    check_look(options)
    check_screen(options)
    return show(options, recording=options.recording)
