"""The ruler: every share where it belongs, the number on the token that was drawn."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from textual.strip import Strip

from cutaway.widgets.look import look, style
from cutaway.widgets.share_ruler import GAP, Share, cell_of, ruler, stretches

Check = Callable[[Sequence[Strip], int], None]

WIDTHS = [12, 30, 40, 58, 100, 120]


def some_shares(seed: int, uniform: float, count: int = 12) -> tuple[Share, ...]:
    """Shares of a random distribution, those under a hundredth left out unless drawn."""
    weights = np.random.default_rng(seed).random(count) ** 6
    ends = np.cumsum(weights / weights.sum())
    begins = np.concatenate([[0.0], ends[:-1]])
    drawn = min(int(np.searchsorted(ends, uniform, side="right")), count - 1)
    return tuple(
        Share(f"·t{place}", float(begins[place]), float(ends[place]), place == drawn)
        for place in range(count)
        if ends[place] - begins[place] >= 0.01 or place == drawn
    )


@pytest.mark.parametrize("band", [10, 28, 56, 98])
def test_a_stretch_is_as_wide_as_its_share(band: int) -> None:
    for seed in range(20):
        shares = some_shares(seed, 0.37)
        runs = list(stretches(shares, 0.37, band))
        assert sum(count for _, count in runs) == band
        for share, count in runs:
            if share is not None:
                assert abs(count - (share.high - share.low) * band) < 2  # one for the middles, and the cell under u
        order = [share.low for share, _ in runs if share is not None]
        assert order == sorted(order)


@pytest.mark.parametrize("band", [10, 28, 56, 98])
def test_the_number_stands_on_the_drawn_token_however_small(band: int) -> None:
    for seed, uniform in ((seed, uniform) for seed in range(9) for uniform in np.linspace(0, 1, 60, endpoint=False)):
        begin = 0
        for share, count in stretches(some_shares(seed, uniform), float(uniform), band):
            if begin <= cell_of(float(uniform), band) < begin + count:
                assert share is not None and share.drawn
            begin += count


@pytest.mark.parametrize("width", WIDTHS)
def test_the_mark_stands_over_the_drawn_stretch(width: int) -> None:
    here = style(look().ink, look().here, True)
    for seed, uniform in ((0, 0.0), (1, 0.3), (2, 0.5), (3, 0.77), (4, 0.9999)):
        mark, band, _ = ruler(some_shares(seed, uniform), uniform, width, look())
        column = mark.text.index("▾")
        under = band.crop(column, column + 1)
        assert [segment.style for segment in under] == [here]
        assert f"u = {uniform:.4f}" in mark.text or width < 30


def test_a_cell_belongs_to_the_share_its_middle_lies_in() -> None:
    shares = Share("·a", 0.04, 0.46, False), Share("·b", 0.46, 0.94, False)
    assert [count for _, count in stretches(shares, None, 10)] == [5, 4, 1]


def test_a_token_put_by_hand_stays_where_it_lies() -> None:
    shares = (Share("·a", 0.0, 0.5, False), Share("·b", 0.5, 1.0, True))
    assert [(share and share.text, count) for share, count in stretches(shares, 0.1, 10)] == [("·a", 5), ("·b", 5)]


def test_before_the_draw_there_is_no_mark() -> None:
    mark, band, _ = ruler((Share("·a", 0.0, 1.0, False),), None, 40, look())
    assert not mark.text.strip() and band.text.strip() == "·a"


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_are_whole_or_left_out_and_neighbours_differ(width: int) -> None:
    for seed in range(20):
        shares = some_shares(seed, 0.2)
        _, band, _ = ruler(shares, 0.2, width, look())
        said = [text for segment in band if (text := segment.text.strip(" " + GAP))]
        wide = [share.text for share, count in stretches(shares, 0.2, width - 2) if share and len(share.text) <= count]
        assert said == wide
    two = Share("·a", 0.0, 0.5, False), Share("·b", 0.5, 1.0, False)
    _, band, _ = ruler(two, None, 40, look())
    grounds = [segment.style.bgcolor for segment in band if segment.style and "·" in segment.text]
    assert len(grounds) == 2 and all(one != other for one, other in pairwise(grounds))


def test_many_small_tokens_are_a_gap() -> None:
    _, band, _ = ruler((Share("·a", 0.0, 0.25, False), Share("·b", 0.75, 1.0, True)), 0.8, 42, look())
    assert band.text.count(GAP) == 20 and GAP not in band.text[1:11]


def test_the_ruler_counts_from_nothing_to_one() -> None:
    _, band, ticks = ruler((Share("·a", 0.0, 1.0, True),), 0.4, 42, look())
    assert ticks.text.split() == ["0", "0.25", "0.5", "0.75", "1"]
    assert ticks.text.index("0.5") + 1 == 1 + 20 and ticks.text.rstrip()[-1] == "1" and len(ticks.text.rstrip()) == 41
    assert band.text.index("·a") == 1 + 19


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("width", [1, 2, 3, 9, 30, 58])
def test_any_label_at_any_width(width: int, theme: str, hostile_tokens: list[str], check_rows: Check) -> None:
    ends = np.linspace(0, 1, 9)
    for start in range(0, 200, 8):
        texts = hostile_tokens[start : start + 8]
        shares = tuple(
            Share(text, float(ends[place]), float(ends[place + 1]), place == 3) for place, text in enumerate(texts)
        )
        check_rows(ruler(shares, 0.4, width, look(theme)), width)


def test_without_colour_stretches_still_differ() -> None:
    shares = Share("·a", 0.0, 0.5, False), Share("·b", 0.5, 1.0, False)
    _, band, _ = ruler(shares, None, 42, look("dark", "lagoon", "none"))
    assert band.text[3] != band.text[-4]
    _, band, _ = ruler((shares[0], Share("·b", 0.5, 1.0, True)), 0.7, 42, look("dark", "lagoon", "none"))
    one, other = (next(segment.style for segment in band if label in segment.text) for label in ("·a", "·b"))
    assert one != other
