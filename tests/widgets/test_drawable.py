"""Whatever a model, a file or a person says: what is drawn is safe, visible, and of a known width."""

import json
import random
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files

import pytest
import wcwidth

from cutaway.widgets.drawable import cell_width, clip, draw_token, drawable, fit

HOSTILE = [
    "[/INST]",
    "[@click=app.quit]x",
    "\x1b]0;title\x07",
    "\x1b[2J",
    "\x9b2J",
    "\x00\x7f\x85",
    "a\u202eb\u2066c",
    "zero\u200bwidth\u00adhyphen\ufeff",
    "line\nfeed\ttab\r",
    "漢字かな한국어",
    "😀 ❤\ufe0f 1\ufe0f\u20e3",
    "👩\u200d👩\u200d👧",
    "👍🏽 🇫🇷",
    "e\u0301 \u0301 \u202e\u0301",
    "\u1112\u1161\u11ab \u1161",
    "हिन्दी",
    "שלום עולם",
    "مرحبا 12.5",
    "\ud800 \ufffe \ue000 \U000e0041 \u0378",
    "\u00a0\u3000\u2028\u2029",
    "\u115f\u3164\u2800\u034f",
    "literal · ⏎ ⇥ ␛ ◌ ⟨U+202E⟩ ⟨e2⟩",
]


