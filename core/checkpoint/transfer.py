"""Fetching a file from the hub into its cache, going on where an earlier attempt ended.

huggingface_hub's own downloads may begin every file anew. Here what has arrived of one stays as
``blobs/ETAG.incomplete``, and becomes ``blobs/ETAG``, with a link to it in the snapshot, when all of it is there.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..catalogue import tr

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Told = Callable[[int, int], None]
"""Told again and again: bytes so far, all bytes."""

_PIECE = 1 << 18
"""Bytes that are asked for, written and told at once."""
_ETAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


def fetch_file(url: str, headers: dict[str, str], pointer: Path, tell: Told) -> None:
    """Bring the file at *url* into the cache, so that it is found at *pointer*: ``snapshots/COMMIT/NAME``.

    Raises whatever huggingface_hub does, and OSError for a file that is damaged.
    """
    from huggingface_hub import get_hf_file_metadata
    from huggingface_hub.utils import WeakFileLock

    headers = headers | {"Accept-Encoding": "identity"}  # a range of a compressed file would be of no use
    about = get_hf_file_metadata(url, headers=headers)
    etag, size = about.etag or "", about.size
    if not _ETAG.fullmatch(etag) or size is None:
        raise OSError(tr("the hub does not say which file this is"))
    repository = pointer.parents[2]
    blob = repository / "blobs" / etag
    lock = repository.parent / ".locks" / repository.name / f"{etag}.lock"
    for path in (blob, lock, pointer):
        path.parent.mkdir(parents=True, exist_ok=True)
    with WeakFileLock(lock):
        if not blob.exists():
            _fill(blob, url, headers, size, tell)
        if not pointer.exists():
            _link(blob, pointer)


def _link(blob: Path, pointer: Path) -> None:
    """Let *pointer* be the file *blob*, which moves there where a system has no links."""
    pointer.unlink(missing_ok=True)  # a link to nothing
    try:
        pointer.symlink_to(os.path.relpath(blob, pointer.parent))
    except OSError:
        os.replace(blob, pointer)


def _fill(blob: Path, url: str, headers: dict[str, str], size: int, tell: Told) -> None:
    """Write the *size* bytes at *url* to *blob*, whole or not at all."""
    part = blob.with_name(f"{blob.name}.incomplete")
    with _Part(part, lambda done: tell(done, size)) as file, _small_pieces():
        if file.tell() > size:
            file.truncate(0)
            file.seek(0)
        while file.tell() < size:
            _append(file, url, headers, size)
    if part.stat().st_size != size or (_SHA256.fullmatch(blob.name) and _sha256(part) != blob.name):
        part.unlink()
        raise OSError(tr("what has arrived is not what the hub has"))
    os.replace(part, blob)


def _append(file: _Part, url: str, headers: dict[str, str], size: int) -> None:
    """Bring the rest of the file at *url*; a connection that breaks is no error if something has come through it."""
    from huggingface_hub.file_download import http_get

    begun = file.tell()
    try:
        http_get(url, file, resume_size=begun, headers=headers, expected_size=size)
    except Exception:  # whoever called asks for the rest: an error that lasts is raised as soon as nothing comes
        if file.tell() <= begun:
            raise


class _Part(io.BufferedWriter):
    """The beginning of a file: goes on where it ended, and tells how much there is."""

    def __init__(self, path: Path, tell: Callable[[int], None]) -> None:
        super().__init__(io.FileIO(path, "a"))
        self._tell_of = tell
        tell(self.tell())

    def write(self, data: ReadableBuffer, /) -> int:
        """Append *data*."""
        count = super().write(data)
        self._tell_of(self.tell())
        return count


@contextmanager
def _small_pieces() -> Iterator[None]:
    """Have huggingface_hub hand over what arrives in small pieces, since of an unfinished one nothing is kept."""
    from huggingface_hub import constants

    usual = constants.DOWNLOAD_CHUNK_SIZE
    constants.DOWNLOAD_CHUNK_SIZE = _PIECE
    try:
        yield
    finally:
        constants.DOWNLOAD_CHUNK_SIZE = usual


def _sha256(path: Path) -> str:
    """What the hub calls a large file: the SHA-256 of its bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
