"""What a run says: in the fixed order, with the shapes its events promise, and never changed afterwards."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, SamplingConfig
from cutaway.core import events as vocabulary
from cutaway.core.edits import AblateHead, AblateMlp, Edit, ForceToken
from cutaway.core.events import (
    AttentionDone,
    BlockDone,
    ChatRendered,
    Embedded,
    Event,
    Finished,
    LogitsReady,
    MlpDone,
    Normalized,
    SamplingStage,
    TokenChosen,
    Tokenized,
)
from cutaway.core.models.model import Model
from cutaway.core.sampling import STAGES

LETTERS: dict[type[Event], str] = {
    ChatRendered: "C",
    Tokenized: "T",
    Embedded: "E",
    AttentionDone: "A",
    MlpDone: "M",
    BlockDone: "B",
    Normalized: "N",
    LogitsReady: "L",
    SamplingStage: "S",
    TokenChosen: "X",
    Finished: "F",
}
PROMPT = [5, 43, 52, 43, 15, 11]
LIVELY = SamplingConfig(temperature=0.9, top_k=30, top_p=0.95, min_p=0.01, repetition_penalty=1.1, seed=4)
GREEDY = SamplingConfig(greedy=True)


def spelled(events: list[Event]) -> str:
    return "".join(LETTERS[type(event)] for event in events)


def grammar(layers: int) -> str:
    """The order of a run's events as a regular expression over their letters."""
    return rf"C?T(E(AMB){{{layers}}}NLS{{7}}X)+"


