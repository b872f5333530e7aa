"""Pictures without a screen: every view in every type, at any moment, and nothing left behind when it fails."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.attention_stages import attention_rows
from cutaway.tui import pictures
from cutaway.tui.cli import main
from cutaway.tui.commands.export import VIEWS

PROMPT = [5, 6, 7, 8]
SETTINGS = SamplingConfig(temperature=0.8, top_k=40, top_p=0.95, seed=1)
SUFFIXES = (".svg", ".png", ".html", ".txt", ".ansi")

TITLES = {
    "screen": "text", "text": "text", "attention": "attention · layer", "next-token": "next token", "heads": "heads",
    "layers": "layers · after", "embedding": "embedding ·", "sampling": "sampling",
}  # fmt: skip
"""What stands in the border of each view."""

Export = Callable[..., str]


@pytest.fixture(scope="module")
def run(tiny: Path) -> Generation:
    """Six tokens of the tiny model."""
    generation = Generation(load_model(tiny), PROMPT, SETTINGS, max_new_tokens=6, ignore_eos=True)
    assert list(generation)
    return generation


@pytest.fixture(scope="module")
def recording(run: Generation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "run.cutaway"
    run.trace.save(path)
    return path


@pytest.fixture
def export(recording: Path, tmp_path: Path) -> Export:
    """A function that exports the recording as text and returns it."""

    def exported(*options: str, suffix: str = ".txt") -> str:
        path = tmp_path / f"picture{suffix}"
        assert main(["export", str(recording), *options, "--force", "-o", str(path)]) == 0
        return path.read_text("utf-8")

    return exported


def assert_is_picture(path: Path, columns: int = 120, rows: int = 40) -> None:
    """What *path* holds is of the type that its suffix says, whole, and asks nobody on the network for anything."""
    data = path.read_bytes()
    if path.suffix == ".png":
        assert data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(b"IEND\xaeB`\x82")
        width, height = struct.unpack(">II", data[16:24])
        assert width >= 8 * columns and height >= 16 * rows
        return
    text = data.decode("utf-8")
    if path.suffix in (".svg", ".html"):
        addresses = {each for each in re.findall(r"(?:https?:)?//[^\s\"'<>)]+", text) if "www.w3.org" not in each}
        assert not addresses and "@import" not in text and "<script" not in text
    if path.suffix == ".svg":
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    elif path.suffix == ".html":
        assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    elif path.suffix == ".ansi":
        assert "\x1b[" in text and set(re.findall(r"\x1b\[[0-9;]*(.)", text)) == {"m"}
    else:
        assert "\x1b" not in text and len(text.splitlines()) in (rows, rows + 1)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_in_every_type(recording: Path, tmp_path: Path, view: str, suffix: str) -> None:
    path = tmp_path / f"picture{suffix}"
    assert main(["export", str(recording), "--view", view, "-o", str(path)]) == 0
    assert_is_picture(path)
    if suffix == ".txt":
        assert TITLES[view] in path.read_text("utf-8")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_prompt_is_run_and_shown(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"picture{suffix}"
    options = ["--prompt", "A dog ran", "--seed", "1", "--max-new-tokens", "3"]
    assert main(["export", *options, "-o", str(path)]) == 0
    assert_is_picture(path)
    if suffix == ".txt":
        text = path.read_text("utf-8")
        assert "A·dog·ran" in text and "fable" in text and "token 2 · 3/3" in text
        assert "paused" not in text and "/s" not in text  # nothing that differs from one day to the next


def test_layer_head_and_step_are_obeyed(export: Export, run: Generation) -> None:
    """The numbers in the picture are those of the run at that token, layer and head."""
    for layer, head, step in ((0, 0, 0), (2, 3, 4), (1, 2, 5)):
        text = export("--view", "attention", "--layer", str(layer), "--head", str(head), "--step", str(step))
        assert f"attention · layer {layer} head {head}" in text
        assert f"token {step} · {step + 1}/6" in text
        query = len(PROMPT) + step - 1
        row = attention_rows(run.trace, layer, head, query, query + 1)[0]
        ids = run.trace.token_ids
        key = int(row.argmax())
        assert f"#{ids[query]}@{query} → #{ids[key]}@{key}  {row.max():.4f}" in text
        assert f"‹#{ids[query + 1]}›" in text.splitlines()[0]


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("qkv", "‖q‖"), ("scores", "scores before the mask"), ("mask", "scores after the mask"),
        ("softmax", "weights after softmax"), ("mix", "weights · v"), ("projection", "output"),
    ],
)  # fmt: skip
def test_a_stage_of_attention(export: Export, stage: str, words: str) -> None:
    text = export("--view", "attention", "--layer", "1", "--stage", stage, "--step", "2")
    assert words in text and "layer 1" in text


def test_a_stage_of_sampling(export: Export) -> None:
    assert "top-k 40 takes out" in export("--stage", "top_k")
    assert "no logits yet" in export("--view", "next-token", "--stage", "embedding")


@pytest.mark.parametrize("size", [(60, 18), (80, 24), (200, 60), (400, 200)])
def test_sizes(recording: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "picture.txt"
    assert main(["export", str(recording), "--size", f"{size[0]}x{size[1]}", "-o", str(path)]) == 0
    lines = path.read_text("utf-8").splitlines()[-size[1] :]
    assert max(map(len, lines)) == size[0]
    assert lines[-1].rstrip().endswith("q quit")


def test_a_cropped_panel_is_the_panel_alone(export: Export) -> None:
    whole = export("--view", "layers").splitlines()
    lines = export("--view", "layers", "--crop").splitlines()
    panel = [line for line in lines if line[:1] in "╭│╰"]
    assert panel[0].startswith("╭─ 5 layers") and panel[-1].startswith("╰")
    assert len(lines) - len(panel) <= 1 and "q quit" not in lines[-1]
    boxed = [line for line in whole if line[:1] in "╭│╰"]
    assert [line for line in panel if line.strip("│ ")] == [line for line in boxed if line.strip("│ ")]


def test_themes_differ_in_colours_and_not_in_text(export: Export) -> None:
    dark, light = (export("--theme", theme, suffix=".ansi") for theme in ("dark", "light"))
    assert dark != light
    assert re.sub(r"\x1b\[[0-9;]*m", "", dark) == re.sub(r"\x1b\[[0-9;]*m", "", light)


def test_the_same_picture_twice_is_the_same_file(recording: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.svg", "two.svg")]
    for path in paths:
        assert main(["export", str(recording), "-o", str(path)]) == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_with_its_model_a_recording_shows_what_needs_weights(export: Export, tiny: Path) -> None:
    assert "need the weights" in " ".join(export("--view", "embedding").split())
    text = export("--view", "embedding", "--model", str(tiny))
    assert "nearest tokens" in text and "need the weights" not in " ".join(text.split())


@pytest.mark.parametrize(
    "options",
    [
        ["--view", "nothing"], ["--layer", "3"], ["--layer", "-1"], ["--head", "4"], ["--step", "6"],
        ["--step", "-1"], ["--stage", "lunch"], ["--size", "59x18"], ["--size", "120"], ["--size", "401x40"],
        ["--size", "0x0"], ["--theme", "pink"], ["--prompt", "and a prompt"], ["--layer", "first"], ["--frobnicate"],
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_status_2(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert failing([str(recording), *options, "-o", str(tmp_path / "picture.svg")]) == 2
    assert_complained(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["picture", "picture.jpg", "picture.svg.gz", ".svg"])
def test_a_suffix_that_is_no_picture_is_wrong_usage(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert failing([str(recording), "-o", str(tmp_path / name)]) == 2
    assert_complained(capsys)
    assert list(tmp_path.iterdir()) == []


def test_without_an_output_it_is_wrong_usage(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing([str(recording)]) == 2
    assert_complained(capsys)


def test_an_existing_file_is_kept_unless_it_is_forced(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "picture.svg"
    path.write_text("mine")
    assert failing([str(recording), "-o", str(path)]) == 1
    assert "--force" in assert_complained(capsys)
    assert path.read_text() == "mine"
    assert main(["export", str(recording), "-o", str(path), "--force"]) == 0
    assert_is_picture(path)


def test_failures_are_one_line_status_1_and_leave_nothing(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    truncated = tmp_path / "half.cutaway"
    truncated.write_bytes(recording.read_bytes()[:5000])
    for given in ([str(truncated)], [str(tmp_path / "absent.cutaway")], ["--model", "nowhere"]):
        assert failing([*given, "-o", str(folder / "picture.svg")]) == 1
        assert_complained(capsys)
    assert failing([str(recording), "-o", str(folder / "nowhere" / "picture.svg")]) == 1
    assert_complained(capsys)

    def full(*given: object, **rest: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    monkeypatch.setattr("os.replace", full)
    monkeypatch.setattr("os.link", full)
    assert failing([str(recording), "-o", str(folder / "picture.svg")]) == 1
    assert "the disk is full" in assert_complained(capsys)
    assert list(folder.iterdir()) == [] and pictures.TYPES == SUFFIXES


def failing(arguments: list[str]) -> int:
    try:
        return main(["export", *arguments])
    except SystemExit as left:
        assert isinstance(left.code, int)
        return left.code


def assert_complained(capsys: pytest.CaptureFixture[str]) -> str:
    """One line on stderr, nothing on stdout; return the line."""
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("cutaway: error: ") and said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.err
    return said.err
