"""What the app costs and how fast it answers, measured from outside in a pseudo-terminal.

Run with ``python -m benchmarks.app`` from the repository. Times are from the start of the process, or from a key
press, to the bytes on the terminal that answer it; medians of several, since machines are noisy. The engine runs on
as many threads in both halves of a comparison.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from benchmarks.engine import GPT2_SMALL, write_random_model

COMMAND = [sys.executable, "-m", "cutaway"]
PATIENCE = 120.0
"""Seconds after which an answer is given up."""


class Terminal:
    """`cutaway` in a pseudo-terminal of its own."""

    def __init__(self, arguments: list[str], columns: int, rows: int, remote: bool = False) -> None:
        self.begun = perf_counter()
        self.seen = b""
        self.bytes = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
            environment |= {"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"} if remote else {}
            os.execvpe(COMMAND[0], [*COMMAND, *arguments], environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> float:
        """Type *keys*; return the time."""
        self.seen = b""
        os.write(self.fd, keys.encode())
        return perf_counter()

    def wait_for(self, pattern: str) -> float:
        """The time at which what came since the last key matches *pattern*."""
        expression = re.compile(pattern.encode())
        deadline = perf_counter() + PATIENCE
        while not expression.search(self.seen):
            if perf_counter() > deadline:
                raise TimeoutError(f"no {pattern!r} within {PATIENCE:.0f} s")
            self.read(0.05)
        return perf_counter()

    def read(self, seconds: float) -> None:
        """Take what the terminal gets within *seconds*."""
        if select.select([self.fd], [], [], seconds)[0]:
            chunk = os.read(self.fd, 1 << 16)
            self.bytes += len(chunk)
            self.seen += chunk

    def peak_memory(self) -> float:
        """Most memory the process has used so far, in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1e3  # type: ignore[index]


@contextmanager
def terminal(*arguments: str, columns: int = 120, rows: int = 40, remote: bool = False) -> Iterator[Terminal]:
    """A `Terminal` that is gone afterwards."""
    running = Terminal(list(arguments), columns, rows, remote)
    try:
        yield running
    finally:
        os.kill(running.pid, signal.SIGKILL)
        os.close(running.fd)
        os.waitpid(running.pid, 0)


def starts(count: int) -> tuple[float, float]:
    """Seconds from start to the first frame and to the first token, medians of *count*."""
    frames, tokens = [], []
    for _ in range(count):
        with terminal() as running:
            frames.append(running.wait_for("╭") - running.begun)
            tokens.append(running.wait_for("◂") - running.begun)
    return median(frames), median(tokens)


def live_rate(
    model: str, tokens: int, columns: int, rows: int, threads: int, remote: bool = False
) -> tuple[float, float, float]:
    """Tokens a second by the wall clock with the app live, bytes a second to the terminal, peak memory in MB."""
    options = ["--model", model, "--step", "--ignore-eos", "--seed", "0", "--max-new-tokens", str(tokens)]
    options += ["--threads", str(threads), "--prompt-ids", "1,2,3"]
    with terminal(*options, columns=columns, rows=rows, remote=remote) as running:
        running.wait_for("paused")
        running.press("++++")
        running.wait_for("as fast")
        before = running.bytes
        begun = running.press(" ")
        seconds = running.wait_for("■ end") - begun
        return tokens / seconds, (running.bytes - before) / seconds, running.peak_memory()


def headless_rate(model: str, tokens: int, threads: int) -> float:
    """Tokens a second by the wall clock without a screen, in a process of its own."""
    code = (
        "import sys, time, numpy; from threadpoolctl import threadpool_limits\n"
        "threadpool_limits(int(sys.argv[3]))\n"
        "from cutaway.core import Generation, SamplingConfig, load_model\n"
        "sampling = SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, seed=0)\n"
        "options = dict(max_new_tokens=int(sys.argv[2]), ignore_eos=True)\n"
        "run = Generation(load_model(sys.argv[1]), [1, 2, 3], sampling, **options)\n"
        "begun = time.perf_counter(); [None for _ in run]\n"
        "print(len(run.trace.steps) / (time.perf_counter() - begun))"
    )
    arguments = [sys.executable, "-c", code, model, str(tokens), str(threads)]
    return float(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def compared(model: str, tokens: int, columns: int, rows: int, threads: int, pairs: int) -> str:
    """Headless and live rates in pairs that lie close in time, and the median of their ratios."""
    headless, live, sent, memory = [], [], [], []
    for _ in range(pairs):
        headless.append(headless_rate(model, tokens, threads))
        rate, traffic, peak = live_rate(model, tokens, columns, rows, threads)
        live.append(rate)
        sent.append(traffic)
        memory.append(peak)
    share = median(one / other for one, other in zip(live, headless, strict=True))
    return (
        f"live {median(live):.1f} tokens/s, headless {median(headless):.1f}, ratio {share:.2f}, "
        f"{median(sent) / 1e3:.0f} kB/s, peak {max(memory):.0f} MB"
    )


def key_latencies(model: str, presses: int) -> list[float]:
    """Seconds from a key to its answer on the terminal, while *model* generates at full speed."""
    options = ["--model", model, "--step", "--ignore-eos", "--seed", "0", "--max-new-tokens", "1000"]
    found: list[float] = []
    with terminal(*options, "--prompt-ids", "1,2,3") as running:
        running.wait_for("paused")
        running.press("++++")
        running.press(" ")
        running.wait_for("◂")
        head = int(re.findall(rb"layer \d+ head (\d+)", running.seen)[-1])
        chance = random.Random(0)
        for _ in range(presses):
            pause = perf_counter() + chance.uniform(0.1, 0.3)
            while perf_counter() < pause:
                running.read(0.01)
            head = (head + 1) % GPT2_SMALL["n_head"]
            begun = running.press("]")
            found.append(running.wait_for(f"head {head} ") - begun)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--presses", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=3)
    arguments = parser.parse_args()
    threads = max((os.cpu_count() or 2) - 1, 1)
    frame, token = starts(arguments.starts)
    print(f"start to first frame   {frame:8.2f} s\nstart to first token   {token:8.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        write_random_model(Path(folder), GPT2_SMALL)
        for name, model, tokens in (("fable", "fable", 509), ("124M", folder, 120)):
            for columns, rows in ((120, 40), (200, 60)):
                print(f"{name} at {columns}×{rows}: {compared(model, tokens, columns, rows, threads, arguments.pairs)}")
            _, sent, _ = live_rate(model, tokens, 120, 40, threads, remote=True)
            print(f"{name} at 120×40 over SSH: {sent / 1e3:.0f} kB/s")
        latencies = key_latencies(folder, arguments.presses)
        print(f"key to screen, median  {median(latencies) * 1e3:8.1f} ms while 124M generates")
        print(f"key to screen, 95th    {quantiles(latencies, n=20)[-1] * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
