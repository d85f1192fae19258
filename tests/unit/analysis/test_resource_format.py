"""Amounts, percentages and tables as text."""

import pytest

from extender.analysis.text_table import format_amount, format_count, format_percent, format_table


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 0, "0"),
        ("cpu", 500, "500m"),
        ("cpu", 2000, "2"),
        ("cpu", 2500, "2500m"),
        ("cpu", 12500, "12.5"),
        ("cpu", 82386812, "82386.812"),
        ("cpu", -500, "-500m"),
        ("memory", 1023, "1023"),
        ("memory", 1024, "1Ki"),
        ("memory", 1536 * 1024, "1.5Mi"),
        ("ephemeral-storage", 3 << 40, "3Ti"),
        ("hugepages-2Mi", 2 << 20, "2Mi"),
        ("example.com/gpu", 4096, "4096"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_have_readable_units(resource: str, amount: int, text: str) -> None:
    assert format_amount(resource, amount) == text


@pytest.mark.parametrize(("part", "whole", "text"), [(1, 3, "33%"), (2, 2, "100%"), (0, 0, "-")])
def test_fractions_are_in_percent(part: int, whole: int, text: str) -> None:
    assert format_percent(part, whole) == text


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert format_table([("A", "B"), ("long", "7"), ("x",)], right_aligned=[1], indent=" ") == [
        " A     B",
        " long  7",
        " x",
    ]
    assert format_table([]) == []


def test_counts_have_a_singular_and_a_plural() -> None:
    assert [format_count(number, "node") for number in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
