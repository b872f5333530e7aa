"""Makes the README's picture, with the program itself: ``python docs/make_pictures.py`` from the repository."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from cutaway.tui.app import CutawayApp
from cutaway.tui.options import resolve
from cutaway.tui.pictures import write_picture
from cutaway.tui.screen import MainScreen
from cutaway.widgets.picture import screen_lines

HERE = Path(__file__).parent
STEPS = 11


async def main() -> None:
    """Let fable write with a fixed seed, go back to a telling moment, save the screen."""
    app = CutawayApp(resolve(argparse.Namespace(seed=10, debug=True), {}))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("plus", "plus", "plus", "plus")
        while not (isinstance(app.screen, MainScreen) and app.screen.moment and app.screen.moment.steps == 64):
            await pilot.pause(0.1)
        await pilot.press("home", *["right"] * STEPS)
        await pilot.pause()
        write_picture(screen_lines(app.screen), 120, app.look, HERE / "screen.svg", overwrite=True)


if __name__ == "__main__":
    asyncio.run(main())
