"""Pictures of every widget, full of tokens that try to break them: each is valid XML with nothing lost or loose."""

import re
import unicodedata
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import islice
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from cutaway.widgets.attention_map import AttentionMap, AttentionView, Layout
from cutaway.widgets.candidate_bars import CandidateBars, CandidateRow, CandidatesView
from cutaway.widgets.drawable import beginning
from cutaway.widgets.look import look
from cutaway.widgets.notice_line import NoticeLine, NoticeView
from cutaway.widgets.panel import frame
from cutaway.widgets.picture import to_svg
from cutaway.widgets.picture_html import to_html
from cutaway.widgets.picture_png import to_png
from cutaway.widgets.picture_text import to_ansi, to_text
from cutaway.widgets.title_line import Part, TitleLine, TitleView
from cutaway.widgets.token_stream import TokenCell, TokenStream, TokenStreamView

WIDTH = 100
"""Columns of a picture."""
INSIDE = WIDTH - 2
COLOURS = {"foreground": look().text, "background": look().ground}

RAW = ["\x1b[2J\x9b2J", "\x00\x7f\ufffe\ud800", "a\u202eb\u2066c\u200bd", "line\nfeed\u2028\u2029", "\ue000\U0010fffd"]
"""What no drawable text holds, to be safe all the same."""


def text_of(rows: Sequence[Strip]) -> str:
    """What the picture of *rows* says, once it is known to be clean."""
    colours = look()
    svg = to_svg(rows, width=WIDTH, foreground=colours.text, background=colours.ground, title=rows[0].text)
    assert not [c for c in svg if unicodedata.category(c)[0] == "C" and c != "\n"]
    picture = ElementTree.fromstring(svg)
    return "".join(element.text or "" for element in picture.iter("{http://www.w3.org/2000/svg}text"))


class Page(HTMLParser):
    """A page, and what can be selected on it."""

    def __init__(self) -> None:
        super().__init__()
        self.selectable = ""
        self._inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._inside |= tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        self._inside &= tag != "pre"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.selectable += data.removeprefix("\n") if self.get_starttag_text() != "<span>" else data


def framed(rows: list[Strip], title: str) -> list[Strip]:
    return frame(rows, INSIDE, title, title, focused=True, look=look())


def packs(tokens: list[str], size: int) -> list[list[str]]:
    remaining = iter(tokens)
    return [pack for _ in range(0, len(tokens), size) if (pack := list(islice(remaining, size)))]


def without_blanks(text: str) -> str:
    return "".join(text.split())


def test_pages_hold_every_token_once_to_be_selected(hostile_tokens: list[str]) -> None:
    page = Page()
    page.feed(to_html([[Segment(text)] for text in hostile_tokens], width=WIDTH, **COLOURS, title=hostile_tokens[0]))
    caption, *shown = page.selectable.splitlines()
    assert caption == hostile_tokens[0]
    assert shown == [beginning(text, WIDTH).rstrip() for text in hostile_tokens]


def test_text_for_terminals_steers_none(hostile_tokens: list[str]) -> None:
    rows = [[Segment(text, Style.parse("red on blue"))] for text in [*hostile_tokens, *RAW]]
    for text in (to_text(rows, width=WIDTH), re.sub(r"\x1b\[[\d;]+m", "", to_ansi(rows, width=WIDTH, **COLOURS))):
        categories = {unicodedata.category(character) for character in text if character not in "\n\u200d"}
        assert not categories & {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
        assert text.count("\n") == len(rows)


def test_png_of_every_token(hostile_tokens: list[str]) -> None:
    rows = [[Segment(text, Style.parse("red on blue"))] for text in [*hostile_tokens[::7], *RAW]]
    png = to_png(rows, width=WIDTH, **COLOURS, title=hostile_tokens[0])
    assert png.data.startswith(b"\x89PNG")


def test_pictures_of_text_lose_nothing(hostile_tokens: list[str]) -> None:
    for pack in packs(hostile_tokens, 1500):
        tokens = tuple(TokenCell(text, "written", place % 14, "⏎" in text) for place, text in enumerate(pack))
        rows = TokenStream().draw(TokenStreamView(tokens, 7), INSIDE, 10_000)
        blank = [Strip.blank(INSIDE)] * 2  # above it, the caption
        drawn = without_blanks(text_of([*blank, *rows]))
        assert sorted(drawn) == sorted(without_blanks("".join(pack)))


@pytest.mark.parametrize("count", [40, 90, 300])
def test_pictures_of_attention(hostile_tokens: list[str], count: int) -> None:
    size = (INSIDE, count)
    for labels in packs(hostile_tokens, count)[:12]:
        T = len(labels)
        n = min(Layout.of(T, *size).queries, T)
        weights = np.tril(np.ones((T, T), np.float32))[-n:] / np.arange(T - n + 1, T + 1, dtype=np.float32)[:, None]
        view = AttentionView(0, 0, weights, T - n, tuple(labels), T - 1, T // 2)
        assert text_of(framed(AttentionMap().draw(view, *size), labels[0]))


def test_pictures_of_candidates(hostile_tokens: list[str]) -> None:
    for pack in packs(hostile_tokens, 400):
        rows = tuple(CandidateRow(place, place, text, 0.1, 0.2, None) for place, text in enumerate(pack))
        view = CandidatesView(0, rows, "final", 3, pack[0], 0, 0.0, 0.0, pack[-1])
        drawn = text_of(framed(CandidateBars().draw(view, INSIDE, len(rows) + 2), pack[1]))
        short = [text for text in pack if len(text) < 10 and " " not in text]
        assert all(text in drawn for text in short if text.isascii())


def test_pictures_of_lines(hostile_tokens: list[str]) -> None:
    rows = []
    for one, two in zip(hostile_tokens[::2], hostile_tokens[1::2], strict=False):
        rows += TitleLine().draw(TitleView((Part(one, "badge"), Part(two)), ()), WIDTH, 1)
        rows += NoticeLine().draw(NoticeView(f"{one} {two}"), WIDTH, 1)
    for start in range(0, len(rows), 500):
        assert text_of(rows[start : start + 500])
