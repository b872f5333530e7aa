"""Reading a recording back as a trace, whatever the file holds: it may be damaged, cut short, or made to harm."""

from __future__ import annotations

import json
from dataclasses import fields
from math import inf
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ..cache import ActivationCache, Capture, Floats, Rows
from ..catalogue import tr
from ..checkpoint.config import ModelConfig
from ..checkpoint.json_text import shown
from ..edit_names import edit_from_dict
from ..edits import check_edit
from ..errors import CutawayError, RecordingError
from ..events import FinishReason
from ..sampling import STAGES, SamplingConfig
from ..scores import BEST, KEPT, Candidates
from ..tokenizer import Vocabulary
from ..trace import ModelFacts, Step, Trace
from .reader import Reader
from .save import FORMAT
from .tables import read_tables


def load_recording(path: Path) -> Trace:
    """Read the recording at *path*.

    Raises `RecordingError` in one sentence when the file is absent, truncated, of another format, or holds
    tensors that do not fit each other.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return _checked(Reader(file), file.metadata() or {}, path)
    except FileNotFoundError as error:
        raise RecordingError(tr("there is no such recording"), where=str(path)) from error
    except (OSError, SafetensorError, TypeError, ValueError) as error:
        raise RecordingError(
            tr("this is not a whole safetensors file: {reason}", reason=error), where=str(path)
        ) from error


def _checked(reader: Reader, metadata: dict[str, str], path: Path) -> Trace:
    """The trace, whatever is wrong with it told as one kind of error."""
    if metadata.get("format") != FORMAT:
        raise RecordingError(
            tr("this is not a Cutaway recording"),
            where=str(path),
            hint=tr("its format should be {format}", format=FORMAT),
        )
    try:
        return _trace(reader, metadata)
    except CutawayError as error:
        raise RecordingError(error.what, where=str(path)) from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise RecordingError(tr("this recording is damaged: {reason}", reason=error), where=str(path)) from error


def _trace(reader: Reader, metadata: dict[str, str]) -> Trace:
    config = ModelConfig.from_dict(json.loads(metadata["config"]))
    ids = reader.take("token_ids", np.int64, None)
    P = int(metadata["prompt_length"])
    G = len(ids) - P
    if config.heads % config.kv_heads:
        raise RecordingError(tr("this recording is damaged: its heads do not fit"))
    if not (P > 0 and G > 0 and ids.min() >= 0 and ids.max() < config.vocabulary):
        raise RecordingError(tr("this recording is damaged: its token ids do not fit"))
    T = P + G - 1
    name, _, digest = metadata["model"].rpartition(" sha256:")
    trace = Trace(
        model=ModelFacts(name, config, _vocabulary(reader, config, metadata), lambda: digest),
        prompt_ids=tuple(ids[:P].tolist()),
        added=tuple(int(position) for position in json.loads(metadata.get("prompt_added", "[]"))),
        prompt=metadata["prompt"],
        cache=_cache(reader, config, T, metadata.get("capture", "default")),
        sampling=[_settings(entry) for entry in json.loads(metadata["sampling"])],
        edits=tuple(edit_from_dict(entry) for entry in json.loads(metadata["edits"])),
        finish_reason=_finish_reason(metadata["finish_reason"]),
    )
    if not trace.sampling or trace.sampling[0][0] != 0:
        raise RecordingError(tr("this recording is damaged: it has no sampling settings"))
    if any(not 0 <= position < P for position in trace.added):
        raise RecordingError(tr("this recording is damaged: its added tokens do not fit"))
    for edit in trace.edits:
        check_edit(edit, config)
    seconds = [float(each) for each in json.loads(metadata["timings"])["step_seconds"]]
    trace.steps = _steps(reader, ids[P:], seconds, config)
    trace.tables = read_tables(reader, config, P, T)
    return trace


def _vocabulary(reader: Reader, config: ModelConfig, metadata: dict[str, str]) -> Vocabulary:
    data = reader.take("vocab_bytes", np.uint8, None)
    offsets = reader.take("vocab_offsets", np.int64, config.vocabulary + 1)
    special = [int(id) for id in json.loads(metadata.get("special_tokens", "[]"))]
    return Vocabulary(data, offsets, special)


def _cache(reader: Reader, config: ModelConfig, T: int, capture: str) -> ActivationCache:
    c, layers = config, range(config.layers)
    kind: Capture = "all" if capture == "all" else "default"
    full = T if kind == "all" else 0
    normed = full if c.final_norm else 0
    take = reader.take

    def stacked(name: str, *shape: int) -> Floats:
        return np.stack([take(f"{name}.{layer}", np.float32, *shape) for layer in layers])

    rows = Rows(
        embedding=take("embedding", np.float32, T, c.width),
        residual=take("residual", np.float32, c.layers, T, c.width),
        query=stacked("query", c.heads, T, c.head_size),
        key=stacked("key", c.kv_heads, T, c.head_size),
        value=stacked("value", c.kv_heads, T, c.head_size),
        hidden=stacked("mlp", T, c.mlp_width) if full else np.empty((c.layers, 0, c.mlp_width), np.float32),
        normalized=take("final_norm", np.float32, T, c.width) if normed else np.empty((0, c.width), np.float32),
        logits=take("logits", np.float32, T, c.vocabulary) if full else np.empty((0, c.vocabulary), np.float32),
    )
    patterns: list[list[Floats]] = [
        [take(f"attention.{layer}", np.float32, c.heads, T, T)] if full else [] for layer in layers
    ]
    return ActivationCache.of(config, rows, T, patterns, kind)


def _steps(reader: Reader, ids: NDArray[np.int64], seconds: list[float], config: ModelConfig) -> list[Step]:
    G = len(ids)
    probability = _numbers(reader, "chosen_probability", np.float32, 0, 1, G)
    raw_logprob = _numbers(reader, "raw_logprob", np.float32, -inf, 0.001, G)
    uniform = _numbers(reader, "uniform", np.float64, 0, 1, G)
    forced = reader.take("forced", np.uint8, G)
    scores = _whole_scores(reader, G, config) if "next_logits" in reader else _best_scores(reader, ids, config)
    return [
        Step(
            int(ids[g]), float(probability[g]), float(raw_logprob[g]), float(uniform[g]), bool(forced[g]), scores[g],
            seconds[g],
        )
        for g in range(G)
    ]  # fmt: skip


def _whole_scores(reader: Reader, G: int, config: ModelConfig) -> list[NDArray[np.float32]]:
    scores = _numbers(reader, "next_logits", np.float32, -inf, _LARGEST, G, config.vocabulary)
    if not np.isfinite(scores.max(axis=1)).all():
        raise RecordingError(tr("this recording is damaged: {name} holds what it cannot", name="next_logits"))
    return list(scores)


def _best_scores(reader: Reader, drawn: NDArray[np.int64], config: ModelConfig) -> list[Candidates]:
    G, m, stages, V = len(drawn), min(BEST, config.vocabulary) + 1, len(STAGES), config.vocabulary
    ids = _numbers(reader, "candidate_ids", np.int64, 0, V - 1, G, m)
    if (ids[:, -1] != drawn).any():
        raise RecordingError(tr("this recording is damaged: its candidates do not fit"))
    logits = _numbers(reader, "candidate_logits", np.float32, -inf, _LARGEST, G, m)
    ranks = _numbers(reader, "candidate_ranks", np.int64, 0, V - 1, G, m)
    removed_by = _numbers(reader, "candidate_removed_by", np.uint8, 0, KEPT, G, m)
    final = _numbers(reader, "candidate_final", np.float64, 0, 1.000001, G, m)
    logsumexp = _numbers(reader, "stage_logsumexp", np.float64, -_LARGEST, _LARGEST, G, stages)
    kept = _numbers(reader, "stage_kept", np.int64, 1, V, G, stages)
    return [
        Candidates(ids[g], logits[g], ranks[g], removed_by[g], final[g], logsumexp[g], kept[g], config.vocabulary)
        for g in range(G)
    ]


_LARGEST = float(np.finfo(np.float32).max)
"""No score is larger."""


def _numbers(
    reader: Reader, name: str, dtype: type[np.generic], least: float, most: float, *shape: int
) -> NDArray[Any]:
    """Tensor *name*, all of whose numbers lie from *least* to *most*. Raises `RecordingError`, for NaN too."""
    array = reader.take(name, dtype, *shape)
    with np.errstate(invalid="ignore"):  # comparing NaN is how it is found
        fits = ((array >= least) & (array <= most)).all()
    if not fits:
        raise RecordingError(tr("this recording is damaged: {name} holds what it cannot", name=name))
    return array


def _settings(entry: dict[str, Any]) -> tuple[int, SamplingConfig]:
    kinds: dict[str, tuple[type, ...]] = {"top_k": (int,), "greedy": (bool,), "seed": (int, type(None))}
    values: dict[str, Any] = {}
    for name in (field.name for field in fields(SamplingConfig) if field.name in entry):
        value = entry[name]
        if type(value) not in kinds.get(name, (int, float)):
            raise RecordingError(tr("this recording is damaged: {name} is {value}", name=name, value=shown(value)))
        values[name] = value if name in kinds else float(value)
    return int(entry["step"]), SamplingConfig(**values)


def _finish_reason(text: str) -> Any:
    if text not in get_args(FinishReason):
        raise RecordingError(tr("this recording is damaged: it ended for the unknown reason {reason}", reason=text))
    return text
