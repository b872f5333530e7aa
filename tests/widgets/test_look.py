"""Colours: scales that read without colour, text that reads on what it stands on."""

from itertools import pairwise, product

import pytest

from cutaway.widgets.look import COLORMAPS, LEVELS, THEMES, look, style


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb, as WCAG 2 defines it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(("theme", "colormap"), product(THEMES, COLORMAPS))
def test_a_scale_runs_one_way_in_lightness(theme: str, colormap: str) -> None:
    """More is lighter on dark ground and darker on light ground, so greys and colour-blind eyes see it too."""
    levels = look(theme, colormap).levels
    assert len(levels) == LEVELS == 64
    sign = 1 if theme == "dark" else -1
    steps = [sign * (luminance(high) - luminance(low)) for low, high in pairwise(levels)]
    assert min(steps) > -0.0005  # a step of one in 255 of a channel may round the wrong way
    assert sign * (luminance(levels[-1]) - luminance(levels[0])) > 0.3
    eighths = [luminance(levels[level]) for level in range(0, LEVELS, 9)]
    assert eighths == sorted(eighths, reverse=theme == "light")
    assert len(set(eighths)) == len(eighths)


@pytest.mark.parametrize("theme", THEMES)
def test_text_reads_on_its_ground(theme: str) -> None:
    colours = look(theme)
    for ground in (colours.panel, colours.ground):
        for ink in (colours.text, colours.quiet):
            assert contrast(ink, ground) >= 4.5, (ink, ground)
    assert contrast(colours.here, colours.panel) >= 4.5
    for mark in (colours.here, colours.what):
        assert contrast(colours.ink, mark) >= 4.5, mark


@pytest.mark.parametrize("theme", THEMES)
def test_text_reads_on_every_tint(theme: str) -> None:
    """Written text is never harder to read than quiet text for being a surprise."""
    colours = look(theme)
    tints = [colours.tint(strength / 100) for strength in range(101)]
    assert tints[0] == colours.panel and tints[-1] == colours.warm
    assert len(set(tints)) == 16
    assert colours.tint(-1) == tints[0] and colours.tint(9) == tints[-1]
    assert min(contrast(colours.text, tint) for tint in tints) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_absent_does_not_look_like_nothing_much(theme: str) -> None:
    """The panel's own colour stands for the future, the lowest level for a weight of 0."""
    for colormap in COLORMAPS:
        assert look(theme, colormap).levels[0] != look(theme, colormap).panel


def test_styles_are_made_once() -> None:
    assert style("#ffffff", "#000000", True) is style("#ffffff", "#000000", True)
    made = style("#ffffff", "#000000", italic=True)
    assert made.italic and not made.bold
