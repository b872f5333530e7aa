"""Rotary position encoding as configurations describe it: `rope_theta` with `rope_scaling`, or `rope_parameters`.

Both spellings of Hugging Face transformers say the same (docs: "Utilities for Rotary Embedding"); what an absent
field stands for is what it stands for there. How the angles follow from it is in `models/rotary.py`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..catalogue import tr
from ..errors import ModelError
from .fields import Fields
from .json_text import shown


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """How fast the pairs of a query and key turn from one position to the next.

    Pair i of d/2 turns by theta^(−2i/d) radians (Su et al. 2021, arXiv:2104.09864); a scaling slows some of them
    down, so that a longer text turns no further than the texts in training did.
    """

    theta: float
    scaling: str = "default"
    """``default`` (none), ``linear``, ``llama3`` or ``yarn``."""
    factor: float = 1.0
    """How many times slower the scaled pairs turn."""
    original_positions: int = 1
    """llama3, yarn: the context that the model was trained with before it was stretched."""
    low_frequency_factor: float = 1.0
    """llama3: pairs of fewer turns than this in the original context are slowed down in full."""
    high_frequency_factor: float = 4.0
    """llama3: pairs of more turns than this in the original context are left alone."""
    beta_fast: float = 32.0
    """yarn: pairs of more turns than this in the original context are left alone."""
    beta_slow: float = 1.0
    """yarn: pairs of fewer turns than this in the original context are slowed down in full."""
    truncate: bool = True
    """yarn: the range between the two is widened to whole pairs."""
    attention_factor: float = 1.0
    """yarn: queries and keys grow by this."""
    interleaved: bool = False
    """Pairs are neighbours (2i, 2i + 1); else they are (i, i + d/2)."""

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> "RopeConfig":
        """Return the configuration that ``dataclasses.asdict`` wrote. Raises ``ModelError``, naming ``rope``."""
        fields = Fields(values, "config.rope")
        try:
            return cls(
                theta=fields.positive("theta"),
                scaling=fields.one_of("scaling", {name: name for name in _SCALINGS}),
                factor=fields.positive("factor"),
                original_positions=fields.count("original_positions"),
                low_frequency_factor=fields.positive("low_frequency_factor"),
                high_frequency_factor=fields.positive("high_frequency_factor"),
                beta_fast=fields.positive("beta_fast"),
                beta_slow=fields.positive("beta_slow"),
                truncate=fields.flag("truncate"),
                attention_factor=fields.positive("attention_factor"),
                interleaved=fields.flag("interleaved"),
            )
        except ModelError as error:
            raise ModelError(tr("rope: {problem}", problem=error.what), where=error.where) from error

    def to_dict(self) -> dict[str, object]:
        """Return the fields as JSON can hold them."""
        return asdict(self)


def read_rope(fields: Fields, positions: int) -> RopeConfig:
    """Return what *fields* of a config.json say; *positions* is the model's context.

    Raises:
        ModelError: naming a field that is wrong or asks for a rotation that is not implemented.
    """
    rope = _described(fields)
    for each in (fields, rope):
        _refuse_unless(each, "partial_rotary_factor", (None, 1))
        _refuse_unless(each, "rope_interleaved", (None, False))
    kind = "rope_type" if "rope_type" in rope.values or "type" not in rope.values else "type"
    read = rope.one_of(kind, _SCALINGS, "default")
    theta = rope.positive("rope_theta") if "rope_theta" in rope.values else fields.positive("rope_theta")
    if theta <= 1:
        raise ModelError(tr("rope_theta should be above 1, but is {value}", value=theta), where=fields.where)
    top = fields.get("original_max_position_embeddings")
    if top is not None:  # where both are given, it is the one that counts
        rope = Fields({**rope.values, "original_max_position_embeddings": top}, rope.where)
    return RopeConfig(theta=theta, scaling=str(rope.get(kind) or "default"), **read(rope, positions))


def _described(fields: Fields) -> Fields:
    """Return the object that describes the rotation, empty where there is none; of two, they must not differ."""
    old, new = fields.get("rope_scaling"), fields.get("rope_parameters")
    if old and new and old != new:
        what = tr("rope_scaling and rope_parameters are one field with two values")
        raise ModelError(what, where=fields.where)
    name, value = ("rope_scaling", old) if old not in (None, {}) else ("rope_parameters", new)
    if value is None or value == {}:
        return Fields({}, fields.where)
    if not isinstance(value, dict) or any(isinstance(part, dict) for part in value.values()):
        what = tr("{field} is {value}, which is not supported", field=name, value=shown(value))
        raise ModelError(what, where=fields.where)
    return Fields(value, fields.where)


def _refuse_unless(fields: Fields, name: str, harmless: tuple[object, ...]) -> None:
    """Raise `ModelError` where field *name* asks for heads that turn only in part, or in other pairs."""
    if fields.get(name) not in harmless:
        what = tr("{field} is {value}, which is not supported", field=name, value=shown(fields.get(name)))
        raise ModelError(what, where=fields.where)


def _default(rope: Fields, positions: int) -> dict[str, Any]:
    return {}


def _linear(rope: Fields, positions: int) -> dict[str, Any]:
    return {"factor": rope.positive("factor")}


def _llama3(rope: Fields, positions: int) -> dict[str, Any]:
    read = {
        "factor": rope.positive("factor"),
        "original_positions": rope.count("original_max_position_embeddings", positions),
        "low_frequency_factor": rope.positive("low_freq_factor"),
        "high_frequency_factor": rope.positive("high_freq_factor"),
    }
    if read["high_frequency_factor"] <= read["low_frequency_factor"]:
        raise ModelError(tr("high_freq_factor should be above low_freq_factor"), where=rope.where)
    return read


def _yarn(rope: Fields, positions: int) -> dict[str, Any]:
    original = rope.count("original_max_position_embeddings", positions)
    factor = positions / original if rope.get("factor") is None else rope.positive("factor")
    return {
        "factor": factor,
        "original_positions": original,
        "beta_fast": _or(rope, "beta_fast", 32.0),
        "beta_slow": _or(rope, "beta_slow", 1.0),
        "truncate": rope.flag("truncate", True),
        "attention_factor": _attention_factor(rope, factor),
    }


_MOST_SHARPENED = 1e6
"""The largest of YaRN's factors of attention that is believed: scores grow with its square."""


def _attention_factor(rope: Fields, factor: float) -> float:
    """How much YaRN sharpens attention: given, or 0.1·ln(factor) + 1 (Peng et al. 2023, arXiv:2309.00071, 3.4)."""
    if rope.get("attention_factor") is not None:
        return rope.positive("attention_factor", most=_MOST_SHARPENED)

    def grown(scale: float) -> float:
        return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0

    if rope.get("mscale") and rope.get("mscale_all_dim"):
        sharpened, all_over = (rope.positive(name, most=_MOST_SHARPENED) for name in ("mscale", "mscale_all_dim"))
        return grown(sharpened) / grown(all_over)
    return grown(1.0)


def _or(rope: Fields, name: str, default: float) -> float:
    """Field *name*; absent, null and 0 all stand for *default*."""
    return rope.positive(name) if rope.get(name) else default


_SCALINGS: dict[str, Callable[[Fields, int], dict[str, Any]]] = {
    "default": _default,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
}
"""What each kind of scaling reads of its fields."""
