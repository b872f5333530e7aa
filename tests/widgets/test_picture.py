"""A picture is valid XML whatever is in it, refers to nothing outside, and keeps to the terminal's grid."""

import json
import re
import unicodedata
from collections.abc import Iterable
from importlib.resources import files
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len
from rich.segment import ControlType, Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from cutaway.widgets.drawable import draw_token, fit
from cutaway.widgets.picture import screen_lines, to_svg
from cutaway.widgets.svg_glyphs import BLOCKS, CELL_HEIGHT, CELL_WIDTH, LINES

SVG = "{http://www.w3.org/2000/svg}"

ELEMENTS = {f"{SVG}{name}" for name in ("svg", "title", "rect", "g", "path", "text")}

RAW = [
    "[/INST]",
    "\x1b]0;title\x07",
    "\x1b[2J\x9b2J",
    "\x00\x01\x7f\ufffe\uffff\ud800",
    "a\u202eb\u2066c\u200bd\ufeff",
    "ש\u202eש",
    "<&>\"']]>",
    "line\nfeed\u2028\u2029",
    "\u0301e\u0301 👩\u200d👩\u200d👧 ❤\ufe0f 🇫🇷 漢字 \u3000",
]

Picture = ElementTree.Element


def draw(*rows: Iterable[Segment], width: int = 40, title: str = "") -> Picture:
    """The picture of *rows*, parsed, once it is known to be clean."""
    svg = to_svg(rows, width=width, foreground="#dddddd", background="#111111", title=title)
    categories = {unicodedata.category(character) for character in svg if character not in "\n\u200d"}
    assert not categories & {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
    assert re.findall(r"[a-z]+://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    picture = ElementTree.fromstring(svg)
    assert {element.tag for element in picture.iter()} <= ELEMENTS
    return picture


def segment(text: str, style: str = "") -> Segment:
    return Segment(text, Style.parse(style))


def texts(picture: Picture) -> list[tuple[float, float, str]]:
    """Column, number of columns and content of every text element."""
    return [
        (
            float(element.attrib["x"]) / CELL_WIDTH,
            float(element.get("textLength", CELL_WIDTH)) / CELL_WIDTH,
            element.text or "",
        )
        for element in picture.iter(f"{SVG}text")
    ]


def rects(picture: Picture, fill: str) -> set[tuple[int, ...]]:
    """The rectangles of one colour, as (x, y, width, height)."""
    paths = "".join(path.attrib["d"] for path in picture.iter(f"{SVG}path") if path.get("fill") == fill)
    found = re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-\3z", paths)
    assert paths == "".join("M{0} {1}h{2}v{3}h-{2}z".format(*rect) for rect in found)
    return {tuple(map(int, rect)) for rect in found}


def strokes(picture: Picture) -> list[str]:
    return [path.attrib["d"] for path in picture.iter(f"{SVG}path") if path.get("stroke")]


def vocabulary() -> list[bytes]:
    """Every token of the embedded model."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(0x100) if byte not in printable]
    to_byte = {0x100 + place: byte for place, byte in enumerate(hidden)}
    tokenizer = json.loads((files("cutaway.assets") / "models/fable/tokenizer.json").read_text("utf-8"))
    return [name.translate(to_byte).encode("latin-1") for name in tokenizer["model"]["vocab"]]


@pytest.mark.parametrize("text", RAW)
def test_anything_at_all_makes_a_valid_picture_on_the_grid(text: str) -> None:
    picture = draw([Segment(text), segment("|", "red")], title=text)
    assert (cell_len(text), 1, "|") in texts(picture)


def test_every_token_makes_a_valid_picture() -> None:
    tokens = [draw_token(token) for token in vocabulary()]
    rows = [[Segment(fit(token, 10)) for token in tokens[start : start + 8]] for start in range(0, len(tokens), 8)]
    shown = "".join(content for _, _, content in texts(draw(*rows, width=80)))
    assert sorted(shown.replace(" ", "")) == sorted("".join(fit(token, 10) for token in tokens).replace(" ", ""))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  two words  ", [(2, 9, "two words")]),
        ("a漢字b", [(0, 1, "a"), (1, 2, "漢"), (3, 2, "字"), (5, 1, "b")]),
        ("ab→cd", [(0, 2, "ab"), (2, 1, "→"), (3, 2, "cd")]),
        ("xe\u0301y", [(0, 1, "x"), (1, 1, "e\u0301"), (2, 1, "y")]),
        ("שלום·12", [(0, 4, "שלום"), (4, 3, "·12")]),
        ("😀👩\u200d👧|", [(0, 2, "😀"), (2, 2, "👩\u200d👧"), (4, 1, "|")]),
        ("ab  cd e   f", [(0, 2, "ab"), (4, 4, "cd e"), (11, 1, "f")]),
        ("a\u3000b", [(0, 1, "a"), (3, 1, "b")]),
        ("   ", []),
    ],
)
def test_text_is_pinned_to_its_columns(text: str, expected: list[tuple[int, int, str]]) -> None:
    assert sorted(texts(draw([Segment(text)]))) == expected


def test_every_column_keeps_its_place_beside_wide_characters() -> None:
    row = "字a漢bb🦊ccc"
    for column, _, content in texts(draw([Segment(row)])):
        assert column == cell_len(row[: row.index(content)])


def test_what_is_beyond_the_width_is_left_out() -> None:
    picture = draw([Segment("abc"), segment("def漢", "on red")], width=5)
    assert texts(picture) == [(0, 3, "abc"), (3, 2, "de")]
    assert rects(picture, "#800000") == {(24, 0, 16, 16)}


def test_control_segments_are_ignored() -> None:
    assert texts(draw([Segment("\x1b[2J", None, [(ControlType.CLEAR,)]), Segment("ab")])) == [(0, 2, "ab")]


def test_grounds_of_one_colour_are_one_rectangle() -> None:
    row = [segment("ab", "on #203040"), segment("  ", "red on #203040"), segment("c", "on #405060"), Segment("d")]
    picture = draw([], row)
    assert rects(picture, "#203040") == {(0, 16, 32, 16)}
    assert rects(picture, "#405060") == {(32, 16, 8, 16)}
    assert rects(picture, "#111111") == set()


@pytest.mark.parametrize(
    ("character", "expected"),
    [
        ("█", {(8, 0, 8, 16)}),
        ("▋", {(8, 0, 5, 16)}),
        ("▏", {(8, 0, 1, 16)}),
        ("▃", {(8, 10, 8, 6)}),
        ("▀", {(8, 0, 8, 8)}),
        ("▄", {(8, 8, 8, 8)}),
        ("▐", {(12, 0, 4, 16)}),
        ("▔", {(8, 0, 8, 2)}),
        ("▕", {(15, 0, 1, 16)}),
        ("▞", {(12, 0, 4, 8), (8, 8, 4, 8)}),
        ("▙", {(8, 0, 4, 8), (8, 8, 4, 8), (12, 8, 4, 8)}),
    ],
)
def test_blocks_fill_their_part_of_the_cell(character: str, expected: set[tuple[int, ...]]) -> None:
    picture = draw([Segment(" "), segment(character, "#00ff00 on #0000ff")])
    assert rects(picture, "#00ff00") == expected
    assert rects(picture, "#0000ff") == {(8, 0, 8, 16)}
    assert texts(picture) == []


def test_every_block_element_is_geometry() -> None:
    assert set(BLOCKS) == set(map(chr, range(0x2580, 0x25A0)))
    picture = draw([segment("".join(BLOCKS), "#00ff00")])
    assert texts(picture) == []


def test_blocks_are_painted_over_grounds_of_later_rows() -> None:
    picture = draw([segment("█", "#00ff00")], [segment("▌", "#00ff00 on #0000ff")])
    order = [path.attrib["fill"] for path in picture.iter(f"{SVG}path")]
    assert order == ["#0000ff", "#00ff00"]


def test_shades_let_the_ground_through() -> None:
    picture = draw([segment("░▒▓", "#00ff00")])
    opacities = [path.attrib["fill-opacity"] for path in picture.iter(f"{SVG}path")]
    assert opacities == ["0.25", "0.5", "0.75"]


MIDDLE = {
    ("LIGHT", True): [8.5],
    ("LIGHT", False): [4.5],
    ("HEAVY", True): [8.0],
    ("HEAVY", False): [4.0],
    ("DOUBLE", True): [6.5, 9.5],
    ("DOUBLE", False): [2.5, 5.5],
}
"""Where a line of some weight, across or up and down, meets the side of a cell."""

SIDES = {"HORIZONTAL": "lr", "VERTICAL": "ud", "LEFT": "l", "RIGHT": "r", "UP": "u", "DOWN": "d"}


def ends(character: str) -> set[tuple[str, float]]:
    """The sides of its cell that a box-drawing character reaches, and where."""
    found = set()
    for x, y, path in LINES[character].strokes:
        points = [(x, y)]
        for command, numbers in re.findall("([hva])([^hva]*)", path):
            *_, last, step = (0.0, *map(float, re.findall(r"-?[\d.]+", numbers)))
            x, y = x + (step if command == "h" else last if command == "a" else 0), y + step * (command != "h")
            points.append((x, y))
        for x, y in (points[0], points[-1]):
            found |= {(side, y) for side, edge in (("l", 0), ("r", CELL_WIDTH)) if x == edge}
            found |= {(side, x) for side, edge in (("u", 0), ("d", CELL_HEIGHT)) if y == edge}
    return found


@pytest.mark.parametrize("character", LINES)
def test_lines_reach_the_sides_that_their_names_say(character: str) -> None:
    name = unicodedata.name(character)
    sides = "".join(SIDES.get(word, "") for word in name.split())
    assert ends(character) == {(side, at) for side in sides for at in MIDDLE[name.split()[2], side in "lr"]}


def test_a_border_is_drawn_in_place() -> None:
    picture = draw([segment(" ╭──╮", "red")], [segment(" ┃", "red")])
    assert texts(picture) == []
    assert strokes(picture) == [
        "M12.5 16v-4a3.5 3.5 0 0 1 3.5-3.5M16 8.5h16M36.5 16v-4a3.5 3.5 0 0 0-3.5-3.5h-1",
        "M12 16v16",
    ]


def test_lines_without_a_drawing_are_left_to_the_font() -> None:
    assert texts(draw([Segment("╌╱")])) == [(0, 1, "╌"), (1, 1, "╱")]


def test_looks() -> None:
    picture = draw(
        [segment("b", "bold red"), segment("i", "italic"), segment("r", "reverse red"), segment("d", "dim")],
        [segment(" u ", "underline"), segment("s", "strike")],
    )
    attributes = {element.text: element.attrib for element in picture.iter(f"{SVG}text")}
    assert (attributes["b"]["font-weight"], attributes["b"]["fill"]) == ("bold", "#800000")
    assert attributes["i"]["font-style"] == "italic"
    assert attributes["r"]["fill"] == "#111111"
    assert rects(picture, "#800000") == {(16, 0, 8, 16)}
    assert attributes["d"]["fill"] == "#777777"
    assert rects(picture, "#dddddd") == {(0, 30, 24, 1), (24, 24, 8, 1)}


def test_a_title_is_a_caption() -> None:
    bare, titled = draw([Segment("x")]), draw([Segment("x")], title="fable <\x1b>")
    assert bare.find(f"{SVG}title") is None
    assert [element.text for element in titled.iter(f"{SVG}title")] == ["fable <␛>"]
    assert float(titled.attrib["height"]) > float(bare.attrib["height"])
    assert (0, 1, "x") in texts(titled)


def test_a_caption_keeps_its_distance_and_loses_nothing() -> None:
    picture = draw([Segment("the screen")], width=20, title="fable · token 3 · 明月 and the rest of it")
    assert [element.text for element in picture.iter(f"{SVG}title")] == ["fable · token 3 · 明月 and the rest of it"]
    heights = {element.text: float(element.attrib["y"]) for element in picture.iter(f"{SVG}text")}
    assert heights["fable · token 3 ·"] < heights["and the rest of"] < heights["it"] < -8 < heights["the screen"]
    left, top, width, height = map(float, picture.attrib["viewBox"].split())
    assert (left, width, top + height) == (-8, 20 * 8 + 16, 16 + 8)


def test_what_no_font_has_is_a_box_of_as_many_cells() -> None:
    row = [Segment("a明月\u1200b")]
    svg = to_svg([row], width=9, foreground="#dddddd", background="#111111", boxed=frozenset("月\u1200"))
    picture = ElementTree.fromstring(svg)
    assert sorted(texts(picture)) == [(0, 1, "a"), (1, 2, "明"), (6, 1, "b")]
    assert strokes(picture) == ["M24.5 2.5h15v11h-15zM40.5 2.5h7v11h-7z"]


def test_a_larger_font_is_a_larger_picture_of_the_same_grid() -> None:
    small, large = (
        to_svg([[Segment("x")]], width=9, foreground="#dddddd", background="#111111", font_size=size).split("\n", 1)
        for size in (13.3, 26.6)
    )
    assert small[1] == large[1]
    assert ('width="88"' in small[0], 'width="176"' in large[0]) == (True, True)


def test_a_screen_full_of_colour_stays_small() -> None:
    levels = [Style.parse(f"#{level:02x}a0b0 on #10{level:02x}40") for level in range(0, 256, 4)]
    rows = [[Segment("▀", levels[(31 * x + 17 * y) % 64]) for x in range(120)] for y in range(40)]
    svg = to_svg(rows, width=120, foreground="#dddddd", background="#111111")
    assert len(svg) < 300_000


class Notice(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        yield Static(Content("over it"))


class Page(App[None]):
    CSS = "Notice { align: center middle; } Notice Static { width: 9; height: 3; border: round red; }"

    def compose(self) -> ComposeResult:
        yield Static(Content("the page below"))


async def test_the_lines_of_a_screen_include_what_lies_over_it() -> None:
    app = Page()
    async with app.run_test(size=(30, 9)) as pilot:
        assert [strip.text.rstrip() for strip in screen_lines(app.screen)][0] == "the page below"
        await app.push_screen(Notice())
        await pilot.pause()
        lines = screen_lines(app.screen)
    shown = [strip.text.strip() for strip in lines]
    assert (len(lines), {strip.cell_length for strip in lines}) == (9, {30})
    assert shown[0] == "the page below"
    assert shown[3:6] == ["╭───────╮", "│over it│", "╰───────╯"]
    assert (11, 7, "over it") in texts(draw(*lines, width=30))
