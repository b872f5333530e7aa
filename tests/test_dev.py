"""dev.py's decisions: when it sets up, what it starts, what it says when it cannot. Nothing is installed."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "dev.py"
PIP_ANSWER = "pip 23.0.1 from somewhere (python 3.11)"

Pip = Callable[..., list[list[str]]]
"""Replaces pip by one that ends as told; gives the list its commands will be in."""


def load(folder: Path) -> Any:
    """A checkout's own dev.py: every path in it follows from where the file is."""
    spec = importlib.util.spec_from_file_location("dev_under_test", folder / "dev.py")
    assert spec and spec.loader
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    shutil.copy(SOURCE, folder)
    (folder / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    return folder


@pytest.fixture
def dev(checkout: Path) -> Any:
    return load(checkout)


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Pip:
    def replace(version: str = PIP_ANSWER, returncode: int = 0, stderr: str = "") -> list[list[str]]:
        commands: list[list[str]] = []

        def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            if command[-1] == "--version":
                return subprocess.CompletedProcess(command, 0, version, "")
            commands.append(command)
            return subprocess.CompletedProcess(command, returncode, "", stderr)

        monkeypatch.setattr(subprocess, "run", run)
        return commands

    return replace


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, dev: Any) -> list[tuple[str, ...]]:
    """What dev.py started, instead of starting it."""
    starts: list[tuple[str, ...]] = []
    monkeypatch.chdir(dev.ROOT.parent)

    def start(*command: str) -> int:
        starts.append(command)
        return 0

    monkeypatch.setattr(dev, "start", start)
    return starts


def finish_set_up(dev: Any, extra: str) -> None:
    """A `.venv` as a finished set-up leaves it, with nothing installed."""
    dev.make_venv()
    dev.STAMP.write_text(dev.stamp(extra), encoding="utf-8")


def test_the_stamp_follows_pyproject_and_the_extra(dev: Any) -> None:
    before = dev.stamp("")
    assert dev.stamp("") == before
    assert dev.stamp("dev") != before
    (dev.ROOT / "pyproject.toml").write_text("[project]\nname = 'other'\n", encoding="utf-8")
    assert dev.stamp("") != before


def test_a_fresh_checkout_is_set_up_once(dev: Any, pip: Pip, started: list[tuple[str, ...]]) -> None:
    commands = pip()
    assert dev.main("run") == dev.main("run") == 0
    [command] = commands
    assert command[1:6] == ["-P", "-m", "pip", "--python", str(dev.PYTHON)]
    assert command[-2:] == ["--editable", "."]
    assert started == [("cutaway",), ("cutaway",)]


def test_the_tests_need_more_than_the_program(dev: Any, pip: Pip, started: list[tuple[str, ...]]) -> None:
    commands = pip()
    for command in ("run", "test", "run", "test"):
        assert dev.main(command) == 0
    assert [command[-1] for command in commands] == [".", ".[dev]"]
    assert [module for module, *_ in started] == ["cutaway", "pytest", "cutaway", "pytest"]


def test_a_changed_pyproject_is_installed_into_what_is_there(dev: Any, pip: Pip) -> None:
    finish_set_up(dev, "dev")
    kept = dev.VENV / "kept"
    kept.touch()
    (dev.ROOT / "pyproject.toml").write_text("[project]\nname = 'other'\n", encoding="utf-8")
    commands = pip()
    dev.set_up("dev")
    assert len(commands) == 1
    assert kept.exists()


def test_a_venv_made_by_hand_is_built_upon(dev: Any, pip: Pip) -> None:
    finish_set_up(dev, "")
    dev.STAMP.unlink()
    kept = dev.VENV / "kept"
    kept.touch()
    pip()
    dev.set_up("")
    assert kept.exists()
    assert dev.read(dev.STAMP) == dev.stamp("")


