"""Colours: scales that read without colour, text that reads on what it stands on."""

from itertools import pairwise, product

import pytest
from rich.color import Color, ColorSystem

from cutaway.widgets.look import COLORMAPS, LEVELS, MIDDLE, THEMES, Depth, Look, contrast, depth_of, look, style
from cutaway.widgets.palette import THEME_COLOURS

DEPTHS: tuple[Depth, ...] = ("truecolor", "256", "none")
COLOURED = DEPTHS[:2]

per_theme_and_depth = pytest.mark.parametrize(("theme", "depth"), [*product(THEMES, DEPTHS)])


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb, as WCAG 2 defines it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def deuteranope(colour: str) -> tuple[float, ...]:
    """How #rrggbb looks without green cones, in linear light (Viénot, Brettel and Mollon 1999)."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    yellow = 0.29275 * red + 0.70725 * green
    return yellow, yellow, -0.02234 * red + 0.02234 * green + blue


def every_colour(colours: Look) -> set[str]:
    """All that a look may put on the screen."""
    tints = [colours.tint(strength / 100) for strength in range(101)]
    named = [getattr(colours, name) for name in THEME_COLOURS[colours.depth][colours.name]]
    return {*colours.levels, *colours.signed_levels, *tints, *named}


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


@pytest.mark.parametrize(("theme", "colormap"), product(THEMES, COLORMAPS))
def test_a_scale_of_few_colours_runs_one_way_too(theme: str, colormap: str) -> None:
    """Ten steps or more, each lighter than the one before on dark ground, darker on light."""
    steps = list(dict.fromkeys(look(theme, colormap, "256").levels))
    assert len(look(theme, colormap, "256").levels) == LEVELS
    assert 10 <= len(steps) <= 16
    lightness = [luminance(step) for step in steps]
    assert lightness == sorted(set(lightness), reverse=theme == "light")


@pytest.mark.parametrize(("theme", "colormap"), product(THEMES, COLORMAPS))
def test_few_colours_reach_the_terminal_as_they_were_chosen(theme: str, colormap: str) -> None:
    for colour in every_colour(look(theme, colormap, "256")):
        reduced = Color.parse(colour).downgrade(ColorSystem.EIGHT_BIT)
        assert reduced.get_truecolor().hex == colour


@pytest.mark.parametrize(("theme", "depth"), product(THEMES, COLOURED))
def test_a_signed_scale_says_how_far_from_zero_by_lightness(theme: str, depth: Depth) -> None:
    levels = look(theme, depth=depth).signed_levels
    assert len(levels) == LEVELS
    for side in (levels[MIDDLE::-1], levels[MIDDLE:]):
        distances = [abs(luminance(colour) - luminance(levels[MIDDLE])) for colour in side]
        assert min(far - near for near, far in pairwise(distances)) > -0.0005
        assert distances[-1] > 0.3
    assert contrast(levels[MIDDLE], look(theme, depth=depth).panel) < 1.2


@pytest.mark.parametrize(("theme", "depth"), product(THEMES, COLOURED))
def test_the_sign_shows_without_green_cones(theme: str, depth: Depth) -> None:
    """Below zero blue outweighs yellow, above zero yellow blue, with every colour vision."""
    levels = look(theme, depth=depth).signed_levels
    for level in (0, 8, 16, 20, 44, 48, 56, 63):
        _, yellow, blue = deuteranope(levels[level])
        assert (blue > yellow) == (level < MIDDLE), levels[level]


@per_theme_and_depth
def test_text_reads_on_its_ground(theme: str, depth: Depth) -> None:
    colours = look(theme, depth=depth)
    for ground in (colours.panel, colours.ground):
        assert contrast(colours.text, ground) >= 7
        for ink in (colours.quiet, colours.here, colours.what):
            assert contrast(ink, ground) >= 4.5, (ink, ground)
    if depth != "none":
        assert contrast(colours.faint, colours.panel) >= 3
        assert contrast(colours.faint, colours.quiet) >= 1.3
    assert contrast(colours.line, colours.panel) >= 1.4
    for mark in (colours.here, colours.what):
        assert contrast(colours.ink, mark) >= 4.5, mark


@per_theme_and_depth
def test_text_reads_on_every_tint(theme: str, depth: Depth) -> None:
    """Written text is never harder to read than quiet text for being a surprise."""
    colours = look(theme, depth=depth)
    tints = [colours.tint(strength / 100) for strength in range(101)]
    assert tints[0] == colours.panel and tints[-1] == colours.warm
    assert len(set(tints)) == {"truecolor": 16, "256": 3, "none": 1}[depth]
    assert colours.tint(-1) == tints[0] and colours.tint(9) == tints[-1]
    assert min(contrast(colours.text, tint) for tint in tints) >= 4.5
    assert min(contrast(colours.quiet, tint) for tint in tints[:25]) >= 4.5


@pytest.mark.parametrize(("theme", "depth"), product(THEMES, COLOURED))
def test_what_is_absent_does_not_look_like_nothing_much(theme: str, depth: Depth) -> None:
    """The panel's own colour stands for the future, the lowest level for a weight of 0."""
    for colormap in COLORMAPS:
        assert look(theme, colormap, depth).levels[0] != look(theme, colormap, depth).panel


@pytest.mark.parametrize("theme", THEMES)
def test_without_colour_nothing_is_coloured(theme: str) -> None:
    colours = look(theme, depth="none")
    assert colours.glyphs and not look(theme).glyphs
    assert all(colour[1:3] == colour[3:5] == colour[5:7] for colour in every_colour(colours))
    assert {*colours.levels, *colours.signed_levels} == {colours.panel}


@pytest.mark.parametrize(
    ("system", "no_color", "depth"),
    [
        ("truecolor", False, "truecolor"),
        ("256", False, "256"),
        ("standard", False, "none"),
        ("windows", False, "none"),
        (None, False, "none"),
        ("truecolor", True, "none"),
    ],
)
def test_the_terminal_and_its_owner_decide_how_many_colours(system: str | None, no_color: bool, depth: Depth) -> None:
    assert depth_of(system, no_color) == depth


def test_contrast_is_what_wcag_says() -> None:
    assert contrast("#000000", "#ffffff") == contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_styles_are_made_once() -> None:
    assert style("#ffffff", "#000000", True) is style("#ffffff", "#000000", True)
    made = style("#ffffff", "#000000", italic=True)
    assert made.italic and not made.bold
