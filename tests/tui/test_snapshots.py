"""Pictures of the whole app, kept: a change of looks is meant, or it is a mistake.

The model is made of small whole numbers, so that every machine computes the same screen to the last digit.
Renew the pictures with ``pytest tests/tui/test_snapshots.py --snapshot-update`` and look at each of them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import textual
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Static

from cutaway.core.cache import ActivationCache, Floats
from cutaway.core.editing import Edits
from cutaway.core.events import AttentionDone, BlockDone, Embedded, Event, LogitsReady, MlpDone, Normalized
from cutaway.core.models.attention import attention_pattern
from cutaway.core.models.decoder import Decoder
from cutaway.core.models.model import Model
from cutaway.core.trace import Trace
from cutaway.tui import app as app_module
from cutaway.tui.app import CutawayApp
from cutaway.tui.help_screen import HelpScreen
from cutaway.tui.main_screen import MainScreen
from cutaway.tui.options import resolve
from cutaway.tui.stages import Place, Stages

if TYPE_CHECKING:
    from tests.tui.conftest import Person

PINNED = "8.2.8"

pytestmark = pytest.mark.skipif(
    textual.__version__ != PINNED, reason=f"the pictures are of Textual {PINNED}, this is {textual.__version__}"
)

TOKENS = 20
STORY = " named Lily who lived in a small house near the big forest. One day she went"


class Clockwork:
    """Tells a story it knows by heart, and looks around at random, both in whole numbers."""

    def __init__(self, model: Model) -> None:
        self.config = model.config
        self.story = model.tokenizer.encode(STORY)
        self.head = np.empty((model.config.vocabulary, 0), np.float32)

    def forward(self, ids: Sequence[int], cache: ActivationCache, edits: Edits) -> Iterator[Event]:
        config, start, n = self.config, cache.length, len(ids)
        rows = cache.reserve(n)
        nothing = np.zeros((n, config.width), np.float32)
        for place in range(start, start + n):
            random = np.random.Generator(np.random.PCG64([7, place]))
            rows.embedding[place] = random.integers(-1, 2, config.width)
            rows.residual[:, place] = random.integers(-3, 4, (config.layers, config.width))
        yield Embedded(np.arange(start, start + n), nothing, nothing, nothing)
        for layer in range(config.layers):
            for place in range(start, start + n):
                random = np.random.Generator(np.random.PCG64([layer, place]))
                size = (config.heads, config.head_size)
                rows.query[layer, :, place] = random.integers(-2, 3, size)
                rows.key[layer, :, place] = random.integers(-2, 3, size)
                rows.value[layer, :, place] = random.integers(-2, 3, size)
            query, key = rows.query[layer, :, start : start + n], rows.key[layer, :, : start + n]
            pattern = attention_pattern(query, key, config.attention_scale(layer), start)
            yield AttentionDone(layer, query, key[:, start:], key[:, start:], pattern, nothing)
            yield MlpDone(layer, np.zeros((n, config.mlp_width), np.float32), nothing)
            yield BlockDone(layer, nothing)
        yield Normalized(nothing)
        yield LogitsReady(self.scores(start + n))
        cache.length = start + n

    def scores(self, place: int) -> Floats:
        """Logits [1, V] after *place* tokens: quarters, the story's next token the likeliest."""
        random = np.random.Generator(np.random.PCG64([99, place]))
        logits: Floats = random.integers(-48, 0, (1, self.config.vocabulary)).astype(np.float32) / np.float32(4)
        likely = random.choice(self.config.vocabulary - 1, 12, replace=False)
        logits[0, likely] = 4 - np.arange(12, dtype=np.float32) / 2
        logits[0, self.story[place % len(self.story)]] = 6
        return logits

    def logits(self, residual: Floats) -> Floats:
        scores: Floats = np.concatenate([self.scores(place + 1) for place in range(len(residual))])
        return scores


