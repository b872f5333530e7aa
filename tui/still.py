"""A still: the app's own screen at a moment of a run that is over, drawn without a terminal."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip

from ..core.catalogue import tr
from ..core.errors import CutawayError, UsageError
from ..core.generation import Generation
from ..core.trace import Trace
from ..widgets.look import Depth, Look
from ..widgets.panel import Panel
from ..widgets.picture import screen_lines
from .app import CutawayApp
from .captions import caption
from .cursor import Cursor
from .main_screen import MainScreen
from .stages import Place, Stages, stages_of

PATIENCE = 120.0
"""Seconds after which what the picture needs will not come any more."""


@dataclass(frozen=True, slots=True)
class Still:
    """What a picture is to be of."""

    size: tuple[int, int]
    """Columns and rows of the screen."""
    panel: str = ""
    """The panel that is shown alone; all of them where it is empty."""
    layer: int | None = None
    head: int | None = None
    step: int | None = None
    stage: str | None = None
    crop: bool = False
    """Whether to leave out everything but the panel."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What was drawn."""

    lines: Sequence[Strip]
    width: int
    look: Look
    caption: str


def take(source: Generation | Trace, options: argparse.Namespace, still: Still, depth: Depth = "truecolor") -> Picture:
    """Show *source*, which is over, and keep what is on the screen. Raises `CutawayError` for what is not there."""
    cursor = _cursor(source.trace if isinstance(source, Generation) else source, still)
    return asyncio.run(_taken(source, options, still, cursor, depth))


async def _taken(
    source: Generation | Trace, options: argparse.Namespace, still: Still, cursor: Cursor, depth: Depth
) -> Picture:
    app = CutawayApp(argparse.Namespace(**vars(options) | {"step": True, "fps": None, "keys": {}}), depth=depth)
    app.prepared = source
    async with app.run_test(size=still.size) as pilot:
        screen = await _main_screen(pilot)
        screen.alone, screen.timed = still.panel, False
        screen.lay_out()
        await pilot.pause()
        screen.cursor = cursor
        await _settled(pilot, screen)
        panel = screen.query_one(f"#{still.panel}", Panel) if still.crop and still.panel else None
        if panel is None:
            lines, width = screen_lines(screen), still.size[0]
        else:
            lines, width = panel.portrait(), panel.size.width
        assert screen.moment is not None
        told = caption(screen.moment, screen.place, cursor, still.panel)
        return Picture(list(lines), width, app.look, told)


async def _main_screen(pilot: Pilot[None]) -> MainScreen:
    """The screen, once the run is on it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            screen = pilot.app.screen
            if isinstance(screen, MainScreen) and screen.moment is not None:
                return screen
            _check(pilot.app)
            await asyncio.sleep(0.01)


def _check(app: App[None]) -> None:
    """Raise `CutawayError` where the app has given up."""
    if isinstance(app, CutawayApp) and app.failure is not None:
        raise CutawayError(app.failure.sentence)


async def _settled(pilot: Pilot[None], screen: MainScreen) -> None:
    """Wait until everything on the screen is about the moment that is looked at."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not screen.settled:
                screen.redraw()
                await pilot.pause(0.01)
                _check(pilot.app)
            screen.redraw()
            await pilot.pause()
    except TimeoutError as error:
        what = tr("what the picture shows was not computed within {count} seconds", count=PATIENCE)
        raise CutawayError(what, hint=tr("try a shorter text")) from error


def _cursor(trace: Trace, still: Still) -> Cursor:
    """Where to look. Raises `UsageError` for a layer, head, step or stage that is not there."""
    config, stages = trace.model.config, stages_of(trace.model.config)
    layer = _within(still.layer, config.layers, "--layer", config.layers // 2)
    head = _within(still.head, config.heads, "--head", config.heads // 2)
    step = _within(still.step, len(trace.steps), "--step", len(trace.steps) - 1)
    place = Place(step, _stage(still.stage, layer, stages))
    newest = Place(len(trace.steps) - 1, stages.last)
    return Cursor(place=None if place == newest else place, layer=layer, head=head)


def _within(wanted: int | None, count: int, where: str, otherwise: int) -> int:
    if wanted is None:
        return otherwise
    if not 0 <= wanted < count:
        raise UsageError(
            tr("there is no {number}", number=wanted), where=where, hint=tr("choose from 0 to {last}", last=count - 1)
        )
    return wanted


def _stage(name: str | None, layer: int, stages: Stages) -> int:
    """The stage called *name*, in *layer* where it is one of a layer's."""
    if name is None:
        return stages.last
    for index, stage in enumerate(stages.all):
        if stage.name == name and stage.layer in (None, layer):
            return index
    names = dict.fromkeys(stage.name for stage in stages.all)
    raise UsageError(
        tr("there is no stage {name}", name=repr(name)),
        where="--stage",
        hint=tr("choose from {names}", names=", ".join(names)),
    )
