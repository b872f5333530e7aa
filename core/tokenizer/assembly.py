"""Putting a tokenizer together from its tokens, whichever files they were read from."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..catalogue import tr
from .added import AddedToken
from .pipeline import Pipeline, Steps
from .problems import Malformed, Unsupported
from .settings import Settings
from .tokenizer import Tokenizer
from .vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Source:
    """What a vocabulary file gives, whatever its format."""

    tokens: Mapping[int, bytes]
    """The bytes of each token by its id."""
    find: Callable[[str], int | None]
    """Looks a token up by its name."""
    steps: Callable[[], Steps]
    """Builds the steps of encoding; `Unsupported` names what is not implemented."""
    added: Iterable[AddedToken] = ()
    """The added tokens that the file lists."""


def assemble(source: Source, settings: Settings, vocab_size: int) -> Tokenizer:
    """Return the tokenizer of a model with *vocab_size* ids; `Malformed` if *source* has ids beyond them."""
    _check_ids(source.tokens, vocab_size)
    wanted = list(_all_added(source, settings, vocab_size))
    added = [token for token in wanted if 0 <= token.id < vocab_size]
    notice = _without_tokens([token.text for token in wanted if token not in added])
    pipeline = None
    try:
        pipeline = Pipeline(source.steps(), added)
        _check_ids([*pipeline.template.before, *pipeline.template.after], vocab_size)
    except Unsupported as kind:
        notice = tr("this tokenizer ({kind}) cannot read text: a prompt is a list of token ids", kind=kind)
    return Tokenizer(
        _vocabulary(source.tokens, added, vocab_size),
        pipeline,
        special_tokens={token.text: token.id for token in added if token.special},
        chat_template=settings.chat_template,
        bos_token=settings.bos_token,
        eos_token=settings.eos_token,
        notice=notice,
    )


def _check_ids(ids: Collection[int], vocab_size: int) -> None:
    first, last = min(ids, default=0), max(ids, default=-1)
    if first < 0 or last >= vocab_size:
        worst = first if first < 0 else last
        raise Malformed(tr("it has the id {id}, the model those from 0 to {last}", id=worst, last=vocab_size - 1))


def _all_added(source: Source, settings: Settings, vocab_size: int) -> Iterator[AddedToken]:
    """Yield the added tokens with an id of their own, then the special ones that the settings only name.

    Those have their ids in the vocabulary; failing that, the end token has the model's, and any other takes
    the next free id, as in the reference.
    """
    used = set(source.tokens)
    names = set()
    for token in (*source.added, *settings.added):
        if token.text not in names:
            known = source.find(token.text)
            yield token if known is None else replace(token, id=known)
            names.add(token.text)
            used.add(token.id)
    for name in settings.special_names:
        id = source.find(name)
        if id is None and name == settings.eos_token and settings.eos_id not in used:
            id = settings.eos_id
        if id is None:
            id = max(used, default=-1) + 1
        if name not in names and id < vocab_size:
            yield AddedToken(id, name)
            used.add(id)


def _without_tokens(names: list[str]) -> str | None:
    if not names:
        return None
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return tr("the model has no id for these tokens of its tokenizer: {names}", names=shown)


def _vocabulary(tokens: Mapping[int, bytes], added: Iterable[AddedToken], size: int) -> Vocabulary:
    names = {token.id: token.text.encode("utf-8", "replace") for token in added}
    special = [token.id for token in added if token.special]
    return Vocabulary.from_tokens([names.get(id, tokens.get(id, b"")) for id in range(size)], special)
