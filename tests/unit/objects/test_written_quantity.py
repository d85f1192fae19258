"""Quantities written again: the canonical texts are those of apimachinery's resource.Quantity."""

import pytest

from extender.objects.quantity import parse
from extender.objects.written_quantity import Form, WrittenQuantity, written


@pytest.mark.parametrize(
    ("text", "want"),
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
def test_an_amount_is_written_with_the_greatest_suffix_that_keeps_it_exact(text: str, want: str) -> None:
    assert written(text).text == want


def test_a_sum_has_the_form_of_its_first_term_unless_that_is_zero() -> None:
    assert written("1Gi").plus(written("1G")).text == "2073741824"
    assert written("1G").plus(written("1Gi")).text == "2073741824"
    assert written("1Gi").plus(written("1024M")).form is Form.BINARY
    assert written("0").plus(written("2Gi")).text == "2Gi"


def test_a_product_has_the_form_of_what_is_multiplied() -> None:
    assert written("8Gi").times(parse("1.5")).text == "12Gi"
    assert written("3").times(parse("2Gi")).text == "6442450944"
    assert written("1Ki").times(parse("0.3")).text == "307200m"


def test_what_is_finer_than_nano_is_rounded_up() -> None:
    assert written("1n").times(parse("0.5")).text == "1n"


def test_huge_amounts_are_written_with_an_exponent() -> None:
    assert WrittenQuantity(parse("1E"), Form.DECIMAL).times(parse("1000")).text == "1e21"
