"""Somebody in front of the app: presses keys, looks at the screen, waits for what should happen."""

from __future__ import annotations

import gettext
import json
import math
import shutil
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import numpy as np
import pytest
from rich.cells import cell_len
from safetensors.numpy import load_file, save_file
from textual import events
from textual.pilot import Pilot

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.catalogue import use
from cutaway.core.models.model import Model
from cutaway.core.trace import Trace
from cutaway.tui import app as app_module
from cutaway.tui.app import CutawayApp
from cutaway.tui.main_screen import MainScreen
from cutaway.tui.moment import Moment
from cutaway.tui.options import resolve
from cutaway.tui.prompt_screen import PromptScreen
from cutaway.widgets import notice_line
from cutaway.widgets.attention_map import AttentionMap, AttentionView
from cutaway.widgets.candidate_bars import CandidateBars, CandidatesView
from cutaway.widgets.notice_line import NoticeLine
from cutaway.widgets.panel import Panel
from cutaway.widgets.picture import screen_lines
from cutaway.widgets.title_line import TitleLine
from cutaway.widgets.token_stream import TokenStream, TokenStreamView
from tests.patience import PATIENCE, make_patient, settle

MODELS = Path(__file__).resolve().parents[1] / "data" / "models"

PanelKind = TypeVar("PanelKind", bound=Panel[Any])


@dataclass
class Person:
    """Uses the app as people do, and sees what they see."""

    app: CutawayApp
    pilot: Pilot[None]
    folder: Path
    """Where pictures go."""

    async def press(self, *keys: str) -> None:
        """Press keys one after the other, each when what the one before did can be seen."""
        for key in keys:
            await self.pilot.press(key)
            await self.sees()

    def types(self, *keys: str) -> None:
        """Press keys without looking at what they do."""
        for key in keys:
            self.app.simulate_key(key)

    async def paste(self, text: str) -> None:
        self.app.post_message(events.Paste(text))
        await self.sees()

    async def sees(self) -> None:
        """Wait until what has been said has come to where it is for, and the screen shows what came of it."""
        await settle(self.app)
        await self._wait(lambda: self._sees_all)

    @property
    def _sees_all(self) -> bool:
        """Whether nothing waits to be drawn. A run that goes on is not drawn at every token."""
        screens = [screen for screen in self.app.screen_stack if isinstance(screen, MainScreen)]
        return bool(self.app._exit) or not any(screen._stale for screen in screens)

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait until it has *happened* and can be seen; say what the screen looked like if it does not."""
        await self._wait(happened)
        await self.sees()

    async def _wait(self, happened: Callable[[], object]) -> None:
        deadline = monotonic() + PATIENCE
        while not happened():
            assert monotonic() < deadline and not self.app._exception, "\n" + self.text
            await self.pilot.pause(0.01)

    async def has_steps(self, count: int) -> None:
        await self.until(lambda: self.screen.moment is not None and self.moment.steps >= count)

    async def goes_on(self, count: int) -> None:
        """Wait until there are *count* more tokens."""
        await self.has_steps(self.moment.steps + count)

    async def has_ended(self) -> None:
        await self.says("the run is at its end")

    async def looks_at(self, cell: tuple[int, int] | None) -> None:
        await self.until(lambda: self.screen.cursor.cell == cell)

    async def looks_at_query(self, query: int) -> None:
        await self.until(lambda: self.attention.query == query)

    async def fills(self, size: tuple[int, int]) -> None:
        """Wait until the terminal has this size and the screen fills it."""
        await self.until(lambda: [cell_len(row) for row in self.rows] == [size[0]] * size[1])

    async def says(self, words: str) -> None:
        await self.until(lambda: words in self.notice)

    async def has_pictures(self, count: int) -> None:
        """Wait until that many are there, and nothing that one of them was written to at first."""

        def there() -> bool:
            suffixes = [path.suffix for path in self.folder.iterdir()]
            return suffixes == [".svg"] * count

        await self.until(there)

    async def rests(self) -> None:
        """Wait until nothing is under way, and every panel is about the place that is looked at."""
        await self.sees()
        await self.until(lambda: self._is_at_rest)

    @property
    def _is_at_rest(self) -> bool:
        screen, run, gate = self.screen, self.screen.run_shown, self.screen.runner.gate
        with gate._changed:
            asked = gate._goal is not None or bool(gate._granted)
        if run is None or gate.running or (asked and not run.over):
            return False
        return not (screen.runner.inbox or screen._target or screen._runs._next) and screen.settled

    async def enters(self, kind: type[PanelKind]) -> PanelKind:
        """Go from panel to panel, as tab does, up to one of a kind."""
        for _ in range(9):
            if isinstance(panel := self.screen.focused, kind):
                return panel
            await self.press("tab")
        raise AssertionError(f"no panel is a {kind.__name__}")

    async def closes(self) -> None:
        """Leave what lies over the main screen."""
        await self.press("escape")
        await self.until(lambda: self.app.screen is self.screen)

    async def opens_editor(self, *, keeping: bool = True) -> PromptScreen:
        """Open the prompt editor; *keeping* the old prompt, go to its end."""
        await self.press("e")
        await self.until(lambda: isinstance(self.app.screen, PromptScreen))
        assert isinstance(self.app.screen, PromptScreen)
        if keeping:
            await self.press("right")
        return self.app.screen

    @property
    def screen(self) -> MainScreen:
        """The main screen, whatever lies over it."""
        [screen] = [screen for screen in self.app.screen_stack if isinstance(screen, MainScreen)]
        return screen

    @property
    def rows(self) -> list[str]:
        """Everything that is on the terminal."""
        return ["".join(segment.text for segment in line) for line in screen_lines(self.app.screen)]

    @property
    def text(self) -> str:
        return "\n".join(self.rows)

    @property
    def moment(self) -> Moment:
        assert self.screen.moment is not None
        return self.screen.moment

    @property
    def trace(self) -> Trace:
        return self.moment.trace

    @property
    def title(self) -> str:
        return self.line(TitleLine)

    @property
    def notice(self) -> str:
        return self.line(NoticeLine)

    def line(self, kind: type[Panel[Any]]) -> str:
        return self.screen.query_one(kind).render_line(0).text.strip()

    def panel(self, kind: type[Panel[Any]]) -> list[str]:
        panel = self.screen.query_one(kind)
        return [panel.render_line(y).text for y in range(panel.size.height)]

    @property
    def attention(self) -> AttentionView:
        view = self.screen.query_one(AttentionMap).view
        assert isinstance(view, AttentionView)
        return view

    @property
    def candidates(self) -> CandidatesView:
        view = self.screen.query_one(CandidateBars).view
        assert view is not None
        return view

    @property
    def stream(self) -> TokenStreamView:
        view = self.screen.query_one(TokenStream).view
        assert view is not None
        return view


OpenApp = Callable[..., AbstractAsyncContextManager[Person]]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no test depend on how fast the machine is; what was said stays until it is read."""
    make_patient(monkeypatch)
    monkeypatch.setattr(notice_line, "SAID_SECONDS", 1000.0)


