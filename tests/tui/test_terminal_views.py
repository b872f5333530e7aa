"""Stages, branches, recordings and views in a real terminal, and what is drawn where there are few colours or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

pytest.importorskip("fcntl", reason="there are no pseudo-terminals here")

from cutaway.core import Generation, SamplingConfig, load_model
from tests.tui.test_terminal import LASTING, Terminal, assert_given_back

TRUECOLOR = re.compile(rb"[34]8;2;")
INDEXED = re.compile(rb"[34]8;5;")

WORDS = ("fable", "attention · layer 2 head 4", "next token", "others", "? help")
"""What has to be legible on any terminal of 100 columns."""

Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that runs the command line in a terminal of its own, with further environment."""
    opened: list[Terminal] = []

    def begin(*arguments: str, size: tuple[int, int] = (100, 30), **environment: str) -> Terminal:
        words = [f"{name}={value}" for name, value in environment.items()]
        command: Sequence[str] = ["env", *words, *LASTING, *arguments]
        opened.append(Terminal(command, tmp_path, size=size))
        return opened[-1]

    yield begin
    for terminal in opened:
        terminal.close()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five tokens of the embedded model."""
    model = load_model("fable")
    run = Generation(model, model.tokenizer.encode("A dog ran"), SamplingConfig(seed=1), max_new_tokens=5)
    assert list(run)
    path = tmp_path_factory.mktemp("recordings") / "run.cutaway"
    run.trace.save(path)
    return path


def click(terminal: Terminal, words: str, times: int = 1) -> None:
    """Click on the first of *words*, wherever they stand."""
    rows = terminal.screen.display
    row = next(y for y, text in enumerate(rows) if words in text)
    column = rows[row].index(words)
    for _ in range(times):
        for letter in "Mm":
            terminal.type(f"\x1b[<0;{column + 1};{row + 1}{letter}")


def leave(terminal: Terminal) -> None:
    terminal.type("q")
    assert terminal.status() == 0
    assert_given_back(terminal.raw)


def leaves_unsaid(terminal: Terminal, words: str) -> None:
    terminal.until(lambda: words not in terminal.text)


def says_hello_no_more(terminal: Terminal) -> None:
    """Send away the words of the first launch, by a key that does nothing else: escape might join what comes after."""
    terminal.type("x")
    leaves_unsaid(terminal, "stops it")


def test_a_pass_stage_by_stage(start: Start) -> None:
    terminal = start("--step", "--seed", "1", "--prompt", "A dog ran")
    terminal.shows("paused", "A·dog·ran")
    for words in (
        "the prompt is", "becomes", "query", "answers most", "the mask hides", "shares that add up to 1.0000",
        "the values by their shares", "output matrix", "the MLP of layer 0", "after layer 0 the stream of",
    ):  # fmt: skip
        assert words not in terminal.text
        terminal.type(".")
        terminal.shows(words, "inside token 0 · 1/64")
    terminal.type("l")
    terminal.shows("after layer 1 the stream of", "L1 residual")
    terminal.type("L")
    terminal.shows("after layer 0 the stream of")
    terminal.type(",,,")
    terminal.shows("the values by their shares")
    terminal.type("\x1b[C")
    terminal.shows("token 0: ‹", "drawn", "u = 0.")
    leave(terminal)


def test_a_candidate_is_taken_and_walked_away_from(start: Start) -> None:
    terminal = start("--seed", "1", "--prompt", "A dog ran", "--max-new-tokens", "4")
    terminal.shows("the run is at its end")
    terminal.type("\x1b[D\x1b[D")
    terminal.shows("back at token 1 · 2/4")
    terminal.type("3\t")
    terminal.shows("enter takes it", "▸")
    terminal.type("\x1b[B\x1b[B\x1b[B\x1b[B\r")
    terminal.shows("token 1 is", "text 2 of 2", "◂ yours")
    terminal.type("w")
    terminal.shows("text 1 of 2", "◂ drawn")
    terminal.type("W0")
    terminal.shows("text 2 of 2", "attention", "▸")
    terminal.type("\x1b")
    terminal.until(lambda: "▸" not in terminal.text)
    terminal.type(" ")
    terminal.shows("the run is at its end", "token 3 · 4/4")
    leave(terminal)


def test_a_recording_is_opened_and_scrubbed(start: Start, recording: Path) -> None:
    terminal = start("open", str(recording), "--step")
    terminal.shows("recording", "A·dog·ran", "token 0 · 1/5")
    terminal.type("\x1b[F")
    terminal.shows("token 4 · 5/5")
    terminal.type("\x1b[H")
    terminal.shows("token 0 · 1/5")
    terminal.type(".")
    terminal.shows("becomes")
    terminal.type(" ")
    terminal.shows("the recording is at its end")
    terminal.type("e")
    terminal.shows("another prompt needs the weights")
    leave(terminal)


def test_sampling_is_tried_and_applied(start: Start) -> None:
    terminal = start("--seed", "1", "--prompt", "A dog ran", "--max-new-tokens", "4", size=(120, 40))
    terminal.shows("the run is at its end")
    terminal.type("t")
    terminal.shows("temperature", "← → change")
    terminal.type("\x1b[C\x1b[C")
    terminal.shows("sampling · preview")
    terminal.type("\x1b")
    terminal.shows("the settings are as they were")
    terminal.type("\x1b[C\r")
    terminal.shows("these settings hold from token 3 on", "text 2 of 2")
    leave(terminal)


def test_views_are_clicked(start: Start) -> None:
    terminal = start("--seed", "1", "--prompt", "A dog ran", "--max-new-tokens", "4")
    terminal.shows("the run is at its end", "4 heads", "5 layers")
    says_hello_no_more(terminal)
    click(terminal, "5 layers")
    terminal.shows("likeliest next", "0 all")
    click(terminal, "4 heads")
    terminal.until(lambda: "╭─ 4 heads" in terminal.text and "likeliest next" not in terminal.text)
    click(terminal, "0 all")
    terminal.shows("attention · ", "next token", "others")
    terminal.type("\t\tz")
    terminal.shows("╭─ 2 attention", "0 all")
    terminal.until(lambda: "next token" in terminal.screen.display[-3])
    click(terminal, "? help")
    terminal.shows("Run, or pause at the next token.")
    terminal.type("\x1b")
    terminal.until(lambda: "Run, or pause" not in terminal.text)
    leave(terminal)


def test_the_first_launch_says_hello_and_the_second_does_not(start: Start) -> None:
    for words in ("stops it, and lets it go on", ""):
        terminal = start("--seed", "1", "--step", "--prompt", "A dog ran")
        terminal.shows("paused", "A·dog·ran", words)
        if words:
            terminal.type("n")
        assert words or "stops it" not in terminal.text
        leaves_unsaid(terminal, "stops it")
        leave(terminal)


def shades(terminal: Terminal) -> set[tuple[str, str]]:
    """Foreground and background of everything that can be read on the screen."""
    return {
        (cell.fg, cell.bg)
        for row in terminal.screen.buffer.values()
        for cell in row.values()
        if cell.data.strip() and not cell.reverse
    }


def hues(raw: bytes) -> set[bytes]:
    """Colours in *raw* that are neither black nor white nor between them."""
    found = set()
    for red, green, blue in re.findall(rb"[34]8;2;(\d+);(\d+);(\d+)", raw):
        found |= {red + b"," + green + b"," + blue} if not red == green == blue else set()
    for index in re.findall(rb"[34]8;5;(\d+)", raw):
        found |= {index} if int(index) not in (0, 7, 8, 15, 16, 59, 102, 145, 188, 231, *range(232, 256)) else set()
    return found | set(
        re.findall(rb"\x1b\[(?:[0-9]+;)*((?:3|4|9|10)[1-6])(?=[;m])", re.sub(rb"[34]8;[25];[0-9;]+", b"", raw))
    )


def test_without_colorterm_256_colours_are_enough(start: Start) -> None:
    terminal = start("--seed", "1", "--prompt", "A dog ran", "--max-new-tokens", "4")
    terminal.shows("the run is at its end")
    says_hello_no_more(terminal)
    terminal.shows(*WORDS)
    assert INDEXED.search(terminal.raw) and not TRUECOLOR.search(terminal.raw)
    assert all(front != back for front, back in shades(terminal))
    leave(terminal)
    assert not TRUECOLOR.search(terminal.raw)


def test_with_colorterm_there_are_all_colours(start: Start) -> None:
    terminal = start("--seed", "1", "--prompt", "A dog ran", "--max-new-tokens", "2", COLORTERM="truecolor")
    terminal.shows("the run is at its end")
    says_hello_no_more(terminal)
    terminal.shows(*WORDS)
    assert TRUECOLOR.search(terminal.raw)
    leave(terminal)


@pytest.mark.parametrize("colorterm", ["", "truecolor"])
def test_no_color_is_obeyed_and_the_map_is_legible(start: Start, colorterm: str) -> None:
    """Black, white and greys are all that is sent; weights are told apart by their glyphs, the cursor by its marks."""
    terminal = start("--seed", "1", "--prompt", "A dog ran", "--max-new-tokens", "4", NO_COLOR="1", COLORTERM=colorterm)
    terminal.shows("the run is at its end")
    says_hello_no_more(terminal)
    terminal.shows(*WORDS)
    top = next(y for y, row in enumerate(terminal.screen.display) if "╭─ 2 attention" in row)
    width = terminal.screen.display[top].index("╮")
    inside = [row[1:width] for row in terminal.screen.display[top + 1 : top + 14]]
    assert len(set("".join(inside)) & set("░▒▓█▁▂▃▄▅▆▇·∙•●0123456789")) >= 3
    terminal.type(".")
    terminal.type("4")
    terminal.shows("╭─ 4 heads")
    terminal.type("t")
    terminal.shows("sampling")
    leave(terminal)
    assert hues(terminal.raw) == set()
