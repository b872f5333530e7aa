"""The same weights decoded by Cutaway, by llama.cpp and by Transformers, in turn, in one run.

Run with ``python -m benchmarks.peers --python PEERS/bin/python`` from the repository, where PEERS is an environment
with ``llama-cpp-python``, ``torch`` and ``transformers``; what is missing there is left out. A GPT-2 of random weights
is written once, as safetensors and as a float32 GGUF. Cutaway keeps its default capture, Transformers returns its
attentions, llama.cpp shows nothing. Rates are medians over rounds that lie close in time; every process uses as many
threads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

import numpy as np
from safetensors.numpy import load_file

from benchmarks.engine import GPT2_SMALL, write_random_model

GPT2_MINI = {"n_layer": 4, "n_head": 8, "n_embd": 512, "n_positions": 1024, "vocab_size": 50257}
SHAPES = {"124M": GPT2_SMALL, "mini": GPT2_MINI}

CUTAWAY = """
import sys, time, json, numpy
from threadpoolctl import threadpool_limits
threadpool_limits(int(sys.argv[3]))
from cutaway.core import load_model
from cutaway.core.benchmark import measure
speed = measure(load_model(sys.argv[1]), 32, int(sys.argv[2]))
print(json.dumps({"decode": speed.decode_tokens_per_second, "limit": speed.limit_tokens_per_second}))
"""

LLAMA_CPP = """
import sys, time, json, statistics
from llama_cpp import Llama
model = Llama(sys.argv[1] + "/model.gguf", n_ctx=1024, n_threads=int(sys.argv[3]), verbose=False, n_threads_batch=1)
model.eval(list(range(32)))
steps = []
for token in range(int(sys.argv[2])):
    begun = time.perf_counter(); model.eval([token % 1000]); steps.append(time.perf_counter() - begun)
print(json.dumps({"decode": 1 / statistics.median(steps)}))
"""

TRANSFORMERS = """
import sys, time, json, statistics, torch
from transformers import GPT2LMHeadModel
torch.set_num_threads(int(sys.argv[3]))
model = GPT2LMHeadModel.from_pretrained(sys.argv[1], attn_implementation="eager").eval()
with torch.inference_mode():
    out = model(torch.arange(32)[None], use_cache=True, output_attentions=True)
    steps = []
    for token in range(int(sys.argv[2])):
        begun = time.perf_counter()
        ids = torch.tensor([[token % 1000]])
        out = model(ids, past_key_values=out.past_key_values, use_cache=True, output_attentions=True)
        steps.append(time.perf_counter() - begun)
print(json.dumps({"decode": 1 / statistics.median(steps)}))
"""


def write_gguf(folder: Path, shape: dict[str, int]) -> None:
    """The checkpoint in *folder* as ``model.gguf``, float32, with names for its tokens that mean nothing."""
    import gguf

    writer = gguf.GGUFWriter(folder / "model.gguf", "gpt2")
    writer.add_context_length(shape["n_positions"])
    writer.add_embedding_length(shape["n_embd"])
    writer.add_feed_forward_length(4 * shape["n_embd"])
    writer.add_block_count(shape["n_layer"])
    writer.add_head_count(shape["n_head"])
    writer.add_layer_norm_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([f"t{id}" for id in range(shape["vocab_size"])])
    writer.add_token_types([1] * shape["vocab_size"])
    writer.add_token_merges(["t 0"])
    parts = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm"}
    parts |= {"mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    whole = {"wte.weight": "token_embd.weight", "wpe.weight": "position_embd.weight"}
    whole |= {"ln_f.weight": "output_norm.weight", "ln_f.bias": "output_norm.bias"}
    for name, tensor in load_file(folder / "model.safetensors").items():
        name = name.removeprefix("transformer.")
        if name in whole:
            writer.add_tensor(whole[name], tensor)
            continue
        _, layer, rest = name.split(".", 2)
        part, _, kind = rest.rpartition(".")
        conv = kind == "weight" and tensor.ndim == 2
        writer.add_tensor(f"blk.{layer}.{parts[part]}.{kind}", np.ascontiguousarray(tensor.T) if conv else tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def rate(python: str, code: str, folder: Path, tokens: int, threads: int) -> dict[str, float] | None:
    """What *code* measures in a process of its own; None where *python* cannot run it."""
    environment = os.environ | {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    arguments = [python, "-c", code, str(folder), str(tokens), str(threads)]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1], file=sys.stderr)
        return None
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="an interpreter with the peers")
    parser.add_argument("--shape", choices=SHAPES, default="124M")
    parser.add_argument("--tokens", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    peers = (
        ("Cutaway", sys.executable, CUTAWAY), ("llama.cpp", arguments.python, LLAMA_CPP),
        ("Transformers", arguments.python, TRANSFORMERS),
    )  # fmt: skip
    found: dict[str, list[float]] = defaultdict(list)
    limits = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_random_model(folder, SHAPES[arguments.shape])
        write_gguf(folder, SHAPES[arguments.shape])
        for _ in range(arguments.rounds):
            for peer, python, code in peers:
                if figures := rate(python, code, folder, arguments.tokens, arguments.threads):
                    found[peer].append(figures["decode"])
                    limits += [figures["limit"]] if "limit" in figures else []
    ours = median(found["Cutaway"])
    for peer, rates in found.items():
        print(f"{peer:<14}{median(rates):8.1f} tokens/s   {ours / median(rates):5.2f}")
    print(f"{'limit':<14}{median(limits):8.1f} tokens/s   {ours / median(limits):5.2f}")


if __name__ == "__main__":
    main()
