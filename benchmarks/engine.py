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

import numpy as np
from safetensors.numpy import save_file

from cutaway.core import load_model
from cutaway.core.benchmark import measure
from cutaway.core.models.families import read_config
from cutaway.core.models.gpt2 import expected_tensors

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
        speed = measure(model, arguments.prompt, arguments.tokens)
        print(f"first token      {speed.first_token_seconds:>9.3f} s")
        print(f"decode           {speed.decode_tokens_per_second:>9.2f} tokens/s")
        print(
            f"limit            {speed.limit_tokens_per_second:>9.2f} tokens/s, {speed.bandwidth_gb_per_second:.1f} GB/s"
        )
        print(f"share of limit   {speed.share_of_limit:>9.2f}")


if __name__ == "__main__":
    main()
