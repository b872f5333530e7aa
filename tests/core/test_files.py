"""Files are written whole or not at all, and what was there before is not touched."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cutaway.core import CutawayError
from cutaway.core.files import WriteError, check_writable, write_text, write_whole

Write = Callable[[Path], None]


def fill(part: Path) -> None:
    part.write_text("new")


def refusing(code: int, after: str = "") -> Write:
    """A writer that the system stops with error *code*."""

    def write(part: Path) -> None:
        part.write_text(after)
        raise OSError(code, os.strerror(code))

    return write


def attempts(path: Path, *, overwrite: bool) -> list[Callable[[], None]]:
    """Everything that can be refused at *path*."""
    return [
        partial(write_whole, path, fill, overwrite=overwrite),
        partial(write_text, path, "new", overwrite=overwrite),
        partial(check_writable, path, overwrite=overwrite),
    ]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=[False, True], ids=["new", "overwrite"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A place for a file, where in half of the tests there is one."""
    path = tmp_path / "run.cutaway"
    if request.param:
        path.write_text("old")
    return path


def assert_untouched(target: Path, before: list[str]) -> None:
    assert names(target.parent) == before
    if before:
        assert target.read_text() == "old"


def test_a_file_is_written(target: Path) -> None:
    write_whole(target, fill, overwrite=True)
    assert target.read_text() == "new"
    assert names(target.parent) == ["run.cutaway"]


def test_it_takes_its_name_only_when_it_is_whole(target: Path) -> None:
    before = names(target.parent)

    def write(part: Path) -> None:
        part.write_text("half")
        assert part.parent == target.parent and part != target
        assert part.name.startswith(".") and names(target.parent) == sorted([part.name, *before])
        if before:
            assert target.read_text() == "old"
        part.write_text("new")

    write_whole(target, write, overwrite=True)
    assert target.read_text() == "new"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EFBIG, "could not be written: File too large"),
        (errno.EIO, "could not be written: "),
    ],
)
def test_a_disk_that_takes_no_more(code: int, message: str, target: Path) -> None:
    before = names(target.parent)
    with pytest.raises(WriteError, match=message) as caught:
        write_whole(target, refusing(code, "half a recor"), overwrite=True)
    assert_untouched(target, before)
    assert str(target) in str(caught.value) and "\n" not in str(caught.value)
    assert isinstance(caught.value, CutawayError) and caught.value.hint


@pytest.mark.parametrize("error", [ValueError("not a file's fault"), KeyboardInterrupt()])
def test_a_writer_that_gives_up(error: BaseException, target: Path) -> None:
    before = names(target.parent)

    def write(part: Path) -> None:
        part.write_text("half")
        raise error

    with pytest.raises(type(error)):
        write_whole(target, write, overwrite=True)
    assert_untouched(target, before)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.EACCES, "this folder cannot be written to"),
        (errno.EPERM, "this folder cannot be written to"),
        (errno.EROFS, "this disk can only be read"),
    ],
)
def test_a_folder_that_cannot_be_written_to(
    code: int, message: str, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the system would say it to anyone but root."""
    before = names(target.parent)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as system:
        system.setattr(Path, "open", refuse)
        system.setattr(tempfile, "TemporaryFile", refuse)
        with pytest.raises(WriteError, match=message):
            write_whole(target, fill, overwrite=True)
        with pytest.raises(WriteError, match=message):
            check_writable(target, overwrite=True)
    assert_untouched(target, before)


def test_a_name_that_cannot_be_given(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = names(target.parent)

    def refuse(*_: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(WriteError, match="cannot be written to"):
        write_whole(target, fill, overwrite=True)
    assert_untouched(target, before)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("absent/run.cutaway", "the folder does not exist"),
        ("file/run.cutaway", "a file stands where a folder should be"),
        ("folder", "this is a folder"),
        (".", "this is a folder"),
        ("x" * 300, "the file name is too long"),
    ],
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_places_where_no_file_can_be(place: str, message: str, overwrite: bool, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    for attempt in attempts(tmp_path / place, overwrite=overwrite):
        with pytest.raises(WriteError, match=message):
            attempt()
    assert names(tmp_path) == ["file", "folder"] and not names(tmp_path / "folder")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in folders")
@pytest.mark.parametrize("overwrite", [False, True])
def test_devices_and_pipes_stay_what_they_are(overwrite: bool, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for attempt in attempts(pipe, overwrite=overwrite):
        with pytest.raises(WriteError, match="a device or a pipe"):
            attempt()
    assert stat.S_ISFIFO(pipe.stat().st_mode) and names(tmp_path) == ["pipe"]


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.cutaway"
    path.write_text("old")
    for attempt in attempts(path, overwrite=False):
        with pytest.raises(WriteError, match=r"already there.*choose another name, or pass --force"):
            attempt()
    check_writable(path, overwrite=True)
    assert_untouched(path, ["run.cutaway"])


def refuse_links(*_: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_while_another_is_written(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the file system knows no hard links."""
    path = tmp_path / "run.cutaway"
    if not links:
        monkeypatch.setattr(os, "link", refuse_links)

    def write(part: Path) -> None:
        part.write_text("new")
        path.write_text("old")

    with pytest.raises(WriteError, match="already there"):
        write_whole(path, write, overwrite=False)
    assert_untouched(path, ["run.cutaway"])


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_without_overwriting(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr(os, "link", refuse_links)
    write_whole(tmp_path / "run.cutaway", fill, overwrite=False)
    assert (tmp_path / "run.cutaway").read_text() == "new" and names(tmp_path) == ["run.cutaway"]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps rights elsewhere")
def test_others_may_read_it_as_they_may_read_any_new_file(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_whole(tmp_path / "x", fill, overwrite=True)
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(mask)


def test_text_is_utf8_as_it_stands(tmp_path: Path) -> None:
    write_text(tmp_path / "x", "naïve\r\n狐\n", overwrite=False)
    assert (tmp_path / "x").read_bytes() == "naïve\r\n狐\n".encode()


def test_names_of_any_length_and_script(tmp_path: Path) -> None:
    for name in ("x" * 250, "狐" * 80, "a b\n[c].svg"):
        check_writable(tmp_path / name, overwrite=False)
        write_whole(tmp_path / name, fill, overwrite=False)
        assert (tmp_path / name).read_text() == "new"


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "x", overwrite=False)
    assert names(tmp_path) == []


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("before")
    link.symlink_to(real)
    write_whole(link, fill, overwrite=True)
    assert link.is_symlink()
    assert real.read_text() == link.read_text() != "before"