@pytest.fixture
def open_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenApp:
    """A function that opens the app and sits somebody in front of it.

    It is as fast as it goes unless it is given a speed; everything else is as on the command line.
    """

    @asynccontextmanager
    async def sit_down(
        prompt: str | None = None, *, size: tuple[int, int] = (100, 30), speed: float = math.inf, **options: Any
    ) -> AsyncIterator[Person]:
        folder = tmp_path / "pictures"
        folder.mkdir(exist_ok=True)
        monkeypatch.setattr(app_module, "START_SPEED", speed)
        chosen = {"output_dir": str(folder), "seed": 1, "fps": 100} | options
        ids = options.get("prompt_ids")
        app = CutawayApp(resolve(Namespace(**chosen), {}), prompt if ids is None else tuple(ids))
        async with app.run_test(size=size) as pilot:
            person = Person(app, pilot, folder)
            await person.until(lambda: app.failure or person.screen.moment is not None)
            yield person

    return sit_down


@pytest.fixture(scope="session")
def fable() -> Model:
    """The embedded model."""
    return load_model("fable")


@pytest.fixture(scope="session")
def tiny() -> Path:
    """A model of random weights: 97 tokens, no tokenizer, 64 positions."""
    return MODELS / "gpt2_base"


@pytest.fixture(scope="session")
def short() -> Path:
    """A model of random weights: 61 tokens, no tokenizer, only 16 positions."""
    return MODELS / "gpt2_ctx16"


@pytest.fixture(scope="session")
def broken(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with a damaged weight: what it says after the token at position 6 is not a number."""
    folder = tmp_path_factory.mktemp("models") / "broken"
    shutil.copytree(tiny, folder)
    tensors = load_file(folder / "model.safetensors")
    [name] = [name for name in tensors if name.endswith("wpe.weight")]
    tensors[name][6] = np.nan
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="session")
def brief(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with another end token: after 1, 2, 3 the likeliest fourth token ends the text."""
    run = Generation(load_model(tiny), [1, 2, 3], SamplingConfig(greedy=True), max_new_tokens=4, ignore_eos=True)
    assert list(run)
    ids = [step.id for step in run.trace.steps]
    assert ids[-1] not in ids[:-1]
    folder = tmp_path_factory.mktemp("models") / "brief"
    shutil.copytree(tiny, folder)
    for name in ("config.json", "generation_config.json"):
        config = json.loads((folder / name).read_text("utf-8"))
        (folder / name).write_text(json.dumps(config | {"eos_token_id": ids[-1]}), "utf-8")
    return folder


@pytest.fixture
def speak() -> Iterator[Callable[[Callable[[str], str]], None]]:
    """A function that has every message translated until the end of the test."""
    yield use
    use(gettext.NullTranslations().gettext)
