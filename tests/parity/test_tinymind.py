"""tinymind against the program it comes from: weights bit for bit, every intermediate, the draw, the text."""

from __future__ import annotations

import hashlib
import json
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from cutaway.core import Generation, ModelError, SamplingConfig, load_model
from cutaway.core.attention_stages import attention_maps, attention_mix, layer_outputs
from cutaway.core.attribution import attribution
from cutaway.core.checkpoint.locate import locate
from cutaway.core.edits import AblateHead, AblateMlp
from cutaway.core.events import AttentionDone, BlockDone, Embedded, Event, LogitsReady, MlpDone, Normalized
from cutaway.core.models import open_model
from cutaway.core.models.model import Model
from cutaway.core.models.tinymind import generator, made_weights, sinusoids

HERE = Path(__file__).resolve()
COMMITTED = HERE.parents[1] / "data" / "tinymind"
BESIDE = HERE.parents[2].parent / "shared" / "fixtures" / "tinymind"
REFERENCE: dict[str, Any] = json.loads((COMMITTED / "reference.json").read_text("utf-8"))
ATOL = REFERENCE["tolerance"]["float32"]
PROMPTS = [forward["prompt"] for forward in REFERENCE["forward"]]


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("tinymind")


def close(found: NDArray[np.float32], expected: Any) -> None:
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.array(expected), rtol=0, atol=ATOL)


def test_the_committed_copies_are_the_references() -> None:
    if not BESIDE.is_dir():
        pytest.skip("there are no references beside this checkout")
    for file in COMMITTED.iterdir():
        assert file.read_bytes() == (BESIDE / file.name).read_bytes()


# The weights


def test_the_generator() -> None:
    first = REFERENCE["rng_first"]
    assert list(islice(generator(42), len(first))) == [each["value"] for each in first]
    assert list(islice(generator(7), 5)) == REFERENCE["rng_other_seed"]["first5"]
    exact = (((42 * 1103515245 + 12345) & 0x7FFFFFFF) * 1103515245 + 12345 & 0x7FFFFFFF) / 0x7FFFFFFF
    assert list(islice(generator(42), 2))[1] != exact  # a generator of whole numbers would not do


def test_the_weights_bit_for_bit() -> None:
    made = made_weights()
    assert list(made) == REFERENCE["about"]["order_of_creation"]
    with np.load(COMMITTED / "weights.npz") as weights:
        for name, array in made.items():
            assert array.dtype == np.float64 and array.tobytes() == weights[name].tobytes()
            digest = hashlib.sha256(array.astype("<f8").tobytes()).hexdigest()
            assert digest == REFERENCE["weights"][name]["sha256_float64_le_row_major"]


def test_the_model_has_them_as_float32(model: Model) -> None:
    made, (name, opened) = made_weights(), open_model("tinymind")
    assert name == model.name == "tinymind" and list(opened.weights) == list(made)
    for matrix, array in made.items():
        np.testing.assert_array_equal(opened.weights[matrix], array.astype(np.float32))
    assert model.digest == hashlib.sha256(b"".join(array.tobytes() for array in made.values())).hexdigest()
    assert sum(array.size for array in made.values()) == 4032


def test_positions() -> None:
    close(sinusoids(12), REFERENCE["positional"])


# Tokens


@pytest.mark.parametrize("case", REFERENCE["tokenize"], ids=lambda case: ascii(case["text"]))
def test_tokens(case: dict[str, Any], model: Model) -> None:
    assert model.tokenizer.encode(case["text"]) == case["ids"]
    assert model.tokenizer.decode(case["ids"]) == case["back"]


@pytest.mark.parametrize("case", REFERENCE["detokenize"], ids=lambda case: str(case["ids"]))
def test_text(case: dict[str, Any], model: Model) -> None:
    assert model.tokenizer.decode(case["ids"]) == case["text"]


# The pass


