"""Sentences in lines: broken between words, cut only where there is no more room at all."""

from __future__ import annotations

from textual.strip import Strip

from .drawable import beginning, cell_width, clip
from .line import Line
from .look import Look, style


def wrapped(sentence: str, cells: int, most: int) -> list[str]:
    """A drawable *sentence* in at most *most* lines of at most *cells* columns; a word stays whole where it can."""
    lines = [""]
    for word in sentence.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_width(longer) <= cells:
            lines[-1] = longer
        else:
            lines += _pieces(word, cells)
    lines = [line for line in lines if line]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], _cut(lines[most - 1], cells)] if most > 0 else []


def _cut(line: str, cells: int) -> str:
    """The last *line* there is room for, with the sign that more would follow, between words where it has any."""
    while cell_width(line) + 2 > cells and " " in line:
        line = line.rpartition(" ")[0]
    return f"{line} …" if cell_width(line) + 2 <= cells else clip(f"{line}…", cells)


def _pieces(word: str, cells: int) -> list[str]:
    """A *word* in pieces of at most *cells* columns."""
    pieces = []
    while cell_width(word) > cells and (piece := beginning(word, cells)):
        pieces.append(piece)
        word = word[len(piece) :]
    return [*pieces, word]


def centred(sentence: str, columns: int, rows: int, look: Look) -> list[Strip]:
    """A drawable *sentence* that stands back, in the middle of an otherwise empty panel."""
    quiet = style(look.quiet, look.panel)
    lines = wrapped(sentence, columns - 2, rows)
    blank = Line(columns, quiet).strip()
    middle = [Line(columns, quiet).gap((columns - cell_width(line)) // 2).add(line).strip() for line in lines]
    return [*[blank] * ((rows - len(lines)) // 2), *middle]
