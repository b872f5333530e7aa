"""Broken models: each is refused at once, with a sentence that names what is wrong."""

import json
import shutil
from pathlib import Path

import pytest

from cutaway.core.checkpoint.locate import locate
from cutaway.core.errors import ModelError
from cutaway.core.models.families import open_folder
from tests.soon import soon

BESIDE = Path(__file__).parents[4] / "shared" / "fixtures" / "broken_models"
COMMITTED = Path(__file__).parents[2] / "data" / "broken_models"
CASES = BESIDE if BESIDE.is_dir() else COMMITTED


@pytest.mark.parametrize("name", sorted(case.name for case in CASES.iterdir()))
def test_broken_models_are_refused(name: str, tmp_path: Path) -> None:
    expected = json.loads((CASES / name / "expected.json").read_text("utf-8"))
    folder = tmp_path / "model"  # cases are called what the message should say: their path must not say it
    shutil.copytree(CASES / name, folder)
    with soon(), pytest.raises(ModelError) as caught:
        open_folder(locate(folder))
    message = str(caught.value).replace(str(tmp_path), "")
    assert any(word in message for word in expected["about"]), message
    assert "\n" not in message


def test_the_committed_copies_are_the_references() -> None:
    if CASES is COMMITTED:
        pytest.skip("there are no references beside this checkout")
    for file in BESIDE.rglob("*"):
        if file.is_file():
            assert (COMMITTED / file.relative_to(BESIDE)).read_bytes() == file.read_bytes()
