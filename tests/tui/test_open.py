"""A recording in the app: scrubbed like a run, without the model that made it; with it, more is there."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from cutaway.core import Generation, SamplingConfig, Trace, load_model
from cutaway.core.lens import lens_table
from cutaway.tui import app as app_module
from cutaway.tui.app import CutawayApp
from cutaway.tui.options import resolve
from cutaway.tui.stages import Place
from cutaway.widgets.attention_map import AttentionMap, AttentionView
from cutaway.widgets.candidate_bars import CandidateBars
from cutaway.widgets.embedding_strips import EmbeddingStrips
from cutaway.widgets.layer_table import LayerTable
from cutaway.widgets.sampling_stages import SamplingStages
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person

PROMPT = [5, 6, 7, 8]
SETTINGS = SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, seed=1)

OpenRecording = Callable[..., AbstractAsyncContextManager["Person"]]


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenRecording:
    """A function that opens a recording as ``cutaway open --step`` does, and to its end unless told not to."""
    from tests.tui.conftest import Person

    @asynccontextmanager
    async def sit_down(
        path: Path, *, size: tuple[int, int] = (120, 40), to_end: bool = True, **options: Any
    ) -> AsyncIterator[Person]:
        monkeypatch.setattr(app_module, "START_SPEED", 64.0)
        chosen = {"output_dir": str(tmp_path), "model": None, "step": True, "fps": 100} | options
        app = CutawayApp(resolve(Namespace(**chosen), {}), recording=path)
        async with app.run_test(size=size) as pilot:
            person = Person(app, pilot, tmp_path)
            await person.until(lambda: app.failure or person.screen.moment is not None)
            if to_end and not app.failure:
                await person.press("end")
            yield person

    return sit_down


def record(folder: Path, model: str, prompt: list[int], capture: str) -> Path:
    generation = Generation(
        load_model(model),
        prompt,
        SETTINGS,
        max_new_tokens=6,
        ignore_eos=True,
        capture=capture,  # type: ignore[arg-type]
    )
    list(generation)
    generation.trace.save(folder / f"{capture}.cutaway")
    return folder / f"{capture}.cutaway"


@pytest.fixture(scope="module", params=["default", "all"])
def recording(request: pytest.FixtureRequest, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six tokens of the tiny model, in both ways of keeping them."""
    return record(tmp_path_factory.mktemp("recordings"), str(tiny), PROMPT, request.param)


