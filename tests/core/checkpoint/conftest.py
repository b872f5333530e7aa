"""Models to open: the references beside the checkout or their committed copies, and little new files."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

COMMITTED = Path(__file__).parents[2] / "data"
BESIDE = Path(__file__).parents[4] / "shared" / "fixtures"

Tensor = tuple[str, tuple[int, ...], bytes]
"""A tensor as a file holds it: dtype, shape, bytes."""


@pytest.fixture
def model_folder() -> Callable[[str], Path]:
    """A function that finds a reference model by its name, or skips the test where it is not at hand."""

    def find(name: str) -> Path:
        for folder in (BESIDE / "models" / name, COMMITTED / "models" / name):
            if folder.is_dir():
                return folder
        pytest.skip(f"the reference model {name} is not beside this checkout")

    return find


@pytest.fixture
def write_header() -> Callable[..., Path]:
    """A function that writes a safetensors file of any header and any data."""

    def write(path: Path, header: object, data: bytes = b"") -> Path:
        raw = header if isinstance(header, bytes) else json.dumps(header).encode()
        path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)
        return path

    return write


@pytest.fixture
def write_tensors(write_header: Callable[..., Path]) -> Callable[..., Path]:
    """A function that writes a correct safetensors file, its header padded to a chosen remainder of 8."""

    def write(path: Path, tensors: Mapping[str, Tensor], remainder: int = 0) -> Path:
        header: dict[str, object] = {}
        data = b""
        for name, (dtype, shape, stored) in tensors.items():
            span = [len(data), len(data) + len(stored)]
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": span}
            data += stored
        raw = json.dumps(header).encode()
        return write_header(path, raw + b" " * ((remainder - len(raw)) % 8), data)

    return write


@pytest.fixture
def floats() -> npt.NDArray[np.float32]:
    """A small matrix [3, 4]."""
    return np.random.default_rng(7).standard_normal((3, 4)).astype(np.float32)


@pytest.fixture
def gpt2_fields() -> dict[str, object]:
    """The config.json of a tiny GPT-2."""
    return {
        "model_type": "gpt2",
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 8,
        "n_positions": 16,
        "vocab_size": 11,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }


@pytest.fixture
def write_config(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a config.json, and maybe a generation_config.json, into a folder of its own."""

    def write(config: object, generation: object = None) -> Path:
        folder = tmp_path / "model"
        folder.mkdir(exist_ok=True)
        for name, value in (("config.json", config), ("generation_config.json", generation)):
            if value is not None:
                text = value if isinstance(value, str) else json.dumps(value)
                (folder / name).write_text(text, "utf-8")
        return folder

    return write
