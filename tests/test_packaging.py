"""What ships and what is loaded: a mistake here works in the checkout and fails once installed."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("assets", "core", "tui", "widgets")
NOT_OURS = {"__pycache__", "build", "dist", "cutaway.egg-info"}

REGISTRY_HOST = re.compile(r"\b(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|debian\.org)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~/}-])/(?:work|root|home/\w+|Users/\w+)/\w")


@pytest.fixture(scope="module")
def setuptools_settings() -> dict[str, Any]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        settings: dict[str, Any] = tomllib.load(file)["tool"]["setuptools"]
    return settings


def packages_in_the_checkout() -> set[str]:
    """Every folder that Python would import as a package, by its installed name."""
    found = (init.parent for folder in FOLDERS for init in (ROOT / folder).rglob("__init__.py"))
    return {".".join(("cutaway", *folder.relative_to(ROOT).parts)) for folder in found}


def committed_files() -> list[Path]:
    """The files of a commit; without git or a repository, all that do not look generated."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        candidates = [ROOT / name for name in listing.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        candidates = [file for file in ROOT.rglob("*") if not is_generated(file)]
    return [file for file in candidates if file.is_file()]


def is_generated(file: Path) -> bool:
    parts = file.relative_to(ROOT).parts
    return any(part in NOT_OURS or part.startswith(".") for part in parts)


def places_of(pattern: re.Pattern[str]) -> list[str]:
    """Where committed text matches, as ``file: match``."""
    matches = []
    for file in committed_files():
        content = file.read_bytes()
        if b"\0" not in content:
            text = content.decode("utf-8", errors="replace")
            matches += [f"{file.relative_to(ROOT)}: {found.group()}" for found in pattern.finditer(text)]
    return matches


def loaded_by(statement: str, folder: Path) -> set[str]:
    """Top-level modules that a fresh Python, started in that folder, has loaded after the statement."""
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-P", "-c", code], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_every_package_is_listed_once(setuptools_settings: dict[str, Any]) -> None:
    assert sorted(setuptools_settings["packages"]) == sorted(packages_in_the_checkout())


def test_the_root_ships_nothing_but_its_two_modules(setuptools_settings: dict[str, Any]) -> None:
    """A listed package brings all its modules, so the root is not one: dev.py would ship as cutaway.dev."""
    assert setuptools_settings["py-modules"] == ["cutaway.__main__"]
    assert "cutaway" not in setuptools_settings["packages"]
    assert setuptools_settings["include-package-data"] is False


def test_the_root_package_is_a_docstring() -> None:
    """pytest imports it a second time under another name, where any relative import would fail."""
    module = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    assert ast.get_docstring(module)
    assert len(module.body) == 1


@pytest.mark.parametrize("name", ["__init__.py", "__main__.py", *FOLDERS])
def test_checkers_find_the_package_through_links(name: str) -> None:
    link = ROOT / ".links" / "cutaway" / name
    assert link.exists()
    assert link.resolve() == ROOT / name


def test_the_whole_core_runs_without_a_screen(tmp_path: Path) -> None:
    imports = "import cutaway.core; from importlib import import_module; from pkgutil import walk_packages"
    names = "_, name, _ in walk_packages(cutaway.core.__path__, 'cutaway.core.')"
    loaded = loaded_by(f"{imports}; [import_module(name) for {names}]", tmp_path)
    assert "numpy" in loaded
    assert not loaded & {"textual", "rich"}


@pytest.mark.parametrize("module", ["cutaway.core", "cutaway.tui.cli"])
def test_the_command_line_answers_without_the_big_libraries(module: str, tmp_path: Path) -> None:
    """``--help`` and ``--version`` take a tenth of a second; either library alone costs more."""
    loaded = loaded_by(f"import {module}", tmp_path)
    assert "cutaway" in loaded
    assert not loaded & {"numpy", "rich", "textual"}


def test_no_text_names_a_registry_host() -> None:
    """Where packages come from is a setting of each machine, not of the project."""
    assert places_of(REGISTRY_HOST) == []


def test_no_text_names_a_path_of_one_machine() -> None:
    assert places_of(MACHINE_PATH) == []
