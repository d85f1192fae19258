"""Parsing and rendering of Go durations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.config.durations import parse, render

PARSED = {
    "0": 0.0,
    "15s": 15.0,
    "1m30s": 90.0,
    "100ms": 0.1,
    "1.5h": 5400.0,
    "-2s": -2.0,
    "+2s": 2.0,
    ".5s": 0.5,
    "1.s": 1.0,
    "3us": 0.000003,
    "3\u00b5s": 0.000003,
    "7ns": 0.000000007,
    "1h2m3.5s": 3723.5,
}


@pytest.mark.parametrize(("text", "seconds"), PARSED.items(), ids=PARSED)
def test_a_duration_is_parsed_to_seconds(text: str, seconds: float) -> None:
    assert parse(text) == seconds


INVALID = {
    "": 'time: invalid duration ""',
    "-": 'time: invalid duration "-"',
    "s": 'time: invalid duration "s"',
    ".s": 'time: invalid duration ".s"',
    "1.2.3s": 'time: missing unit in duration "1.2.3s"',
    "15": 'time: missing unit in duration "15"',
    "1d": 'time: unknown unit "d" in duration "1d"',
    "1 s": 'time: unknown unit " s" in duration "1 s"',
    "3000000h": 'time: invalid duration "3000000h"',
}


@pytest.mark.parametrize(("text", "message"), INVALID.items(), ids=INVALID)
def test_an_invalid_duration_is_rejected_with_the_message_of_go(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="time: ") as caught:
        parse(text)
    assert str(caught.value) == message


RENDERED = {
    0.0: "0s",
    15.0: "15s",
    90.0: "1m30s",
    3600.0: "1h0m0s",
    600.0: "10m0s",
    1.5: "1.5s",
    0.1: "100ms",
    0.0015: "1.5ms",
    0.000003: "3\u00b5s",
    0.000000007: "7ns",
    -2.0: "-2s",
}


@pytest.mark.parametrize(("seconds", "text"), RENDERED.items(), ids=RENDERED.values())
def test_a_duration_is_rendered_as_in_go(seconds: float, text: str) -> None:
    assert render(seconds) == text


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_rendered_duration_is_parsed_back(nanoseconds: int) -> None:
    seconds = nanoseconds / 10**9
    assert parse(render(seconds)) == seconds
