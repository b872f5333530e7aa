"""Rows of cells, and what must hold of any of them; tokens that try to break it."""

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.strip import Strip

from cutaway.core.tokenizer import load_tokenizer
from cutaway.widgets.drawable import draw_token
from tests.patience import make_patient

Rows = Sequence[Strip]

FABLE = Path(__file__).parents[2] / "assets" / "models" / "fable"

STRANGE = [
    "[/",
    " [/",
    "][/",
    "[INST] hi [/INST]",
    "[@click=app.quit]x[/]",
    "[red]x[/red]",
    "see [/b]",
    "\\[",
    "[[/]",
    "\x1b",
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x07",
    "\x1b[2J",
    "\u009b2J",
    "\u202ecba\u202c",
    "\x00",
    "\x01\x02\x08\x0b\x0c\r\x7f",
    "\ufffe\uffff",
    "\ufeff",
    "漢字かな한국어",
    "👩\u200d👩\u200d👧\u200d👦",
    "👍🏽",
    "🇫🇷🇯🇵",
    "❤\ufe0f",
    "\u0301",
    "e\u0301\u0301\u0301",
    "\u20d0",
    "שלום",
    "مرحبا",
    "\u200b\u200e\u00ad",
    "हिन्दी",
    " " * 128,
    "=" * 66,
    "漢" * 70,
    "\n",
    "\t\n\u2028\u2029",
    "\n\n\n",
    "&<>\"'",
    "]]>",
    "\ud800",
    "\ue000\U000f0000\U000e0041\u0378",
    "\u3000\u00a0",
    "\u1112\u1161\u11ab",
    "",
]
"""What models, files and people have brought terminals to their knees with."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no test depend on how fast the machine is."""
    make_patient(monkeypatch)


@pytest.fixture(scope="session")
def vocabulary() -> list[bytes]:
    """Every token of the embedded model."""
    tokens = load_tokenizer(FABLE, 4096).vocabulary
    return [tokens.token_bytes(id) for id in range(len(tokens))]


@pytest.fixture(scope="session")
def hostile_tokens(vocabulary: list[bytes]) -> list[str]:
    """All of these, halves of them, and every token of the embedded model, as they are drawn."""
    strange = [text.encode("utf-8", "surrogatepass") for text in STRANGE]
    halves = [data[: len(data) // 2] for data in strange] + [data[len(data) // 2 :] for data in strange]
    return [draw_token(data, id=id) for id, data in enumerate([*strange, *halves, *vocabulary])]


@pytest.fixture(scope="session")
def check_rows() -> Callable[[Rows, int], None]:
    """A function that checks rows: each exactly so wide, and nothing in them that steers a terminal."""

    def check(rows: Rows, width: int) -> None:
        for row in rows:
            text = "".join(segment.text for segment in row)
            assert cell_len(text) == row.cell_length == width, ascii(text)
            assert not [c for c in text if unicodedata.category(c)[0] == "C"], ascii(text)
            assert all(segment.control is None for segment in row)

    return check