@pytest.mark.parametrize("case", REFERENCE["forward"], ids=PROMPTS)
def test_every_intermediate(case: dict[str, Any], model: Model) -> None:
    run = Generation(model, case["ids"], SamplingConfig(greedy=True), max_new_tokens=1, capture="all")
    told: dict[type[Event], Any] = {type(event): event for event in run}
    assert Normalized not in told
    embedded, attention, mlp = told[Embedded], told[AttentionDone], told[MlpDone]
    close(embedded.sum, case["input_embedding_plus_pe"])
    close(embedded.position, sinusoids(len(case["ids"])))
    close(attention.query[0], case["Q"])
    close(attention.key[0], case["K"])
    close(attention.value[0], case["V"])
    weights = np.zeros((len(case["ids"]),) * 2)
    for row, values in enumerate(case["attention"]):
        weights[row, : len(values)] = values
    close(attention.pattern[0], weights)
    close(attention_maps(run.trace, 0)[0], weights)
    close(attention_mix(run.trace, 0, 0, 0, len(weights)), case["context"])
    close(attention.output, case["attn_out"])
    close(model.decoder.blocks[0].after_attention(embedded.sum, attention.output), case["after_attn"])
    close(mlp.hidden, case["ffn_hidden"])
    close(mlp.output, case["ffn_out"])
    close(told[BlockDone].residual, case["block_out"])
    close(told[LogitsReady].logits, case["logits"])
    attended, worked = layer_outputs(run.trace, 0, 0, len(weights))
    close(attended, case["attn_out"])
    close(worked, case["ffn_out"])


def test_a_constant_row_has_no_variance_and_becomes_0(model: Model) -> None:
    row = np.full((1, 16), 3.0, np.float32)
    close(model.decoder.blocks[0].attention_norm(row)[0], REFERENCE["layernorm_constant_row"])


@pytest.mark.parametrize("case", REFERENCE["greedy"], ids=PROMPTS)
def test_greedy_text_and_every_cached_step(case: dict[str, Any], model: Model) -> None:
    ids, count = model.tokenizer.encode(case["prompt"]), len(case["new_ids"])
    run = Generation(model, ids, SamplingConfig(greedy=True), max_new_tokens=count)
    list(run)
    assert [step.id for step in run.trace.steps] == case["new_ids"]
    assert run.trace.text == case["text"]


CASES = [case for case in REFERENCE["sampler"] if "quirk" not in case and case["top_p"] > 0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.get('prompt')}-{case['temperature']}")
def test_the_draw(case: dict[str, Any], model: Model) -> None:
    sampling = SamplingConfig(case["temperature"], case["top_k"], case["top_p"])
    logits = np.array(case["logits"])
    if "prompt" in case:
        ids = model.tokenizer.encode(case["prompt"])
        run = Generation(model, ids, sampling, max_new_tokens=1)
        (scores,) = (event.logits[0] for event in run if isinstance(event, LogitsReady))
        close(scores, logits)
    final = sampling.distribution(logits, [])
    np.testing.assert_allclose(final, case["final"], rtol=0, atol=1e-12)
    for uniform, id in case["picks"].items():
        assert np.flatnonzero(np.cumsum(final) > float(uniform))[0] == id


# The family's own


def test_edits(model: Model) -> None:
    ids = model.tokenizer.encode("hello")
    for edit, silent in ((AblateHead(0, 0), AttentionDone), (AblateMlp(0), MlpDone)):
        run = Generation(model, ids, SamplingConfig(greedy=True), max_new_tokens=3, edits=[edit], capture="all")
        outputs = [event.output for event in run if isinstance(event, (AttentionDone, MlpDone))]
        assert [bool((output == 0).all()) for output in outputs] == [silent is AttentionDone, silent is MlpDone] * 3
        parts = attribution(run.trace, 0, run.trace.positions)
        assert (parts[1 if silent is AttentionDone else 2] == 0).all()
        scores = run.trace.cache.rows.logits[np.arange(len(parts[0])), run.trace.token_ids[1:]]
        np.testing.assert_allclose(parts.sum(0), scores, atol=1e-5)


def test_weights_in_the_folder_are_taken_instead(tmp_path: Path) -> None:
    folder = tmp_path / "trained"
    shutil.copytree(locate("tinymind"), folder)
    trained = {name: array * 2 for name, array in made_weights().items()}
    save_file(trained, folder / "model.safetensors")
    model = load_model(folder)
    np.testing.assert_array_equal(model.decoder.head.T, trained["Wlm"].astype(np.float32))
    save_file({"Wq": trained["Wq"]}, folder / "model.safetensors")
    with pytest.raises(ModelError, match="tensor embedding is missing"):
        load_model(folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickle"):
        load_model(folder)


def test_the_context(model: Model) -> None:
    ids = [0] * 511
    run = Generation(model, ids, SamplingConfig(seed=1), ignore_eos=True)
    list(run)
    assert run.trace.finish_reason == "context" and len(run.trace.steps) == 2
    with pytest.raises(ModelError, match="513 tokens"):
        Generation(model, [0] * 513)
    empty = Generation(model, [], SamplingConfig(seed=1), max_new_tokens=1)
    assert empty.trace.prompt_ids == (29,)
