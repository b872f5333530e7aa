"""Recordings: what the format says, literally, and the round trip."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import CutawayError, Generation, RecordingError, SamplingConfig, Trace, load_model
from cutaway.core.attention_stages import attention_maps, attention_output, attention_rows, mlp_output
from cutaway.core.attribution import attribution
from cutaway.core.events import AttentionDone, BlockDone, Embedded, LogitsReady, MlpDone, Normalized, TokenChosen
from cutaway.core.files import WriteError
from cutaway.core.lens import lens_table, residual_norms, surprisal
from cutaway.core.models.decoder import Decoder
from cutaway.core.models.model import Model
from cutaway.core.recording.tables import NAMES
from cutaway.core.scores import Candidates
from tests.core.recording.recordings import (
    EDITS,
    LIVELY,
    MODEL,
    PROMPT,
    G,
    P,
    T,
    read,
    record,
    usable,
)

# The format


def expected_tensors(model: Model, capture: str) -> dict[str, tuple[type, tuple[int | None, ...]]]:
    """Section 4 of the contract, and what `docs/recordings.md` adds to it."""
    c = model.config
    L, H, K, d, D, F, V = c.layers, c.heads, c.kv_heads, c.head_size, c.width, c.mlp_width, c.vocabulary
    always: dict[str, tuple[type, tuple[int | None, ...]]] = {
        "token_ids": (np.int64, (P + G,)),
        "token_bytes": (np.uint8, (None,)),
        "token_offsets": (np.int64, (P + G + 1,)),
        "vocab_bytes": (np.uint8, (None,)),
        "vocab_offsets": (np.int64, (V + 1,)),
        "chosen_probability": (np.float32, (G,)),
        "raw_logprob": (np.float32, (G,)),
        "uniform": (np.float64, (G,)),
        "forced": (np.uint8, (G,)),
        "embedding": (np.float32, (T, D)),
        "residual": (np.float32, (L, T, D)),
        "lens_ids": (np.int64, (L, T, 10)),
        "lens_probability": (np.float32, (L, T, 10)),
        "lens_entropy": (np.float32, (L, T)),
        "lens_rank": (np.int64, (L, T)),
        "lens_chosen_probability": (np.float32, (L, T)),
        "attribution": (np.float32, (2 * L + 2, T)),
        "attention_output": (np.float32, (L, T, D)),
        "prompt_surprisal": (np.float32, (P,)),
    }
    for layer in range(L):
        always[f"query.{layer}"] = (np.float32, (H, T, d))
        always[f"key.{layer}"] = always[f"value.{layer}"] = (np.float32, (K, T, d))
    if capture == "all":
        always |= {
            "next_logits": (np.float32, (G, V)),
            "final_norm": (np.float32, (T, D)),
            "logits": (np.float32, (T, V)),
        }
        for layer in range(L):
            always[f"attention.{layer}"] = (np.float32, (H, T, T))
            always[f"mlp.{layer}"] = (np.float32, (T, F))
        return always
    m = min(256, V) + 1
    return always | {
        "candidate_ids": (np.int64, (G, m)),
        "candidate_logits": (np.float32, (G, m)),
        "candidate_ranks": (np.int64, (G, m)),
        "candidate_removed_by": (np.uint8, (G, m)),
        "candidate_final": (np.float64, (G, m)),
        "stage_logsumexp": (np.float64, (G, 7)),
        "stage_kept": (np.int64, (G, 7)),
    }


def test_names_types_and_shapes(run: Generation, saved: Path) -> None:
    tensors, _ = read(saved)
    expected = expected_tensors(run.model, run.trace.capture)
    assert tensors.keys() == expected.keys()
    for name, (dtype, shape) in expected.items():
        assert tensors[name].dtype == dtype, name
        fits = zip(shape, tensors[name].shape, strict=True)
        assert all(want in (None, have) for want, have in fits), name


def test_metadata(run: Generation, saved: Path) -> None:
    _, metadata = read(saved)
    assert metadata.keys() == {
        *("format", "cutaway_version", "model", "family", "config", "prompt", "sampling", "prompt_length"),
        *("finish_reason", "timings", "edits", "capture", "prompt_added", "special_tokens"),
    }
    assert metadata["format"] == "cutaway-trace/1"
    assert metadata["model"] == f"gpt2_base sha256:{run.model.digest}"
    assert metadata["family"] == "gpt2"
    assert json.loads(metadata["config"]) == run.model.config.to_dict()
    assert metadata["prompt"] == "naïve [/b] prompt\n"
    assert json.loads(metadata["sampling"]) == [
        {
            **{"step": 0, "temperature": 0.9, "top_k": 30, "top_p": 0.95, "min_p": 0.001},
            **{"repetition_penalty": 1.1, "greedy": False, "seed": 2**63 + 11},
        }
    ]
    assert metadata["prompt_length"] == "6"
    assert metadata["finish_reason"] == "length"
    timings = json.loads(metadata["timings"])
    assert len(timings["step_seconds"]) == G
    assert timings["first_token_seconds"] == timings["step_seconds"][0] > 0
    assert timings["decode_tokens_per_second"] > 0
    assert json.loads(metadata["edits"]) == [
        {"kind": "ablate_head", "layer": 1, "head": 2, "since": 0},
        {"kind": "ablate_mlp", "layer": 0, "since": 0},
        {"kind": "force_token", "step": 1, "id": 7},
        {"kind": "force_token", "step": 4, "id": 96},
    ]


def test_no_path_is_in_the_file(saved: Path, tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(MODEL.parent).encode() not in saved.read_bytes()
    folder = tmp_path / "somebody" / "model"
    shutil.copytree(MODEL, folder)
    monkeypatch.chdir(folder.parent)
    for spelled in ("model/", "../somebody/./model", "model/model.safetensors", str(folder)):
        record(load_model(spelled), "default", count=1, prompt=[1, 2]).trace.save("x.cutaway")
        assert read(Path("x.cutaway"))[1]["model"] == f"model sha256:{tiny.digest}"
        assert b"somebody" not in Path("x.cutaway").read_bytes()


def test_tokens(run: Generation, saved: Path) -> None:
    tensors, _ = read(saved)
    assert tensors["token_ids"].tolist() == run.trace.token_ids
    assert tensors["forced"].tolist() == [0, 1, 0, 0, 1, 0, 0]
    assert tensors["token_bytes"].size == tensors["vocab_bytes"].size == 0  # no tokenizer: empty
    assert not tensors["token_offsets"].any() and not tensors["vocab_offsets"].any()


def test_bytes_of_tokens_and_of_the_vocabulary(fable: Model, story: list[int], tmp_path: Path) -> None:
    run = Generation(fable, [*story, 4095], SamplingConfig(seed=1), max_new_tokens=5, ignore_eos=True)
    list(run)
    run.trace.save(tmp_path / "x.cutaway")
    tensors, _ = read(tmp_path / "x.cutaway")

    def cut(what: str) -> list[bytes]:
        data, offsets = tensors[f"{what}_bytes"].tobytes(), tensors[f"{what}_offsets"].tolist()
        assert offsets[0] == 0 and offsets[-1] == len(data)
        return [data[start:stop] for start, stop in zip(offsets, offsets[1:], strict=False)]

    vocabulary, tokens = cut("vocab"), cut("token")
    assert len(vocabulary) == 4096 and vocabulary[4095] == b"<|endoftext|>"
    assert tokens == [vocabulary[id] for id in run.trace.token_ids]
    assert b"".join(tokens[:11]) == b"Once upon a time, there was a little fox who"
    loaded = Trace.load(tmp_path / "x.cutaway")
    assert [loaded.token_bytes(position) for position in range(17)] == tokens


def test_the_rows_are_those_of_the_events(tiny: Model, tmp_path: Path) -> None:
    run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=G, ignore_eos=True, capture="all", edits=EDITS)
    events = list(run)
    run.trace.save(tmp_path / "x.cutaway")
    tensors, _ = read(tmp_path / "x.cutaway")

    def joined(kind: Any, field: str, layer: int | None = None, axis: int = 0) -> NDArray[Any]:
        parts = [getattr(e, field) for e in events if isinstance(e, kind) and getattr(e, "layer", None) == layer]
        return np.concatenate(parts, axis=axis)

    np.testing.assert_array_equal(tensors["embedding"], joined(Embedded, "sum"))
    np.testing.assert_array_equal(tensors["final_norm"], joined(Normalized, "hidden"))
    np.testing.assert_array_equal(tensors["logits"], joined(LogitsReady, "logits"))
    last = [event.logits[-1] for event in events if isinstance(event, LogitsReady)]
    np.testing.assert_array_equal(tensors["next_logits"], last)
    for layer in range(3):
        np.testing.assert_array_equal(tensors["residual"][layer], joined(BlockDone, "residual", layer))
        np.testing.assert_array_equal(tensors[f"mlp.{layer}"], joined(MlpDone, "hidden", layer))
        for name in ("query", "key", "value"):
            np.testing.assert_array_equal(tensors[f"{name}.{layer}"], joined(AttentionDone, name, layer, axis=1))
        row = 0
        for event in events:
            if isinstance(event, AttentionDone) and event.layer == layer:
                n, seen = event.pattern.shape[1:]
                np.testing.assert_array_equal(tensors[f"attention.{layer}"][:, row : row + n, :seen], event.pattern)
                row += n
        assert row == T
        assert not np.triu(tensors[f"attention.{layer}"], 1).any()
        np.testing.assert_allclose(tensors[f"attention.{layer}"], attention_maps(run.trace, layer), atol=1e-5)
    chosen = [event for event in events if isinstance(event, TokenChosen)]
    np.testing.assert_array_equal(tensors["uniform"], [event.uniform for event in chosen])
    np.testing.assert_allclose(tensors["chosen_probability"], [event.probability for event in chosen], rtol=1e-7)
    np.testing.assert_allclose(tensors["raw_logprob"], [event.raw_logprob for event in chosen], rtol=1e-7)


@pytest.mark.parametrize(("count", "positions"), [(1, 6), (2, 7), (5, 10)])
def test_how_many_positions(count: int, positions: int, tiny: Model, tmp_path: Path) -> None:
    for capture in ("default", "all"):
        run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=count, ignore_eos=True, capture=capture)
        list(run)
        run.trace.save(tmp_path / "x.cutaway")
        tensors, _ = read(tmp_path / "x.cutaway")
        assert tensors["residual"].shape[1] == positions == run.trace.positions
        assert Trace.load(tmp_path / "x.cutaway").positions == positions


def test_default_capture_is_linear_in_the_positions(tiny: Model, tmp_path: Path) -> None:
    def sizes(capture: str) -> list[int]:
        found = []
        for length in (15, 30, 45):
            run = record(tiny, capture, prompt=([3, 50, 7, 20] * 12)[:length])
            run.trace.save(tmp_path / "x.cutaway")
            tensors, _ = read(tmp_path / "x.cutaway")
            found.append(sum(array.nbytes for array in tensors.values()))
        return found

    default, everything = sizes("default"), sizes("all")
    assert default[2] - default[1] == default[1] - default[0]
    curvature = (everything[2] - everything[1]) - (everything[1] - everything[0])
    assert curvature == 3 * 4 * 4 * 2 * 15**2  # layers, heads, bytes, and the second difference of T²


# The round trip


def test_round_trip(run: Generation, saved: Path) -> None:
    before, after = run.trace, Trace.load(saved)
    assert usable(after)
    assert after.model.name == "gpt2_base"
    assert after.model.config == before.model.config
    assert after.model.digest() == before.model.digest()
    np.testing.assert_array_equal(after.model.vocabulary.data, before.model.vocabulary.data)
    np.testing.assert_array_equal(after.model.vocabulary.offsets, before.model.vocabulary.offsets)
    assert (after.prompt_ids, after.added, after.prompt) == (tuple(PROMPT), (0,), "naïve [/b] prompt\n")
    assert (after.token_ids, after.positions, after.capture) == (before.token_ids, T, before.capture)
    assert (after.sampling, after.edits, after.finish_reason) == ([(0, LIVELY)], EDITS, "length")
    assert after.prefill_seconds == before.prefill_seconds
    assert after.decode_rate == pytest.approx(before.decode_rate)
    for one, other in zip(after.steps, before.steps, strict=True):
        assert (one.id, one.uniform, one.forced, one.seconds) == (other.id, other.uniform, other.forced, other.seconds)
        assert one.probability == pytest.approx(other.probability, rel=1e-7)
        assert one.raw_logprob == pytest.approx(other.raw_logprob, rel=1e-7)
    np.testing.assert_array_equal(after.embedding(), before.embedding())
    rows, kept = before.cache.rows, after.cache.rows
    for name in ("query", "key", "value", "residual"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(rows, name)[..., :T, :])
    for layer in range(3):
        np.testing.assert_array_equal(attention_maps(after, layer), attention_maps(before, layer))
        np.testing.assert_array_equal(attention_rows(after, layer, 1, 3, 9), attention_rows(before, layer, 1, 3, 9))
    if before.capture == "all":
        for name in ("hidden", "normalized", "logits"):
            np.testing.assert_array_equal(getattr(kept, name), getattr(rows, name)[..., :T, :])


def test_candidates_show_the_very_probabilities_they_had(run: Generation, saved: Path) -> None:
    loaded = Trace.load(saved)
    for step in range(G):
        for count in (1, 5, 97, 200):
            live, replayed = run.trace.candidates(step, count), loaded.candidates(step, count)
            for name in ("ids", "logits", "ranks", "removed_by", "final", "raw", "stage_logsumexp", "stage_kept"):
                np.testing.assert_array_equal(getattr(live, name), getattr(replayed, name), err_msg=name)
            assert live.vocabulary == replayed.vocabulary == 97


def test_candidates_of_a_large_vocabulary(fable: Model, story: list[int], tmp_path: Path) -> None:
    """The drawn token is kept even where 256 are likelier."""
    run = Generation(fable, story, SamplingConfig(temperature=0.8, top_k=40, seed=3), max_new_tokens=4, ignore_eos=True)
    list(run)
    last = int(np.argmin(run.trace.steps[2].scores)) if isinstance(run.trace.steps[2].scores, np.ndarray) else 0
    branch = run.branch(2, token=last)
    list(branch)
    branch.trace.save(tmp_path / "x.cutaway")
    loaded = Trace.load(tmp_path / "x.cutaway")
    for step in range(4):
        for count in (10, 256, 1000):
            live, replayed = branch.trace.candidates(step, count), loaded.candidates(step, count)
            if count <= 256:
                for name in ("ids", "logits", "ranks", "removed_by", "final", "raw"):
                    np.testing.assert_array_equal(getattr(live, name), getattr(replayed, name), err_msg=name)
            assert branch.trace.steps[step].id in replayed.ids
    assert loaded.candidates(2, 10).ids[-1] == last and loaded.candidates(2, 10).ranks[-1] == 4095
    assert len(loaded.candidates(2, 1000).ids) == 257 and len(loaded.candidates(0, 1000).ids) == 256
    assert loaded.chain(0) is None and isinstance(loaded.steps[0].scores, Candidates)


def test_saving_what_was_loaded_gives_the_same_file(saved: Path, tmp_path: Path) -> None:
    Trace.load(saved).save(tmp_path / "again.cutaway")
    (tensors, metadata), (again, says) = read(saved), read(tmp_path / "again.cutaway")
    assert metadata == says
    assert tensors.keys() == again.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(array, again[name], err_msg=name)


def test_a_branch_keeps_each_of_its_settings(tiny: Model, tmp_path: Path) -> None:
    run = record(tiny, "all")
    other = SamplingConfig(greedy=True, seed=1)
    branch = run.branch(3, sampling=other)
    list(branch)
    branch.trace.save(tmp_path / "x.cutaway")
    loaded = Trace.load(tmp_path / "x.cutaway")
    assert loaded.sampling == [(0, LIVELY), (3, other)]
    assert loaded.edits == EDITS[:3]  # the token forced at step 4 was left behind
    assert loaded.token_ids == branch.trace.token_ids
    for layer in range(3):
        np.testing.assert_allclose(
            read(tmp_path / "x.cutaway")[0][f"attention.{layer}"], attention_maps(branch.trace, layer), atol=1e-5
        )


@pytest.mark.parametrize("capture", ["default", "all"])
def test_saving_wherever_a_run_is_paused(capture: Any, tiny: Model, tmp_path: Path) -> None:
    """Whole steps only, and the run goes on afterwards as if nothing had been saved."""
    path = tmp_path / "x.cutaway"
    run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=3, ignore_eos=True, capture=capture, edits=EDITS)
    steps = 0
    for event in run:
        steps += isinstance(event, TokenChosen)
        if not steps:
            with pytest.raises(RecordingError, match="nothing to save before the first token"):
                run.trace.save(path)
            assert not list(tmp_path.iterdir())
            continue
        run.trace.save(path)
        loaded = Trace.load(path)
        assert usable(loaded)
        assert len(loaded.steps) == steps
        assert loaded.finish_reason == ("stopped" if steps < 3 else "length")
    assert run.trace.token_ids == record(tiny, "default", count=3).trace.token_ids


@pytest.mark.parametrize("capture", ["default", "all"])
def test_end_tokens_that_the_configuration_does_not_name(capture: Any, tiny: Model, tmp_path: Path) -> None:
    """A branch of what was recorded ends where one of the run itself does."""
    path, [eos] = tmp_path / "x.cutaway", tiny.config.eos_ids
    run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=4, capture=capture, end_ids=[7, eos, 97, 3])
    list(run)
    run.trace.save(path)
    assert json.loads(read(path)[1]["end_tokens"]) == [3, 7]
    loaded = Trace.load(path)
    loaded.save(tmp_path / "again.cutaway")
    assert (
        loaded.more_end_ids == Trace.load(tmp_path / "again.cutaway").more_end_ids == run.trace.more_end_ids == {3, 7}
    )
    resumed = Generation.resume(tiny, loaded, max_new_tokens=4)
    assert resumed.end_ids == run.end_ids == {3, 7, eos}
    for id in (3, 7, eos):
        for source in (run, resumed):
            branch = source.branch(0, token=id)
            list(branch)
            assert branch.trace.finish_reason == "eos" and branch.trace.more_end_ids == {3, 7}


def test_end_tokens_of_the_configuration_are_not_said_twice(tiny: Model, tmp_path: Path) -> None:
    run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=1, end_ids=tiny.config.eos_ids)
    list(run)
    run.trace.save(tmp_path / "x.cutaway")
    assert "end_tokens" not in read(tmp_path / "x.cutaway")[1]
    assert Trace.load(tmp_path / "x.cutaway").more_end_ids == frozenset()


# The tables


def test_what_the_weights_say_is_there_without_them(run: Generation, saved: Path) -> None:
    live, loaded = run.trace, Trace.load(saved)
    assert live.has_weights and live.tables is None
    assert not loaded.has_weights and loaded.tables is not None
    for start, stop, layers in ((0, T, None), (3, 9, 2), (T - 1, T, None)):
        one, other = lens_table(live, start, stop, layers), lens_table(loaded, start, stop, layers)
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_array_equal(one.rank, other.rank)
        for name in ("probabilities", "entropy", "probability"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(
            attribution(live, start, stop), attribution(loaded, start, stop), rtol=1e-4, atol=1e-5
        )
        np.testing.assert_array_equal(residual_norms(live, start, stop), residual_norms(loaded, start, stop))
        for layer in range(3):
            for function in (attention_output, mlp_output):
                found = function(loaded, layer, start, stop)
                np.testing.assert_allclose(function(live, layer, start, stop), found, atol=1e-5)
    for start, stop in ((0, P + G), (0, 1), (2, 5), (4, 9), (P, P + 1), (P + 2, P + G), (3, 3)):
        bits = surprisal(live, run.model.decoder, start, stop)
        np.testing.assert_allclose(surprisal(loaded, None, start, stop), bits, rtol=1e-4, atol=1e-5)


def test_tables_of_a_text_of_several_windows(tiny: Model, tmp_path: Path) -> None:
    run = record(tiny, "default", prompt=([3, 50, 7, 20] * 12)[:40], count=9)
    run.trace.save(tmp_path / "x.cutaway")
    tensors, _ = read(tmp_path / "x.cutaway")
    table = lens_table(run.trace, 0, 48)
    np.testing.assert_array_equal(tensors["lens_ids"], table.ids)
    np.testing.assert_array_equal(tensors["lens_rank"], table.rank)
    np.testing.assert_allclose(tensors["attribution"], attribution(run.trace, 0, 48), rtol=1e-3, atol=1e-4)
    assert np.isnan(tensors["prompt_surprisal"][0]) and np.isfinite(tensors["prompt_surprisal"][1:]).all()


def test_recordings_without_tables(altered: Callable[..., Path], tmp_path: Path) -> None:
    """As they were written before there were any; saving one again makes none up."""
    loaded = Trace.load(altered(tensors=dict.fromkeys(NAMES)))
    assert usable(loaded) and loaded.tables is None
    for question in (lens_table, attribution):
        with pytest.raises(CutawayError, match="needs the weights of gpt2_base; the recording has no tables"):
            question(loaded, 0, 3)
    loaded.save(tmp_path / "again.cutaway")
    assert not set(NAMES) & read(tmp_path / "again.cutaway")[0].keys()


def test_tables_of_damaged_weights_are_left_out(tiny: Model, tmp_path: Path) -> None:
    """What is not finite says nothing, and the rest of the recording is still worth having."""
    run = record(tiny, "default")
    decoder = run.model.decoder
    head = decoder.head.copy()
    head[5] = np.inf
    broken = Decoder(decoder.embedding, decoder.blocks, decoder.final_norm, head)
    trace = replace(run.trace, model=replace(run.trace.model, decoder=broken))
    with np.errstate(invalid="raise", over="raise"):
        trace.save(tmp_path / "x.cutaway")
    loaded = Trace.load(tmp_path / "x.cutaway")
    assert usable(loaded) and loaded.tables is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [-1.5, 97, 2**40, np.nan, np.inf, -np.inf])
def test_tables_that_do_not_fit(name: str, value: float, saved: Path, altered: Callable[..., Path]) -> None:
    array = read(saved)[0][name].copy()
    if array.dtype == np.int64 and not np.isfinite(value):
        return
    array[..., -1] = value
    fits = {"lens_entropy": value > 0, "prompt_surprisal": value > 0, "attribution": True, "attention_output": True}
    if np.isfinite(value) and fits.get(name, False):
        assert usable(Trace.load(altered(tensors={name: array})))
        return
    with pytest.raises(RecordingError, match=f"damaged: the tensor {name} cannot hold ") as caught:
        Trace.load(altered(tensors={name: array}))
    assert "\n" not in str(caught.value)


def test_tensors_that_nobody_knows_are_not_read(saved: Path, altered: Callable[..., Path]) -> None:
    """Neither their type nor their size matters."""
    path = altered(tensors={"from_the_future": np.zeros((3, 2), np.float16), "nothing": np.zeros((0, 7), np.int8)})
    assert usable(Trace.load(path))


# Writing


def test_an_existing_file(run: Generation, saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.cutaway"
    path.write_text("mine")
    with pytest.raises(WriteError, match="already there"):
        run.trace.save(path, overwrite=False)
    assert path.read_text() == "mine"
    run.trace.save(path)
    assert read(path)[1] == read(saved)[1]
    assert [each.name for each in tmp_path.iterdir()] == ["x.cutaway"]


def test_a_full_disk(run: Generation, tmp_path: Path) -> None:
    """A real refusal by the system, half-way through the file."""
    limits = pytest.importorskip("resource")
    path = tmp_path / "x.cutaway"
    path.write_text("mine")
    before = limits.getrlimit(limits.RLIMIT_FSIZE)
    limits.setrlimit(limits.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(WriteError, match="could not be written"):
            run.trace.save(path)
    finally:
        limits.setrlimit(limits.RLIMIT_FSIZE, before)
    assert path.read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["x.cutaway"]


def test_names_and_prompts_that_are_not_unicode(tiny: Model, tmp_path: Path) -> None:
    run = Generation(tiny, PROMPT, LIVELY, max_new_tokens=1, prompt="a\udc80b\ud800")
    list(run)
    run.trace.save(tmp_path / "x.cutaway")
    assert Trace.load(tmp_path / "x.cutaway").prompt == "a\ufffdb\ufffd"
