"""The app at full speed without a terminal, to learn what showing a run costs."""

from __future__ import annotations

import argparse
import asyncio
from time import perf_counter

from ..core.generation import Generation
from ..core.models.model import Model
from ..core.sampling import SamplingConfig
from .app import CutawayApp
from .gate import SPEEDS
from .main_screen import MainScreen
from .options import resolve

SIZE = (120, 40)
"""Columns and rows of the screen."""
PATIENCE = 600.0
"""Seconds after which it is given up."""


def live_rate(model: Model, prompt: int, tokens: int) -> float:
    """Tokens a second while the app shows every one it has time for."""
    return asyncio.run(_rate(model, prompt, tokens))


async def _rate(model: Model, prompt: int, tokens: int) -> float:
    ids = [id % model.config.vocabulary for id in range(prompt)]
    run = Generation(model, ids, SamplingConfig(seed=0), max_new_tokens=tokens, ignore_eos=True)
    app = CutawayApp(resolve(argparse.Namespace(step=True, debug=False), {}))
    app.prepared = run
    async with app.run_test(size=SIZE), asyncio.timeout(PATIENCE):
        while not (isinstance(app.screen, MainScreen) and app.screen.moment):
            await asyncio.sleep(0.005)
        gate = app.screen.runner.gate
        gate.set_speed(SPEEDS[-1])
        gate.run(True)
        while not run.trace.steps:
            await asyncio.sleep(0.001)
        begun, first = perf_counter(), len(run.trace.steps)
        while run.trace.finish_reason is None:
            await asyncio.sleep(0.005)
        return (tokens - first) / (perf_counter() - begun)
