"""Saving what is on the screen as a picture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

from rich.segment import Segment

from ..core.catalogue import tr
from ..core.errors import CutawayError
from ..core.files import WriteError, write_text
from ..widgets.look import Look
from ..widgets.picture import to_svg


def save_picture(lines: Sequence[Iterable[Segment]], width: int, look: Look, folder: Path, stem: str) -> Path:
    """Write *lines* as an SVG into *folder* under a free name that begins with *stem*; return its path.

    Raises `WriteError` when the folder cannot be written to or the disk is full.
    """
    lines = list(lines)
    for path in _free_names(folder, stem):
        try:
            write_svg(lines, width, look, path, overwrite=False)
        except WriteError:
            if path.exists():  # somebody took the name in between
                continue
            raise
        return path
    raise CutawayError(tr("no file name is free"), where=str(folder))


def write_svg(lines: Sequence[Iterable[Segment]], width: int, look: Look, path: Path, *, overwrite: bool) -> None:
    """Write *lines* of *width* columns at *path*. Raises `WriteError`."""
    svg = to_svg(lines, width=width, foreground=look.text, background=look.ground)
    write_text(path, svg, overwrite=overwrite)


def _free_names(folder: Path, stem: str) -> Iterator[Path]:
    """Paths in *folder* that are not taken, the plainest first."""
    safe = re.sub(r"[^\w.-]+", "-", stem)[:80]
    for number in count(1):
        path = folder / (f"{safe}.svg" if number == 1 else f"{safe}-{number}.svg")
        if not path.exists():
            yield path
