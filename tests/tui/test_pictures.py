"""Pictures of the screen: under a fresh name each time, whole or not at all, and the run goes on either way."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from rich.segment import Segment

from cutaway.core.errors import UsageError
from cutaway.core.files import WriteError
from cutaway.tui import main_screen, pictures
from cutaway.tui.pictures import TYPES, save_picture, write_picture
from cutaway.widgets import picture_png
from cutaway.widgets.look import look

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp

ROWS = [[Segment("one")], [Segment("two")]]


def save(folder: Path, stem: str = "cutaway") -> Path:
    return save_picture(ROWS, 10, look(), folder, stem)


async def test_a_picture_shows_what_is_on_the_screen(open_app: OpenApp) -> None:
    async with open_app("A dog", max_new_tokens=3) as person:
        await person.has_ended()
        await person.press("s")
        await person.says("saved")
        [path] = person.folder.iterdir()
        assert person.notice in (f"saved {path}", f"saved {path.name}")
        assert path.name == "cutaway-fable-L2H4-token2.svg"
        picture = ElementTree.fromstring(path.read_text("utf-8"))
        words = {element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")}
        assert {"other", "token"} & set(" ".join(word or "" for word in words).split())
        said = "".join(word or "" for word in words)
        assert "cutaway" in said and "fable" in said
        assert "·dog" in said and "attention" in said and "weights" in said


async def test_every_picture_has_a_name_of_its_own(open_app: OpenApp) -> None:
    async with open_app(max_new_tokens=2) as person:
        await person.has_ended()
        for count in range(1, 4):
            await person.press("s")
            await person.has_pictures(count)
        await person.press("up", "s")
        await person.has_pictures(4)
        names = sorted(path.name for path in person.folder.iterdir())
        stem = "cutaway-fable-L2H4-token1"
        assert names == sorted([f"{stem}.svg", f"{stem}-2.svg", f"{stem}-3.svg", "cutaway-fable-L1H4-token1.svg"])


FAILURES = {
    errno.EACCES: "cannot be written to",
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "can only be read",
    errno.EIO: "Input/output error",
}


async def test_a_picture_that_cannot_be_written_is_one_sentence(
    open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing: list[int] = []

    def fail(*_: object) -> None:
        raise OSError(failing[-1], os.strerror(failing[-1]))

    async with open_app(speed=8.0, max_new_tokens=400) as person:
        await person.has_steps(1)
        for number, said in FAILURES.items():
            failing.append(number)
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", fail)
                await person.press("s")
                await person.says(said)
            assert list(person.folder.iterdir()) == []
            await person.goes_on(1)
        await person.press("s")
        await person.says("saved")


async def test_a_folder_that_is_none_is_one_sentence(open_app: OpenApp, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with open_app(max_new_tokens=1) as person:
        await person.has_ended()
        for folder in ("missing", "\x1b[2J", "a" * 300, "file/inside", "~nobody-of-that-name/pictures"):
            person.app.options.output_dir = folder if folder.startswith("~") else str(tmp_path / folder)
            person.screen.say("")
            await person.press("s")
            await person.until(lambda: person.notice and not person.notice.startswith("token"))
            assert not person.notice.startswith("saved")
            assert "\x1b" not in person.text
        await person.press("r")
        await person.has_ended()


async def test_anything_else_that_goes_wrong_is_one_sentence(
    open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Path:
        raise ValueError("embedded null byte")

    async with open_app(max_new_tokens=1) as person:
        await person.has_ended()
        monkeypatch.setattr(main_screen, "save_picture", fail)
        await person.press("s")
        await person.says("embedded null byte")


async def test_leaving_while_a_picture_is_written_is_immediate(
    open_app: OpenApp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with open_app(max_new_tokens=1) as person:
        await person.has_ended()
        await person.press("s", "q")
        await person.until(lambda: not person.app.is_running)


def test_names_hold_nothing_strange(tmp_path: Path) -> None:
    assert save(tmp_path, "cutaway-../../etc/passwd\x1b[2J 漢字").name == "cutaway-..-..-etc-passwd-2J-漢字.svg"
    assert len(save(tmp_path, "long" * 100).name) < 100
    assert [path.parent for path in tmp_path.iterdir()] == [tmp_path] * 2


def test_a_name_taken_in_between_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = iter([tmp_path / "taken.svg", tmp_path / "free.svg"])
    (tmp_path / "taken.svg").write_text("somebody else's")
    monkeypatch.setattr(pictures, "_free_names", lambda folder, stem, suffix: free)
    assert save(tmp_path).name == "free.svg"
    assert (tmp_path / "taken.svg").read_text() == "somebody else's"


def test_a_picture_is_readable_by_others(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        assert save(tmp_path).stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(mask)


BEGINNINGS = {
    ".svg": b"<svg ",
    ".png": b"\x89PNG",
    ".html": b"<!DOCTYPE html>",
    ".txt": b"say\none\n",
    ".ansi": b"\x1b[",
}


@pytest.mark.parametrize("suffix", TYPES)
def test_the_name_says_the_type(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"picture{suffix}"
    assert write_picture(ROWS, 10, look(), path, caption="say", overwrite=False) == ""
    assert path.read_bytes().startswith(BEGINNINGS[suffix])
    loud = tmp_path / f"LOUD{suffix.upper()}"
    write_picture(iter_rows(), 10, look(), loud, caption="say", overwrite=False)
    assert loud.read_bytes() == path.read_bytes()


def iter_rows() -> list[Iterable[Segment]]:
    """Rows that can be read only once."""
    return [iter(row) for row in ROWS]


@pytest.mark.parametrize("name", ["picture", "picture.jpg", ".svg", "picture.svg.gz"])
def test_a_name_of_no_type_is_refused_with_those_there_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.html, \.txt, \.ansi"):
        write_picture(ROWS, 10, look(), tmp_path / name, overwrite=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", TYPES)
def test_a_picture_that_is_there_stays_unless_it_may_go(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"picture{suffix}"
    path.write_text("somebody else's")
    with pytest.raises(WriteError, match="already there"):
        write_picture(ROWS, 10, look(), path, overwrite=False)
    assert path.read_text() == "somebody else's"
    write_picture(ROWS, 10, look(), path, overwrite=True)
    assert path.read_bytes() != b"somebody else's"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("ሀ", "1 character has no font here and is drawn as a box; SVG and HTML keep it"),
        ("ሀ→ሁሀ", "2 characters have no font here and are drawn as boxes; SVG and HTML keep them"),
    ],
)
def test_what_no_font_has_is_said(tmp_path: Path, text: str, notice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_png, "without_font", lambda asked, system_fonts: frozenset("ሀሁ") & set(asked))
    assert write_picture([[Segment(text)]], 10, look(), tmp_path / "a.png", overwrite=False) == notice
    assert write_picture([[Segment(text)]], 10, look(), tmp_path / "a.svg", overwrite=False) == ""


def test_saved_pictures_are_of_the_type_and_carry_the_caption(tmp_path: Path) -> None:
    names = [save_picture(ROWS, 10, look(), tmp_path, "v1.5", caption="say", suffix=".txt").name for _ in range(2)]
    assert names == ["v1.5.txt", "v1.5-2.txt"]
    assert (tmp_path / "v1.5-2.txt").read_text() == "say\none\ntwo\n"
