"""Numbers as people read them."""

from __future__ import annotations

from math import inf

import pytest

from cutaway.widgets.numbers import Number


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (1.5, ".2f", "1.50"),
        (-1.5, ".2f", "−1.50"),
        (-1234.5, ",.1f", "−1,234.5"),
        (-0.0, ".1f", "0.0"),
        (-0.004, ".2f", "0.00"),
        (-0.005001, ".2f", "−0.01"),
        (-0.0, "", "0.0"),
        (-0.3, "6.1f", "  −0.3"),
        (-1e-5, ".0e", "−1e−05"),
        (-inf, ".2f", "−inf"),
        (-0.0, "8.3f", "   0.000"),
        (-0.0, ".0e", "0e+00"),
        (-0.0, "+.1f", "+0.0"),
    ],
)
def test_a_minus_is_a_minus_and_stands_before_no_zero(value: float, form: str, text: str) -> None:
    assert format(Number(value), form) == text
