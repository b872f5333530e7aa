"""A run to record, and recordings as anyone else would read and write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file

from cutaway.core import Generation, SamplingConfig, Trace
from cutaway.core.attention_stages import attention_maps, attention_output
from cutaway.core.edits import AblateHead, AblateMlp, ForceToken
from cutaway.core.models.model import Model

Tensors = dict[str, NDArray[Any]]
Metadata = dict[str, str]

MODEL = Path(__file__).resolve().parents[2] / "data" / "models" / "gpt2_base"
PROMPT = [5, 83, 92, 83, 15, 11]
LIVELY = SamplingConfig(temperature=0.9, top_k=30, top_p=0.95, min_p=0.001, repetition_penalty=1.1, seed=2**63 + 11)
EDITS = (AblateHead(1, 2), AblateMlp(0), ForceToken(1, 7), ForceToken(4, 96))
G, P = 7, 6
T = P + G - 1


def record(model: Model, capture: Any, prompt: list[int] = PROMPT, count: int = G) -> Generation:
    run = Generation(
        model,
        prompt,
        LIVELY,
        max_new_tokens=count,
        ignore_eos=True,
        capture=capture,
        edits=EDITS if prompt is PROMPT else (),
        added=(0,),
        prompt="naïve [/b] prompt\n",
    )
    list(run)
    return run


def read(path: Path) -> tuple[Tensors, Metadata]:
    """The file as anyone else would read it."""
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def write_tensors(path: Path, tensors: dict[str, Any], metadata: dict[str, str]) -> None:
    """Write *tensors* as anyone could."""
    save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, path, metadata)


def usable(trace: Trace) -> bool:
    """Go through everything that a replay without weights looks at."""
    config = trace.model.config
    assert trace.positions == len(trace.prompt_ids) + len(trace.steps) - 1
    for position in range(len(trace.token_ids)):
        trace.token_bytes(position)
    for step in range(len(trace.steps)):
        trace.settings_at(step)
        table = trace.candidates(step, 40)
        assert trace.steps[step].id in table.ids
        [table.removal(row) for row in range(len(table.ids))]
    for layer in range(config.layers):
        assert attention_maps(trace, layer).shape == (config.heads, trace.positions, trace.positions)
        assert trace.residual(layer).shape == (trace.positions, config.width)
        if trace.tables is not None:
            assert np.isfinite(attention_output(trace, layer, 0, trace.positions)).all()
    return trace.finish_reason is not None
