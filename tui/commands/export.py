"""``cutaway export``: one picture of a run or of a recording, without a screen."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.catalogue import tr
from ...core.errors import UsageError
from ..cli import DONE
from ..layout import PANELS, SMALLEST
from ..options import add_look_options, add_model_options, check_look, check_usage, read_source, resolve

if TYPE_CHECKING:
    from ...core.generation import Generation
    from ...core.trace import Trace
    from ...widgets.look import Depth

VIEWS = ("screen", *(name.replace("candidates", "next-token") for name in PANELS))
"""What a picture can be of."""
STAGE_NAMES = (
    "tokens", "embedding", "qkv", "scores", "mask", "softmax", "mix", "projection", "mlp", "residual", "norm", "logits",
    "raw", "repetition_penalty", "temperature", "top_k", "top_p", "min_p", "final", "draw",
)  # fmt: skip
"""The stages of a pass, without loading what knows them."""
LARGEST = (400, 200)
"""Columns and rows of a picture at most."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", nargs="?", type=Path, metavar="RUN.cutaway", help=tr("a recording; else a run"))
    add_model_options(parser)
    group = parser.add_argument_group(tr("picture"))
    group.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help=tr("the type is its suffix"))
    views = tr("what to show: {views}", views=", ".join(VIEWS))
    group.add_argument("--view", default="screen", metavar="V", help=views)
    group.add_argument("--layer", type=int, metavar="L", help=tr("layer to look at, from 0"))
    group.add_argument("--head", type=int, metavar="H", help=tr("head to look at, from 0"))
    group.add_argument("--step", type=int, metavar="G", help=tr("generated token to look at, from 0 (the last)"))
    group.add_argument("--stage", metavar="S", help=tr("stage to look at: {names}", names=", ".join(STAGE_NAMES)))
    group.add_argument("--size", default="120x40", metavar="WxH", help=tr("columns and rows (120x40)"))
    group.add_argument("--crop", action="store_true", help=tr("the panel alone, without the lines around it"))
    group.add_argument("--force", action="store_true", help=tr("overwrite an existing file"))
    add_look_options(parser)


def run(arguments: argparse.Namespace) -> int:
    wanted_model = getattr(arguments, "model", None)
    if arguments.recording is not None:
        _check_recorded(arguments)
    options = resolve(arguments)
    check_usage(options)
    check_look(options)
    size = _size(options.size)
    view = _view(options.view)
    if options.crop and not view:
        raise UsageError(tr("--crop is about one panel"), hint=tr("choose it with --view"))
    from ...core.files import check_writable
    from ..pictures import picture_type, write_picture

    picture_type(options.output)
    check_writable(options.output, overwrite=options.force)
    source = _source(options, wanted_model)
    from ..still import Still, take

    still = Still(size, view, options.layer, options.head, options.step, options.stage, options.crop)
    depth: Depth = "none" if options.output.suffix.lower() == ".txt" else "truecolor"
    picture = take(source, options, still, depth)
    notice = write_picture(
        picture.lines, picture.width, picture.look, options.output, caption=picture.caption, overwrite=options.force
    )
    if notice:
        print(notice, file=sys.stderr)
    return DONE


def _source(options: argparse.Namespace, model: str | None) -> Generation | Trace:
    """The run to show, at its end. Raises `CutawayError`."""
    from ..start import open_recording, prepare

    if options.recording is not None:
        options.model = model
        return open_recording(options, options.recording)
    generation = prepare(options, read_source(options))
    for _ in generation:
        pass
    return generation


def _check_recorded(arguments: argparse.Namespace) -> None:
    """Raise `UsageError` for options of a run, which was over when it was recorded."""
    from dataclasses import fields

    from ...core.sampling import SamplingConfig

    settled = {field.name for field in fields(SamplingConfig)} | {"prompt", "prompt_file", "prompt_ids", "chat"}
    settled |= {"system", "ablate", "scale", "max_new_tokens", "ignore_eos"}
    if typed := sorted(settled & vars(arguments).keys()):
        option = f"--{typed[0].replace('_', '-')}"
        raise UsageError(tr("a recording has its own {option}", option=option), hint=tr("leave it out"))


def _written(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,4})[x×]([0-9]{1,4})", text)
    size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(least <= each <= most for least, each, most in zip(SMALLEST, size, LARGEST, strict=True)):
        raise UsageError(
            tr("{text} is no size", text=repr(text)),
            where="--size",
            hint=tr("give columns x rows, from {least} to {most}", least=_written(SMALLEST), most=_written(LARGEST)),
        )
    return size


def _view(text: str) -> str:
    """The panel that *text* names, or nothing for the whole screen."""
    name = text.strip().lower().replace(" ", "-").replace("_", "-")
    if name not in (*VIEWS, *PANELS):
        raise UsageError(
            tr("there is no view {name}", name=repr(text)),
            where="--view",
            hint=tr("choose from {names}", names=", ".join(VIEWS)),
        )
    return {"screen": "", "next-token": "candidates"}.get(name, name)
