"""Canonical texts of quantities; they are those of apimachinery's resource.Quantity."""

import pytest

from extender.api.quantity import parse
from extender.api.quantity_format import Format, FormattedQuantity, parse_formatted


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("4096Mi", "4Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.0005Ki", "512m"),
        ("-3Gi", "-3Gi"),
        ("0.5", "500m"),
        ("1000000", "1M"),
        ("123456", "123456"),
        ("2048", "2048"),
        ("1E", "1E"),
        ("12e6", "12e6"),
        ("1E3", "1e3"),
        ("1e-3", "1e-3"),
        ("1e0", "1"),
        ("1000e3", "1e6"),
        ("0Gi", "0"),
    ],
)
def test_the_canonical_text_has_the_largest_exact_suffix(text: str, canonical: str) -> None:
    assert parse_formatted(text).text == canonical


def test_a_sum_has_the_format_of_its_first_term_unless_that_is_zero() -> None:
    assert parse_formatted("1Gi").plus(parse_formatted("1G")).text == "2073741824"
    assert parse_formatted("1G").plus(parse_formatted("1Gi")).text == "2073741824"
    assert parse_formatted("1Gi").plus(parse_formatted("1024M")).format is Format.BINARY
    assert parse_formatted("0").plus(parse_formatted("2Gi")).text == "2Gi"


def test_a_product_has_the_format_of_the_quantity() -> None:
    assert parse_formatted("8Gi").times(parse("1.5")).text == "12Gi"
    assert parse_formatted("3").times(parse("2Gi")).text == "6442450944"
    assert parse_formatted("1Ki").times(parse("0.3")).text == "307200m"


def test_values_below_nano_are_rounded_up() -> None:
    assert parse_formatted("1n").times(parse("0.5")).text == "1n"


def test_huge_values_have_an_exponent() -> None:
    assert FormattedQuantity(parse("1E"), Format.DECIMAL).times(parse("1000")).text == "1e21"
