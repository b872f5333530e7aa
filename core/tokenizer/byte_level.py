"""The alphabet of byte-level BPE: one printable character for each of the 256 bytes.

Vocabulary files are JSON and merge files are lines split at spaces, so neither can hold raw bytes. The table
is ``bytes_to_unicode`` of OpenAI's GPT-2 (``src/encoder.py``): bytes that print in Latin-1 stand for
themselves, the other 68 become the characters from U+0100 on, in order. A space is ``Ġ``, a newline ``Ċ``.
"""

from typing import Final

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _PRINTABLE]

_TO_CHARACTER: Final = {byte: chr(0x100 + place) for place, byte in enumerate(_HIDDEN)}
# A character that is not in the alphabet must end up outside Latin-1, so that encoding it fails.
_TO_BYTE: Final = {0x100 + place: byte for place, byte in enumerate(_HIDDEN)} | dict.fromkeys(_HIDDEN, 0xFFFF)


def to_characters(data: bytes) -> str:
    """Write *data* in the alphabet, a character a byte."""
    return data.decode("latin-1").translate(_TO_CHARACTER)


def to_bytes(text: str) -> bytes | None:
    """Read *text* in the alphabet; None if a character of it does not belong to the alphabet."""
    try:
        return text.translate(_TO_BYTE).encode("latin-1")
    except UnicodeEncodeError:
        return None
