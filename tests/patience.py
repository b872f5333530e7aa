"""Waiting for an app until it has done what was asked of it: however slow the machine is, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from time import monotonic
from typing import Any

import pytest
from textual.app import App
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen

PATIENCE = 60.0
"""Seconds after which what has not happened will not."""

HOPS = 10
"""Widgets that what a key sets off may have to go through: up to the app, down to a panel, up again, and as much for
what that panel says. It is counted only where it is never quiet, in an app that draws a run."""


def make_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have keys, clicks and pauses of a pilot last until the app has done what they ask for.

    Textual's own wait until the process is idle for a moment. While a model runs it never is, and on a busy machine
    it seems to be in the middle of anything.
    """

    async def press_keys(app: App[Any], keys: Iterable[str]) -> None:
        for key in keys:
            await press(app, [key])
            await settle(app)

    async def wait_for_screen(pilot: Pilot[Any], timeout: float = PATIENCE) -> bool:
        await settle(pilot.app)
        return True

    async def pass_turns(*wanted: float) -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    press = App._press_keys
    monkeypatch.setattr(App, "_press_keys", press_keys)
    monkeypatch.setattr(Pilot, "_wait_for_screen", wait_for_screen)
    monkeypatch.setattr("textual.app.wait_for_idle", pass_turns)
    monkeypatch.setattr("textual.pilot.wait_for_idle", pass_turns)


async def settle(app: App[Any]) -> None:
    """Let what has been said travel to where it is for, and be laid out and painted."""
    quiet = 0
    for _ in range(HOPS):
        pumps = _pumps(app)
        await _handle_all(app, pumps)
        if app._exit or not app.screen_stack:
            return
        app.screen._on_timer_update()
        quiet = 0 if any(_has_more(pump) for pump in pumps) else quiet + 1
        if quiet == 2:
            return


def _pumps(app: App[Any]) -> list[MessagePump]:
    """Everything that handles messages: the app, its screens, all that is on them."""
    return [app, *(node for screen in app.screen_stack for node in screen.walk_children(with_self=True))]


def _has_more(pump: MessagePump) -> bool:
    callbacks = [*pump._next_callbacks, *getattr(pump, "_callbacks", ())]
    return pump.is_running and bool(callbacks or pump.message_queue_size)


async def _handle_all(app: App[Any], pumps: list[MessagePump]) -> None:
    """Wait until each has handled what it had been sent so far."""
    deadline = monotonic() + PATIENCE
    while app._resize_timer is not None and not app._exit:  # a new size is told a moment later
        assert monotonic() < deadline, "a new size was never told"
        await asyncio.sleep(0.001)
    waiting: set[MessagePump] = set()

    def handled(pump: MessagePump) -> None:
        waiting.discard(pump)

    for pump in pumps:  # what a widget does it does at once: only the app and its screens may be in the middle of it
        if isinstance(pump, App | Screen) or _has_more(pump):
            if pump.is_running and pump.call_later(handled, pump):
                waiting.add(pump)
    turns = 0
    while any(pump.is_running for pump in waiting) and not (app._exit or app._exception):
        turns += 1
        assert monotonic() < deadline, f"never handled what they were sent: {waiting}"
        await asyncio.sleep(0 if turns < 50 else 0.001)
