"""Fields that ask for mathematics which is not implemented: refused by name, never computed wrongly."""

from ..catalogue import tr
from ..errors import ModelError
from .fields import Fields
from .json_text import shown


def refuse_unsupported(fields: Fields, positions: int) -> None:
    """Check that *fields* ask for nothing beyond a dense decoder; *positions* is the model's context.

    Raises:
        ModelError: naming the field that does.
    """
    asked = (
        _given(fields, "quantization_config", "compression_config")
        or _on(fields, "add_cross_attention")
        or _on(fields, "is_encoder_decoder")
        or _given(fields, "pruned_heads")
        or _experts(fields)
        or _window(fields, positions)
    )
    if asked is not None:
        what = tr("{field} is {value}, which is not supported", field=asked, value=shown(fields.get(asked)))
        hint = tr("this version computes dense decoders with full attention and unquantised weights")
        raise ModelError(what, where=fields.where, hint=hint)


def _on(fields: Fields, name: str) -> str | None:
    """Return *name* if that flag is set."""
    return name if fields.flag(name, False) else None


def _given(fields: Fields, *names: str) -> str | None:
    """Return the first of *names* whose field is there and neither empty nor zero."""
    return next((name for name in names if fields.get(name)), None)


def _experts(fields: Fields) -> str | None:
    """Return the field that asks for a mixture of experts; ``use_moe: false`` turns those listed off."""
    if fields.get("use_moe") is False:
        return None
    return _given(fields, "use_moe", "num_experts", "num_local_experts", "n_routed_experts")


def _window(fields: Fields, positions: int) -> str | None:
    """Return the field that lets attention see less than the whole context."""
    layers, window, is_on = (fields.get(name) for name in ("layer_types", "sliding_window", "use_sliding_window"))
    if layers is not None and not (isinstance(layers, list) and all(kind == "full_attention" for kind in layers)):
        return "layer_types"
    reaches_all = window is None or (type(window) is int and window >= positions)
    full, count = fields.get("max_window_layers"), fields.get("num_hidden_layers")
    none_left = type(full) is int and type(count) is int and full >= count  # the layers from that one on have it
    no_layer_has_it = is_on is True and (layers is not None or none_left)
    return None if reaches_all or is_on is False or no_layer_has_it else "sliding_window"
