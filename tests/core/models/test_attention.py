"""Attention over long prompts, which is computed a few queries at a time."""

from __future__ import annotations

import numpy as np
import pytest

from cutaway.core.models.attention import attention_pattern

SIZES = [1, 31, 32, 33, 64, 70]


@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("heads", "key_heads"), [(4, 4), (6, 2), (3, 1)])
def test_many_queries_are_one_query_after_the_other(n: int, start: int, heads: int, key_heads: int) -> None:
    random = np.random.default_rng(n)
    query = random.standard_normal((heads, n, 8), np.float32)
    key = random.standard_normal((key_heads, start + n, 8), np.float32)
    together = attention_pattern(query, key, 0.3, start)
    assert together.shape == (heads, n, start + n)
    for row in range(n):
        seen = start + row + 1
        alone = attention_pattern(query[:, row : row + 1], key[:, :seen], 0.3, start + row)
        np.testing.assert_allclose(together[:, row, :seen], alone[:, 0], atol=1e-6)
        assert not together[:, row, seen:].any()
