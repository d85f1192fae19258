"""The contrast of the colours of the map and of the bars, as WCAG 2.2 defines it."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

import extender.ui

STYLE = (Path(extender.ui.__file__).parent / "static/style.css").read_text()
PARTS = STYLE.partition("* { box-sizing")[0].split("@media")
LIGHT, DARK = (dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", part)) for part in PARTS)
SCHEMES = {"light": LIGHT, "dark": {**LIGHT, **DARK}}
SCALE = [f"use-{step}" for step in range(5)]


def luminance(colour: str) -> float:
    """The relative luminance. Source: WCAG 2.2, relative luminance."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast ratio. Source: WCAG 2.2, contrast ratio."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_graphics_have_a_contrast_of_3_to_1_on_the_page(scheme: str) -> None:
    """Source: WCAG 2.2, success criterion 1.4.11."""
    colours = SCHEMES[scheme]
    names = [*SCALE, "use-full", "use-none", *(f"s{number}" for number in range(12))]
    ratios = {name: contrast(colours[name], colours["page"]) for name in names}
    assert {name: ratio for name, ratio in ratios.items() if ratio < 3} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_steps_of_the_scale_differ_in_brightness(scheme: str) -> None:
    colours = SCHEMES[scheme]
    for first, second in pairwise(SCALE):
        assert contrast(colours[first], colours[second]) >= 1.35


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_bar_of_use_has_a_contrast_of_3_to_1_on_its_track(scheme: str) -> None:
    colours = SCHEMES[scheme]
    fills = dict(re.findall(r"\.use \.([a-z]+) { fill: var\(--([a-z0-9-]+)\); }", STYLE))
    assert fills == {"all": "track", "part": "use-2", "full": "use-full"}
    assert min(contrast(colours[fills[name]], colours[fills["all"]]) for name in ("part", "full")) >= 3
