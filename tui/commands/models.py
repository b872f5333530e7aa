"""``cutaway models``: which models can be opened here, told by their headers alone."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Literal

from ...core.catalogue import mark, tr
from ...core.errors import ModelError
from ..cli import DONE
from ..options import DEFAULTS
from ..settings import read_settings, settings_path

Place = Literal["embedded", "extra", "cache", "other"]
"""Where a model is found: brought along, installed beside, in the Hugging Face cache, or where the default points."""

_ABOUT = {
    "fable": mark("English stories for small children"),
    "verse": mark("Chinese poems; answers with --chat"),
    "tinymind": mark("one layer, 30 characters, untrained: every number fits on the screen"),
    "smollm2": mark("a small assistant; answers with --chat"),
}
_EXTRAS = ("smollm2",)
_HEADINGS: dict[Place, str] = {
    "embedded": mark("embedded"),
    "extra": mark("with an extra"),
    "cache": mark("in the Hugging Face cache {folder}"),
    "other": mark("elsewhere"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help=tr("print JSON"))


def run(arguments: argparse.Namespace) -> int:
    models = list_models()
    if arguments.json:
        from ..event_json import to_json

        print(to_json([asdict(model) for model in models], indent=2))
    else:
        from ...widgets.drawable import drawable

        print("\n".join(drawable(line, spaces=False) for line in _lines(models)))
    return DONE


@dataclass(frozen=True, slots=True)
class Listed:
    """A model, and whether it can be opened."""

    name: str
    """What ``--model`` takes."""
    place: Place
    about: str
    """A word about it, where there is one."""
    default_by: str | None
    """Who made it the default: ``default``, ``settings`` or ``environment``; None where it is not."""
    problem: str | None
    """Why it cannot be opened; None where it can."""
    family: str | None = None
    layers: int | None = None
    heads: int | None = None
    width: int | None = None
    positions: int | None = None
    vocabulary: int | None = None
    parameters: int | None = None


def list_models(environment: Mapping[str, str] = os.environ) -> list[Listed]:
    """Every model that can be opened by a name, and those in the cache that cannot. Raises `CutawayError`."""
    from ...core.checkpoint.hub import cached_models
    from ...core.checkpoint.locate import embedded_models

    default, default_by = _default(environment)
    names: dict[str, Place] = {}
    names |= dict.fromkeys(sorted(embedded_models(), key=_by_renown), "embedded")
    names |= dict.fromkeys(_EXTRAS, "extra")
    names |= dict.fromkeys(cached_models(), "cache")
    names |= {} if default in names else {default: "other"}
    return [_listed(name, place, default_by if name == default else None) for name, place in names.items()]


def _by_renown(name: str) -> tuple[bool, int, str]:
    """Sorts the models that there is a word about before others."""
    known = list(_ABOUT)
    return (name not in known, known.index(name) if name in known else 0, name)


def _default(environment: Mapping[str, str]) -> tuple[str, str]:
    """The model that is opened without ``--model``, and who says so."""
    if name := environment.get("CUTAWAY_MODEL"):
        return name, "environment"
    settings = read_settings(DEFAULTS)
    if "model" in settings:
        return str(settings["model"]), "settings"
    return str(DEFAULTS["model"]), "default"


def _listed(name: str, place: Place, default_by: str | None) -> Listed:
    try:
        return Listed(name, place, tr(_ABOUT.get(name, "")), default_by, None, **_shape(name))
    except ModelError as error:
        problem = error.what if place == "cache" or error.hint is None else f"{error.what}; {error.hint}"
        return Listed(name, place, tr(_ABOUT.get(name, "")), default_by, problem)


def _shape(name: str) -> dict[str, Any]:
    """What the headers say of the model called *name*. Raises `ModelError`."""
    from ...core.models import open_model

    _, opened = open_model(name)
    config = opened.config
    fields = ("family", "layers", "heads", "width", "positions", "vocabulary")
    parameters = sum(prod(opened.weights.info(weight).shape) for weight in opened.weights)
    return {field: getattr(config, field) for field in fields} | {"parameters": parameters}


def _lines(models: list[Listed]) -> Iterator[str]:
    """The list as people read it."""
    from ...core.checkpoint.hub import hub_cache

    widest = max(len(model.name) for model in models if model.place != "other" or len(model.name) <= 30)
    for place, heading in _HEADINGS.items():
        members = [model for model in models if model.place == place]
        if members:
            yield tr(heading, folder=hub_cache()) if place == "cache" else tr(heading)
            for model in members:
                yield from _about(model, widest)
            yield ""
    yield tr("Also a folder or file of your own, and with --download a model on the hub: --model OWNER/NAME.")


def _about(model: Listed, widest: int) -> Iterator[str]:
    """A model in a line or two."""
    sign = "*" if model.default_by else " "
    said = [tr("cannot be opened: {problem}", problem=model.problem) if model.problem else _in_figures(model)]
    if model.about:
        said.append(tr(model.about))
    if model.default_by:
        said.append(_who(model.default_by))
    first, *rest = said
    yield f"{sign} {model.name:<{widest}}  {first}"
    for line in rest:
        yield f"  {'':<{widest}}  {line}"


def _who(default_by: str) -> str:
    """Who made a model the default, in words."""
    if default_by == "environment":
        return tr("what opens without --model, by {source}", source="$CUTAWAY_MODEL")
    if default_by == "settings":
        return tr("what opens without --model, by {source}", source=settings_path())
    return tr("what opens without --model")


def _in_figures(model: Listed) -> str:
    from ...core.models.families import family_title, shape_title

    shape = shape_title(model.layers or 0, model.heads or 0, model.width or 0)
    size = tr("{count} parameters", count=_count(model.parameters or 0))
    room = tr("{positions} positions, {vocabulary} tokens", positions=model.positions, vocabulary=model.vocabulary)
    return ", ".join((family_title(model.family or ""), size, shape, room))


def _count(parameters: int) -> str:
    """*parameters* as people say it: 4.2M."""
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if parameters >= size:
            return f"{parameters / size:.3g}{unit}"
    return str(parameters)