def test_an_interrupted_set_up_starts_afresh(dev: Any, pip: Pip, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        dev.STAMP.write_text(dev.UNFINISHED, encoding="utf-8")
        (dev.VENV / "half a package").touch()
        raise KeyboardInterrupt

    commands = pip()
    with monkeypatch.context() as patch:
        patch.setattr(dev, "install", interrupt)
        assert dev.main("run") == 130
    dev.set_up("")
    assert len(commands) == 1
    assert not (dev.VENV / "half a package").exists()


def test_a_moved_checkout_is_set_up_afresh(dev: Any, checkout: Path) -> None:
    """The paths in `.venv` are absolute: its scripts would still run the checkout left behind."""
    finish_set_up(dev, "dev")
    assert dev.is_sound()
    moved = load(checkout.rename(checkout.with_name("moved")))
    assert moved.PYTHON.exists()
    assert not moved.is_sound()


def test_another_python_makes_its_own(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    finish_set_up(dev, "dev")
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    assert not dev.is_sound()


def test_a_venv_whose_python_is_gone_is_made_anew(dev: Any) -> None:
    finish_set_up(dev, "dev")
    dev.PYTHON.unlink()
    assert not dev.is_sound()


def test_an_unreachable_index_is_one_line_and_keeps_what_was_there(
    dev: Any, pip: Pip, capsys: pytest.CaptureFixture[str]
) -> None:
    finish_set_up(dev, "")
    pip(returncode=1, stderr="WARNING: Retrying (Retry(total=4)) after …\nERROR: No matching distribution\n")
    assert dev.main("test") == 1
    announcement, error = capsys.readouterr().err.splitlines()
    assert "setting up" in announcement
    assert error.startswith("dev.py: error: ") and "network" in error
    assert dev.read(dev.STAMP) == dev.stamp("")


@pytest.mark.parametrize(
    ("complaints", "told"),
    [
        (
            "ERROR: Could not find a version\nERROR: No matching distribution found for x>=9\n",
            "found for x>=9",
        ),
        (
            "  error: package './x' does not exist\nerror: subprocess-exited-with-error\n",
            "'./x' does not exist",
        ),
        ("", "no reason"),
    ],
)
def test_what_pip_complains_about_is_told(dev: Any, complaints: str, told: str) -> None:
    assert dev.reason(complaints).endswith(told)


@pytest.mark.parametrize("answer", ["", "pip 20.3.4 from somewhere", "pip 22.2 from somewhere"])
def test_a_missing_or_old_pip_is_one_line(dev: Any, pip: Pip, capsys: pytest.CaptureFixture[str], answer: str) -> None:
    pip(version=answer)
    assert dev.main("run") == 1
    assert "pip 22.3 or newer" in capsys.readouterr().err.splitlines()[-1]
    assert not dev.VENV.exists()


def test_an_old_python_is_one_line(
    dev: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 8, 18))
    monkeypatch.setattr(sys, "version", "3.8.18 (default)")
    assert dev.main("run") == 1
    [error] = capsys.readouterr().err.splitlines()
    assert "3.11 or newer" in error and "3.8.18" in error


def test_an_old_python_can_read_the_file() -> None:
    ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 7))


@pytest.mark.skipif(os.name == "nt", reason="started as a child there")
def test_the_program_takes_over_with_its_arguments(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda path, command: taken.append((path, command)))
    dev.start("cutaway", "--prompt", "two words")
    python = str(dev.PYTHON)
    assert taken == [(python, [python, "-P", "-m", "cutaway", "--prompt", "two words"])]


def test_tests_run_in_the_checkout_and_the_program_where_it_was_called(
    dev: Any, started: list[tuple[str, ...]]
) -> None:
    finish_set_up(dev, "dev")
    elsewhere = Path.cwd()
    dev.main("run", "-o", "here.cutaway")
    assert Path.cwd() == elsewhere
    dev.main("test", "-k", "dev")
    assert Path.cwd() == dev.ROOT
    assert started == [("cutaway", "-o", "here.cutaway"), ("pytest", "-k", "dev")]


@pytest.mark.parametrize("arguments", [(), ("frobnicate",), ("--help",)])
def test_anything_else_is_wrong_usage(dev: Any, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert dev.main(*arguments) == 2
    assert "usage: python3 dev.py (run | test)" in capsys.readouterr().err
