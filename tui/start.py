"""From options to a run: open the model, read the prompt, make the generation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..core.cache import Capture
from ..core.catalogue import tr
from ..core.chat import answer_end, messages_of, write_chat
from ..core.conversation import Conversation
from ..core.edit_names import parse_ablation, parse_scaling
from ..core.edits import Edit
from ..core.errors import ModelError, UsageError
from ..core.generation import Generation
from ..core.models import load_model
from ..core.models.model import Model
from ..core.sampling import SamplingConfig
from ..core.trace import Trace
from .downloads import obtain_model

PROMPTS = {"fable": "Once upon a time there was a little rabbit who", "tinymind": "hello", "verse": "《春晓》"}
"""What the embedded models continue when nobody says anything."""
OTHER_PROMPT = "Once upon a time"

Source = str | tuple[int, ...]
"""What a run continues: a text, or exactly these ids."""


def prepare(options: argparse.Namespace, source: Source | None, capture: Capture = "default") -> Generation:
    """Open the model that *options* name and make a generation that continues *source*.

    Raises `CutawayError` for anything wrong with either.
    """
    limit_threads(options.threads)
    obtain_model(options)
    return generate(load_model(options.model), options, source, capture)


def generate(
    model: Model, options: argparse.Namespace, source: Source | None, capture: Capture = "default"
) -> Generation:
    """A generation of *model* under *options*; without a source it continues the model's own prompt."""
    if source is None:
        source = default_prompt(model)
    rest: dict[str, Any] = {
        "max_new_tokens": options.max_new_tokens,
        "ignore_eos": options.ignore_eos,
        "capture": capture,
        "edits": edits_of(options),
    }
    sampling = sampling_of(options)
    if not isinstance(source, str):
        if options.chat:
            raise UsageError(tr("--prompt-ids are exactly the ids of the prompt"), hint=tr("leave out --chat"))
        return Generation(model, source, sampling, **rest)
    if options.chat and (end := answer_end(model)) is not None:
        rest["end_ids"] = [end]
    ids, added, chat = encode(model, options, source)
    return Generation(model, ids, sampling, prompt=source, added=added, chat=chat, **rest)


def edits_of(options: argparse.Namespace) -> list[Edit]:
    """What *options* change in the model."""
    return [*map(parse_ablation, options.ablate), *map(parse_scaling, options.scale)]


def converse(model: Model, options: argparse.Namespace) -> Conversation:
    """A chat with *model* under *options*, in which nothing has been said yet."""
    return Conversation(
        model,
        options.system,
        sampling_of(options),
        max_new_tokens=options.max_new_tokens,
        ignore_eos=options.ignore_eos,
        edits=edits_of(options),
    )


def open_recording(options: argparse.Namespace, path: Path) -> Generation | Trace:
    """The recording at *path*, over from the start; with the model that *options* name, one that can be branched from.

    Raises `CutawayError` for a file that is no recording, or a model that did not make it.
    """
    limit_threads(options.threads)
    trace = Trace.load(path)
    if options.model is None:
        return trace
    longest = max(options.max_new_tokens, len(trace.steps))
    return Generation.resume(load_model(options.model), trace, max_new_tokens=longest, ignore_eos=options.ignore_eos)


def encode(model: Model, options: argparse.Namespace, text: str) -> tuple[list[int], list[int], str | None]:
    """The ids of *text* as a prompt, the positions that were added to it, and what a chat template made of it.

    Raises `ModelError` where the model has no tokenizer, or no template when *options* ask for a chat.
    """
    tokenizer = model.tokenizer
    if options.chat:
        rendered = write_chat(model, messages_of(text, options.system))
        return tokenizer.encode(rendered, special=True), [], rendered
    ids, added = tokenizer.encode_prompt(text)
    if text.strip() and not (tokenizer.can_encode or ids):
        raise ModelError(
            tr("{model} has no tokenizer that turns text into ids", model=model.name),
            hint=tr("give the ids themselves with --prompt-ids"),
        )
    return ids, sorted(added), None


def default_prompt(model: Model) -> str:
    """What *model* continues when nobody says anything; nothing where it cannot read text."""
    return PROMPTS.get(model.name, OTHER_PROMPT) if model.tokenizer.can_encode else ""


def sampling_of(options: argparse.Namespace) -> SamplingConfig:
    """The sampling settings in *options*. Raises `SamplingError`."""
    return SamplingConfig(
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        min_p=options.min_p,
        repetition_penalty=options.repetition_penalty,
        greedy=options.greedy,
        seed=options.seed,
    )


def limit_threads(count: int | None) -> None:
    """Let the arithmetic use at most *count* threads; None leaves it as it is."""
    if count is not None:
        from threadpoolctl import threadpool_limits

        threadpool_limits(count)
