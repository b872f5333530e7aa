"""A picture as a page: what is seen is the SVG, what is selected is the text."""

import re

from rich.segment import Segment
from rich.style import Style

from cutaway.widgets.picture import to_svg
from cutaway.widgets.picture_html import to_html

ROWS = [[Segment("")], [Segment("a <b> & ", Style.parse("red")), Segment("明月")]]
COLOURS = {"foreground": "#dddddd", "background": "#111111"}


def layers(page: str) -> list[tuple[int, str]]:
    """How far below the top each selectable text begins, and what it says."""
    found = re.findall(r'<pre style="top: (\d+)px">\n(.*?)</pre>', page, re.DOTALL)
    return [(int(top), text) for top, text in found]


def test_a_page_shows_the_svg() -> None:
    page = to_html(ROWS, width=20, **COLOURS, title="fable · token 3")
    assert page.startswith("<!DOCTYPE html>\n")
    svg = to_svg(ROWS, width=20, foreground="#dddddd", background="#111111", title="fable · token 3")
    assert svg in page
    assert "<title>fable · token 3</title>\n<style>" in page


def test_a_page_refers_to_nothing_outside() -> None:
    page = to_html(ROWS, width=20, **COLOURS, title="https")
    assert re.findall(r"[a-z]+:(?://)[^\"]*", page) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|<link|<img|@import|url\(| src=| href=", page)


def test_text_is_selected_where_it_is_seen() -> None:
    said = "\na &lt;b&gt; &amp; <span>明月</span>\n"
    assert layers(to_html(ROWS, width=20, **COLOURS)) == [(8, said)]
    assert layers(to_html(ROWS, width=20, **COLOURS, title="token 3")) == [(8, "token 3\n"), (32, said)]
    wrapped = to_html(ROWS, width=20, **COLOURS, title="a caption of more than one row")
    assert layers(wrapped) == [(8, "a caption of more\nthan one row\n"), (48, said)]


def test_a_page_without_a_caption_has_a_title_all_the_same() -> None:
    assert "<title>cutaway</title>" in to_html(ROWS, width=20, **COLOURS)
