"""Reading a tokenizer's files; whatever is wrong with one becomes a `ModelError` that names it."""

from pathlib import Path
from typing import Any

from ..catalogue import tr
from ..checkpoint.json_text import read_object as checked_object
from ..errors import ModelError


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file *path*, empty if there is no such file; else `ModelError`."""
    return checked_object(path) if path.is_file() else {}


def read_text(path: Path) -> str:
    """Return the text of the file *path*; `ModelError` if it cannot be read or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise broken(path, error) from error


def broken(path: Path, problem: Exception, *others: Path) -> ModelError:
    """Return the error that says *problem* is wrong with the file *path* (or with one of *others*)."""
    what = tr("the tokenizer cannot be read: {problem}", problem=problem)
    return ModelError(what, where=", ".join(map(str, (path, *others))), hint=tr("download the model's files again"))
