"""Recordings: what the format says, literally; the round trip; and files that are not what they say."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file

from cutaway.core import CutawayError, Generation, RecordingError, SamplingConfig, Trace, load_model
from cutaway.core.attention_stages import attention_output, mlp_output
from cutaway.core.attribution import attribution
from cutaway.core.edits import AblateHead, AblateMlp, ForceToken
from cutaway.core.events import AttentionDone, BlockDone, Embedded, LogitsReady, MlpDone, Normalized, TokenChosen
from cutaway.core.files import WriteError
from cutaway.core.lens import attention_maps, attention_rows, lens_table, residual_norms, surprisal
from cutaway.core.models.decoder import Decoder
from cutaway.core.models.model import Model
from cutaway.core.recording.tables import NAMES
from cutaway.core.scores import Candidates

Tensors = dict[str, NDArray[Any]]
Metadata = dict[str, str]

MODEL = Path(__file__).resolve().parents[1] / "data" / "models" / "gpt2_base"
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


@pytest.fixture(scope="module", params=["default", "all"])
def run(request: pytest.FixtureRequest, tiny: Model) -> Generation:
    return record(tiny, request.param)


@pytest.fixture(scope="module")
def saved(run: Generation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / f"{run.trace.capture}.cutaway"
    run.trace.save(path)
    return path


def write_tensors(path: Path, tensors: dict[str, Any], metadata: dict[str, str]) -> None:
    """Write *tensors* as anyone could."""
    save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, path, metadata)


@pytest.fixture
def altered(saved: Path, tmp_path: Path) -> Callable[..., Path]:
    """A function that writes the recording again, some of its metadata or tensors replaced, or (None) left out."""

    def write(metadata: dict[str, str | None] | None = None, tensors: dict[str, Any] | None = None) -> Path:
        kept_tensors, kept_metadata = read(saved)
        kept_tensors |= tensors or {}
        texts = {**kept_metadata, **(metadata or {})}
        path = tmp_path / "altered.cutaway"
        write_tensors(
            path,
            {name: array for name, array in kept_tensors.items() if array is not None},
            {name: text for name, text in texts.items() if text is not None},
        )
        return path

    return write


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
    with pytest.raises(RecordingError, match="damaged: its tables do not fit") as caught:
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


# Reading what is damaged, or was never a recording


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
    with pytest.raises(RecordingError):
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


def test_flipped_bytes_of_the_header(saved: Path, tmp_path: Path) -> None:
    """Whatever is changed, it is refused in one sentence or a trace that can be looked at."""
    data, path = saved.read_bytes(), tmp_path / "x.cutaway"
    header = 8 + int.from_bytes(data[:8], "little")
    dice = random.Random(7)
    outcomes = {True: 0, False: 0}
    for _ in range(600):
        flipped = bytearray(data)
        for _ in range(dice.choice((1, 1, 2, 4))):
            flipped[dice.randrange(header)] = dice.choice((dice.randrange(256), *b'0179-e."[]{},:tn'))
        path.write_bytes(flipped)
        try:
            outcomes[usable(Trace.load(path))] += 1
        except RecordingError as error:
            assert "\n" not in str(error).replace(str(path), "")
            outcomes[False] += 1
    assert outcomes[True] > 10 and outcomes[False] > 200


@pytest.mark.parametrize(
    "key", ["config", "prompt", "sampling", "prompt_length", "finish_reason", "timings", "edits", "model"]
)
def test_metadata_that_is_missing(key: str, altered: Callable[..., Path]) -> None:
    with pytest.raises(RecordingError, match="damaged"):
        Trace.load(altered({key: None}))


HOSTILE = ["", "{", "nonsense", "null", "7", '"text"', "[7]", "[null]", "[[]]", '[{"step": {}}]', "[Infinity]", "[NaN]"]
HOSTILE += ["[1e999]", '[{"kind": "force_token", "step": Infinity, "id": 1}]']
HOSTILE += ["[" * 100_000, "[" + "9" * 5000 + "]"]


@pytest.mark.parametrize("key", ["config", "sampling", "timings", "edits", "prompt_added"])
def test_metadata_of_other_kinds(key: str, altered: Callable[..., Path]) -> None:
    for text in HOSTILE:
        with pytest.raises(RecordingError) as caught:
            Trace.load(altered({key: text}))
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "text", ["", "-1", "0", "13", "14", "9" * 20, "6.5", "six", "NaN", pytest.param("9" * 5000, id="long")]
)
def test_prompts_of_an_impossible_length(text: str, altered: Callable[..., Path]) -> None:
    with pytest.raises(RecordingError):
        Trace.load(altered({"prompt_length": text}))


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
    with pytest.raises(RecordingError, match="token ids"):
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
