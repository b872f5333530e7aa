"""SmolLM2 is found where its package is installed, which is not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cutaway.core import ModelError
from cutaway.core.checkpoint.gguf import installed
from cutaway.core.checkpoint.locate import locate


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package like the one that carries the model."""
    folder = tmp_path / "site" / "stand_in_for_smollm2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setattr(installed, "_PACKAGE", folder.name)
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_file_of_the_package(package: Path) -> None:
    file = package / "SmolLM2.Q4_1.gguf"
    file.touch()
    assert locate("smollm2") == file
    assert package.name not in sys.modules


def test_an_existing_path_wins(package: Path) -> None:
    (package / "SmolLM2.Q4_1.gguf").touch()
    Path("smollm2").mkdir()
    assert locate("smollm2") == Path("smollm2")


def test_what_to_do_where_it_is_not_installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=r"smollm2 is not installed; pip install 'cutaway\[smollm2\]'"):
        locate("smollm2")
    monkeypatch.setattr(installed, "_PACKAGE", "there_is_no_such_package")
    with pytest.raises(ModelError, match="smollm2 is not installed"):
        locate("smollm2")


def test_the_package_that_reads_gguf_is_loaded_for_nothing_else() -> None:
    code = "import sys; from cutaway.core import load_model; load_model('fable'); print('gguf' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "False\n", run.stderr
