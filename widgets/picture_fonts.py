"""Fonts for pictures that are drawn here: one that comes along, the system's for what it lacks, boxes for the rest."""

import zlib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from .. import assets

SCALE = 2
"""Pixels of a PNG for each of the SVG's."""

_FAMILY = "DejaVu Sans Mono"
_CELL_WIDTH, _CELL_HEIGHT = 32, 48
_NOBODYS = "\U0010fffd"
"""The last character for private use, which no font draws."""


def render(svg: str, *, system_fonts: bool, scale: int = SCALE) -> bytes:
    """Return *svg* as a PNG, drawn in the font that comes along and, with *system_fonts*, in what the system has."""
    import resvg_py  # 3 MB that only a PNG needs

    return resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=scale,
        skip_system_fonts=not system_fonts,
        font_files=[str(font) for font in sorted(Path(str(files(assets)), "fonts").glob("*.ttf"))],
        font_family=_FAMILY,
        monospace_family=_FAMILY,
    )


def without_font(characters: Iterable[str], *, system_fonts: bool) -> frozenset[str]:
    """Return those of *characters* that no font draws.

    The renderer alone knows which fonts it finds, so it is asked: what looks like a character that no font has
    is one.
    """
    asked = sorted(characters)
    missing, *answers = _drawings([_NOBODYS, *asked], system_fonts=system_fonts)
    return frozenset(character for character, answer in zip(asked, answers, strict=True) if answer == missing)


def _drawings(characters: list[str], *, system_fonts: bool) -> list[bytes]:
    """Return what stands in the PNG for each of *characters*, equal for those that look the same.

    They stand below each other with blank rows between. A PNG stores a row by its difference to the one above,
    so that what is stored of a drawing depends on nothing but itself.
    """
    texts = (
        f'<text x="8" y="{_CELL_HEIGHT * place + 32}">&#{ord(character)};</text>'
        for place, character in enumerate(characters)
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_CELL_WIDTH}" height="{_CELL_HEIGHT * len(characters)}"'
        f' font-family="{_FAMILY}" font-size="12">'
    )
    png = render(f"{head}{''.join(texts)}</svg>", system_fonts=system_fonts, scale=1)
    stored = zlib.decompress(b"".join(_image_data(png)))
    size = len(stored) // len(characters)
    return [stored[start : start + size] for start in range(0, len(stored), size)]


def _image_data(png: bytes) -> Iterator[bytes]:
    """The chunks of *png* that hold its rows; each chunk is its length, its name, its content and a checksum."""
    place = 8
    while place < len(png):
        end = place + 8 + int.from_bytes(png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            yield png[place + 8 : end]
        place = end + 4
