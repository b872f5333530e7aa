"""A chat of several turns: `e` writes the next message, and what was said stays in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cutaway.core import Generation, SamplingConfig, load_model
from cutaway.core.chat import messages_of, write_chat

if TYPE_CHECKING:
    from tests.tui.conftest import OpenApp, Person

QUESTION = "写一首五言绝句，里面有“明月”"


async def asks(person: Person, message: str) -> None:
    """Write *message* as the next one and wait for its answer."""
    texts = len(person.screen._runs.all)
    await person.opens_editor(keeping=False)
    await person.paste(message)
    await person.until(lambda: "tokens ·" in person.text)
    await person.press("enter")
    await person.until(lambda: len(person.screen._runs.all) == texts + 1)
    await person.until(lambda: person.screen.run_shown and person.screen.run_shown.over)


async def test_the_next_message_continues_the_chat(open_app: OpenApp) -> None:
    """Its prompt is all that was said, as the template writes it; its tokens are those of a run from scratch."""
    async with open_app(QUESTION, model="verse", chat=True, greedy=True, max_new_tokens=40) as person:
        await person.has_ended()
        first = person.trace
        await asks(person, "再写一首")
        second, model = person.trace, load_model("verse")
        said = model.tokenizer.decode([step.id for step in first.steps[:-1]])
        messages = [*messages_of(QUESTION), {"role": "assistant", "content": said}, *messages_of("再写一首")]
        ids = model.tokenizer.encode(write_chat(model, messages), special=True)
        assert list(second.prompt_ids) == ids
        fresh = Generation(model, ids, SamplingConfig(greedy=True), max_new_tokens=40)
        assert list(fresh) and [step.id for step in second.steps] == [step.id for step in fresh.trace.steps]
        shared = len(first.prompt_ids)
        assert np.shares_memory(second.cache.rows.key, first.cache.rows.key) or np.array_equal(
            second.cache.rows.key[:, :, :shared], first.cache.rows.key[:, :, :shared]
        )


async def test_a_chat_goes_on_from_the_text_that_is_shown(open_app: OpenApp) -> None:
    """Walking back and saying something else leaves the later turn where it was."""
    async with open_app(QUESTION, model="verse", chat=True, greedy=True, max_new_tokens=30) as person:
        await person.has_ended()
        await asks(person, "再写一首")
        longer = len(person.trace.prompt_ids)
        await person.press("w")
        await person.until(lambda: len(person.trace.prompt_ids) < longer)
        await asks(person, "谢谢")
        text = person.trace.text
        assert "谢谢" in text and "再写一首" not in text
        assert len(person.screen._runs.all) == 3


async def test_there_is_no_empty_message(open_app: OpenApp) -> None:
    """`enter` on nothing sends nothing; the editor stays and says so."""
    async with open_app(QUESTION, model="verse", chat=True, greedy=True, max_new_tokens=5) as person:
        await person.has_ended()
        editor = await person.opens_editor(keeping=False)
        await person.until(lambda: "nothing to answer yet" in person.text)
        await person.press("enter")
        assert person.app.screen is editor and len(person.screen._runs.all) == 1
        await person.closes()


async def test_restarting_answers_the_same_message_again(open_app: OpenApp) -> None:
    async with open_app(QUESTION, model="verse", chat=True, greedy=True, max_new_tokens=30) as person:
        await person.has_ended()
        await asks(person, "再写一首")
        before = person.trace
        await person.press("r")
        await person.until(
            lambda: person.trace is not before and person.screen.run_shown and person.screen.run_shown.over
        )
        assert person.trace.token_ids == before.token_ids
