"""The same weights decoded by Cutaway, by llama.cpp and by Transformers, in turn, in one run.

Run with ``python -m benchmarks.peers --python PEERS/bin/python`` from the repository, where PEERS is an environment
with ``llama-cpp-python``, ``torch`` and ``transformers``; what is missing there is left out. A GPT-2 of random weights
is written once, as safetensors and as a float32 GGUF. Cutaway keeps its default capture, Transformers returns its
attentions, llama.cpp shows nothing. Figures are medians over rounds that lie close in time; every process uses as
many threads. Beside each figure stands by how much Cutaway is faster (below 1: slower). Opening is from the
checkpoint's name to the first token after one; starting Python and importing are left out.
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
import sys, time, json, statistics
from threadpoolctl import threadpool_limits
from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.benchmark import measure
from cutaway.core.events import TokenChosen
threadpool_limits(int(sys.argv[3]))

def first_token(model, prompt):
    begun = time.perf_counter()
    next(event for event in Generation(model, range(prompt), SamplingConfig(seed=0)) if isinstance(event, TokenChosen))
    return time.perf_counter() - begun

begun = time.perf_counter()
model = load_model(sys.argv[1])
first_token(model, 1)
opened = time.perf_counter() - begun
speed = measure(model, 32, int(sys.argv[2]))
prefill = statistics.median(first_token(model, 512) for _ in range(3))
limit = speed.limit_tokens_per_second
print(json.dumps({"decode": speed.decode_tokens_per_second, "open": opened, "prefill": prefill, "limit": limit}))
"""

LLAMA_CPP = """
import sys, time, json, statistics
from llama_cpp import Llama
threads = int(sys.argv[3])

def seconds(ids):
    begun = time.perf_counter(); model.eval(ids); return time.perf_counter() - begun

begun = time.perf_counter()
model = Llama(sys.argv[1] + "/model.gguf", n_ctx=1024, n_threads=threads, n_threads_batch=threads, verbose=False)
model.eval([0])
opened = time.perf_counter() - begun
model.reset(); model.eval(list(range(32)))
steps = [seconds([token % 1000]) for token in range(int(sys.argv[2]))]
prefills = []
for _ in range(3):
    model.reset(); prefills.append(seconds(list(range(512))))
figures = {"decode": 1 / statistics.median(steps), "open": opened, "prefill": statistics.median(prefills)}
print(json.dumps(figures))
"""

TRANSFORMERS = """
import sys, time, json, statistics, torch
from transformers import GPT2LMHeadModel
torch.set_num_threads(int(sys.argv[3]))

def run(ids, past=None):
    begun = time.perf_counter()
    out = model(torch.tensor([ids]), past_key_values=past, use_cache=True, output_attentions=True, logits_to_keep=1)
    return out.past_key_values, time.perf_counter() - begun

with torch.inference_mode():
    begun = time.perf_counter()
    model = GPT2LMHeadModel.from_pretrained(sys.argv[1], attn_implementation="eager").eval()
    run([0])
    opened = time.perf_counter() - begun
    past, _ = run(list(range(32)))
    steps = []
    for token in range(int(sys.argv[2])):
        past, seconds = run([token % 1000], past)
        steps.append(seconds)
    prefill = statistics.median(run(list(range(512)))[1] for _ in range(3))
print(json.dumps({"decode": 1 / statistics.median(steps), "open": opened, "prefill": prefill}))
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


def measured(python: str, code: str, folder: Path, tokens: int, threads: int) -> dict[str, float] | None:
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
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_random_model(folder, SHAPES[arguments.shape])
        write_gguf(folder, SHAPES[arguments.shape])
        for _ in range(arguments.rounds):
            for peer, python, code in peers:
                if figures := measured(python, code, folder, arguments.tokens, arguments.threads):
                    found[peer].append(figures)
    medians = {
        peer: {what: median(each[what] for each in rounds) for what in rounds[0]} for peer, rounds in found.items()
    }
    ours = medians["Cutaway"]
    limit = ours.pop("limit")
    print(f"{'':<14}{'decoding':>24}{'512 tokens at once':>24}{'opened, first token':>24}")
    for peer, figures in medians.items():
        decode = f"{figures['decode']:.1f}/s {ours['decode'] / figures['decode']:7.2f}"
        seconds = [f"{figures[what]:.3f} s {figures[what] / ours[what]:7.2f}" for what in ("prefill", "open")]
        print(f"{peer:<14}{decode:>24}{seconds[0]:>24}{seconds[1]:>24}")
    decode = f"{limit:.1f}/s {ours['decode'] / limit:7.2f}"
    print(f"{'limit':<14}{decode:>24}")


if __name__ == "__main__":
    main()
