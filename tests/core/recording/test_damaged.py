"""Files that are not what they say: refused in one sentence, whatever they hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutaway.core import CutawayError, Generation, RecordingError, Trace
from cutaway.core.files import WriteError
from cutaway.core.models.model import Model
from tests.core.recording.recordings import (
    LIVELY,
    MODEL,
    read,
    record,
    usable,
    write_tensors,
)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no such recording") as caught:
        Trace.load(tmp_path / "x.cutaway")
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\0" * 7, b"\xff" * 64, b"{}", b"PK\x03\x04", b"\x02\0\0\0\0\0\0\0{}"])
def test_other_files(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.cutaway"
    path.write_bytes(data)
    with pytest.raises(RecordingError, match=r"x\.cutaway"):
        Trace.load(path)


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="this is a folder"):
        Trace.load(tmp_path)


def test_a_model_is_no_recording() -> None:
    with pytest.raises(RecordingError, match="not a Cutaway recording.*its format should be cutaway-trace/1"):
        Trace.load(MODEL / "model.safetensors")


def test_truncated_files(saved: Path, tmp_path: Path) -> None:
    data, path = saved.read_bytes(), tmp_path / "x.cutaway"
    header = 8 + int.from_bytes(data[:8], "little")
    for length in {
        *range(0, 24),
        *range(24, header, 61),
        header - 1,
        header,
        *range(header, len(data), 997),
        len(data) - 1,
    }:
        path.write_bytes(data[:length])
        with pytest.raises(RecordingError):
            Trace.load(path)


def test_bytes_after_the_end(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "x.cutaway").write_bytes(saved.read_bytes() + b"\0")
    with pytest.raises(RecordingError):
        Trace.load(tmp_path / "x.cutaway")


@pytest.mark.parametrize(
    "key", ["config", "prompt", "sampling", "prompt_length", "finish_reason", "timings", "edits", "model"]
)
def test_metadata_that_is_missing(key: str, altered: Callable[..., Path]) -> None:
    with pytest.raises(RecordingError, match=f"damaged: its {key} is missing"):
        Trace.load(altered({key: None}))


HOSTILE = ["", "{", "nonsense", "null", "7", '"text"', "[7]", "[null]", "[[]]", '[{"step": {}}]', "[Infinity]", "[NaN]"]
HOSTILE += ["[1e999]", '[{"kind": "force_token", "step": Infinity, "id": 1}]']
HOSTILE += ["[" * 100_000, "[" + "9" * 5000 + "]"]


@pytest.mark.parametrize("key", ["config", "sampling", "timings", "edits", "prompt_added"])
def test_metadata_of_other_kinds(key: str, altered: Callable[..., Path]) -> None:
    for text in HOSTILE:
        with pytest.raises(RecordingError, match=f"damaged: (in )?its {key}\\b") as caught:
            Trace.load(altered({key: text}))
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "text", ["", "-1", "0", "13", "14", "9" * 20, "6.5", "six", "NaN", pytest.param("9" * 5000, id="long")]
)
def test_prompts_of_an_impossible_length(text: str, altered: Callable[..., Path]) -> None:
    with pytest.raises(RecordingError):
        Trace.load(altered({"prompt_length": text}))


SENTENCES = [
    ("prompt_length", "six", "its prompt_length cannot hold 'six'"),
    ("prompt_length", "13", "its prompt_length is 13, and token_ids is 13 long"),
    ("config", "{", "its config is not valid JSON"),
    ("config", "{}", "in its config, family is missing"),
    ("sampling", "[]", "in its sampling, nothing holds from step 0 on"),
    ("sampling", '[{"temperature": 1}]', "its sampling cannot hold {'step': None}"),
    ("sampling", '[{"step": 0, "seed": "x"}]', "in its sampling, seed is 'x'"),
    ("sampling", '[{"step": 0, "top_p": 2}]', "in its sampling, top_p is 2.0"),
    ("edits", '[{"kind": "ablate_mlp"}]', "its edits cannot hold {'kind': 'ablate_mlp'}"),
    ("edits", '[{"kind": "ablate_mlp", "layer": 9}]', "in its edits, this model has no layer 9"),
    ("edits", '[{"kind": "ablate_mlp", "layer": 1.9}]', "in its edits, layer is 1.9"),
    (
        "edits",
        f'[{{"kind": "ablate_mlp", "layer": {10**100}}}]',
        "in its edits, this model has no layer a number of 333 bits",
    ),
    ("sampling", f'[{{"step": 0, "top_p": {10**100}}}]', "in its sampling, top_p is 1e+100"),
    ("prompt_added", "[6]", "its prompt_added cannot hold 6"),
    ("end_tokens", "[97]", "its end_tokens cannot hold 97"),
    ("end_tokens", "7", "its end_tokens cannot hold 7"),
    ("special_tokens", "[-1]", "its special_tokens cannot hold -1"),
    ("timings", "{}", "in its timings, step_seconds is no list of 7"),
    ("timings", '{"step_seconds": [1, 2, 3, 4, 5, 6, -1]}', "its timings cannot hold {'step_seconds': -1}"),
]


@pytest.mark.parametrize(("key", "text", "sentence"), SENTENCES)
def test_the_sentence_says_which_metadata_is_wrong_and_how(
    key: str, text: str, sentence: str, altered: Callable[..., Path]
) -> None:
    with pytest.raises(RecordingError) as caught:
        Trace.load(altered({key: text}))
    assert caught.value.what == f"this recording is damaged: {sentence}"


@pytest.mark.parametrize("name", ["token_ids", "raw_logprob", "uniform", "lens_entropy"])
def test_the_sentence_says_which_tensor_is_wrong_and_how(name: str, saved: Path, altered: Callable[..., Path]) -> None:
    array = read(saved)[0][name].copy()
    array.flat[-1] = 10**6 if name == "token_ids" else np.nan
    with pytest.raises(RecordingError) as caught:
        Trace.load(altered(tensors={name: array}))
    value = "1000000" if name == "token_ids" else "nan"
    assert caught.value.what == f"this recording is damaged: the tensor {name} cannot hold {value}"


def test_more_timings_than_steps(saved: Path, altered: Callable[..., Path]) -> None:
    """A run that goes on may take another step while it is being saved."""
    timings = json.loads(read(saved)[1]["timings"])
    timings["step_seconds"].append(1.0)
    assert usable(Trace.load(altered({"timings": json.dumps(timings)})))


LAYERS: list[Any] = [0, -1, 2, 4, 2**31, 10**30, 1.5, True, None, "3", []]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("layers", each) for each in LAYERS),
        *(("heads", value) for value in (0, 3, 8)),
        *(("kv_heads", value) for value in (0, 3, 8)),
        *(("vocabulary", value) for value in (0, 96, 98, 2**31 - 1, 2**63)),
        *(("width", value) for value in (0, 47, 10**12)),
        *(("head_size", value) for value in (0, 6, 24)),
        ("norm_epsilon", "small"),
        ("activation", "sine"),
        ("scale_attention", 1),
        ("family", 7),
    ],
)
def test_configurations_that_do_not_fit(field: str, value: Any, saved: Path, altered: Callable[..., Path]) -> None:
    config = json.loads(read(saved)[1]["config"])
    with pytest.raises(RecordingError):
        Trace.load(altered({"config": json.dumps(config | {field: value})}))
    del config[field]
    with pytest.raises(RecordingError, match=field):
        Trace.load(altered({"config": json.dumps(config)}))


@pytest.mark.parametrize(
    "changed",
    [
        {"temperature": "hot"},
        {"temperature": -1},
        {"temperature": None},
        {"temperature": 1e999},
        {"temperature": 10**400},
        {"top_k": 2.5},
        {"top_k": "40"},
        {"top_k": True},
        {"top_p": 2},
        {"min_p": []},
        {"repetition_penalty": 0},
        {"greedy": 1},
        {"greedy": "no"},
        {"seed": 1.5},
        {"seed": -1},
        {"step": 1},
        {"step": -1},
        {"step": None},
        {"step": "first"},
        {"step": 1e999},
    ],
)
def test_settings_that_make_no_sense(changed: dict[str, Any], saved: Path, altered: Callable[..., Path]) -> None:
    (settings,) = json.loads(read(saved)[1]["sampling"])
    with pytest.raises(RecordingError):
        Trace.load(altered({"sampling": json.dumps([settings | changed])}))


def test_key_heads_that_serve_no_whole_number_of_heads(saved: Path, altered: Callable[..., Path]) -> None:
    tensors, metadata = read(saved)
    config = json.loads(metadata["config"]) | {"kv_heads": 3}
    fewer = {name: array[:3] for name, array in tensors.items() if name.startswith(("key.", "value."))}
    with pytest.raises(RecordingError, match="heads"):
        Trace.load(altered({"config": json.dumps(config)}, fewer))


def test_settings_of_later_versions_are_left_alone(saved: Path, altered: Callable[..., Path]) -> None:
    (settings,) = json.loads(read(saved)[1]["sampling"])
    assert Trace.load(altered({"sampling": json.dumps([settings | {"mirostat": 2}])})).sampling == [(0, LIVELY)]


@pytest.mark.parametrize(
    "edit",
    [
        {},
        {"kind": "ablate_head"},
        {"kind": "ablate_head", "layer": 1, "head": 4},
        {"kind": "ablate_head", "layer": -1, "head": 0},
        {"kind": "ablate_mlp", "layer": 3},
        {"kind": "ablate_mlp", "layer": 0, "head": 1},
        {"kind": "force_token", "step": 0, "id": 97},
        {"kind": "force_token", "step": -1, "id": 7},
        {"kind": "force_token", "step": "x", "id": 7},
        {"kind": "transplant", "layer": 1},
        {"kind": []},
    ],
)
def test_edits_that_make_no_sense(edit: dict[str, Any], altered: Callable[..., Path]) -> None:
    with pytest.raises(RecordingError):
        Trace.load(altered({"edits": json.dumps([edit])}))


@pytest.mark.parametrize("positions", ["[6]", "[-1]", "[99999999999999]", '["a"]'])
def test_added_tokens_outside_the_prompt(positions: str, altered: Callable[..., Path]) -> None:
    with pytest.raises(RecordingError):
        Trace.load(altered({"prompt_added": positions}))


@pytest.mark.parametrize("reason", ["", "EOS", "because"])
def test_reasons_that_are_not_known(reason: str, altered: Callable[..., Path]) -> None:
    with pytest.raises(RecordingError, match="unknown reason"):
        Trace.load(altered({"finish_reason": reason}))


@pytest.mark.parametrize("outside", [-1, 97, 2**40])
@pytest.mark.parametrize("position", [0, -1])
def test_token_ids_outside_the_vocabulary(
    outside: int, position: int, saved: Path, altered: Callable[..., Path]
) -> None:
    ids = read(saved)[0]["token_ids"].copy()
    ids[position] = outside
    with pytest.raises(RecordingError, match="token_ids"):
        Trace.load(altered(tensors={"token_ids": ids}))


def test_every_tensor_is_needed_and_checked(run: Generation, saved: Path, altered: Callable[..., Path]) -> None:
    looked_at = read(saved)[0].keys() - {"token_bytes", "token_offsets"}  # said again by the ids and the vocabulary
    for name in looked_at:
        array = read(saved)[0][name]
        wrong: list[Any] = [None, array[None], array.astype(np.float32 if array.dtype != np.float32 else np.float64)]
        wrong += [np.ones(1, np.uint8)] if name == "vocab_bytes" else [array[:-1], np.concatenate([array, array[-1:]])]
        for each in wrong:
            with pytest.raises(RecordingError, match="damaged"):
                Trace.load(altered(tensors={name: each}))


@pytest.mark.parametrize("offsets", [[0, 3, 2], [1, 2, 2], [0, -1, 0]])
def test_vocabularies_that_do_not_fit(offsets: list[int], altered: Callable[..., Path]) -> None:
    damaged = np.array(offsets + [offsets[-1]] * 95, np.int64)
    with pytest.raises(RecordingError):
        Trace.load(altered(tensors={"vocab_offsets": damaged, "vocab_bytes": np.zeros(2, np.uint8)}))


def test_candidates_that_do_not_fit(tiny: Model, tmp_path: Path) -> None:
    path = tmp_path / "x.cutaway"
    record(tiny, "default").trace.save(path)
    tensors, metadata = read(path)
    for name, value in (("candidate_ids", 97), ("candidate_ids", -1), ("candidate_removed_by", 8)):
        damaged = tensors[name].copy()
        damaged[3, 5] = value
        write_tensors(path, tensors | {name: damaged}, metadata)
        with pytest.raises(RecordingError, match="candidates"):
            Trace.load(path)
    damaged = tensors["candidate_ids"].copy()
    damaged[2, -1] = (damaged[2, -1] + 1) % 97  # the drawn token is not in its place
    write_tensors(path, tensors | {"candidate_ids": damaged}, metadata)
    with pytest.raises(RecordingError, match="candidates"):
        Trace.load(path)


def test_errors_are_of_one_kind(tmp_path: Path) -> None:
    assert issubclass(RecordingError, CutawayError) and issubclass(WriteError, CutawayError)
