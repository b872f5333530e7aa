"""What a decode step costs at every position: a line, whose slope is that of attention.

Run with ``python -m benchmarks.positions`` from the repository; ``--plot FILE`` draws it as an SVG. A GPT-2 of 124M's
shape with random weights writes to the end of its context. After each step all its matrices are read once by bare
products, and what that takes is taken off the step: it is most of one, the same at every position, and as noisy as the
machine. Then attention alone is computed for all layers from the same rows, at every 32nd position and with an MLP in
between, so that the processor's cache is as cold. Both are fitted by a line.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from benchmarks.engine import GPT2_SMALL, write_random_model
from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.benchmark import matrices, reading
from cutaway.core.events import TokenChosen
from cutaway.core.models.attention import attention_mixed, attention_pattern
from cutaway.core.trace import Trace

SPAN = 32
"""Steps whose median is one point."""
REPEATS = 7

STEP, ATTENTION = "a step, without its products", "attention alone"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """Milliseconds by position: points, and the line through them."""

    positions: Floats
    milliseconds: Floats

    @property
    def fit(self) -> tuple[float, float]:
        """Slope in milliseconds per 1,000 positions, and what it begins with."""
        slope, start = np.polyfit(self.positions, self.milliseconds, 1)
        return float(slope) * 1000, float(start)

    @property
    def straightness(self) -> float:
        """The share of the variance that the line explains (R²)."""
        return float(np.corrcoef(self.positions, self.milliseconds)[0, 1] ** 2)


def steps(run: Generation) -> Line:
    """What the steps of *run* take beyond their products, the first left out: a median for every `SPAN` of them."""
    read, beyond = reading(matrices(run.model.decoder)), []
    begun = perf_counter()
    for event in run:
        if isinstance(event, TokenChosen):
            beyond.append(perf_counter() - begun - read())
            begun = perf_counter()
    starts = range(1, len(beyond) - SPAN + 1, SPAN)
    first = len(run.trace.prompt_ids)
    return Line(
        np.array([first + start + (SPAN - 1) / 2 for start in starts]),
        np.array([1000 * median(beyond[start : start + SPAN]) for start in starts]),
    )


def attention(trace: Trace) -> Line:
    """What attention over all keys takes in all layers, at some positions."""
    positions = range(SPAN, trace.positions + 1, SPAN)
    return Line(np.array(positions, np.float64), np.array([1000 * _attend(trace, T) for T in positions]))


def _attend(trace: Trace, T: int) -> float:
    """Seconds of attention over *T* keys in all layers, a median."""
    rows, decoder, times = trace.cache.rows, trace.decoder, []
    for _ in range(REPEATS):
        total = 0.0
        for layer, block in enumerate(decoder.blocks):
            block.mlp.hidden(rows.residual[layer, T - 1 : T])  # drives what went before out of the cache
            query, key, value = rows.query[layer, :, T - 1 : T], rows.key[layer, :, :T], rows.value[layer, :, :T]
            begun = perf_counter()
            attention_mixed(attention_pattern(query, key, block.attention.scale, T - 1), value)
            total += perf_counter() - begun
        times.append(total)
    return median(times)


def plot(beyond: Line, alone: Line) -> str:
    """Both as an SVG, 640 by 360: points and lines."""
    left, right, top, bottom = 60.0, 620.0, 20.0, 320.0
    most = 1.4 * float(max(beyond.milliseconds))

    def x(position: float) -> float:
        return left + (right - left) * position / 1024

    def y(milliseconds: float) -> float:
        return bottom - (bottom - top) * milliseconds / most

    def drawn(line: Line, colour: str, name: str, row: int) -> str:
        slope, start = line.fit
        ends = f'x1="{x(0):.1f}" y1="{y(start):.1f}" x2="{x(1024):.1f}" y2="{y(start + slope * 1.024):.1f}"'
        points = "".join(
            f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2.5" fill="{colour}"/>'
            for a, b in zip(line.positions, line.milliseconds, strict=True)
        )
        label = f"{name}: {start:.1f} ms + {slope:.1f} ms per 1,000 positions"
        return (
            f'<line {ends} stroke="{colour}" stroke-opacity="0.5"/>{points}'
            f'<text x="{left + 20:.0f}" y="{top + 20 + 18 * row:.0f}" fill="{colour}">{label}</text>'
        )

    marks = [
        f'<text x="{x(position):.0f}" y="{bottom + 18:.0f}" text-anchor="middle">{position:,}</text>'
        for position in range(0, 1025, 256)
    ]
    marks += [
        f'<text x="{left - 8:.0f}" y="{y(value) + 4:.0f}" text-anchor="end">{value}</text>'
        for value in range(0, int(most) + 1, 2)
    ]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 360" font-size="12"'
        ' font-family="DejaVu Sans Mono, monospace">'
        '<rect width="640" height="360" fill="#ffffff"/>'
        f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#888888"/>{"".join(marks)}'
        f'<text x="{left - 40:.0f}" y="{top - 6:.0f}">ms a step</text>'
        f'<text x="{right:.0f}" y="{bottom + 34:.0f}" text-anchor="end">position</text>'
        f"{drawn(beyond, '#1f5fa8', STEP, 0)}{drawn(alone, '#b5541c', ATTENTION, 1)}</svg>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, help="where to draw both lines")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_random_model(Path(folder), GPT2_SMALL)
        model = load_model(folder)
        run = Generation(model, [1, 2, 3], SamplingConfig(seed=0), max_new_tokens=1022, ignore_eos=True)
        beyond, alone = steps(run), attention(run.trace)
    for name, line in ((STEP, beyond), (ATTENTION, alone)):
        slope, start = line.fit
        print(f"{name:<32} {start:6.2f} ms + {slope:5.2f} ms per 1,000 positions   R² {line.straightness:.3f}")
    if arguments.plot:
        arguments.plot.write_text(plot(beyond, alone), "utf-8")


if __name__ == "__main__":
    main()
