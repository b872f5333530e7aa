"""``--download``: fetching a model before it is opened, with progress on a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..core.catalogue import tr


def obtain_model(options: argparse.Namespace) -> None:
    """Download the model that *options* name if they allow that and it is not here. Raises `ModelError`."""
    if not options.download or options.model is None:
        return
    from ..core.checkpoint.download import obtain

    try:
        with _progress() as tell:
            obtain(options.model, tell)
    except KeyboardInterrupt:
        print(tr("stopped; what has arrived is kept, and --download goes on from there"), file=sys.stderr)
        raise


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """What shows a bar for each file on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda name, done, size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from ..widgets.drawable import drawable

    name_of_file = TextColumn("{task.description}", markup=False)
    columns = (name_of_file, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks = {}

        def tell(name: str, done: int, size: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(drawable(name, spaces=False), total=size, completed=done)
            progress.update(tasks[name], completed=done)

        yield tell
