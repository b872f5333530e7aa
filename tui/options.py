"""Options of every command that runs a model, and where their values come from.

Command line over environment over settings file over default: the parser leaves out what was not typed, and
`resolve` fills it in. Imports no engine, so that ``--help`` stays instant.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

from ..core.catalogue import tr
from ..core.errors import CutawayError, UsageError
from ..core.part_names import PART, SCALED_PART
from .settings import read_settings, settings_path

DEFAULTS: dict[str, Any] = {
    "model": "fable",
    "download": False,
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
    "scale": (),
    "threads": None,
    "fps": None,
    "theme": "dark",
    "colormap": "lagoon",
    "lang": "en",
    "output_dir": ".",
    "step": False,
    "keys": {},
}
"""What holds where neither the command line, nor the environment, nor the settings file says otherwise."""


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Options of every command that runs a model."""
    group = parser.add_argument_group(tr("model and prompt"))
    add = _adder(group)
    add("--model", metavar="M", help=tr("a name, a folder, or a hub id in the local cache (fable)"))
    add_download_option(group)
    only = _adder(group.add_mutually_exclusive_group())
    only("--prompt", metavar="TEXT", help=tr("what the model continues"))
    only("--prompt-file", metavar="F", help=tr("read the prompt from a UTF-8 file; - is standard input"))
    only("--prompt-ids", metavar="1,2,3", type=_ids, help=tr("exactly these token ids, nothing added"))
    add("--chat", action="store_true", help=tr("put the prompt into the model's chat template"))
    add("--system", metavar="TEXT", help=tr("the system message of a chat"))
    add("--max-new-tokens", metavar="N", type=_count, help=tr("how many tokens to write (64)"))
    add("--ignore-eos", action=argparse.BooleanOptionalAction, help=tr("go on after an end token"))
    ablate = tr("silence head H of layer L, or its MLP with L.mlp; repeatable")
    add("--ablate", metavar="L.H", action="append", type=_ablation, help=ablate)
    scale = tr("multiply what head H of layer L gives by F, or its MLP with L.mlp=F; repeatable")
    add("--scale", metavar="L.H=F", action="append", type=_scaling, help=scale)
    add("--threads", metavar="N", type=_count, help=tr("processor threads for the arithmetic"))
    add = _adder(parser.add_argument_group(tr("sampling")))
    add("--greedy", action=argparse.BooleanOptionalAction, help=tr("always take the likeliest token"))
    heat = tr("flatten (> 1) or sharpen (< 1) the distribution (0.8)")
    add("--temperature", metavar="T", type=_number(0, inf), help=heat)
    add("--top-k", metavar="K", type=_whole, help=tr("keep the K likeliest tokens; 0 is off (40)"))
    reach = tr("keep the likeliest tokens that together reach P; 1 is off (0.95)")
    add("--top-p", metavar="P", type=_number(0, 1), help=reach)
    relative = tr("keep tokens at least P times as likely as the best; 0 is off (0)")
    add("--min-p", metavar="P", type=_number(0, 1), help=relative)
    weaken = tr("weaken tokens already in the text; 1 is off (1)")
    add("--repetition-penalty", metavar="X", type=_number(0, inf, above=True), help=weaken)
    seed = tr("where the random numbers start; the same seed writes the same text")
    add("--seed", metavar="N", type=_whole, help=seed)


def add_download_option(group: Any) -> None:
    """The consent to a download, which nothing but the command line can give."""
    allow = tr("fetch a model that is not here from the Hugging Face hub")
    _adder(group)("--download", action="store_true", help=allow)


def add_speed_options(parser: argparse.ArgumentParser) -> None:
    """Options of a model that is only timed."""
    add = _adder(parser.add_argument_group(tr("model")))
    add("--model", metavar="M", help=tr("a name, a folder, or a hub id in the local cache (fable)"))
    add("--max-new-tokens", metavar="N", type=_count, help=tr("how many tokens to write (64)"))
    add("--threads", metavar="N", type=_count, help=tr("processor threads for the arithmetic"))


def add_weights_options(parser: argparse.ArgumentParser) -> None:
    """Options of a recording that is looked at together with the model that made it."""
    group = parser.add_argument_group(tr("the model that was recorded"))
    add = _adder(group)
    add("--model", metavar="M", help=tr("show what needs the weights too, and take other ways from there"))
    add("--max-new-tokens", metavar="N", type=_count, help=tr("how many tokens another way may have (64)"))
    add("--ignore-eos", action=argparse.BooleanOptionalAction, help=tr("go on after an end token"))
    add("--threads", metavar="N", type=_count, help=tr("processor threads for the arithmetic"))


