"""How people write a part of a model: LAYER.HEAD, or LAYER.mlp. Imports no engine: ``--help`` stays instant."""

from __future__ import annotations

import re

PART = re.compile(r"([0-9]{1,9})\.([0-9]{1,9}|mlp)")
"""Its groups are the layer, and the head or ``mlp``."""

SCALED_PART = re.compile(rf"({PART.pattern})=(-?[0-9]{{1,9}}(?:\.[0-9]{{0,9}})?)")
"""``PART=FACTOR``; the first group is the part, the last one the factor."""
