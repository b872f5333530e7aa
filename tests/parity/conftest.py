"""The references: folders of a model and what an independent implementation computed with it.

Those committed here are always used, the others where the folder `shared` stands beside the checkout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.events import Event
from cutaway.core.models.model import Model

Arrays = Mapping[str, NDArray[Any]]

COMMITTED = Path(__file__).resolve().parents[1] / "data"
BESIDE = Path(__file__).resolve().parents[2].parent / "shared" / "fixtures"


REFUSED = {"opt_minimind3_moe"}
"""References of models that do not open here, and say so by name."""


def _folders() -> list[Path]:
    """Every model there is a reference for, a committed copy before the one beside the checkout."""
    roots = (BESIDE / "models", COMMITTED / "models")
    found = {folder.name: folder for root in roots for folder in sorted(root.glob("*"))}
    return [found[name] for name in sorted(found.keys() - REFUSED)]


@pytest.fixture(scope="session", params=_folders(), ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    """A reference model, each in turn."""
    path: Path = request.param
    return path


@pytest.fixture(scope="session")
def facts(folder: Path) -> dict[str, Any]:
    """What the reference says of itself: prompt, tolerances, sensitivities."""
    about: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    return about


@pytest.fixture(scope="session")
def expected(folder: Path) -> Arrays:
    """What the model should compute."""
    with np.load(folder / "expected.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="session")
def internals(folder: Path) -> Arrays:
    """What happens inside the blocks."""
    with np.load(folder / "internals.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="session")
def model(folder: Path) -> Model:
    return load_model(folder)


@pytest.fixture(scope="session")
def run(model: Model, expected: Arrays) -> Generation:
    """A greedy run as long as the reference's, everything captured; its events are in `events`."""
    return Generation(
        model,
        expected["input_ids"].tolist(),
        SamplingConfig(greedy=True),
        max_new_tokens=len(expected["greedy_ids"]),
        ignore_eos=True,
        capture="all",
    )


@pytest.fixture(scope="session")
def events(run: Generation) -> list[Event]:
    return list(run)


@pytest.fixture(scope="session")
def sampler_cases() -> dict[str, Any]:
    """Distributions that another implementation made of scores and settings."""
    beside, committed = (root / "sampler" / "cases.json" for root in (BESIDE, COMMITTED))
    cases: dict[str, Any] = json.loads((beside if beside.exists() else committed).read_text("utf-8"))
    return cases