def add_look_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Options of everything that draws."""
    group = parser.add_argument_group(tr("screen"))
    add = _adder(group)
    add("--theme", metavar="T", help=tr("dark or light"))
    add("--colormap", metavar="C", help=tr("lagoon, viridis, cividis or grey"))
    add("--lang", metavar="L", help=tr("language of the screen (en)"))
    return group


def add_app_options(parser: argparse.ArgumentParser) -> None:
    """Options of the app alone."""
    add = _adder(add_look_options(parser))
    add("--step", action="store_true", help=tr("start paused"))
    add("--fps", metavar="N", type=_count, help=tr("most pictures a second (20; 10 over SSH)"))
    add("--output-dir", metavar="DIR", help=tr("where pictures are saved (the current folder)"))


def resolve(typed: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> argparse.Namespace:
    """Every option of `DEFAULTS` with its value, whoever gave it. Raises `CutawayError`."""
    values = DEFAULTS | read_settings(DEFAULTS)
    if environment.get("CUTAWAY_MODEL"):
        values["model"] = environment["CUTAWAY_MODEL"]
    return argparse.Namespace(**(values | vars(typed)))


def read_source(options: argparse.Namespace, *, piped: bool = True) -> str | tuple[int, ...] | None:
    """What the run continues: the ids or the prompt that was given, or None. Raises as `read_prompt`."""
    return read_prompt(options, piped=piped) if options.prompt_ids is None else tuple(options.prompt_ids)


def check_usage(options: argparse.Namespace) -> None:
    """Raise `UsageError` for options that make sense only with another one."""
    if options.system is not None and not options.chat:
        raise UsageError(tr("--system is the system message of a chat"), hint=tr("add --chat"))


def check_look(options: argparse.Namespace) -> None:
    """Raise `UsageError` for a theme, a colormap or a language that is not there, and for keys that clash."""
    from ..widgets.look import COLORMAPS, THEMES
    from .keys import remapped

    for name, value, known in (
        ("--theme", options.theme, THEMES),
        ("--colormap", options.colormap, COLORMAPS),
        ("--lang", options.lang, ("en",)),
    ):
        if value not in known:
            raise UsageError(
                tr("there is no {value}", value=repr(value)),
                where=name,
                hint=tr("choose from {names}", names=", ".join(known)),
            )
    remapped(options.keys, str(settings_path()))


def read_prompt(options: argparse.Namespace, *, piped: bool = True) -> str | None:
    """The prompt's text from wherever it was given, or None where it was not.

    Standard input is read when ``--prompt-file -`` asks for it and, with *piped*, when something is piped in and no
    prompt is given otherwise; one trailing newline is dropped. Raises `CutawayError` for what is not UTF-8.
    """
    if options.prompt is not None:
        return str(options.prompt)
    if options.prompt_file not in (None, "-"):
        return _decoded(_read_file(Path(options.prompt_file)), str(options.prompt_file))
    if options.prompt_file == "-":
        return _decoded(sys.stdin.buffer.read(), tr("standard input"))
    if piped and is_piped() and (data := sys.stdin.buffer.read()):  # an empty pipe says nothing
        return _decoded(data, tr("standard input"))
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
    if not re.fullmatch(r"\s*[0-9]{1,9}(\s*,\s*[0-9]{1,9})*\s*,?\s*", text):
        raise argparse.ArgumentTypeError(tr("{text} is not a list of ids such as 1,2,3", text=repr(text)))
    return [int(part) for part in text.split(",") if part.strip()]


def _ablation(text: str) -> str:
    if not PART.fullmatch(text):
        raise argparse.ArgumentTypeError(tr("{text} is neither LAYER.HEAD nor LAYER.mlp", text=repr(text)))
    return text


def _scaling(text: str) -> str:
    if not SCALED_PART.fullmatch(text):
        what = tr("{text} is neither LAYER.HEAD=FACTOR nor LAYER.mlp=FACTOR", text=repr(text))
        raise argparse.ArgumentTypeError(what)
    return text


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(tr("{text} is not a whole number, 0 or more", text=repr(text)))
    return int(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text) or not int(text):
        raise argparse.ArgumentTypeError(tr("{text} is not a whole number above 0", text=repr(text)))
    return int(text)


def _number(least: float, most: float, *, above: bool = False) -> Callable[[str], float]:
    """A type for finite numbers from *least* (or only *above* it) to *most*."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not (isfinite(value) and least <= value <= most and not (above and value == least)):
            sentence = tr("{text} is not a number from {least:g} to {most:g}", text=repr(text), least=least, most=most)
            raise argparse.ArgumentTypeError(sentence)
        return value

    return number
