"""Chat templates: the Jinja that writes a conversation as the text its model was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .catalogue import tr
from .errors import ModelError

if TYPE_CHECKING:
    from .models.model import Model

Message = Mapping[str, str]
"""A ``role`` (system, user, assistant) and a ``content``."""


def render_chat(
    template: str,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = True,
    bos_token: str = "",
    eos_token: str = "",
) -> str:
    """Return *messages*, each with a ``role`` and a ``content``, as *template* writes them.

    With *add_generation_prompt* the beginning of an answer follows. The text holds the names of special
    tokens; `Tokenizer.encode` with ``special=True`` makes them tokens, those in a message's content too.
    Raises `ModelError` with the reason if the template is broken or refuses the conversation.
    """
    from .tokenizer.sandbox import Sandbox

    values = {
        "messages": [dict(message) for message in messages],
        "add_generation_prompt": add_generation_prompt,
        "bos_token": bos_token,
        "eos_token": eos_token,
        "tools": None,
        "documents": None,
    }
    try:
        return Sandbox().render(template, values)
    except Exception as error:  # it is somebody else's program: anything can come out of it
        text = "".join(character if character.isprintable() else " " for character in str(error)[:300])
        reason = " ".join(text.split()) or type(error).__name__
        raise ModelError(tr("the model's chat template fails: {reason}", reason=reason)) from error


def messages_of(question: str, system: str | None = None) -> list[Message]:
    """Return the conversation that begins with *question*."""
    before: list[Message] = [] if system is None else [{"role": "system", "content": system}]
    return [*before, {"role": "user", "content": question}]


def write_chat(model: Model, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
    """Return *messages* as the template of *model* writes them.

    Raises `ModelError` where the model has no template, or no tokenizer that could read what it writes.
    """
    tokenizer = model.tokenizer
    if tokenizer.chat_template is None:
        raise ModelError(tr("{model} has no chat template", model=model.name), hint=tr("leave out --chat"))
    if not tokenizer.can_encode:
        raise ModelError(
            tr("{model} has no tokenizer that turns text into ids", model=model.name),
            hint=tr("give the ids themselves with --prompt-ids"),
        )
    return render_chat(
        tokenizer.chat_template,
        messages,
        add_generation_prompt=add_generation_prompt,
        bos_token=tokenizer.bos_token or "",
        eos_token=tokenizer.eos_token or "",
    )


def answer_end(model: Model) -> int | None:
    """Return the special token that the template of *model* puts after an answer, if it puts one.

    In a chat it ends a text, though the configuration of many a model knows of another end token only.
    """
    question, answer = "hello", "cutaway"
    messages = [*messages_of(question), {"role": "assistant", "content": answer}]
    try:
        text = write_chat(model, messages, add_generation_prompt=False)
    except ModelError:
        return None
    _, found, after = text.rpartition(answer)
    following = model.tokenizer.encode(after.lstrip(), special=True) if found else []
    return following[0] if following and following[0] in model.tokenizer.special_tokens.values() else None
