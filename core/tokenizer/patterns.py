"""The patterns that cut text into words before any merging, and how to compile one.

They are written for Oniguruma; the ``regex`` package reads nearly the same syntax (``\\p{L}``, possessive
repetition, lookahead), which the standard library's ``re`` does not.
"""

import re
from typing import Final

from ..catalogue import tr
from .problems import Malformed, Unsupported, mapping, member

GPT2: Final = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2's, from ``src/encoder.py`` of github.com/openai/gpt-2: every byte-level tokenizer's default."""

CL100K: Final = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s"
)
"""That of the rank file ``cl100k_base``, from ``tiktoken_ext/openai_public.py`` of OpenAI's tiktoken."""

QWEN2: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""That of Qwen 2 and 3, from their tokenizer.json."""

# Oniguruma repeats x{1,3} as often as it can, the regex package reads a possessive x{1,3}.
_REPEATED_INTERVAL: Final = re.compile(r"\{\d*(,\d*)?\}\+")


def compile_pattern(spec: object) -> re.Pattern[str]:
    """Return the pattern of ``{"Regex": ...}`` or ``{"String": ...}``, compiled (by ``regex``, used like ``re``).

    `Malformed` if it is neither or does not compile, `Unsupported` where the two dialects disagree.
    """
    import regex  # type: ignore[import-untyped]

    if "String" in mapping(spec, "pattern"):
        pattern, flags = regex.escape(member(spec, "String", str)), 0
    else:
        pattern = member(spec, "Regex", str)
        # In Oniguruma ^ and $ are the ends of a line, and && intersects two sets.
        flags = regex.MULTILINE | (regex.VERSION1 if "&&" in pattern else regex.VERSION0)
        if _REPEATED_INTERVAL.search(pattern):
            raise Unsupported(f"pattern {pattern!r}")
    try:
        compiled: re.Pattern[str] = regex.compile(pattern, flags)
    except regex.error as error:
        raise Malformed(tr("{pattern!r} is no pattern: {error}", pattern=pattern, error=error)) from error
    return compiled
