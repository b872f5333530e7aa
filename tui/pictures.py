"""Saving what is on the screen as a picture, of the type that its name ends with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from rich.segment import Segment

from ..core.catalogue import tr, trn
from ..core.errors import CutawayError, UsageError
from ..core.files import WriteError, write_bytes
from ..widgets.look import Look
from ..widgets.picture import to_svg
from ..widgets.picture_html import to_html
from ..widgets.picture_png import to_png
from ..widgets.picture_text import to_ansi, to_text

TYPES = (".svg", ".png", ".html", ".txt", ".ansi")
"""What the name of a picture may end with."""

_AS_TEXT: dict[str, Callable[..., str]] = {".svg": to_svg, ".html": to_html, ".ansi": to_ansi}


def picture_type(path: Path) -> str:
    """Return which of `TYPES` *path* names. Raises `UsageError` when it is none."""
    suffix = path.suffix.lower()
    if suffix not in TYPES:
        raise UsageError(
            tr("no picture has a name like this"),
            where=path.name,
            hint=tr("let it end with one of {types}", types=", ".join(TYPES)),
        )
    return suffix


def write_picture(
    lines: Sequence[Iterable[Segment]], width: int, look: Look, path: Path, *, caption: str = "", overwrite: bool
) -> str:
    """Write *lines* of *width* columns at *path*, below *caption* if there is one.

    Returns a sentence on what does not look as on the screen, drawable, or nothing.

    Raises:
        UsageError: the name ends with none of `TYPES`.
        WriteError: the file cannot be written; nothing of it is left behind.
    """
    data, notice = _drawn([list(line) for line in lines], width, look, caption, picture_type(path))
    write_bytes(path, data, overwrite=overwrite)
    return notice


def save_picture(
    lines: Sequence[Iterable[Segment]],
    width: int,
    look: Look,
    folder: Path,
    stem: str,
    *,
    caption: str = "",
    suffix: str = ".svg",
) -> Path:
    """Write *lines* into *folder* under a free name that begins with *stem*; return its path.

    Raises `WriteError` when the folder cannot be written to or the disk is full.
    """
    lines = [list(line) for line in lines]
    for path in _free_names(folder, stem, suffix):
        try:
            write_picture(lines, width, look, path, caption=caption, overwrite=False)
        except WriteError:
            if path.exists():  # somebody took the name in between
                continue
            raise
        return path
    raise CutawayError(tr("no file name is free"), where=str(folder))


def _drawn(lines: Sequence[Iterable[Segment]], width: int, look: Look, caption: str, suffix: str) -> tuple[bytes, str]:
    """Return the bytes of a picture, and the sentence on what does not look as on the screen."""
    if suffix == ".txt":
        return to_text(lines, width=width, title=caption).encode(), ""
    page: dict[str, Any] = {"width": width, "foreground": look.text, "background": look.ground, "title": caption}
    if suffix == ".png":
        png = to_png(lines, **page)
        return png.data, _boxes(len(png.boxed))
    return _AS_TEXT[suffix](lines, **page).encode(), ""


def _boxes(count: int) -> str:
    if count == 0:
        return ""
    return trn(
        "1 character has no font here and is drawn as a box; SVG and HTML keep it",
        "{count} characters have no font here and are drawn as boxes; SVG and HTML keep them",
        count,
    )


def _free_names(folder: Path, stem: str, suffix: str) -> Iterator[Path]:
    """Paths in *folder* that are not taken, the plainest first."""
    safe = re.sub(r"[^\w.-]+", "-", stem)[:80]
    for number in count(1):
        path = folder / (f"{safe}{suffix}" if number == 1 else f"{safe}-{number}{suffix}")
        if not path.exists():
            yield path
