"""``cutaway trace``: run without a screen, write a recording or the events as they happen."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.catalogue import tr, trn
from ...core.errors import UsageError
from ..cli import DONE, INTERRUPTED
from ..options import add_model_options, check_usage, read_source, resolve

if TYPE_CHECKING:
    from rich.progress import Progress

    from ...core.generation import Generation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    group = parser.add_argument_group(tr("output"))
    group.add_argument("-o", "--output", type=Path, metavar="RUN.cutaway", help=tr("write a recording"))
    group.add_argument(
        "--capture",
        choices=("default", "all"),
        default="default",
        help=tr("what the recording holds (default)"),
    )
    group.add_argument("--force", action="store_true", help=tr("overwrite an existing file"))
    group.add_argument("--events", action="store_true", help=tr("print each event as a line of JSON"))
    group.add_argument("--arrays", action="store_true", help=tr("print arrays whole, not summed up"))


def run(arguments: argparse.Namespace) -> int:
    options = resolve(arguments)
    check_usage(options)
    if options.output is None and not options.events:
        raise UsageError(tr("there is nothing to write"), hint=tr("give -o RUN.cutaway, or --events, or both"))
    if options.arrays and not options.events:
        raise UsageError(tr("--arrays is about events"), hint=tr("add --events"))
    if options.output is not None:
        from ...core.files import check_writable

        check_writable(options.output, overwrite=options.force)
    from ...widgets.drawable import drawable
    from ..start import prepare

    generation = prepare(options, read_source(options), options.capture)
    if notice := generation.model.tokenizer.notice:
        print(drawable(notice, spaces=False), file=sys.stderr)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill saves what there is, as Ctrl-C does
    try:
        with _progress(options) as progress:
            _pull(generation, options, progress)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:  # whatever happened, whole steps are not lost
        generation.close()
        if options.output is not None and generation.trace.steps:
            _save(generation, options)
    return DONE


def _pull(generation: Generation, options: argparse.Namespace, progress: Progress | None) -> None:
    from ...core.events import TokenChosen
    from ..event_json import event_line

    task = progress.add_task(tr("writing"), total=generation.max_new_tokens) if progress else None
    for event in generation:
        if options.events:
            print(event_line(event, arrays=options.arrays), flush=True)
        if progress and task is not None and isinstance(event, TokenChosen):
            progress.advance(task)


@contextmanager
def _progress(options: argparse.Namespace) -> Iterator[Progress | None]:
    """A progress bar on stderr where that is a terminal and the events do not scroll past there."""
    if not sys.stderr.isatty() or (options.events and sys.stdout.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(tr("tokens")))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield progress


def _save(generation: Generation, options: argparse.Namespace) -> None:
    """Write the recording and say so on stderr; stdout belongs to the events."""
    trace = generation.trace
    trace.save(options.output, overwrite=options.force)
    from ...core.trace import REASONS
    from ...widgets.drawable import drawable

    print(
        trn(
            "1 token in {path} ({reason}), after {first:.0f} ms",
            "{count} tokens in {path} ({reason}); first token {first:.0f} ms, then {rate:.0f} tokens/s",
            len(trace.steps),
            path=drawable(str(options.output), spaces=False),
            reason=tr(REASONS[trace.finish_reason or "stopped"]),
            first=trace.prefill_seconds * 1000,
            rate=trace.decode_rate,
        ),
        file=sys.stderr,
    )
