"""The invariants anyone can check: they hold, and each of them notices when it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, checks
from cutaway.core.checks import Check, check_model
from cutaway.core.events import AttentionDone, BlockDone, Embedded, Event, MlpDone
from cutaway.core.models.attention import Attention
from cutaway.core.models.model import Model
from cutaway.core.models.parts import Embedding

PROMPT = [5, 83, 92, 83, 15, 11]
CLAIMS = [
    "every row of attention sums to 1",
    "nothing looks at the future",
    "each block adds attention and MLP to what came in",
    "the recorded queries and keys give the attention again",
    "the last layer's lens is the model's output",
    "cached equals uncached, at every step",
]


def broken(found: list[Check]) -> list[str]:
    return [check.claim for check in found if not check.holds]


def test_they_hold_on_the_embedded_model(fable: Model, story: list[int]) -> None:
    found = list(check_model(fable, story))
    assert [check.claim for check in found] == CLAIMS
    assert not broken(found)
    for check in found:
        assert 0 <= check.deviation <= check.tolerance < 0.01
    assert found[1].deviation == found[1].tolerance == 0


@pytest.mark.parametrize("prompt", [[5], PROMPT, [7] * 64])
def test_they_hold_on_any_model_and_prompt(prompt: list[int], tiny: Model) -> None:
    assert not broken(list(check_model(tiny, prompt, 5)))


def test_they_hold_at_the_end_of_the_context(short: Model) -> None:
    assert not broken(list(check_model(short, [5] * 12, 30)))


# Events that were tampered with


def tampered(model: Model, monkeypatch: pytest.MonkeyPatch, change: Callable[[Event], Event | None]) -> list[Check]:
    """The checks of a run in which *change* replaces events."""

    class Tampered(Generation):
        def __next__(self) -> Event:
            event = super().__next__()
            return change(event) or event

    monkeypatch.setattr(checks, "Generation", Tampered)
    return list(check_model(model, PROMPT, 4))


def spoiled(array: NDArray[Any], *index: int, by: float) -> NDArray[Any]:
    copy = array.copy()
    copy[index] += by
    return copy


@pytest.mark.parametrize("amount", [1e-3, -1e-3, np.nan])
@pytest.mark.parametrize("decode", [False, True])
def test_rows_that_do_not_sum_to_one(amount: float, decode: bool, tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(event: Event) -> Event | None:
        if isinstance(event, AttentionDone) and event.layer == 1 and (event.pattern.shape[1] == 1) == decode:
            return replace(event, pattern=spoiled(event.pattern, 2, -1, 0, by=amount))
        return None

    found = broken(tampered(tiny, monkeypatch, change))
    assert CLAIMS[0] in found
    assert (CLAIMS[3] in found) == (not decode)  # what the prompt's queries and keys give is another pattern


@pytest.mark.parametrize("amount", [1e-6, -1e-6, np.nan])
def test_a_look_at_the_future(amount: float, tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(event: Event) -> Event | None:
        if isinstance(event, AttentionDone) and event.layer == 2 and event.pattern.shape[1] > 1:
            return replace(event, pattern=spoiled(event.pattern, 0, 1, 2, by=amount))
        return None

    assert CLAIMS[1] in broken(tampered(tiny, monkeypatch, change))


@pytest.mark.parametrize("kind", [Embedded, AttentionDone, MlpDone, BlockDone])
@pytest.mark.parametrize("amount", [0.1, np.nan])
def test_a_block_that_does_not_add_up(
    amount: float, kind: type[Event], tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = {Embedded: "sum", BlockDone: "residual"}.get(kind, "output")

    def change(event: Event) -> Event | None:
        if isinstance(event, kind) and getattr(event, "layer", 1) == 1:
            return replace(event, **{field: spoiled(getattr(event, field), 0, 3, by=amount)})
        return None

    assert CLAIMS[2] in broken(tampered(tiny, monkeypatch, change))


def test_recorded_queries_that_are_not_those_used(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(Generation):
        def __next__(self) -> Event:
            event = super().__next__()
            if isinstance(event, AttentionDone) and event.layer == 1:
                self.trace.cache.rows.query[1, 0, 3] += 0.1
            return event

    monkeypatch.setattr(checks, "Generation", Forgetful)
    assert CLAIMS[3] in broken(list(check_model(tiny, PROMPT, 4)))


# Models that compute wrongly


@dataclass(frozen=True)
class Doubled:
    """A final norm that does not run the same when it is asked from outside."""

    norm: Any
    width: int

    def __call__(self, x: NDArray[np.float32]) -> Any:
        return self.norm(x) * np.float32(1 if x.ndim == 2 and len(x) != self.width else 1.01)


def test_a_lens_that_is_not_the_output(tiny: Model) -> None:
    wrong = Doubled(tiny.decoder.final_norm, tiny.config.layers)  # the lens asks for as many rows as there are layers
    model = replace(tiny, decoder=replace(tiny.decoder, final_norm=wrong))  # type: ignore[arg-type]
    assert broken(list(check_model(model, PROMPT, 4))) == [CLAIMS[4]]


class Restarting(Embedding):
    """Positions that begin at 0 again at every cached step."""

    def __call__(self, ids: Any, positions: NDArray[np.int64]) -> Any:
        return super().__call__(ids, positions - positions[0])


def test_a_cache_that_forgets_where_it_stands(tiny: Model) -> None:
    embedding = Restarting(tiny.decoder.embedding.token, tiny.decoder.embedding.position)
    model = replace(tiny, decoder=replace(tiny.decoder, embedding=embedding))
    assert broken(list(check_model(model, PROMPT, 4))) == [CLAIMS[5]]


class Seeing(Attention):
    """Attention without its mask."""

    def pattern(self, query: Any, key: Any, start: int) -> Any:
        rows = [super(Seeing, self).pattern(query[:, i : i + 1], key, key.shape[1] - 1) for i in range(query.shape[1])]
        return np.concatenate(rows, axis=1)


def test_attention_without_a_mask(tiny: Model) -> None:
    blocks = tuple(
        replace(block, attention=Seeing(block.attention.project, block.attention.output, block.attention.scale))
        for block in tiny.decoder.blocks
    )
    model = replace(tiny, decoder=replace(tiny.decoder, blocks=blocks))
    assert set(broken(list(check_model(model, PROMPT, 4)))) == {CLAIMS[1], CLAIMS[3], CLAIMS[5]}


def test_not_a_number_does_not_hold() -> None:
    assert Check("x", 0.0, 0.0).holds and Check("x", 1e-6, 1e-5).holds
    assert not Check("x", 2e-5, 1e-5).holds
    assert not Check("x", float("nan"), 1e9).holds
