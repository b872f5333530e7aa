"""Chat templates: the Jinja that writes a conversation as the text its model was trained on."""

from collections.abc import Mapping, Sequence

from .catalogue import tr
from .errors import ModelError


def render_chat(
    template: str,
    messages: Sequence[Mapping[str, str]],
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
