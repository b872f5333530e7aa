"""Activation functions by the names that config.json files have for them.

Transformers has several names for one function. gelu_fast only writes sqrt(2 / pi) with fewer digits than float32
tells apart; gelu_10, which clips, is another function and not here.
"""

ACTIVATIONS_IN_FILES = {
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh"), "gelu_tanh"),
    **dict.fromkeys(("gelu_accurate", "gelu_fast"), "gelu_tanh"),
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("silu", "swish"), "silu"),
    **{"quick_gelu": "gelu_quick", "relu": "relu", "tanh": "tanh"},
}
"""Each name's function, as `config.ACTIVATIONS` calls it."""
