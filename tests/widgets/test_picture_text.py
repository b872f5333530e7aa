"""Pictures as text: the characters, and the colours that a terminal shows them in."""

from collections.abc import Iterable

import pyte
import pytest
from rich.segment import ControlType, Segment
from rich.style import Style

from cutaway.widgets.picture_text import to_ansi, to_text


def segment(text: str, style: str = "") -> Segment:
    return Segment(text, Style.parse(style))


def ansi(*rows: Iterable[Segment], width: int = 20, title: str = "") -> str:
    return to_ansi(rows, width=width, foreground="#dddddd", background="#111111", title=title)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two  words   ", "two  words"),
        ("  漢字|e\u0301", "  漢字|e\u0301"),
        ("שלום·12", "שלום·12"),
        ("▀▄ ╭─╮", "▀▄ ╭─╮"),
        ("0123456789012345678漢", "0123456789012345678"),
        ("", ""),
    ],
)
def test_text_is_what_the_screen_says(text: str, expected: str) -> None:
    assert to_text([[segment(text, "red on blue")], [segment("|")]], width=20) == f"{expected}\n|\n"


def test_controls_are_left_out() -> None:
    control = Segment("\x1b[2J", None, [(ControlType.CLEAR,)])
    assert to_text([[control, Segment("a\x1b\u3000b\u2028c\u3000\x00d\ue000")]], width=20) == "a  bc� d�\n"


def test_a_caption_is_the_first_line_whole() -> None:
    caption = "a caption that is wider than the screen"
    assert to_text([[Segment("x")]], width=4, title=caption) == f"{caption}\nx\n"
    assert caption in ansi([Segment("x")], width=4, title=caption).splitlines()[0]


def test_colours_are_the_page_s_where_a_style_names_none() -> None:
    assert ansi([Segment("x")]) == "\x1b[0;38;2;221;221;221;48;2;17;17;17mx\x1b[0m\n"


def test_looks() -> None:
    assert ansi([segment("x", "bold italic underline strike #010203 on #040506")]) == (
        "\x1b[0;1;3;4;9;38;2;1;2;3;48;2;4;5;6mx\x1b[0m\n"
    )
    assert "38;2;17;17;17;48;2;128;0;0m" in ansi([segment("x", "reverse red")])
    assert "38;2;119;119;119;" in ansi([segment("x", "dim")])


def test_a_link_stays_behind() -> None:
    assert ansi([Segment("x", Style(link="https://example.org"))]) == ansi([Segment("x")])


def test_a_terminal_shows_the_same_screen() -> None:
    rows = [[segment("ab", "#010203 on #040506"), segment("漢", "bold")], [segment("▀", "#112233 on #445566")]]
    screen = pyte.Screen(20, 4)
    pyte.Stream(screen).feed(ansi(*rows, title="caption").replace("\n", "\r\n"))
    assert [line.rstrip() for line in screen.display] == ["caption", "ab漢", "▀", ""]
    letter, wide, block = screen.buffer[1][1], screen.buffer[1][2], screen.buffer[2][0]
    assert (letter.fg, letter.bg, letter.bold) == ("010203", "040506", False)
    assert (wide.fg, wide.bg, wide.bold) == ("dddddd", "111111", True)
    assert (block.fg, block.bg) == ("112233", "445566")
    assert screen.buffer[2][1].bg == "default"
