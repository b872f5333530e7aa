"""A picture as a PNG: the fonts that come along, the system's for what they lack, boxes for the rest."""

import re
import subprocess
import sys
import zlib
from importlib.resources import files

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style

from cutaway import assets
from cutaway.widgets import picture_png
from cutaway.widgets.picture_fonts import without_font
from cutaway.widgets.picture_png import Png, to_png
from cutaway.widgets.svg_glyphs import CELL_HEIGHT, CELL_WIDTH

COLOURS = {"foreground": "#dddddd", "background": "#111111"}
GROUND = (0x11, 0x11, 0x11)


def draw(*rows: list[Segment], width: int = 20, title: str = "") -> Png:
    return to_png(rows, width=width, **COLOURS, title=title)


def pixels(png: bytes) -> NDArray[np.uint8]:
    """The colours of *png* [height, width, 3], which is taken to be what the renderer writes: RGBA, no interlacing."""
    width, height = int.from_bytes(png[16:20]), int.from_bytes(png[20:24])
    assert png[24:29] == bytes([8, 6, 0, 0, 0])
    chunks = []
    place = 8
    while place < len(png):
        size = int.from_bytes(png[place : place + 4])
        chunks += [png[place + 8 : place + 8 + size]] * (png[place + 4 : place + 8] == b"IDAT")
        place += size + 12
    stored = np.frombuffer(zlib.decompress(b"".join(chunks)), np.uint8).reshape(height, 1 + 4 * width)
    image = np.zeros((height + 1, width + 1, 4), np.int64)  # with a blank row above and a blank column before
    for y, row in enumerate(stored.astype(np.int64)):
        above = image[y]
        for x, value in enumerate(row[1:].reshape(width, 4)):
            left, up, corner = image[y + 1, x], above[x + 1], above[x]
            guess = left + up - corner
            to_left, to_up, to_corner = abs(guess - left), abs(guess - up), abs(guess - corner)
            nearer = np.where(to_up <= to_corner, up, corner)
            paeth = np.where((to_left <= to_up) & (to_left <= to_corner), left, nearer)
            image[y + 1, x + 1] = (value + (0, left, up, (left + up) // 2, paeth)[row[0]]) % 256
    return image[1:, 1:, :3].astype(np.uint8)


def cell(image: NDArray[np.uint8], column: int, row: int = 0) -> NDArray[np.uint8]:
    """The pixels of one cell of a picture without a caption."""
    y, x = 2 * (8 + row * CELL_HEIGHT), 2 * (8 + column * CELL_WIDTH)
    return image[y : y + 2 * CELL_HEIGHT, x : x + 2 * CELL_WIDTH]


def colours(image: NDArray[np.uint8]) -> set[tuple[int, ...]]:
    return {tuple(map(int, colour)) for colour in np.unique(image.reshape(-1, 3), axis=0)}


def test_a_png_is_twice_the_size_of_the_svg() -> None:
    image = pixels(draw([Segment("x")], [Segment("y")], width=5).data)
    assert image.shape == (2 * (2 * 16 + 16), 2 * (5 * 8 + 16), 3)


def test_letters_stand_in_their_cells() -> None:
    image = pixels(draw([Segment("M"), Segment(" →")], width=4).data)
    inked = [colours(cell(image, column)) != {GROUND} for column in range(4)]
    assert inked == [True, False, True, False]


def test_blocks_meet_without_a_seam() -> None:
    row = [Segment("▀▄█▌▐", Style.parse("#ff0000 on #0000ff"))]
    image = pixels(draw(row, row, width=5).data)
    inside = image[16:-16, 16:-16]
    assert colours(inside) == {(255, 0, 0), (0, 0, 255)}
    assert colours(cell(image, 2)) == {(255, 0, 0)}
    assert colours(cell(image, 0)[:16]) == {(255, 0, 0)}


def test_the_fonts_that_come_along_are_asked_first() -> None:
    assert without_font("a→…◂⏎é", system_fonts=False) == frozenset()
    assert without_font("→明\U00013000\ue000", system_fonts=False) == frozenset("明\U00013000\ue000")


def test_a_mark_has_a_font_of_its_own() -> None:
    assert without_font("\u0301\u0316", system_fonts=False) == frozenset()


def test_a_character_without_a_font_is_a_box_of_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_png, "without_font", lambda characters, system_fonts: frozenset(characters))
    png = draw([Segment("a明b")], width=4)
    assert png.boxed == {"明"}
    image = pixels(png.data)
    edge = {(0xDD, 0xDD, 0xDD)}
    assert colours(cell(image, 1)[6:26, :2]) == edge
    assert colours(cell(image, 2)[6:26, -2:]) == edge
    assert colours(cell(image, 1)[6:26, 4:]) == {GROUND}


def test_the_system_is_not_asked_about_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def ask(characters: set[str], system_fonts: bool) -> frozenset[str]:
        asked.append(system_fonts)
        return frozenset()

    monkeypatch.setattr(picture_png, "without_font", ask)
    assert draw([Segment("a→b ▀ ─")], title="é…").boxed == frozenset()
    assert asked == [False]


def test_the_license_of_the_fonts_comes_with_them() -> None:
    folder = files(assets) / "fonts"
    names = {file.name for file in folder.iterdir() if file.name != "__pycache__"}
    assert names == {"DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf", "DejaVuSansMono-Oblique.ttf", "LICENSE.txt"}
    text = (folder / "LICENSE.txt").read_text("utf-8")
    assert re.search(r"Copyright \(c\) 2003 by Bitstream, Inc\.", text) and "Tavmjong Bah" in text


def test_the_renderer_is_loaded_by_a_png_only() -> None:
    code = "import sys, cutaway.tui.pictures; sys.exit('resvg_py' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code]).returncode == 0
