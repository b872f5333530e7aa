"""The text as tokens: whole where they fit, all of them there, each kind to be told apart."""

from collections.abc import Callable, Sequence

import pytest
from rich.cells import split_graphemes
from rich.style import Style
from textual.strip import Strip

from cutaway.widgets.drawable import cell_width
from cutaway.widgets.look import look
from cutaway.widgets.token_stream import FULL_TINT_BITS, Kind, TokenCell, TokenStream, TokenStreamView, wrap

Check = Callable[[Sequence[Strip], int], None]


def cells(*texts: str, kind: Kind = "written") -> tuple[TokenCell, ...]:
    return tuple(TokenCell(text, kind, None, text.endswith("⏎")) for text in texts)


def lines_of(tokens: tuple[TokenCell, ...], columns: int) -> list[list[str]]:
    return [[text for _, text in line] for line in wrap(tokens, columns, None)[0]]


def drawn(tokens: tuple[TokenCell, ...], width: int, height: int, current: int | None = None) -> list[Strip]:
    return TokenStream().draw(TokenStreamView(tokens, current), width, height)


def style_of(text: str, rows: list[Strip]) -> Style:
    """The style *text* is drawn in."""
    return next(segment.style for row in rows for segment in row if segment.text == text and segment.style)


@pytest.mark.parametrize(
    ("texts", "columns", "expected"),
    [
        (["One", "·day"], 10, [["One", "·day"]]),
        (["One", "·day"], 7, [["One", "·day"]]),
        (["One", "·day"], 6, [["One"], ["·day"]]),
        (["a", "漢字"], 4, [["a"], ["漢字"]]),
        (["漢字漢字"], 5, [["漢字"], ["漢字"]]),
        (["a", "abcdefgh", "b"], 3, [["a"], ["abc"], ["def"], ["gh", "b"]]),
        (["e\u0301e\u0301e\u0301"], 2, [["e\u0301e\u0301"], ["e\u0301"]]),
        (["a", "⏎", "b"], 9, [["a", "⏎"], ["b"]]),
        (["a⏎", "b⏎"], 9, [["a⏎"], ["b⏎"], []]),
        ([], 9, [[]]),
    ],
)
def test_tokens_stay_whole_where_they_fit(texts: list[str], columns: int, expected: list[list[str]]) -> None:
    assert [line for line in lines_of(cells(*texts), columns) if line] == [line for line in expected if line]


@pytest.mark.parametrize("columns", [2, 3, 7, 40, 118])
def test_nothing_is_lost_and_nothing_is_cut_in_the_middle(hostile_tokens: list[str], columns: int) -> None:
    tokens = cells(*hostile_tokens)
    lines, _ = wrap(tokens, columns, None)
    for line in lines:
        assert sum(cell_width(text) for _, text in line) <= columns
    assert "".join(text for line in lines for _, text in line) == "".join(hostile_tokens)
    pieces: dict[int, list[str]] = {}
    for line in lines:
        for index, text in line:
            pieces.setdefault(index, []).append(text)
    for index, parts in pieces.items():
        whole = tokens[index].text
        assert "".join(parts) == whole
        if len(parts) > 1:
            assert cell_width(whole) > columns
            ends = {end for _, end, _ in split_graphemes(whole)[0]}
            assert {len("".join(parts[:n])) for n in range(1, len(parts))} <= ends


def test_a_token_begins_a_new_line_only_when_it_has_to(hostile_tokens: list[str]) -> None:
    columns = 40
    lines, _ = wrap(cells(*hostile_tokens), columns, None)
    for line, following in zip(lines, lines[1:], strict=False):
        if line and following and not hostile_tokens[line[-1][0]].endswith("⏎"):
            whole = hostile_tokens[following[0][0]]
            assert sum(cell_width(text) for _, text in line) + cell_width(whole) > columns


@pytest.mark.parametrize(("width", "height"), [(20, 3), (60, 2), (118, 7), (30, 1)])
def test_every_row_is_as_wide_as_the_panel(
    hostile_tokens: list[str], check_rows: Check, width: int, height: int
) -> None:
    tokens = cells(*hostile_tokens)
    for current in (None, 0, 1, len(tokens) // 2, len(tokens) - 1):
        rows = drawn(tokens, width, height, current)
        assert 1 <= len(rows) <= height
        check_rows(rows, width)


def test_everything_is_drawn(hostile_tokens: list[str], check_rows: Check) -> None:
    """With room for all of it, the rows hold every token."""
    rows = drawn(cells(*hostile_tokens), 120, 10_000)
    check_rows(rows, 120)
    assert "".join(row.text for row in rows).replace(" ", "") == "".join(hostile_tokens).replace(" ", "")


@pytest.mark.parametrize("height", [1, 2, 4, 9])
def test_the_current_token_is_in_sight(height: int) -> None:
    tokens = cells(*(f"·word{number}" for number in range(100)), "·" * 90, "⏎", "x⏎", "·end")
    for current in range(len(tokens)):
        rows = drawn(tokens, 40, height, current)
        here = [segment for row in rows for segment in row if segment.style == _here()]
        assert here, current
        assert "".join(segment.text for segment in here) in tokens[current].text


def test_the_text_begins_at_the_top_and_leaves_no_rows_empty() -> None:
    tokens = cells(*(f"·word{number:03}" for number in range(100)))
    assert drawn(tokens, 40, 5, 3)[0].text.strip().startswith("·word000")
    rows = drawn(tokens, 40, 5, 99)
    assert len(rows) == 5 and all(row.text.strip() for row in rows)
    assert rows[-1].text.rstrip().endswith("·word099")


@pytest.mark.parametrize("kind", ["prompt", "written"])
@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_tint_grows_with_surprise(kind: Kind, theme: str) -> None:
    """Step by step away from the panel's colour, towards the warm one, up to the full tint."""
    stream = TokenStream()
    stream.look = look(theme)
    bits = [FULL_TINT_BITS * step / 100 for step in range(130)]
    tokens = tuple(TokenCell(f"t{index}", kind, surprisal) for index, surprisal in enumerate(bits))
    rows = stream.draw(TokenStreamView(tokens, None), 100, 100)
    distances = []
    for index in range(len(tokens)):
        ground = style_of(f"t{index}", rows).bgcolor
        assert ground is not None and ground.triplet is not None
        panel = tuple(bytes.fromhex(stream.look.panel[1:]))
        distances.append(sum(abs(a - b) for a, b in zip(ground.triplet, panel, strict=True)))
    assert distances == sorted(distances)
    assert distances[0] == 0 and distances[99] > distances[50] > 0 and distances[100] == distances[-1]


def test_what_is_not_known_has_no_tint() -> None:
    rows = drawn((TokenCell("a", "written", None), TokenCell("b", "written", 0.0)), 20, 1)
    assert style_of("a", rows).bgcolor == style_of("b", rows).bgcolor


def test_kinds_are_told_apart() -> None:
    kinds: tuple[Kind, ...] = ("added", "prompt", "written")
    tokens = tuple(TokenCell(kind, kind, 3.0) for kind in kinds)
    added, prompt, written = (style_of(kind, drawn(tokens, 60, 1)) for kind in kinds)
    current = style_of("prompt", drawn(tokens, 60, 1, current=1))
    later = style_of("written", drawn(tokens, 60, 1, current=1))
    looks = [(style.color, style.bold, style.italic) for style in (added, prompt, written, current, later)]
    assert len(set(looks)) == 5
    assert written.bold and not prompt.bold


def _here() -> Style:
    return style_of("x", drawn(cells("x"), 9, 1, 0))
