"""The settings file: TOML in the platform's config folder, one line for each option it changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.catalogue import tr
from ..core.errors import CutawayError

_NOT_SETTINGS = {"prompt", "prompt_file", "prompt_ids", "ablate", "scale", "chat", "system", "step", "download"}
"""Options that belong to one run and not to a person."""
_FLOATS = {"temperature", "top_p", "min_p", "repetition_penalty"}
_TEXTS = {"model", "theme", "colormap", "lang", "output_dir"}
_FLAGS = {"greedy", "ignore_eos"}


def settings_path() -> Path:
    """Where the settings file is, whether or not it is there."""
    from platformdirs import user_config_path

    return user_config_path("cutaway", appauthor=False) / "settings.toml"


def read_settings(options: Mapping[str, Any], path: Path | None = None) -> dict[str, Any]:
    """What the file at *path* (default: the person's own) sets of *options*; nothing where there is no file.

    Raises `CutawayError` naming the file and the key: a key that is none (with the nearest one that is), a value
    of the wrong kind, or text that is no TOML.
    """
    import tomllib

    path = path or settings_path()
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CutawayError(tr("the settings cannot be read: {reason}", reason=error), where=str(path)) from error
    known = [name for name in options if name not in _NOT_SETTINGS]
    spelled = {name.replace("-", "_"): value for name, value in data.items()}
    return {name: _checked(name, value, known, path) for name, value in spelled.items()}


def _checked(name: str, value: object, known: list[str], path: Path) -> object:
    if name in _NOT_SETTINGS:
        what = tr("{name} belongs to one run and cannot be a setting", name=name)
        raise CutawayError(what, where=str(path), hint=tr("give it on the command line"))
    if name not in known:
        raise _unknown(tr("there is no setting called {name}", name=name), name, known, path)
    if name == "keys":
        return _keys(value, path)
    kind, fits = _kind(name, value)
    if not fits:
        raise CutawayError(
            tr("the setting {name} is {value}", name=name, value=repr(value)), where=str(path), hint=kind
        )
    return value


def _keys(value: object, path: Path) -> dict[str, str]:
    """The table of keys: names of `keys.KEYS`, each with the keys that do it instead."""
    from .keys import KEYS

    if not isinstance(value, dict):
        what = tr("the setting {name} is {value}", name="keys", value=repr(value))
        raise CutawayError(what, where=str(path), hint=tr('it must be a table, such as [keys] run = "p"'))
    known = [key.name for key in KEYS]
    for name, keys in value.items():
        if name not in known:
            raise _unknown(tr("there is no key called {name}", name=name), name, known, path)
        if not isinstance(keys, str) or not keys:
            what = tr("the setting {name} is {value}", name=f"keys.{name}", value=repr(keys))
            raise CutawayError(what, where=str(path), hint=tr("it must be keys in quotes, with commas between them"))
    return value


def _unknown(what: str, name: str, known: list[str], path: Path) -> CutawayError:
    import difflib

    nearest = difflib.get_close_matches(name, known, 1, 0.5)
    hint = (
        tr("did you mean {nearest}?", nearest=nearest[0])
        if nearest
        else tr("there are: {names}", names=", ".join(known))
    )
    return CutawayError(what, where=str(path), hint=hint)


def _kind(name: str, value: object) -> tuple[str, bool]:
    """What kind of value *name* takes, in words, and whether *value* is of it."""
    if name in _TEXTS:
        return tr("it must be text in quotes"), isinstance(value, str)
    if name in _FLAGS:
        return tr("it must be true or false"), isinstance(value, bool)
    if name in _FLOATS:
        return tr("it must be a number"), isinstance(value, int | float) and not isinstance(value, bool)
    least = 0 if name in ("top_k", "seed") else 1
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
    return tr("it must be a whole number of {least} or more", least=least), whole