def vocabulary() -> list[bytes]:
    """Every token of the models that come with Cutaway."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(0x100) if byte not in printable]
    to_byte = {0x100 + place: byte for place, byte in enumerate(hidden)}
    paths = [model / "tokenizer.json" for model in (files("cutaway.assets") / "models").iterdir()]
    tokenizers = [json.loads(path.read_text("utf-8")) for path in paths if path.is_file()]
    names = [name for tokenizer in tokenizers for name in tokenizer["model"]["vocab"]]
    return [name.translate(to_byte).encode("latin-1") for name in names if not name.startswith("<|")]


def random_tokens() -> Iterator[bytes]:
    """Hostile text cut anywhere, with any bytes in between."""
    rng = random.Random(1)
    texts = [text.encode("utf-8", "surrogatepass") for text in HOSTILE]
    for _ in range(20_000):
        first, second = rng.choices(texts, k=2)
        yield (first[rng.randrange(len(first)) :] + rng.randbytes(rng.randrange(4)) + second[: rng.randrange(9)])


def assert_safe(drawn: str) -> None:
    categories = {unicodedata.category(character) for character in set(drawn)}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}, ascii(drawn)


def read_back(drawn: str) -> bytes:
    """Return the bytes that were drawn."""
    data = b""
    for brackets, inside, sign in re.findall("(⟨([^⟩]*)⟩)|(.)", drawn):
        if inside.startswith("U+"):
            data += chr(int(inside[2:], 16)).encode("utf-8", "surrogatepass")
        elif brackets:
            data += bytes.fromhex(inside)
        elif "\u2400" <= sign <= "\u2421":
            data += b"\x7f" if sign == "␡" else bytes([ord(sign) - 0x2400])
        else:
            data += {"·": " ", "⏎": "\n", "⇥": "\t", "◌": ""}.get(sign, sign).encode()
    return data


@pytest.mark.parametrize("plane", range(0x11))
def test_every_code_point_is_safe_and_visible(plane: int) -> None:
    drawings = [drawable(chr(code)) for code in range(plane << 16, (plane + 1) << 16)]
    assert_safe("".join(drawings))
    assert len(set(drawings)) == len(drawings)
    assert min(map(cell_width, drawings)) >= 1
    as_itself = [drawn for drawn in drawings if not drawn.startswith("⟨")]
    assert all(cell_width(fit(drawn, 4)) == 4 for drawn in as_itself)


def test_no_two_tokens_of_a_vocabulary_share_a_drawing() -> None:
    tokens = set(vocabulary())
    assert len({draw_token(token) for token in tokens}) == len(tokens)


@pytest.mark.parametrize("tokens", [vocabulary, random_tokens])
def test_a_drawn_token_is_safe_and_can_be_read_back(tokens: Callable[[], Iterable[bytes]]) -> None:
    for token in tokens():
        drawn = draw_token(token)
        assert_safe(drawn)
        assert read_back(drawn) == token


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        (" two words", "·two·words"),
        ("a\n\tb", "a⏎⇥b"),
        ("\x00\x1b[2J\x7f", "␀␛[2J␡"),
        ("\x9b\u202e\ue000\ud800", "⟨U+009B⟩⟨U+202E⟩⟨U+E000⟩⟨U+D800⟩"),
        ("\u00a0\u3000\u2028", "⟨U+00A0⟩⟨U+3000⟩⟨U+2028⟩"),
        ("\U0010ffff", "⟨U+10FFFF⟩"),
        ("[/INST]\\[", "[/INST]\\["),
        ("é e\u0301 漢字 שלום", "é·e\u0301·漢字·שלום"),
        ("\u0301a\u200b\u0301", "◌\u0301a⟨U+200B⟩◌\u0301"),
        ("👩\u200d👧", "👩⟨U+200D⟩👧"),
        ("❤\ufe0f", "❤⟨U+FE0F⟩"),
        ("👍🏽", "👍⟨U+1F3FD⟩"),
        ("🇫🇷", "⟨U+1F1EB⟩⟨U+1F1F7⟩"),
        ("हि ☰", "ह⟨U+093F⟩·⟨U+2630⟩"),
        ("\u3164\u2800", "⟨U+3164⟩⟨U+2800⟩"),
        ("·⏎⇥␛◌⟨⟩", "⟨U+00B7⟩⟨U+23CE⟩⟨U+21E5⟩⟨U+241B⟩⟨U+25CC⟩⟨U+27E8⟩⟩"),
        ("", ""),
    ],
)
def test_signs(text: str, drawn: str) -> None:
    assert drawable(text) == drawn


@pytest.mark.parametrize("text", HOSTILE)
def test_a_sentence_keeps_its_spaces_and_what_was_drawn_before(text: str) -> None:
    drawn = drawable(text)
    assert drawable(f"no token {drawn} · here", spaces=False) == f"no token {drawn} · here"
    assert "\n" not in drawable(text, spaces=False)
    assert drawable(text, spaces=False).isprintable()


@pytest.mark.parametrize(
    ("data", "id", "drawn"),
    [
        (b" the", 1, "·the"),
        ("漢".encode(), 1, "漢"),
        (b"\xe2\x96", 1, "⟨e2 96⟩"),
        (b"a\xff\xc3\xa9\xe2", 1, "a⟨ff⟩é⟨e2⟩"),
        (b"\xff\xcc\x81", 1, "⟨ff⟩◌\u0301"),
        (b"\xed\xa0\x80", 1, "⟨ed a0 80⟩"),
        (b"<|endoftext|>", 0, "<|endoftext|>"),
        (b"", 123, "#123"),
        (b"", None, "⟨⟩"),
    ],
)
def test_tokens(data: bytes, id: int | None, drawn: str) -> None:
    assert draw_token(data, id=id) == drawn


@pytest.mark.parametrize(
    ("text", "cells", "clipped"),
    [
        ("token", 5, "token"),
        ("token", 4, "tok…"),
        ("token", 1, "…"),
        ("token", 0, ""),
        ("漢字", 4, "漢字"),
        ("漢字", 3, "漢…"),
        ("漢字", 2, "…"),
        ("a漢字", 3, "a…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
    ],
)
def test_clip(text: str, cells: int, clipped: str) -> None:
    assert clip(text, cells) == clipped


def test_fit_pads_on_the_side_away() -> None:
    assert fit("漢", 4) == "漢  "
    assert fit("漢", 4, align="right") == "  漢"
    assert fit("漢字", 2) == "… "
    assert fit("token", 0) == ""


def test_terminals_agree_on_the_width() -> None:
    for token in [*vocabulary(), *random_tokens()]:
        drawn = draw_token(token)
        assert cell_width(drawn) == wcwidth.wcswidth(drawn) == sum(map(wcwidth.wcwidth, drawn)), ascii(drawn)


def test_every_token_fits_every_width() -> None:
    for token in vocabulary()[::7] + [text.encode("utf-8", "replace") for text in HOSTILE]:
        drawn = draw_token(token)
        for cells in range(12):
            assert cell_width(fit(drawn, cells)) == cell_width(fit(drawn, cells, "right")) == cells
            assert cell_width(clip(drawn, cells)) <= cells
