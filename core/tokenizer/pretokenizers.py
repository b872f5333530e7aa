"""How a tokenizer cuts text into pieces that are merged on their own: its ``pre_tokenizer``.

Each kind becomes a splitter; applied one after the other, each to every piece of the one before, they give
what the reference (Hugging Face's ``tokenizers``) gives. Only byte-level tokenizers are implemented: the
last step has to be ``ByteLevel``, which turns each piece into bytes.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from .patterns import GPT2, compile_pattern
from .problems import Unsupported, kind_of, member

Splitter = Callable[[str], list[str]]
Cut = tuple[str, bool]
"""A stretch of text and whether the pattern matched it."""


def build_splitters(spec: object) -> list[Splitter]:
    """Return the splitters that *spec*, the ``pre_tokenizer`` of a tokenizer.json, describes.

    `Unsupported` names a kind that is not implemented, `Malformed` says what is wrong with the description.
    """
    steps = list(_flattened(spec)) if spec is not None else []
    kinds = [kind_of(step) for step in steps]
    for kind in kinds:
        if kind not in _KINDS:
            raise Unsupported(f"pre_tokenizer {kind}")
    if kinds[-1:] != ["ByteLevel"] or kinds.count("ByteLevel") > 1:
        raise Unsupported("BPE without ByteLevel")
    return [_KINDS[kind](step) for kind, step in zip(kinds, steps, strict=True)]


def words_then_bytes(pattern: str) -> dict[str, Any]:
    """Describe, as a tokenizer.json does, cutting by *pattern* and then turning the pieces into bytes."""
    words = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    pieces = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    return {"type": "Sequence", "pretokenizers": [words, pieces]}


def split(text: str, splitters: Iterable[Splitter]) -> list[str]:
    """Cut *text* by each of *splitters* in turn; no piece is empty."""
    pieces = [text] if text else []
    for splitter in map(cache, splitters):  # words repeat
        pieces = [part for piece in pieces for part in splitter(piece) if part]
    return pieces


def _flattened(spec: object) -> Iterator[object]:
    if kind_of(spec) != "Sequence":
        yield spec
        return
    for step in member(spec, "pretokenizers", list):
        yield from _flattened(step)


def _byte_level(spec: object) -> Splitter:
    prefix = " " if member(spec, "add_prefix_space", bool, True) else ""
    words = compile_pattern({"Regex": GPT2}) if member(spec, "use_regex", bool, True) else None

    def split_words(text: str) -> list[str]:
        text = text if text.startswith(" ") else prefix + text
        return words.findall(text) if words else [text]

    return split_words


def _by_pattern(pattern: object, behavior: str, invert: bool = False) -> Splitter:
    if behavior not in _BEHAVIORS:
        raise Unsupported(f"pre_tokenizer Split {behavior!r}")
    compiled = compile_pattern(pattern)
    arrange = _BEHAVIORS[behavior]

    def split_at_matches(text: str) -> list[str]:
        cuts: list[Cut] = []
        end = 0
        for match in compiled.finditer(text):
            if cuts and match.end() == end:
                continue  # to the reference, an empty match right after another is none
            if end < match.start():
                cuts.append((text[end : match.start()], invert))
            cuts.append((match.group(), not invert))
            end = match.end()
        if end < len(text):
            cuts.append((text[end:], invert))
        return arrange(cuts)

    return split_at_matches


def _split(spec: object) -> Splitter:
    behavior = member(spec, "behavior", str)
    return _by_pattern(member(spec, "pattern", dict), behavior, member(spec, "invert", bool, False))


def _digits(spec: object) -> Splitter:
    individual = member(spec, "individual_digits", bool, False)
    return _by_pattern({"Regex": r"\p{N}"}, "Isolated" if individual else "Contiguous")


def _punctuation(spec: object) -> Splitter:
    return _by_pattern({"Regex": r"[\p{P}$+<=>^`|~]"}, member(spec, "behavior", str, "Isolated"))


def _whitespace(spec: object) -> Splitter:
    return _by_pattern({"Regex": r"\w+|[^\w\s]+"}, "Removed", invert=True)


def _whitespace_split(spec: object) -> Splitter:
    return _by_pattern({"Regex": r"\s"}, "Removed")


def _contiguous(cuts: list[Cut]) -> list[str]:
    joined: list[Cut] = []
    for text, matched in cuts:
        if joined and joined[-1][1] == matched:
            text = joined.pop()[0] + text
        joined.append((text, matched))
    return [text for text, _ in joined]


def _merged_with_previous(cuts: list[Cut]) -> list[str]:
    pieces: list[str] = []
    after_match = False
    for text, matched in cuts:
        if matched and not after_match and pieces:
            text = pieces.pop() + text
        pieces.append(text)
        after_match = matched
    return pieces


def _merged_with_next(cuts: list[Cut]) -> list[str]:
    pieces: list[str] = []
    before_match = False
    for text, matched in reversed(cuts):
        if matched and not before_match and pieces:
            text = text + pieces.pop()
        pieces.append(text)
        before_match = matched
    return pieces[::-1]


_BEHAVIORS: Final[dict[str, Callable[[list[Cut]], list[str]]]] = {
    "Removed": lambda cuts: [text for text, matched in cuts if not matched],
    "Isolated": lambda cuts: [text for text, _ in cuts],
    "Contiguous": _contiguous,
    "MergedWithPrevious": _merged_with_previous,
    "MergedWithNext": _merged_with_next,
}

_KINDS: Final[dict[str, Callable[[object], Splitter]]] = {
    "ByteLevel": _byte_level,
    "Digits": _digits,
    "Punctuation": _punctuation,
    "Split": _split,
    "Whitespace": _whitespace,
    "WhitespaceSplit": _whitespace_split,
}
