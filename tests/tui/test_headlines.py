"""The first two lines: what is open, how it goes, and which stage of the pass was reached last."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.events import Event, Finished, TokenChosen
from cutaway.core.models.model import Model
from cutaway.tui.cursor import Cursor
from cutaway.tui.headlines import stages_view, title_view
from cutaway.tui.moment import Moment


@pytest.fixture(scope="module")
def run(fable: Model) -> Generation:
    generation = Generation(fable, [610, 573], SamplingConfig(seed=1), max_new_tokens=3, ignore_eos=True)
    assert list(generation)
    return generation


def title(run: Generation, steps: int, cursor: Cursor | None = None, running: bool = False, speed: float = 8.0) -> str:
    view = title_view(run, Moment(run.trace, steps), cursor or Cursor(), running, speed)
    return " ".join(part.text for part in (*view.left, *view.right))


def test_what_is_open(run: Generation) -> None:
    assert title(run, 0).startswith("cutaway fable · a tiny story model · GPT-2 4 layers × 8 heads × 256 ")
    nothing_yet = title_view(None, None, Cursor(), True, 8.0)
    assert [part.text for part in nothing_yet.left] == ["cutaway"] and not nothing_yet.right


def test_only_the_embedded_model_is_called_tiny(tiny: Path) -> None:
    generation = Generation(load_model(tiny), [1], max_new_tokens=1)
    assert "gpt2_base · GPT-2" in title(generation, 0)


def test_a_model_may_have_any_name(run: Generation, fable: Model) -> None:
    twin = Generation(replace(fable, name="\x1b[2J\u202e[red]"), [610], max_new_tokens=1)
    assert "␛[2J⟨U+202E⟩[red]" in title(twin, 0)


def test_how_it_goes(run: Generation) -> None:
    assert "3 tokens to write" in title(run, 0) and "first" not in title(run, 0)
    assert "token 0 of 3" in title(run, 1) and "first" in title(run, 1) and "then" not in title(run, 1)
    assert "token 1 of 3" in title(run, 2) and "then" in title(run, 2)
    assert "▶ 8/s" in title(run, 2, running=True) and "▶ 0.5/s" in title(run, 2, running=True, speed=0.5)
    assert "▶ as fast as it goes" in title(run, 2, running=True, speed=math.inf)
    assert "‖ paused" in title(run, 2)
    assert "■ end" in title(run, 3)
    assert "back at token 1 of 3" in title(run, 3, Cursor(1))


def test_the_time_to_the_first_token_and_the_rate_after_it(run: Generation) -> None:
    seconds = [step.seconds for step in run.trace.steps]
    assert f"first {seconds[0] * 1000:4.0f} ms" in title(run, 3)
    assert f"then {2 / sum(seconds[1:]):4.0f}/s" in title(run, 3)


SAMPLING = SamplingConfig(temperature=0.8, top_k=40)


def test_stages_light_up_in_order(fable: Model) -> None:
    generation = Generation(fable, [610, 573], SamplingConfig(seed=1), max_new_tokens=2, ignore_eos=True)
    seen: list[str] = []
    previous: Event | None = None
    for event in generation:
        if isinstance(event, Finished):
            break
        view = stages_view(fable, SAMPLING, event, looking_back=False)
        name = view.names[view.current]
        if isinstance(previous, TokenChosen):
            assert name == "embed"
            assert list(dict.fromkeys(seen)) == list(view.names)
            seen = ["tokenize"]
        seen.append(name)
        previous = event
    assert list(dict.fromkeys(seen)) == list(stages_view(fable, SAMPLING, None, looking_back=True).names)


def test_all_stages_are_done_at_an_older_moment(fable: Model) -> None:
    assert stages_view(fable, SAMPLING, None, looking_back=False).current == -1
    view = stages_view(fable, SAMPLING, None, looking_back=True)
    assert view.current == len(view.names) - 1
    assert [view.names[layer] for layer in view.layers] == ["L0", "L1", "L2", "L3"]
