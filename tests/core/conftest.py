"""The models that the engine's tests run: the embedded one, and two tiny ones of random weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutaway.core import load_model
from cutaway.core.models.model import Model

MODELS = Path(__file__).resolve().parents[1] / "data" / "models"


@pytest.fixture(scope="session")
def fable() -> Model:
    """The embedded model: 4 layers of 8 heads, 4096 tokens, 512 positions."""
    return load_model("fable")


@pytest.fixture(scope="session")
def tiny() -> Model:
    """Random weights: 3 layers of 4 heads, 97 tokens of which 0 ends a text, 64 positions, no tokenizer."""
    return load_model(MODELS / "gpt2_base")


@pytest.fixture(scope="session")
def short() -> Model:
    """Random weights: 2 layers of 4 heads, 61 tokens, only 16 positions."""
    return load_model(MODELS / "gpt2_ctx16")


@pytest.fixture(scope="session")
def story() -> list[int]:
    """The ids fable has for “Once upon a time, there was a little fox who”."""
    return [610, 573, 258, 440, 11, 421, 293, 258, 401, 1486, 520]
