"""JSON out of model folders: parsed with care, and quoted safely in messages."""

import json
import reprlib
import stat
from pathlib import Path

from ..catalogue import tr
from ..errors import ModelError

LARGEST_JSON = 100_000_000
"""Bytes: no configuration, index or header is larger, so nothing larger is read."""

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 120


def shown(value: object) -> str:
    """Return *value* as a message may show it: quoted, control characters escaped, cut when long."""
    return _repr.repr(value)


def read_object(path: Path) -> dict[str, object]:
    """Return the JSON object in the file at *path*.

    Raises:
        ModelError: naming the file, which is absent, unreadable, too large or not a JSON object.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise FileNotFoundError
        data = path.read_bytes() if about.st_size <= LARGEST_JSON else b""
    except (FileNotFoundError, NotADirectoryError) as error:
        what = tr("{file} is missing", file=path.name)
        hint = tr("a model folder holds config.json and safetensors files")
        raise ModelError(what, where=str(path.parent), hint=hint) from error
    except OSError as error:
        raise unreadable(path, error) from error
    if about.st_size > LARGEST_JSON:
        what = tr("{file} is too large: {size:,} bytes", file=path.name, size=about.st_size)
        raise ModelError(what, where=str(path))
    return parse_object(data.removeprefix(b"\xef\xbb\xbf"), name=path.name, where=str(path))


def parse_object(data: bytes, *, name: str, where: str, unique: bool = False) -> dict[str, object]:
    """Return the JSON object that *data* spells in UTF-8; *name* and *where* say in errors what it is.

    With *unique*, an object that gives one key twice is refused instead of keeping the last.

    Raises:
        ModelError: the bytes are no JSON, no object, or (with *unique*) ambiguous.
    """
    try:
        value: object = json.loads(data.decode(), object_pairs_hook=_unique if unique else None)
    except _TwiceError as error:
        what = tr("{name} gives {key} twice", name=name, key=shown(error.key))
        raise ModelError(what, where=where) from error
    except (ValueError, RecursionError) as error:
        raise ModelError(tr("{name} is not valid JSON", name=name), where=where) from error
    if not isinstance(value, dict):
        raise ModelError(tr("{name} is not a JSON object", name=name), where=where)
    return value


def unreadable(path: Path, error: OSError) -> ModelError:
    """Return what to raise when the system refuses to read *path*."""
    reason = error.strerror or type(error).__name__
    return ModelError(tr("{file} cannot be read: {reason}", file=path.name, reason=reason), where=str(path))


class _TwiceError(Exception):
    """A JSON object gives *key* more than once."""

    def __init__(self, key: str) -> None:
        self.key = key


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object from *pairs*, refusing a key that comes twice."""
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise _TwiceError(key)
        result[key] = value
    return result
