"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

from .catalogue import tr
from .errors import CutawayError


class WriteError(CutawayError):
    """A file that could not be written; nothing of it is left behind."""


def write_whole(path: Path, write: Callable[[Path], None], *, overwrite: bool) -> None:
    """Let *write* fill a temporary file beside *path*, then give it that name in one step.

    Raises `WriteError` when the folder, the disk or an existing file stands in the way; the file that was there
    before is then still there, untouched.
    """
    try:
        _refuse_other_than_file(path)
        place = path.resolve()  # a link stays a link
        part = place.with_name(f".{place.name[:40]}.{token_hex(4)}.part")
        part.open("xb").close()
        try:
            write(part)
            _put(part, place, overwrite=overwrite)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise _explained(error, path) from error


def write_text(path: Path, text: str, *, overwrite: bool) -> None:
    """Write *text* as UTF-8, as `write_whole` does."""
    write_bytes(path, text.encode(), overwrite=overwrite)


def write_bytes(path: Path, data: bytes, *, overwrite: bool) -> None:
    """Write *data*, as `write_whole` does."""
    write_whole(path, lambda part: _write_synced(part, data), overwrite=overwrite)


def check_writable(path: Path, *, overwrite: bool) -> None:
    """Raise `WriteError` now for what would go wrong later, so that no run is made for a file that cannot be."""
    try:
        _refuse_other_than_file(path)
        if path.exists() and not overwrite:
            raise FileExistsError(errno.EEXIST, "")
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise _explained(error, path) from error


def _refuse_other_than_file(path: Path) -> None:
    """Raise OSError where *path* is a folder or a device, which giving its name to a file would take away."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "")
    if path.exists() and not path.is_file():
        raise OSError(errno.ENODEV, "")


def _write_synced(part: Path, data: bytes) -> None:
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _put(part: Path, path: Path, *, overwrite: bool) -> None:
    if overwrite:
        part.replace(path)
        return
    try:
        os.link(part, path)  # unlike replace, fails where the name is taken
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(errno.EEXIST, "") from None
        part.replace(path)


def _explained(error: OSError, path: Path) -> WriteError:
    what, hint = {
        errno.EEXIST: (
            tr("a file of this name is already there"),
            tr("choose another name, or pass --force"),
        ),
        errno.EISDIR: (tr("this is a folder, not a file"), tr("give a file name")),
        errno.ENODEV: (tr("this is a device or a pipe, not a file"), tr("give a file name")),
        errno.ENOENT: (tr("the folder does not exist"), tr("make it first, or choose another")),
        errno.ENOTDIR: (tr("a file stands where a folder should be"), tr("choose another place")),
        errno.ENOSPC: (tr("the disk is full"), tr("free some space and save again")),
        errno.EDQUOT: (tr("the disk quota is used up"), tr("free some space and save again")),
        errno.EACCES: (
            tr("this folder cannot be written to"),
            tr("choose another folder"),
        ),
        errno.EPERM: (
            tr("this folder cannot be written to"),
            tr("choose another folder"),
        ),
        errno.EROFS: (tr("this disk can only be read"), tr("choose another place")),
        errno.ENAMETOOLONG: (tr("the file name is too long"), tr("choose a shorter one")),
    }.get(
        error.errno or 0,
        (tr("the file could not be written: {reason}", reason=error.strerror), tr("choose another place")),
    )
    return WriteError(what, where=str(path), hint=hint)
