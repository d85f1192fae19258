"""Timestamps in the formats of the Kubernetes API."""

from extender.api.timestamps import format_micro_time, format_time


def test_a_time_has_whole_seconds_and_is_truncated() -> None:
    assert format_time(1_700_000_000.999) == "2023-11-14T22:13:20Z"


def test_a_micro_time_always_has_six_decimal_places() -> None:
    assert format_micro_time(1_700_000_000.5) == "2023-11-14T22:13:20.500000Z"
    assert format_micro_time(1_700_000_000.0) == "2023-11-14T22:13:20.000000Z"


def test_a_year_has_four_digits() -> None:
    assert format_time(-62135596800.0) == "0001-01-01T00:00:00Z"
    assert format_micro_time(-62135596799.5) == "0001-01-01T00:00:00.500000Z"
