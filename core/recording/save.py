"""Writing a trace as a recording.

P prompt tokens, G generated, T = P + max(G − 1, 0) positions, L layers, H query heads, K key/value heads, d head
size, D width, F MLP width, V vocabulary.
"""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ..cache import Floats
from ..catalogue import tr
from ..edit_names import edit_to_dict
from ..errors import RecordingError
from ..files import write_bytes
from ..scores import BEST, Candidates, candidates
from ..trace import Trace
from .reader import Tensors
from .tables import table_tensors

FORMAT = "cutaway-trace/1"

CANDIDATE_COLUMNS = ("ids", "logits", "ranks", "removed_by", "final")
"""Columns of `Candidates` that a default recording keeps, each as the tensor ``candidate_NAME`` [G, m]."""


def save_recording(trace: Trace, path: Path, *, overwrite: bool) -> None:
    """Write *trace* at *path*, whole or not at all.

    Raises `RecordingError` when no step is whole yet, `WriteError` when the file cannot be written.
    """
    from safetensors.numpy import save

    if not trace.steps:
        raise RecordingError(tr("there is nothing to save before the first token"))
    tensors = {name: np.ascontiguousarray(array) for name, array in _tensors(trace).items()}
    serialized = save(tensors, _metadata(trace))
    write_bytes(path, serialized, overwrite=overwrite)


def _metadata(trace: Trace) -> dict[str, str]:
    config = trace.model.config
    more_ends = {"end_tokens": json.dumps(sorted(trace.more_end_ids))} if trace.more_end_ids else {}
    return more_ends | {
        "format": FORMAT,
        "cutaway_version": version("cutaway"),
        "model": f"{trace.model.name} sha256:{trace.model.digest()}",
        "family": config.family,
        "config": json.dumps(config.to_dict()),
        "prompt": trace.prompt.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"),
        "sampling": json.dumps([{"step": step} | settings.to_dict() for step, settings in trace.sampling]),
        "prompt_length": str(len(trace.prompt_ids)),
        "prompt_added": json.dumps(trace.added),
        "finish_reason": trace.finish_reason or "stopped",
        "timings": json.dumps(
            {
                "first_token_seconds": trace.prefill_seconds,
                "decode_tokens_per_second": trace.decode_rate,
                "step_seconds": [step.seconds for step in trace.steps],
            }
        ),
        "edits": json.dumps([edit_to_dict(edit) for edit in trace.edits]),
        "special_tokens": json.dumps(sorted(trace.model.vocabulary.special)),
        "capture": trace.capture,
    }


def _tensors(trace: Trace) -> Tensors:
    vocabulary, steps, T = trace.model.vocabulary, trace.steps, trace.positions
    ids = trace.token_ids
    pieces = [vocabulary.token_bytes(id) for id in ids]
    rows = trace.cache.rows
    tensors: Tensors = {
        "token_ids": np.array(ids, np.int64),
        "token_bytes": np.frombuffer(b"".join(pieces), np.uint8),
        "token_offsets": np.cumsum([0, *map(len, pieces)], dtype=np.int64),
        "vocab_bytes": vocabulary.data,
        "vocab_offsets": vocabulary.offsets,
        "chosen_probability": np.array([step.probability for step in steps], np.float32),
        "raw_logprob": np.array([step.raw_logprob for step in steps], np.float32),
        "uniform": np.array([step.uniform for step in steps], np.float64),
        "forced": np.array([step.forced for step in steps], np.uint8),
        "embedding": rows.embedding[:T],
        "residual": rows.residual[:, :T],
    }
    for layer in range(trace.model.config.layers):
        tensors[f"query.{layer}"] = rows.query[layer, :, :T]
        tensors[f"key.{layer}"] = rows.key[layer, :, :T]
        tensors[f"value.{layer}"] = rows.value[layer, :, :T]
    tensors |= _everything(trace) if trace.capture == "all" else _compact_scores(trace)
    return tensors | table_tensors(trace)


def _everything(trace: Trace) -> Tensors:
    rows, T = trace.cache.rows, trace.positions
    tensors: Tensors = {
        "next_logits": np.stack([step.scores for step in trace.steps if isinstance(step.scores, np.ndarray)]),
        "logits": rows.logits[:T],
    }
    if trace.model.config.final_norm:
        tensors["final_norm"] = rows.normalized[:T]
    for layer, blocks in enumerate(trace.cache.patterns):
        tensors[f"attention.{layer}"] = _square(blocks, T)
        tensors[f"mlp.{layer}"] = rows.hidden[layer, :T]
    return tensors


def _square(blocks: list[Floats], length: int) -> Floats:
    """One [H, T, T] map from the blocks [H, n, T'] that its steps left, 0 above the diagonal."""
    pattern = np.zeros((blocks[0].shape[0], length, length), np.float32)
    for block in blocks:
        stop = block.shape[2]
        if stop <= length:
            pattern[:, stop - block.shape[1] : stop, :stop] = block
    return pattern


def _compact_scores(trace: Trace) -> Tensors:
    tables = [_table(trace, step) for step in range(len(trace.steps))]
    tensors: Tensors = {
        f"candidate_{name}": np.stack([getattr(table, name) for table in tables]) for name in CANDIDATE_COLUMNS
    }
    tensors["stage_logsumexp"] = np.stack([table.stage_logsumexp for table in tables])  # [G, 7]
    tensors["stage_kept"] = np.stack([table.stage_kept for table in tables])  # [G, 7]
    return tensors


def _table(trace: Trace, step: int) -> Candidates:
    """A step's candidates in exactly min(256, V) + 1 rows, so that all steps fit one array: the drawn one last."""
    drawn = trace.steps[step].id
    scores = trace.steps[step].scores
    if isinstance(scores, Candidates):
        return scores
    chain = trace.chain(step)
    assert chain is not None
    table = candidates(chain, drawn, BEST)
    rows = np.arange(min(BEST, table.vocabulary))
    rows = np.append(rows, np.flatnonzero(table.ids == drawn)[0])
    columns = {name: getattr(table, name)[rows] for name in CANDIDATE_COLUMNS}
    return replace(table, **columns)
