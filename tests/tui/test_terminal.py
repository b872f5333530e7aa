"""The app in a real terminal: what its bytes do to one, and that nothing is left behind."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic

import pytest

pytest.importorskip("fcntl", reason="there are no pseudo-terminals here")

import fcntl
import struct
import termios

import pyte

from tests.patience import PATIENCE

CUTAWAY = (sys.executable, "-P", "-m", "cutaway")

PATIENT = """
import sys
from cutaway.tui import cli, screen
from cutaway.widgets import notice_line
notice_line.SAID_SECONDS = screen.SECONDS = 1000.0
sys.exit(cli.main())
"""

LASTING = (sys.executable, "-P", "-c", PATIENT)
"""The same, but what was said stays until something else is said, and the words of the first launch until a key."""


class Terminal:
    """A terminal with a program in it: its screen, and every byte that was sent to it."""

    def __init__(
        self, command: Sequence[str], home: Path, *, size: tuple[int, int] = (100, 30), stdin: bytes | None = None
    ) -> None:
        self.raw = b""
        self.screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = os.openpty()
        self.resize(*size)
        environment = {
            name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG", "LC_ALL")
        }
        environment |= {"TERM": "xterm-256color", "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
        environment |= {"PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command,
            stdin=slave if stdin is None else subprocess.PIPE,
            stdout=slave,
            stderr=slave,
            cwd=home,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - nothing else runs yet
        )
        os.close(slave)
        if stdin is not None:
            assert self.process.stdin is not None
            self.process.stdin.write(stdin)
            self.process.stdin.close()

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size; the kernel tells the program."""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> bool:
        """Take in what has arrived, for a moment; False once the program has let go of the terminal."""
        if not select.select([self._master], [], [], 0.02)[0]:
            return True
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def until(self, happened: Callable[[], object]) -> None:
        deadline = monotonic() + PATIENCE
        while not happened():
            assert self.read(), f"it has gone:\n{self.text}\n{self.raw[-2000:]!r}"
            assert monotonic() < deadline, f"\n{self.text}"

    def shows(self, *words: str) -> None:
        self.until(lambda: all(word in self.text for word in words))

    def comes_to(self, step: int) -> None:
        """Wait for the token of that *step* or a later one: a slow terminal does not see every one."""

        def there() -> bool:
            shown = re.search(r"token (\d+) · ", self.text)
            return shown is not None and int(shown[1]) >= step

        self.until(there)

    def status(self) -> int:
        """How the program ended, once everything it said has been read."""
        deadline = monotonic() + PATIENCE
        while self.read():
            assert monotonic() < deadline, f"it is still there:\n{self.text}"
        return self.process.wait(max(deadline - monotonic(), 0.1))

    def hang_up(self) -> None:
        """Close the terminal's window."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        if self._master >= 0:
            os.close(self._master)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """A function that runs a command in a terminal of its own."""
    opened: list[Terminal] = []

    def start(command: Sequence[str], *, stdin: bytes | None = None) -> Terminal:
        opened.append(Terminal(command, tmp_path, stdin=stdin))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


Open = Callable[..., Terminal]


def assert_given_back(raw: bytes) -> None:
    """The screen, the cursor, the mouse and the keyboard are as they were before."""
    for mode in (1049, 25, 1000, 1003, 2004):
        switches = re.findall(rb"\x1b\[\?%d([hl])" % mode, raw)
        assert switches, mode
        assert switches[-1] == (b"h" if mode == 25 else b"l"), mode


def test_a_session_from_start_to_end(open_terminal: Open, tmp_path: Path) -> None:
    terminal = open_terminal([*LASTING, "--seed", "1", "--max-new-tokens", "400"])
    terminal.shows("fable", "Once·upon·a·time", "attention · layer 2 head 4", "▶ at most 8/s")
    terminal.comes_to(2)
    terminal.type(" ")
    terminal.shows("‖ paused")
    terminal.type("\x1b[A")
    terminal.shows("attention · layer 1 head 4")
    terminal.type("\x1b[D")
    terminal.shows("back at token")
    terminal.resize(120, 40)
    terminal.until(lambda: terminal.screen.display[39].rstrip().endswith("q quit"))
    terminal.shows("first", "ms")
    terminal.resize(40, 10)
    terminal.shows("Cutaway needs 60 × 18 cells;")
    terminal.resize(80, 24)
    terminal.shows("attention · layer 1 head 4", "next token")
    terminal.type("s")
    terminal.until(lambda: list(tmp_path.glob("cutaway-fable-*.svg")))
    terminal.shows("saved")
    terminal.type("?")
    terminal.shows("Run, or pause at the next token.")
    terminal.type("\x1b")
    terminal.until(lambda: "Run, or pause" not in terminal.text)
    terminal.type("q")
    assert terminal.status() == 0
    assert_given_back(terminal.raw)


def test_a_hostile_prompt_reaches_no_terminal_raw(open_terminal: Open) -> None:
    hostile = "\x1b]0;evil\x07\x1b[31;1m\x1b]52;c;ZXZpbA==\x07\u202ecba\u009b2J\x1bP0;0|evil\x1b\\"
    terminal = open_terminal([*CUTAWAY, "--seed", "1", "--max-new-tokens", "3", "--prompt", hostile])
    terminal.shows("the run is at its end", "␛]0;evil␇")
    terminal.type("e")
    terminal.shows("enter runs it", "tokens ·")
    terminal.type("\x1b[200~pasted \x1b]0;worse\x07 \u202e\u009b\x1b[201~")
    terminal.shows("pasted")
    terminal.type("\r")
    terminal.until(lambda: "enter runs it" not in terminal.text)
    terminal.shows("the run is at its end", "worse")
    terminal.type("q")
    assert terminal.status() == 0
    assert_given_back(terminal.raw)
    assert set(re.findall(rb"\x1b\](\d*)", terminal.raw)) <= {b"22"}  # the pointer's shape, from Textual
    for sequence in (b"\x1b]0;", b"\x1b[31;1m", b"\x1bP", "\u202e".encode(), "\u009b".encode()):
        assert sequence not in terminal.raw, sequence


def test_a_prompt_can_be_piped_in_and_keys_still_work(open_terminal: Open) -> None:
    terminal = open_terminal([*CUTAWAY, "--seed", "1", "--step"], stdin=b"The dog sat\n")
    terminal.shows("paused", "The·dog·sat", "fable")
    terminal.type("n")
    terminal.shows("token 0 · 1/64", "attention · layer")
    terminal.type("n")
    terminal.shows("token 1 · 2/64")
    terminal.type("q")
    assert terminal.status() == 0
    assert_given_back(terminal.raw)


def test_a_polite_kill_leaves_as_q_does(open_terminal: Open) -> None:
    terminal = open_terminal([*CUTAWAY, "--seed", "1", "--max-new-tokens", "400"])
    terminal.comes_to(1)
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.status() == 0
    assert_given_back(terminal.raw)


def test_a_closed_window_leaves_no_process(open_terminal: Open) -> None:
    terminal = open_terminal([*CUTAWAY, "--seed", "1", "--max-new-tokens", "400"])
    terminal.comes_to(1)
    terminal.hang_up()
    terminal.process.wait(PATIENCE)


STUCK = """
import sys, threading
from cutaway.core.models.decoder import Decoder
from cutaway.tui.cli import main
Decoder.forward = lambda *a: threading.Event().wait()
sys.exit(main(["--seed", "1"]))
"""


@pytest.mark.parametrize("how", ["q", "kill"])
def test_leaving_while_a_token_is_computed_is_immediate(open_terminal: Open, how: str) -> None:
    terminal = open_terminal([sys.executable, "-P", "-c", STUCK])
    terminal.shows("fable", "▶")
    if how == "q":
        terminal.type("q")
    else:
        terminal.process.send_signal(signal.SIGTERM)
    assert terminal.status() == 0
    assert_given_back(terminal.raw)


@pytest.mark.parametrize(
    "arguments", [["--model", "nowhere"], ["--theme", "pink"], ["--prompt-file", "none"], ["--frobnicate"]]
)
def test_what_goes_wrong_before_the_screen_opens_is_one_line(open_terminal: Open, arguments: list[str]) -> None:
    terminal = open_terminal([*CUTAWAY, *arguments])
    assert terminal.status() == (2 if arguments[0] in ("--frobnicate", "--theme") else 1)
    assert terminal.raw.startswith(b"cutaway: error: ") and terminal.raw.count(b"\r\n") == 1
    assert b"\x1b" not in terminal.raw


@pytest.mark.parametrize("options", [["--prompt-ids", "9999"], ["--prompt", "word " * 600]])
def test_what_goes_wrong_on_the_screen_is_one_line_after_it(open_terminal: Open, options: list[str]) -> None:
    terminal = open_terminal([*CUTAWAY, *options])
    assert terminal.status() == 1
    assert_given_back(terminal.raw)
    after = terminal.raw.rsplit(b"\x1b[?1049l")[-1]
    assert after.count(b"cutaway: error: ") == 1 and b"Traceback" not in after
