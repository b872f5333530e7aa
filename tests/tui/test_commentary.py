"""What is said of each stage: every number in it is one that the engine's events give too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cutaway.core import Generation, SamplingConfig, Trace, load_model
from cutaway.core.edits import AblateHead, AblateMlp, Edit, ForceToken
from cutaway.core.events import (
    AttentionDone,
    BlockDone,
    Embedded,
    Event,
    LogitsReady,
    MlpDone,
    SamplingStage,
    TokenChosen,
)
from cutaway.tui.commentary import comment
from cutaway.tui.cursor import Cursor
from cutaway.tui.moment import Moment
from cutaway.tui.stages import Place
from cutaway.widgets.drawable import cell_width
from cutaway.widgets.numbers import percent

TINY = str(Path(__file__).resolve().parents[1] / "data" / "models" / "gpt2_base")
PROMPTS = {"fable": [610, 573, 258, 440, 11, 421, 293, 258, 401, 1486, 520], TINY: [5, 83, 92, 83, 15, 11]}

EVERYTHING = SamplingConfig(temperature=0.8, top_k=12, top_p=0.9, min_p=0.05, repetition_penalty=1.2, seed=3)
NOTHING = SamplingConfig(seed=4)
GREEDY = SamplingConfig(greedy=True, repetition_penalty=1.1)
STEPS = 5
HEAD = 2
ROOM = 78
"""Columns of the line on a terminal of 80."""

Vectors = NDArray[np.float32]


@dataclass
class Pass:
    """What the events of one pass said."""

    embedded: Embedded | None = None
    attention: list[AttentionDone] = field(default_factory=list)
    mlp: list[Vectors] = field(default_factory=list)
    residual: list[Vectors] = field(default_factory=list)
    logits: Vectors | None = None
    stages: dict[str, SamplingStage] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        match event:
            case Embedded():
                self.embedded = event
            case AttentionDone():
                self.attention.append(event)
            case MlpDone():
                self.mlp.append(event.output)
            case BlockDone():
                self.residual.append(event.residual)
            case LogitsReady():
                self.logits = event.logits[-1]
            case SamplingStage(name=name):
                self.stages[name] = event


@dataclass
class Run:
    trace: Trace
    passes: list[Pass]

    def keys(self, step: int, layer: int) -> Vectors:
        """Every key of the head that is looked at, up to the end of the pass [T, d]."""
        return np.concatenate([each.attention[layer].key[HEAD] for each in self.passes[: step + 1]])

    def values(self, step: int, layer: int) -> Vectors:
        return np.concatenate([each.attention[layer].value[HEAD] for each in self.passes[: step + 1]])


def a_generation(model: str, settings: SamplingConfig, edits: tuple[Edit, ...] = ()) -> Generation:
    return Generation(load_model(model), PROMPTS[model], settings, max_new_tokens=STEPS, ignore_eos=True, edits=edits)


@cache
def a_run(model: str, settings: SamplingConfig, edits: tuple[Edit, ...] = ()) -> Run:
    generation, passes = a_generation(model, settings, edits), [Pass()]
    for event in generation:
        passes[-1].hear(event)
        if isinstance(event, TokenChosen):
            passes.append(Pass())
    return Run(generation.trace, passes[:-1])


def length(vector: Vectors) -> float:
    return float(np.linalg.norm(vector.astype(np.float64)))


def softmax(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    weights = np.exp(scores.astype(np.float64) - scores.max())
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def shares_of(stage: SamplingStage) -> NDArray[np.float64]:
    return stage.values if stage.name == "final" else softmax(stage.values)


def tokens_in(sentence: str) -> list[str]:
    """The tokens that a sentence names."""
    return re.findall("‹(.*?)›", sentence)


def numbers_in(sentence: str) -> list[str]:
    """The numbers in a sentence, the tokens in it and names like top-k left out."""
    return re.findall(r"<?-?\d+(?:,\d{3})*(?:\.\d+)?", re.sub("‹.*?›", "", sentence).replace("−", "-"))


@dataclass
class Said:
    """Tokens and numbers that a sentence must hold, in its order."""

    tokens: list[str]
    numbers: list[str]


def expected(run: Run, moment: Moment, step: int, name: str, layer: int | None) -> Said:
    """What the sentence of a stage must say, from the events of its pass."""
    now, config = run.passes[step], run.trace.model.config
    position = len(run.trace.prompt_ids) + step - 1
    T, token = position + 1, moment.label(position)
    match name:
        case "tokens":
            ids = run.trace.prompt_ids
            return Said([moment.label(0)], [str(len(ids)), f"{ids[0]:,}", f"{config.vocabulary:,}"])
        case "embedding":
            assert now.embedded is not None
            return Said([token], [str(position), str(config.width), f"{length(now.embedded.sum[-1]):.2f}"])
        case "norm":
            last = now.residual[-1][-1]
            return Said([token], [f"{last.mean():.3f}", f"{last.std():.3f}"])
        case "logits":
            assert now.logits is not None
            best = int(now.logits.argmax())
            return Said([moment.name(best)], [f"{config.vocabulary:,}", f"{now.logits[best]:.2f}"])
    if name in now.stages:
        return expected_sampling(run, moment, step, name)
    assert layer is not None
    attention = now.attention[layer]
    weights = attention.pattern[HEAD, -1]
    match name:
        case "qkv":
            lengths = [length(each[HEAD, -1]) for each in (attention.query, attention.key, attention.value)]
            return Said([token], [str(HEAD), *(f"{each:.2f}" for each in lengths)])
        case "scores":
            scores = run.keys(step, layer) @ attention.query[HEAD, -1] * config.attention_scale(layer)
            best = int(scores.argmax())
            return Said([token, moment.label(best)], [str(T), f"{scores[best]:.2f}"])
        case "mask":
            return Said([], [str(T * (T - 1) // 2), str(T * T)] if step == 0 else [str(T)])
        case "softmax":
            best = int(weights.argmax())
            return Said([token, moment.label(best)], ["1.0000", percent(float(weights[best])).split()[0]])
        case "mix":
            return Said([token], [str(HEAD), f"{length(weights @ run.values(step, layer)):.2f}"])
        case "projection":
            return Said([], [str(config.heads), f"{length(attention.output[-1]):.2f}"])
        case "mlp":
            return Said([], [str(layer), str(config.mlp_width), f"{length(now.mlp[layer][-1]):.2f}"])
    assert name == "residual" and now.embedded is not None
    before = now.residual[layer - 1] if layer else now.embedded.sum
    return Said([token], [str(layer), f"{length(now.residual[layer][-1]):.2f}", f"{length(before[-1]):.2f}"])


def expected_sampling(run: Run, moment: Moment, step: int, name: str) -> Said:
    stages = list(run.passes[step].stages.values())
    at = [stage.name for stage in stages].index(name)
    stage, settings = stages[at], run.trace.settings_at(step)
    shares = shares_of(stage)
    best = int(shares.argmax())
    lead = percent(float(shares[best])).split()[0]
    if name == "raw":
        return Said([moment.name(best)], [lead])
    if name == "final":
        left = np.count_nonzero(shares)
        return Said([moment.name(best)], [f"{left:,}", "100", *([lead] if left > 1 else [])])
    if not stage.active:
        return Said([], [])
    before = stages[at - 1]
    by = f"{getattr(settings, name):g}"
    if name == "repetition_penalty":
        return Said([], [str(len(set(run.trace.previous_ids(step)))), by])
    if name == "temperature":
        was = percent(float(shares_of(before)[best])).split()[0]
        return Said([moment.name(best)], [by, was, lead])
    gone = before.kept & ~stage.kept
    mass = percent(float(shares_of(before)[gone].sum())).split()[0]
    return Said([], [by, f"{np.count_nonzero(gone):,}", mass, f"{np.count_nonzero(stage.kept):,}"])


def close(one: str, other: str) -> bool:
    """Whether two numbers are the same but for a last digit that was rounded the other way."""
    if one == other:
        return True
    digits = len(one.partition(".")[2])
    values = (float(each.strip("<").replace(",", "")) for each in (one, other))
    return digits > 0 and abs(next(values) - next(values)) <= 1.01 * 10**-digits


def check(sentence: str, said: Said) -> None:
    assert tokens_in(sentence) == said.tokens, sentence
    found = numbers_in(sentence)
    assert len(found) == len(said.numbers), (sentence, said.numbers)
    assert all(map(close, found, said.numbers)), (sentence, said.numbers)


def stages_of_a_pass(moment: Moment, step: int) -> Iterator[tuple[Place, str, int | None]]:
    """Every stage of the pass but the draw."""
    for index in range(moment.stages.first(step), moment.stages.last):
        stage = moment.stages.all[index]
        yield Place(step, index), stage.name, stage.layer


@pytest.mark.parametrize("model", PROMPTS, ids=lambda model: Path(model).name)
@pytest.mark.parametrize("settings", [EVERYTHING, NOTHING, GREEDY], ids=["everything", "nothing", "greedy"])
def test_every_number_is_the_engine_s(model: str, settings: SamplingConfig) -> None:
    run = a_run(model, settings)
    moment = Moment(run.trace, STEPS)
    for step in (0, 1, STEPS - 1):
        for place, name, layer in stages_of_a_pass(moment, step):
            sentence = comment(moment, Cursor(head=HEAD), place).text
            check(sentence, expected(run, moment, step, name, layer))


@pytest.mark.parametrize("model", PROMPTS, ids=lambda model: Path(model).name)
def test_a_pass_under_way_is_told_as_it_goes(model: str) -> None:
    """Stage by stage the same as afterwards, but for an MLP whose sum is not there yet."""
    run, generation = a_run(model, EVERYTHING), a_generation(model, EVERYTHING)
    under_way, over = Moment(generation.trace), Moment(run.trace, STEPS)
    for event in generation:
        under_way.hear(event)
        place = under_way.newest
        if place is None or place.step > 1:
            break
        stage = under_way.stages.all[place.stage]
        sentence, later = (comment(moment, Cursor(head=HEAD), place).text for moment in (under_way, over))
        assert sentence
        if stage.name == "mlp":
            assert "has worked on" in sentence and numbers_in(sentence) == numbers_in(later)[:2]
        else:
            assert tokens_in(sentence) == tokens_in(later)
            assert all(map(close, numbers_in(sentence), numbers_in(later)))


def test_the_stages_inside_attention_are_told_while_their_pass_is_under_way() -> None:
    run, generation = a_run("fable", EVERYTHING), a_generation("fable", EVERYTHING)
    moment = Moment(generation.trace)
    for event in generation:
        moment.hear(event)
        if isinstance(event, AttentionDone) and moment.steps == 2:
            for name in ("qkv", "scores", "mask", "softmax", "mix", "projection"):
                place = Place(2, moment.stages.index(name, event.layer))
                check(comment(moment, Cursor(head=HEAD), place).text, expected(run, moment, 2, name, event.layer))
        if moment.steps == 3:
            break


def test_silenced_parts_add_what_they_still_add() -> None:
    run = a_run("fable", EVERYTHING, (AblateHead(1, 2), AblateMlp(2)))
    moment = Moment(run.trace, STEPS)
    for name, layer in (("projection", 1), ("mlp", 2), ("residual", 2), ("mix", 0)):
        place = Place(2, moment.stages.index(name, layer))
        check(comment(moment, Cursor(head=HEAD), place).text, expected(run, moment, 2, name, layer))
    mlp = comment(moment, Cursor(), Place(2, moment.stages.index("mlp", 2))).text
    assert "adds a vector 0.00 long" in mlp
    mix = comment(moment, Cursor(head=2), Place(2, moment.stages.index("mix", 1))).text
    assert mix == "head 2 is silenced: nothing of it reaches the projection"


def test_the_draw_is_told_with_its_numbers() -> None:
    run = a_run("fable", EVERYTHING)
    moment = Moment(run.trace, STEPS)
    for step, done in enumerate(run.trace.steps):
        notice = comment(moment, Cursor(), Place(step, moment.stages.last))
        label = moment.label(len(run.trace.prompt_ids) + step)
        share = percent(done.probability).split()[0]
        check(notice.text, Said([label], [str(step), share, f"{done.uniform:.4f}", *surprise(run, step)]))
        check(notice.short, Said([label], [str(step), share, f"{done.uniform:.4f}"]))
        assert notice.text.startswith(f"token {step}: ‹{label}› drawn with ") and "bits" in notice.text


def surprise(run: Run, step: int) -> list[str]:
    """What the model itself thought of a token: its probability, and that in bits."""
    logprob = run.trace.steps[step].raw_logprob
    return [percent(float(np.exp(logprob))).split()[0], f"{-logprob / np.log(2):.1f}"]


def test_a_greedy_and_a_chosen_token_look_at_no_number() -> None:
    greedy = a_run("fable", GREEDY)
    notice = comment(moment := Moment(greedy.trace, STEPS), Cursor(), Place(2, moment.stages.last))
    assert "is the likeliest" in notice.text and numbers_in(notice.text) == ["2", *surprise(greedy, 2)]
    chosen = a_run("fable", NOTHING, (ForceToken(1, 77),))
    notice = comment(moment := Moment(chosen.trace, STEPS), Cursor(), Place(1, moment.stages.last))
    assert "was put by hand" in notice.text and numbers_in(notice.text) == ["1", *surprise(chosen, 1)]
    assert tokens_in(notice.text) == tokens_in(notice.short) == [moment.name(77)]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "run.cutaway"
    a_run("fable", EVERYTHING).trace.save(path)
    return path


def test_a_recording_is_told_the_same(recording: Path) -> None:
    run, trace = a_run("fable", EVERYTHING), Trace.load(recording)
    moment = Moment(trace, STEPS)
    for step in (0, 3):
        for place, name, layer in stages_of_a_pass(moment, step):
            check(comment(moment, Cursor(head=HEAD), place).text, expected(run, moment, step, name, layer))


def test_without_weights_and_tables_no_number_is_made_up(recording: Path) -> None:
    trace = Trace.load(recording)
    trace.tables = None
    moment = Moment(trace, STEPS)
    for name in ("projection", "mlp"):
        sentence = comment(moment, Cursor(), Place(2, moment.stages.index(name, 1))).text
        assert sentence and "long" not in sentence and "." not in sentence


def test_nothing_is_said_of_nothing() -> None:
    moment = Moment(a_run("fable", NOTHING).trace)
    assert comment(moment, Cursor(), None).text == ""
    for name in ("logits", "top_k", "draw"):
        assert comment(moment, Cursor(), Place(0, moment.stages.index(name))).text == ""


@pytest.mark.parametrize("model", PROMPTS, ids=lambda model: Path(model).name)
@pytest.mark.parametrize("settings", [EVERYTHING, NOTHING, GREEDY], ids=["everything", "nothing", "greedy"])
def test_every_sentence_fits_a_terminal_of_eighty_columns(model: str, settings: SamplingConfig) -> None:
    moment = Moment(a_run(model, settings).trace, STEPS)
    for step in range(STEPS):
        for index in range(moment.stages.first(step), len(moment.stages.all)):
            notice = comment(moment, Cursor(head=HEAD), Place(step, index))
            assert cell_width(notice.short or notice.text) <= ROOM, notice
