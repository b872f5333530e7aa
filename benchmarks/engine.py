"""How near decoding comes to the speed at which the weights can be read at all.

Run with ``python -m benchmarks.engine`` from the repository. A GPT-2 of 124M's shape with random weights is
written once to a temporary folder, opened like any model, and decoded with default capture; in between, in turn,
the same weights are read by bare matrix-vector products. Both figures are medians of one run, so that a noisy
machine slows both.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from safetensors.numpy import save_file

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.events import TokenChosen
from cutaway.core.models.families import read_config
from cutaway.core.models.gpt2 import expected_tensors
from cutaway.core.models.model import Model

GPT2_SMALL = {"n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024, "vocab_size": 50257}


def write_random_model(folder: Path, shape: dict[str, int]) -> None:
    """A GPT-2 checkpoint of *shape* with small random weights in *folder*."""
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"} | shape))
    random = np.random.default_rng(0)
    tensors = {
        name: random.standard_normal(size, np.float32) * np.float32(0.02)
        for name, size in expected_tensors(read_config(folder)).items()
    }
    save_file(tensors, folder / "model.safetensors")


def weights_of(model: Model) -> list[np.ndarray]:
    """Every matrix that a decode step reads whole."""
    decoder = model.decoder
    matrices = [decoder.head.T]
    for block in decoder.blocks:
        matrices += [
            block.attention.project.linear.weight,  # type: ignore[attr-defined]
            block.attention.output.weight,
            block.mlp.up.weight,
            block.mlp.down.weight,
        ]
    return matrices


def read_once(matrices: list[np.ndarray], vectors: dict[int, np.ndarray], out: dict[int, np.ndarray]) -> float:
    """Seconds to read all *matrices* by matrix-vector products."""
    begun = perf_counter()
    for matrix in matrices:
        np.matmul(vectors[matrix.shape[0]], matrix, out=out[matrix.shape[1]])
    return perf_counter() - begun


def measure(model: Model, tokens: int, prompt: int) -> dict[str, float]:
    """Medians over *tokens* decode steps, each followed by one bare reading of the weights."""
    matrices = weights_of(model)
    vectors = {m.shape[0]: np.ones((1, m.shape[0]), np.float32) for m in matrices}
    out = {m.shape[1]: np.empty((1, m.shape[1]), np.float32) for m in matrices}
    run = Generation(model, list(range(prompt)), SamplingConfig(seed=0), max_new_tokens=tokens, ignore_eos=True)
    reading, steps, begun = [], [], 0.0
    for event in run:
        if isinstance(event, TokenChosen):
            if begun:
                steps.append(perf_counter() - begun)
            reading.append(read_once(matrices, vectors, out))
            begun = perf_counter()
    size = sum(matrix.nbytes for matrix in matrices)
    limit, step = median(reading), median(steps)
    return {
        "bandwidth_gb_per_s": size / limit / 1e9,
        "limit_tokens_per_s": 1 / limit,
        "decode_tokens_per_s": 1 / step,
        "share_of_limit": limit / step,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="an existing model instead of the random one")
    parser.add_argument("--tokens", type=int, default=60)
    parser.add_argument("--prompt", type=int, default=32)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.model is None:
            write_random_model(Path(folder), GPT2_SMALL)
        model = load_model(arguments.model or folder)
        for name, value in measure(model, arguments.tokens, arguments.prompt).items():
            print(f"{name:<22}{value:>9.2f}")


if __name__ == "__main__":
    main()