@pytest.fixture(scope="module")
def small(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smaller of them alone."""
    return record(tmp_path_factory.mktemp("recordings"), str(tiny), PROMPT, "default")


@pytest.fixture(scope="module")
def fable_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six tokens of the embedded model: more tokens than a recording keeps scores of."""
    ids = load_model("fable").tokenizer.encode("A dog ran")
    return record(tmp_path_factory.mktemp("recordings"), "fable", ids, "default")


def panels(person: Person) -> list[str]:
    kinds = AttentionMap, CandidateBars, LayerTable
    return [row for kind in kinds for row in person.panel(kind)]


async def test_it_opens_without_weights_and_shows_the_run_from_its_start(
    replay: OpenRecording, recording: Path
) -> None:
    recorded = Trace.load(recording)
    async with replay(recording, to_end=False) as person:
        await person.rests()
        assert isinstance(person.screen.run_shown and person.screen.run_shown.source, Trace)
        assert not person.trace.has_weights
        assert "recording" in person.title and "gpt2_base" in person.title and "token 0 · 1/6" in person.title
        assert [cell.text for cell in person.moment.cells] == [f"#{id}" for id in recorded.token_ids]
        assert all(cell.surprisal is not None for cell in person.moment.cells[1:])


async def test_it_is_scrubbed_with_the_keys_of_a_run_and_shows_what_the_run_showed(
    replay: OpenRecording, open_app: OpenApp, recording: Path, tiny: Path
) -> None:
    """Attention, candidates and the lens of every token and of stages inside a pass, drawn the same to the letter."""
    keys = (*["left"] * 3, "comma", "comma", "L", "L", "full_stop", "full_stop", "full_stop", "l", "up", "n", "home")
    keys = (*keys, *["full_stop"] * 14, "right_square_bracket", "end", "b")
    live = []
    options = {"model": str(tiny), "prompt_ids": PROMPT, "max_new_tokens": 6, "ignore_eos": True, "size": (120, 40)}
    async with open_app(**options) as person:
        await person.has_ended()
        for key in keys:
            await person.press(key)
            await person.rests()
            live.append((person.screen.place, panels(person), person.notice))
    async with replay(recording) as person:
        for key, (place, picture, said) in zip(keys, live, strict=True):
            await person.press(key)
            await person.rests()
            assert person.screen.place == place
            assert panels(person) == picture, (key, place)
            assert person.notice == said, (key, place)


async def test_space_plays_it_to_its_end(
    replay: OpenRecording, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with replay(recording) as person:
        assert not person.screen.runner.gate.running
        await person.press("space")  # at its end it is told again
        await person.says("the recording is at its end")
        await person.press("home")
        assert "token 0 · 1/6" in person.title and "back" not in person.title
        seen: list[Place | None] = []
        redraw = person.screen.redraw

        def watched() -> None:
            seen.append(person.screen.place)
            redraw()

        monkeypatch.setattr(person.screen, "redraw", watched)
        await person.press("space")
        await person.until(lambda: "▶" in person.title or len(seen) > 2)
        await person.says("the recording is at its end")
        steps = [place.step for place in seen if place]
        assert set(steps) | {0} == set(range(6)) and steps == sorted(steps)
        assert person.screen.following and not person.screen.runner.gate.running
        person.screen.runner.gate.set_speed(0.5)  # so that it is not over before it is paused
        await person.press("home", "space", "space")
        assert "‖ paused" in person.title
        assert not person.screen.following


async def test_without_step_it_plays_from_its_start(replay: OpenRecording, recording: Path) -> None:
    """And at its end every key works; nothing is computed, nothing runs away."""
    async with replay(recording, step=False, to_end=False) as person:
        await person.says("the recording is at its end")
        await person.rests()
        for key in ("n", "l", "full_stop", "r", "space", "space", "end"):
            await person.press(key)
        assert person.app.is_running and len(person.trace.steps) == 6


async def test_what_needs_weights_says_so(replay: OpenRecording, recording: Path) -> None:
    async with replay(recording, size=(200, 60)) as person:
        await person.rests()
        embedding = person.screen.query_one(EmbeddingStrips).view
        assert embedding is not None and [name for name, _ in embedding.parts] == ["sum"] and embedding.nearest == ()
        assert "need the weights" in " ".join(person.text.split())
        await person.press("e")
        assert person.notice == "another prompt needs the weights: open the recording with --model"
        await person.enters(CandidateBars)
        row = 0 if person.candidates.drawn else 1
        for _ in range(row):
            await person.press("down")
        await person.press("enter")
        assert person.notice == "another text needs the weights: open the recording with --model"
        assert len(person.trace.steps) == 6


async def test_sampling_of_a_short_recording_says_that_nothing_can_be_tried(
    replay: OpenRecording, fable_recording: Path
) -> None:
    async with replay(fable_recording) as person:
        await person.press("t", "right", "right")
        await person.rests()
        view = person.screen.query_one(SamplingStages).view
        assert view is not None and view.uniform == person.trace.steps[-1].uniform
        assert "nothing can be tried" in view.note or "nothing can be tried" in person.text
        assert f"‹{person.moment.cells[-1].text}›" in view.outcome


async def test_the_lens_and_attention_of_a_recording_are_those_of_the_run(
    replay: OpenRecording, recording: Path, tiny: Path
) -> None:
    whole = Generation(load_model(tiny), PROMPT, SETTINGS, max_new_tokens=6, ignore_eos=True)
    list(whole)
    async with replay(recording) as person:
        await person.press("left", "left")
        await person.rests()
        table = lens_table(whole.trace, len(PROMPT) + 2, len(PROMPT) + 3)
        layers = person.screen.query_one(LayerTable).view
        assert layers is not None
        for layer, row in enumerate(layers.rows):
            assert [token for token, _ in row.best] == [f"#{id}" for id in table.ids[layer, 0, :10]]
            assert row.drawn == pytest.approx(float(table.probability[layer, 0]), rel=1e-4)
            assert row.rank == int(table.rank[layer, 0])
        view = person.screen.query_one(AttentionMap).view
        assert isinstance(view, AttentionView)
        assert view.values.sum(1) == pytest.approx(np.ones(len(view.values)), abs=1e-5)


async def test_with_its_model_everything_is_there_and_it_branches(
    replay: OpenRecording, recording: Path, tiny: Path
) -> None:
    whole = Generation(load_model(tiny), PROMPT, SETTINGS, max_new_tokens=9, ignore_eos=True)
    list(whole)
    async with replay(recording, model=str(tiny), max_new_tokens=9, ignore_eos=True, size=(200, 60)) as person:
        await person.rests()
        embedding = person.screen.query_one(EmbeddingStrips).view
        assert person.trace.has_weights and embedding is not None and embedding.nearest
        assert [name for name, _ in embedding.parts] == ["token", "position", "sum"]
        assert "recording" not in person.title
        await person.press("left", "left")
        place, before = person.screen.place, person.trace
        assert place == Place(3, person.moment.stages.last)
        await person.enters(CandidateBars)
        row = 2 if person.candidates.drawn != 2 else 1
        token = int(person.candidates.rows[row].text.removeprefix("#"))
        for _ in range(row):
            await person.press("down")
        await person.press("enter")
        await person.until(lambda: person.trace is not before)
        await person.until(lambda: person.moment.steps == 4)
        await person.press("escape", "space")
        await person.until(lambda: person.moment.steps == 9)
        branch = whole.branch(3, token=token)
        list(branch)
        assert [step.id for step in person.trace.steps] == [step.id for step in branch.trace.steps]
        await person.press("w")
        assert person.trace is before and [step.id for step in before.steps] == [s.id for s in whole.trace.steps[:6]]


async def test_another_model_than_the_one_that_made_it_is_refused(
    replay: OpenRecording, recording: Path, short: Path
) -> None:
    async with replay(recording, model=str(short)) as person:
        await person.until(lambda: person.app.failure)
        assert person.app.failure is not None and "was not made with these weights" in person.app.failure.sentence


def opened(path: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    """``cutaway open`` in a terminal; what it leaves on the screen when it is over."""
    pty = pytest.importorskip("pty")
    script = (
        "import pty, sys, os\n"
        "command = [sys.executable, '-P', '-m', 'cutaway', 'open', *sys.argv[1:]]\n"
        "status = pty.spawn(command, lambda fd: os.read(fd, 65536))\n"
        "sys.exit(os.waitstatus_to_exitcode(status))\n"
    )
    assert pty
    return subprocess.run(
        [sys.executable, "-P", "-c", script, str(path), *options],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def damaged(recording: Path, folder: Path, how: str) -> Path:
    path = folder / f"{how}.cutaway"
    data = recording.read_bytes()
    if how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif how == "empty":
        path.touch()
    elif how == "text":
        path.write_text("\x1b]0;evil\x07 not a recording\n" * 40)
    elif how == "a-huge-header":
        path.write_bytes((2**62).to_bytes(8, "little") + data[8:])
    elif how == "another-safetensors":
        save_file({"x": np.zeros(3, np.float32)}, path, {"format": "\x1b[31mpt"})
    elif how == "ids-out-of-range":
        from safetensors import safe_open

        with safe_open(recording, "np") as opened:
            notes = opened.metadata()
        tensors = load_file(recording)
        tensors["token_ids"] = tensors["token_ids"] + 2**40
        save_file(tensors, path, notes)
    elif how == "a-folder":
        path.mkdir()
    return path


@pytest.mark.parametrize(
    "how",
    ["truncated", "empty", "text", "a-huge-header", "another-safetensors", "ids-out-of-range", "a-folder", "absent"],
)
def test_what_is_no_recording_is_one_sentence_and_status_1(small: Path, tmp_path: Path, how: str) -> None:
    done = opened(damaged(small, tmp_path, how))
    assert done.returncode == 1, done.stdout
    after = done.stdout.rsplit(b"\x1b[?1049l")[-1].decode()
    sentences = [line for line in after.splitlines() if "cutaway: error: " in line]
    assert len(sentences) == 1 and f"{how}.cutaway" in sentences[0]
    assert "Traceback" not in after and "evil" not in after
    assert "\x1b" not in sentences[0].split("cutaway: error: ")[1].rstrip("\r\n")