def assert_well_formed(events: list[Event], layers: int) -> None:
    """The order, the numbers of the layers, the names of the stages."""
    assert re.fullmatch(grammar(layers) + "F?", spelled(events))
    for kind in (AttentionDone, MlpDone, BlockDone):
        numbers = [event.layer for event in events if isinstance(event, kind)]
        assert numbers == list(range(layers)) * (len(numbers) // layers)
    names = [event.name for event in events if isinstance(event, SamplingStage)]
    assert names == list(STAGES) * (len(names) // 7)


def arrays(event: Event) -> Iterator[tuple[str, NDArray[Any]]]:
    for name in event.told():
        value = getattr(event, name)
        if isinstance(value, np.ndarray):
            yield name, value


def fingerprint(event: Event) -> str:
    digest = hashlib.sha256()
    for name in event.told():
        value = getattr(event, name)
        digest.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return digest.hexdigest()


# The order


def test_names_and_fields_are_those_of_the_contract() -> None:
    said = {
        Tokenized: "ids pieces",
        Embedded: "positions token position sum",
        AttentionDone: "layer query key value pattern output",
        MlpDone: "layer hidden output",
        BlockDone: "layer residual",
        Normalized: "hidden",
        LogitsReady: "logits",
        SamplingStage: "name active values kept",
        TokenChosen: "id probability raw_logprob uniform forced",
        Finished: "reason",
    }
    for kind, names in said.items():
        assert getattr(vocabulary, kind.__name__) is kind
        assert kind.__match_args__[: len(names.split())] == tuple(names.split())
    assert ChatRendered.__match_args__ == ("text",)


@pytest.mark.parametrize("capture", ["default", "all"])
def test_a_run_that_is_as_long_as_asked_for(capture: Any, fable: Model, story: list[int]) -> None:
    run = Generation(fable, story, LIVELY, max_new_tokens=5, ignore_eos=True, capture=capture)
    events = list(run)
    assert_well_formed(events, fable.config.layers)
    assert isinstance(events[-1], Finished) and events[-1].reason == "length"
    assert spelled(events).count("X") == 5


def test_a_run_that_ends_its_text(tiny: Model) -> None:
    edits = [ForceToken(step, id) for step, id in enumerate([7, 8, 0])]
    run = Generation(tiny, PROMPT, edits=edits, max_new_tokens=9)
    events = list(run)
    assert_well_formed(events, tiny.config.layers)
    assert isinstance(events[-1], Finished) and events[-1].reason == "eos"
    assert run.trace.token_ids[-1] == 0  # the end token belongs to the text


def test_a_run_that_fills_its_context(short: Model) -> None:
    events = list(Generation(short, PROMPT, LIVELY, ignore_eos=True))
    assert_well_formed(events, short.config.layers)
    assert isinstance(events[-1], Finished) and events[-1].reason == "context"


@pytest.mark.parametrize(
    ("ends_text", "count", "reason"), [(True, 11, "eos"), (False, 11, "context"), (False, 10, "length")]
)
def test_the_first_reason_that_applies(ends_text: bool, count: int, reason: str, short: Model) -> None:
    """The 11th token after 6 fills the context, is the last one asked for, and may be an end token as well."""
    edits = [ForceToken(step, 0 if ends_text and step == 10 else 7) for step in range(count)]
    events = list(Generation(short, PROMPT, max_new_tokens=count, edits=edits))
    assert spelled(events).count("X") == count
    assert isinstance(events[-1], Finished) and events[-1].reason == reason


def test_a_chat_comes_first(tiny: Model) -> None:
    events = list(Generation(tiny, PROMPT, max_new_tokens=1, ignore_eos=True, chat="<user>hi<end>"))
    assert_well_formed(events, tiny.config.layers)
    assert isinstance(events[0], ChatRendered) and events[0].text == "<user>hi<end>"


def test_a_prompt_as_the_model_reads_it(fable: Model, story: list[int]) -> None:
    event = next(Generation(fable, [4095, *story], added=[0]))
    assert isinstance(event, Tokenized)
    assert event.ids == (4095, *story)
    assert event.pieces[:3] == (b"<|endoftext|>", b"Once", b" upon")
    assert b"".join(event.pieces[1:]) == b"Once upon a time, there was a little fox who"
    assert event.added == (0,)


def test_a_model_without_a_tokenizer_has_empty_pieces(tiny: Model) -> None:
    event = next(Generation(tiny, PROMPT))
    assert isinstance(event, Tokenized)
    assert event.pieces == (b"",) * 6


def test_closing_anywhere_gives_no_end(tiny: Model) -> None:
    whole = list(Generation(tiny, PROMPT, GREEDY, max_new_tokens=2, ignore_eos=True))
    for pulled in range(len(whole)):
        run = Generation(tiny, PROMPT, GREEDY, max_new_tokens=2, ignore_eos=True)
        events = [next(run) for _ in range(pulled)]
        run.close()
        assert spelled(events) == spelled(whole)[:pulled]
        assert list(run) == []


# What the events hold


@pytest.mark.parametrize("capture", ["default", "all"])
@pytest.mark.parametrize("name", ["fable", "tiny"])
def test_shapes_and_types(name: str, capture: Any, request: pytest.FixtureRequest, story: list[int]) -> None:
    model: Model = request.getfixturevalue(name)
    c = model.config
    prompt = story if name == "fable" else PROMPT
    H, d, D, F, V = c.heads, c.head_size, c.width, c.mlp_width, c.vocabulary
    T = n = 0
    for event in Generation(model, prompt, LIVELY, max_new_tokens=3, ignore_eos=True, capture=capture):
        shapes: dict[str, tuple[int, ...]] = {}
        match event:
            case Embedded():
                n = 1 if T else len(prompt)
                assert event.positions.tolist() == list(range(T, T + n))
                T += n
                shapes = {"positions": (n,), "token": (n, D), "position": (n, D), "sum": (n, D)}
            case AttentionDone():
                assert c.kv_heads == H
                shapes = dict.fromkeys(("query", "key", "value"), (H, n, d)) | {"pattern": (H, n, T), "output": (n, D)}
            case MlpDone():
                shapes = {"hidden": (n, F), "output": (n, D)}
            case BlockDone():
                shapes = {"residual": (n, D)}
            case Normalized():
                shapes = {"hidden": (n, D)}
            case LogitsReady():
                shapes = {"logits": (n if capture == "all" else 1, V)}
            case SamplingStage():
                shapes = {"values": (V,), "kept": (V,)}
            case TokenChosen():
                assert 0 <= event.id < V and 0 < event.probability <= 1
                assert event.raw_logprob <= 0 and 0 <= event.uniform < 1
                assert event.forced is False
        types = {"positions": np.int64, "values": np.float64, "kept": np.bool_}
        found = dict(arrays(event))
        assert {name: array.shape for name, array in found.items()} == shapes
        assert {name: array.dtype for name, array in found.items()} == {
            name: np.dtype(types.get(name, np.float32)) for name in shapes
        }


@pytest.mark.parametrize(
    ("capture", "edits"), [("default", ()), ("all", ()), ("all", (AblateHead(1, 2), AblateMlp(0), ForceToken(1, 7)))]
)
def test_events_never_change_after_they_were_given(capture: Any, edits: tuple[Edit, ...], tiny: Model) -> None:
    held = []
    for event in Generation(tiny, PROMPT, LIVELY, max_new_tokens=40, ignore_eos=True, capture=capture, edits=edits):
        held.append((event, fingerprint(event)))
    assert len(held) > 40 * 18
    assert all(fingerprint(event) == before for event, before in held)


def test_events_never_change_when_branches_run(fable: Model, story: list[int]) -> None:
    run = Generation(fable, story, LIVELY, max_new_tokens=8, ignore_eos=True, capture="all")
    held = [(event, fingerprint(event)) for event in run]
    for step in (0, 3, 7):
        list(run.branch(step, token=9))
    assert all(fingerprint(event) == before for event, before in held)


@pytest.mark.parametrize("capture", ["default", "all"])
def test_arrays_cannot_be_written_to(capture: Any, tiny: Model) -> None:
    run = Generation(
        tiny, PROMPT, LIVELY, max_new_tokens=2, ignore_eos=True, capture=capture, edits=[AblateHead(0, 0), AblateMlp(1)]
    )
    for event in run:
        for _, array in arrays(event):
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_events_are_frozen(tiny: Model) -> None:
    for event in Generation(tiny, PROMPT, LIVELY, max_new_tokens=1):
        name = fields(event)[0].name
        with pytest.raises(FrozenInstanceError):
            setattr(event, name, None)
        with pytest.raises((AttributeError, TypeError)):
            event.more = 1  # type: ignore[attr-defined]


def test_every_block_adds_up(fable: Model, story: list[int]) -> None:
    residual: Any = None
    for event in Generation(fable, story, LIVELY, max_new_tokens=3):
        match event:
            case Embedded():
                assert event.position is not None
                np.testing.assert_array_equal(event.token + event.position, event.sum)
                residual = event.sum
            case AttentionDone() | MlpDone():
                residual = residual + event.output
            case BlockDone():
                np.testing.assert_array_equal(event.residual, residual)
