"""Reading a recording back as a trace, whatever the file holds: it may be damaged, cut short, or made to harm."""

from __future__ import annotations

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
from ..edits import Edit, check_edit
from ..errors import ModelError, RecordingError
from ..events import FinishReason
from ..sampling import STAGES, SamplingConfig, SamplingError
from ..scores import BEST, KEPT, Candidates
from ..tokenizer import Vocabulary
from ..trace import ModelFacts, Step, Trace
from .metadata import Metadata, impossible, refused
from .reader import LARGEST, Reader
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
    except OSError as error:
        what = (
            tr("this is a folder") if path.is_dir() else tr("this cannot be read: {why}", why=error.strerror or error)
        )
        raise RecordingError(what, where=str(path)) from error
    except (SafetensorError, ValueError) as error:  # a path may hold what no path can
        raise RecordingError(tr("this is not a whole safetensors file"), where=str(path)) from error


def _checked(reader: Reader, metadata: dict[str, str], path: Path) -> Trace:
    """The trace; what is wrong with it is told with the path."""
    if metadata.get("format") != FORMAT:
        raise RecordingError(
            tr("this is not a Cutaway recording"),
            where=str(path),
            hint=tr("its format should be {format}", format=FORMAT),
        )
    try:
        return _trace(reader, Metadata(metadata))
    except RecordingError as error:
        raise RecordingError(error.what, where=str(path)) from error


def _trace(reader: Reader, metadata: Metadata) -> Trace:
    config = _config(metadata)
    ids = reader.numbers("token_ids", np.int64, 0, config.vocabulary - 1, None)
    P = metadata.count("prompt_length")
    G = len(ids) - P
    if not (P > 0 and G > 0):
        what = tr(
            "this recording is damaged: its prompt_length is {length}, and token_ids is {count} long",
            length=P,
            count=len(ids),
        )
        raise RecordingError(what)
    T = P + G - 1
    name, _, digest = metadata.text("model").rpartition(" sha256:")
    trace = Trace(
        model=ModelFacts(name, config, _vocabulary(reader, config, metadata), lambda: digest),
        prompt_ids=tuple(ids[:P].tolist()),
        added=tuple(metadata.ids("prompt_added", P)),
        prompt=metadata.text("prompt"),
        cache=_cache(reader, config, T, metadata.text("capture", "default")),
        sampling=_sampling(metadata),
        edits=tuple(_edit(entry, config) for entry in metadata.objects("edits")),
        finish_reason=_finish_reason(metadata.text("finish_reason")),
        more_end_ids=frozenset(metadata.ids("end_tokens", config.vocabulary)).difference(config.eos_ids),
    )
    trace.steps = _steps(reader, ids[P:], _seconds(metadata, G), config)
    trace.tables = read_tables(reader, config, P, T)
    return trace


def _config(metadata: Metadata) -> ModelConfig:
    try:
        config = ModelConfig.from_dict(metadata.object("config"))
    except ModelError as error:
        raise refused("config", error.what) from error
    if config.heads % config.kv_heads:
        raise refused("config", tr("heads ({heads}) is not a multiple of kv_heads ({kv_heads})",
                                   heads=config.heads, kv_heads=config.kv_heads))  # fmt: skip
    return config


def _vocabulary(reader: Reader, config: ModelConfig, metadata: Metadata) -> Vocabulary:
    data = reader.take("vocab_bytes", np.uint8, None)
    offsets = reader.take("vocab_offsets", np.int64, config.vocabulary + 1)
    special = metadata.ids("special_tokens")  # a tokenizer may know more tokens than its model
    try:
        return Vocabulary(data, offsets, special)
    except ValueError as error:
        what = tr("this recording is damaged: the tensor vocab_offsets does not rise from 0 to the end of vocab_bytes")
        raise RecordingError(what) from error


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
    G, numbers = len(ids), reader.numbers
    probability = numbers("chosen_probability", np.float32, 0, 1, G)
    raw_logprob = numbers("raw_logprob", np.float32, -inf, 0.001, G)
    uniform = numbers("uniform", np.float64, 0, 1, G)
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
    scores = reader.numbers("next_logits", np.float32, -inf, LARGEST, G, config.vocabulary)
    if not np.isfinite(scores.max(axis=1)).all():
        raise RecordingError(tr("this recording is damaged: the tensor next_logits has a step in which no token is in"))
    return list(scores)


def _best_scores(reader: Reader, drawn: NDArray[np.int64], config: ModelConfig) -> list[Candidates]:
    G, m, stages, V = len(drawn), min(BEST, config.vocabulary) + 1, len(STAGES), config.vocabulary
    numbers = reader.numbers
    ids = numbers("candidate_ids", np.int64, 0, V - 1, G, m)
    if (ids[:, -1] != drawn).any():
        raise RecordingError(tr("this recording is damaged: the tensor candidate_ids does not end in the drawn tokens"))
    logits = numbers("candidate_logits", np.float32, -inf, LARGEST, G, m)
    ranks = numbers("candidate_ranks", np.int64, 0, V - 1, G, m)
    removed_by = numbers("candidate_removed_by", np.uint8, 0, KEPT, G, m)
    final = numbers("candidate_final", np.float64, 0, 1.000001, G, m)
    logsumexp = numbers("stage_logsumexp", np.float64, -LARGEST, LARGEST, G, stages)
    kept = numbers("stage_kept", np.int64, 1, V, G, stages)
    return [
        Candidates(ids[g], logits[g], ranks[g], removed_by[g], final[g], logsumexp[g], kept[g], config.vocabulary)
        for g in range(G)
    ]


def _sampling(metadata: Metadata) -> list[tuple[int, SamplingConfig]]:
    """The settings, each with the step it began at; the first ones with step 0."""
    name = "sampling"
    sampling = []
    for entry in metadata.objects(name):
        begin = entry.get("step")
        if type(begin) is not int or begin < 0:
            raise impossible(name, {"step": begin})
        sampling.append((begin, _settings(entry)))
    if not sampling or sampling[0][0] != 0:
        raise refused(name, tr("nothing holds from step 0 on"))
    return sampling


def _settings(entry: dict[str, Any]) -> SamplingConfig:
    try:
        return SamplingConfig(
            **{field.name: entry[field.name] for field in fields(SamplingConfig) if field.name in entry}
        )
    except SamplingError as error:
        raise refused("sampling", error.what) from error


def _edit(entry: dict[str, Any], config: ModelConfig) -> Edit:
    try:
        edit = edit_from_dict(entry)
        check_edit(edit, config)
    except ModelError as error:
        raise refused("edits", error.what) from error
    except (KeyError, TypeError) as error:
        raise impossible("edits", entry) from error
    return edit


def _seconds(metadata: Metadata, G: int) -> list[float]:
    """How long each of G steps took; a run that was saved while it went on may have timed one more."""
    values = metadata.object("timings").get("step_seconds")
    if not isinstance(values, list) or len(values) < G:
        raise refused("timings", tr("step_seconds is no list of {count}", count=G))
    for value in values:
        if type(value) not in (int, float) or not 0 <= _as_float(value) <= LARGEST:
            raise impossible("timings", {"step_seconds": value})
    return [_as_float(value) for value in values]


def _as_float(value: float) -> float:
    """*value* as a float, infinite where it is a whole number too large for one."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _finish_reason(text: str) -> Any:
    if text not in get_args(FinishReason):
        what = tr("this recording is damaged: it ended for the unknown reason {reason}", reason=shown(text))
        raise RecordingError(what)
    return text
