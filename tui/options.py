"""Options of every command that runs a model, and where their values come from.

Command line over environment over settings file over default: the parser leaves out what was not typed, and
`resolve` fills it in. Imports no engine, so that ``--help`` stays instant.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.catalogue import tr
from ..core.errors import CutawayError
from .settings import read_settings

DEFAULTS: dict[str, Any] = {
    "model": "fable",
    "max_new_tokens": 64,
    "greedy": False,
    "temperature": 0.8,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "seed": None,
    "chat": False,
    "system": None,
    "prompt": None,
    "prompt_file": None,
    "prompt_ids": None,
    "ignore_eos": False,
    "ablate": (),
    "threads": None,
    "fps": None,
    "theme": "dark",
    "colormap": "lagoon",
    "lang": "en",
    "output_dir": ".",
    "step": False,
}
"""What holds where neither the command line, nor the environment, nor the settings file says otherwise."""


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Options of every command that runs a model."""
    add = _adder(parser.add_argument_group(tr("model and prompt")))
    add("--model", metavar="M", help=tr("a name, a folder, or a hub id in the local cache (fable)"))
    add("--prompt", metavar="TEXT", help=tr("what the model continues"))
    add("--prompt-file", metavar="F", help=tr("read the prompt from a UTF-8 file; - is standard input"))
    add("--prompt-ids", metavar="1,2,3", type=_ids, help=tr("exactly these token ids, nothing added"))
    add("--chat", action="store_true", help=tr("put the prompt into the model's chat template"))
    add("--system", metavar="TEXT", help=tr("the system message of a chat"))
    add("--max-new-tokens", metavar="N", type=_count, help=tr("how many tokens to write (64)"))
    add("--ignore-eos", action="store_true", help=tr("go on after an end token"))
    add(
        "--ablate",
        metavar="L.H",
        action="append",
        help=tr("silence head H of layer L, or its MLP with L.mlp; repeatable"),
    )
    add("--threads", metavar="N", type=_count, help=tr("processor threads for the arithmetic"))
    add = _adder(parser.add_argument_group(tr("sampling")))
    add("--greedy", action="store_true", help=tr("always take the likeliest token"))
    add(
        "--temperature",
        metavar="T",
        type=float,
        help=tr("flatten (> 1) or sharpen (< 1) the distribution (0.8)"),
    )
    add("--top-k", metavar="K", type=int, help=tr("keep the K likeliest tokens; 0 is off (40)"))
    add(
        "--top-p",
        metavar="P",
        type=float,
        help=tr("keep the likeliest tokens that together reach P; 1 is off (0.95)"),
    )
    add(
        "--min-p",
        metavar="P",
        type=float,
        help=tr("keep tokens at least P times as likely as the best; 0 is off (0)"),
    )
    add(
        "--repetition-penalty",
        metavar="X",
        type=float,
        help=tr("weaken tokens already in the text; 1 is off (1)"),
    )
    add(
        "--seed",
        metavar="N",
        type=int,
        help=tr("where the random numbers start; the same seed writes the same text"),
    )


def add_app_options(parser: argparse.ArgumentParser) -> None:
    """Options of the app alone."""
    add = _adder(parser.add_argument_group(tr("screen")))
    add("--step", action="store_true", help=tr("start paused"))
    add("--fps", metavar="N", type=_count, help=tr("most pictures a second (20; 10 over SSH)"))
    add("--theme", metavar="T", help=tr("dark or light"))
    add("--colormap", metavar="C", help=tr("lagoon, viridis, cividis or grey"))
    add("--lang", metavar="L", help=tr("language of the screen (en)"))
    add("--output-dir", metavar="DIR", help=tr("where pictures are saved (the current folder)"))


def resolve(typed: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> argparse.Namespace:
    """Every option of `DEFAULTS` with its value, whoever gave it. Raises `CutawayError`."""
    values = DEFAULTS | read_settings(DEFAULTS)
    if environment.get("CUTAWAY_MODEL"):
        values["model"] = environment["CUTAWAY_MODEL"]
    return argparse.Namespace(**(values | vars(typed)))


def read_prompt(options: argparse.Namespace) -> str | None:
    """The prompt's text from wherever it was given, or None where it was not.

    Standard input is read when ``--prompt-file -`` asks for it, or when something is piped in and no prompt is
    given otherwise; one trailing newline is dropped. Raises `CutawayError` for what is not UTF-8.
    """
    if options.prompt is not None:
        return str(options.prompt)
    if options.prompt_file not in (None, "-"):
        return _decoded(_read_file(Path(options.prompt_file)), str(options.prompt_file))
    if options.prompt_file == "-" or (options.prompt_ids is None and is_piped()):
        return _decoded(sys.stdin.buffer.read(), tr("standard input"))
    return None


def is_piped() -> bool:
    """Whether something is piped or redirected into standard input."""
    import stat

    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return False
    mode = os.fstat(sys.stdin.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _read_file(path: Path) -> bytes:
    try:
        return path.expanduser().read_bytes()
    except OSError as error:
        raise CutawayError(
            tr("the prompt cannot be read: {reason}", reason=error.strerror or error), where=str(path)
        ) from error


def _decoded(data: bytes, where: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CutawayError(
            tr(
                "the prompt is not UTF-8: byte {byte} at offset {offset}",
                byte=f"0x{data[error.start]:02x}",
                offset=error.start,
            ),
            where=where,
            hint=tr("convert it to UTF-8 first"),
        ) from error
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def _adder(group: Any) -> Any:
    """Adds options that leave no trace when they are not typed."""

    def add(*names: str, **rest: Any) -> None:
        group.add_argument(*names, default=argparse.SUPPRESS, **rest)

    return add


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise argparse.ArgumentTypeError(tr("{text} is not a list of ids such as 1,2,3", text=repr(text))) from None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(tr("{text} is not a whole number above 0", text=repr(text)))
    return int(text)