@pytest.fixture(autouse=True)
def clockwork(fable: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the app open the clockwork, take no time, and stop blinking."""
    model = replace(fable, decoder=cast(Decoder, Clockwork(fable)))
    monkeypatch.setattr("cutaway.tui.start.load_model", lambda name: model)
    monkeypatch.setattr(Trace, "prefill_seconds", 0.012)
    monkeypatch.setattr(Trace, "decode_rate", 240.0)
    monkeypatch.setattr(app_module, "START_SPEED", float("inf"))
    monkeypatch.setattr("textual.widgets.TextArea.cursor_blink", False)


async def sit_down(pilot: Pilot[None]) -> Person:
    """Somebody in front of the app, once there is a run on it."""
    from tests.tui.conftest import Person

    app = pilot.app
    assert isinstance(app, CutawayApp)
    person = Person(app, pilot, Path())
    await person.until(lambda: isinstance(app.screen, MainScreen) and app.screen.moment is not None)
    return person


async def reach_the_end(pilot: Pilot[None]) -> Person:
    """Wait until all has happened that the run itself still changes on the screen."""
    person = await sit_down(pilot)
    await person.until(lambda: person.moment.steps == TOKENS and person.moment.cells[1].surprisal is not None)
    await person.rests()
    return person


async def comes_to(person: Person, place: Place) -> None:
    await person.until(lambda: person.screen.place == place)


def an_app(**options: Any) -> CutawayApp:
    chosen = {"seed": 4, "max_new_tokens": TOKENS, "ignore_eos": True, "fps": 100} | options
    return CutawayApp(resolve(Namespace(**chosen), {}), "Once upon a time there was a girl")


def test_the_main_screen(snap_compare: Any) -> None:
    """A run at its end on the smallest common terminal."""
    assert snap_compare(an_app(), terminal_size=(80, 24), run_before=reach_the_end)


def test_looking_back_in_the_light(snap_compare: Any) -> None:
    """Eight tokens back, another head, the cell chosen by hand, light theme."""

    async def look_back(pilot: Pilot[None]) -> None:
        person = await reach_the_end(pilot)
        await person.press(*["left"] * 8, "up", "right_square_bracket", "tab", "tab", "up", "up", "left")
        await person.rests()
        newest = 8 + (TOKENS - 9) - 1
        assert person.screen.cursor.cell is not None and person.screen.cursor.cell[0] == newest - 2
        assert person.screen.place == Place(TOKENS - 9, Stages(4).last)

    assert snap_compare(an_app(theme="light"), terminal_size=(120, 40), run_before=look_back)


def test_inside_a_pass(snap_compare: Any) -> None:
    """Paused at the scores of a layer: before the mask the future is there, the layers after are empty."""

    async def step(pilot: Pilot[None]) -> None:
        person = await sit_down(pilot)
        stages = Stages(4)
        places = [("l", "residual", 0), ("l", "residual", 1), ("full_stop", "qkv", 2), ("full_stop", "scores", 2)]
        for key, name, layer in places:
            await person.press(key)
            await comes_to(person, Place(0, stages.index(name, layer)))
        await person.rests()

    assert snap_compare(an_app(step=True), terminal_size=(120, 40), run_before=step)


def test_trying_other_settings(snap_compare: Any) -> None:
    """The temperature two steps hotter on an older token: a preview, and which token it would be."""

    async def heat(pilot: Pilot[None]) -> None:
        person = await reach_the_end(pilot)
        await person.press(*["left"] * 5, "t", "right", "right")
        await person.rests()
        assert person.screen.draft is not None and person.screen.draft.settings.temperature == 0.9

    assert snap_compare(an_app(), terminal_size=(120, 40), run_before=heat)


def test_all_heads_alone(snap_compare: Any) -> None:
    """Every head of every layer, one of them chosen, and nothing else."""

    async def choose(pilot: Pilot[None]) -> None:
        person = await reach_the_end(pilot)
        await person.press("4", "tab", "up", "left")
        await person.rests()
        assert (person.screen.cursor.layer, person.screen.cursor.head) == (1, 3)

    assert snap_compare(an_app(), terminal_size=(100, 30), run_before=choose)


def test_help(snap_compare: Any) -> None:
    """The keys over the screen."""

    async def ask(pilot: Pilot[None]) -> None:
        person = await reach_the_end(pilot)
        await person.press("question_mark")
        await person.until(lambda: isinstance(pilot.app.screen, HelpScreen))
        await person.until(lambda: pilot.app.screen.query_one(VerticalScroll).has_focus)

    assert snap_compare(an_app(), terminal_size=(80, 24), run_before=ask)


def test_the_prompt_editor(snap_compare: Any) -> None:
    """The old prompt, selected, and its tokens."""

    async def write(pilot: Pilot[None]) -> None:
        person = await reach_the_end(pilot)
        editor = await person.opens_editor(keeping=False)
        await person.until(lambda: "8 tokens" in str(editor.query_one("#count", Static).content))

    assert snap_compare(an_app(), terminal_size=(80, 24), run_before=write)
