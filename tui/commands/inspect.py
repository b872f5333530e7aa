"""``cutaway inspect``: what a model is made of, read from its headers alone."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import prod
from typing import Any

from ...core.catalogue import mark, tr
from ...widgets.numbers import percent
from ..cli import DONE
from ..downloads import obtain_model
from ..options import add_download_option, resolve

_PARTS = (mark("embedding"), mark("attention"), mark("mlp"), mark("norms"), mark("head"))
"""Where parameters sit, in the order they are met."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        nargs="?",
        default=argparse.SUPPRESS,
        metavar="M",
        help=tr("a name, a folder, or a hub id (fable)"),
    )
    add_download_option(parser)
    parser.add_argument("--json", action="store_true", help=tr("print JSON"))


def run(arguments: argparse.Namespace) -> int:
    options = resolve(arguments)
    obtain_model(options)
    report = inspect(options.model)
    if arguments.json:
        from ..event_json import to_json

        print(to_json(report.to_dict(), indent=2))
    else:
        print(report.to_text())
    return DONE


@dataclass(frozen=True, slots=True)
class Report:
    """A model from its headers."""

    model: str
    config: dict[str, Any]
    parameters: dict[str, int]
    """Count by part."""
    tensors: list[dict[str, Any]]
    memory: dict[str, int]
    """Estimated bytes by use."""

    def to_dict(self) -> dict[str, Any]:
        total = sum(self.parameters.values())
        return {
            "model": self.model,
            "architecture": self.config,
            "parameters": {"total": total} | self.parameters,
            "memory_bytes": {"total": sum(self.memory.values())} | self.memory,
            "tensors": self.tensors,
        }

    def to_text(self) -> str:
        from ...widgets.drawable import drawable

        return "\n".join(drawable(line, spaces=False) for line in self._lines())

    def _lines(self) -> list[str]:
        total = sum(self.parameters.values())
        lines = [self._headline(), "", tr("parameters  {count}", count=f"{total:,}")]
        lines += [
            f"  {tr(part):<10} {count:>14,}  {percent(count / total):>7}"
            for part, count in self.parameters.items()
            if count
        ]
        lines += ["", tr("memory while running, estimated")]
        lines += [f"  {tr(use):<22} {_bytes(size):>12}" for use, size in self.memory.items()]
        return [*lines, "", *self._table()]

    def _headline(self) -> str:
        from ...core.models.families import family_title, shape_title

        c = self.config
        shape = shape_title(c["layers"], c["heads"], c["width"])
        room = tr("{positions} positions, {vocabulary} tokens", positions=c["positions"], vocabulary=c["vocabulary"])
        return f"{self.model}: {family_title(c['family'])}, {shape}, {room}"

    def _table(self) -> list[str]:
        """Every tensor of the files in a line: name, dtype, shape, bytes, share of all bytes."""
        rows = [(tr("tensor"), tr("dtype"), tr("shape"), tr("bytes"), tr("share"))]
        for tensor in self.tensors:
            shape = " × ".join(map(str, tensor["shape"])) or tr("one number")
            rows.append((tensor["name"], tensor["dtype"], shape, f"{tensor['bytes']:,}", percent(tensor["share"])))
        widest = [max(map(len, column)) for column in zip(*rows, strict=True)]
        aligned = zip("<<<>>", widest, strict=True)
        pattern = "  ".join(f"{{:{side}{cells}}}" for side, cells in aligned)
        return [pattern.format(*row) for row in rows]


def inspect(name: str) -> Report:
    """Read the headers of the model called *name*. Raises `ModelError`."""
    from ...core.models import open_model

    called, opened = open_model(name)
    config, checkpoint, weights = opened.config, opened.checkpoint, opened.weights
    parameters = dict.fromkeys(_PARTS, 0)
    for canonical in weights:
        parameters[opened.family.layout.part(canonical)] += prod(weights.info(canonical).shape)
    total = sum(info.nbytes for info in checkpoint.values())
    return Report(
        model=called,
        config=config.to_dict(),
        parameters=parameters,
        tensors=[
            {
                "name": info.name,
                "dtype": info.dtype,
                "shape": list(info.shape),
                "bytes": info.nbytes,
                "share": info.nbytes / total if total else 0.0,
            }
            for info in checkpoint.values()
        ],
        memory=_memory(config, sum(parameters.values())),
    )


def _memory(config: Any, parameters: int) -> dict[str, int]:
    """Bytes while running: weights in float32, and what is kept of a whole context."""
    per_head = config.head_size * (config.heads + 2 * config.kv_heads)
    rows = config.layers * (per_head + config.width) + config.width
    return {
        mark("weights in float32"): 4 * parameters,
        mark("a full context"): 4 * rows * config.positions,
        mark("scores of its tokens"): 4 * config.vocabulary * config.positions,
    }


def _bytes(size: float) -> str:
    """*size* in bytes as people read it."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
