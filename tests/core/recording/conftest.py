"""A recording of each kind, and one that somebody has been at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cutaway.core import Generation
from cutaway.core.models.model import Model
from tests.core.recording.recordings import read, record, write_tensors


@pytest.fixture(scope="module", params=["default", "all"])
def run(request: pytest.FixtureRequest, tiny: Model) -> Generation:
    return record(tiny, request.param)


@pytest.fixture(scope="module")
def saved(run: Generation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / f"{run.trace.capture}.cutaway"
    run.trace.save(path)
    return path


@pytest.fixture
def altered(saved: Path, tmp_path: Path) -> Callable[..., Path]:
    """A function that writes the recording again, some of its metadata or tensors replaced, or (None) left out."""

    def write(metadata: dict[str, str | None] | None = None, tensors: dict[str, Any] | None = None) -> Path:
        kept_tensors, kept_metadata = read(saved)
        kept_tensors |= tensors or {}
        texts = {**kept_metadata, **(metadata or {})}
        path = tmp_path / "altered.cutaway"
        write_tensors(
            path,
            {name: array for name, array in kept_tensors.items() if array is not None},
            {name: text for name, text in texts.items() if text is not None},
        )
        return path

    return write
