"""Makes the README's pictures, with the program itself: ``python docs/make_pictures.py`` from the repository."""

from __future__ import annotations

import argparse
from pathlib import Path

from cutaway.tui.options import resolve
from cutaway.tui.pictures import write_picture
from cutaway.tui.start import prepare
from cutaway.tui.still import Still, take

HERE = Path(__file__).parent

PICTURES = {
    "screen": Still((120, 40), step=11),
    "attention": Still((100, 36), panel="attention", layer=2, head=5, step=2, stage="softmax", crop=True),
    "sampling": Still((100, 20), panel="sampling", step=11, crop=True),
}
"""Telling moments of one run with a fixed seed."""


def main() -> None:
    """Let fable write, then look at it."""
    options = resolve(argparse.Namespace(seed=10, debug=True), {})
    run = prepare(options, None)
    for _ in run:
        pass
    for name, still in PICTURES.items():
        picture = take(run, options, still)
        path = HERE / f"{name}.svg"
        write_picture(picture.lines, picture.width, picture.look, path, caption=picture.caption, overwrite=True)


if __name__ == "__main__":
    main()
