"""Quantities; the expected values are those of apimachinery's resource.Quantity."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.api import quantity
from extender.api.quantity import Format, FormattedQuantity, parse, parse_formatted

MAX = 9223372036854775807

QUANTITIES = {
    "plain number": ("3", 3, 3000),
    "int of JSON": (3, 3, 3000),
    "float of JSON": (0.5, 1, 500),
    "large float of JSON": (1e22, 0, 0),
    "nano rounds up": ("1n", 1, 1),
    "micro": ("1500u", 1, 2),
    "milli": ("1500m", 2, 1500),
    "kilo": ("2k", 2000, 2000000),
    "mega": ("2M", 2000000, 2000000000),
    "giga": ("2G", 2000000000, 2000000000000),
    "tera": ("2T", 2 * 10**12, 2 * 10**15),
    "peta": ("2P", 2 * 10**15, 2 * 10**18),
    "exa fits as a value, not in thousandths": ("2E", 2 * 10**18, 0),
    "kibi": ("2Ki", 2048, 2048000),
    "mebi": ("200Mi", 209715200, 209715200000),
    "gibi with a fraction": ("1.5Gi", 1610612736, 1610612736000),
    "tebi": ("1Ti", 1099511627776, 1099511627776000),
    "pebi": ("1Pi", 1125899906842624, 1125899906842624000),
    "seven exbi": ("7Ei", 8070450532247928832, -9223372036854775808),
    "eight exbi are capped": ("8Ei", MAX, -1000),
    "exponent": ("12e3", 12000, 12000000),
    "capital exponent with sign": ("12E+3", 12000, 12000000),
    "negative exponent": ("1e-3", 1, 1),
    "less than a nano rounds up to one": ("1e-10", 1, 1),
    "leading dot": (".5", 1, 500),
    "trailing dot": ("5.", 5, 5000),
    "leading zeros": ("007", 7, 7000),
    "plus sign": ("+1", 1, 1000),
    "minus rounds away from zero": ("-1500m", -2, -1500),
    "minus in many digits rounds up": ("-0.1234567891", 1, -122),
    "sign alone is zero": ("-", 0, 0),
    "suffix alone is zero": ("Mi", 0, 0),
    "zero with a long exponent": ("0e-20", 0, 0),
    "zeros": ("000", 0, 0),
    "surrounding spaces": (" 5 ", 5, 5000),
    "ten exa exceed int64": ("10E", 0, 0),
    "sixteen digits wrap around in thousandths": ("9223372036854776", 9223372036854776, -9223372036854775616),
    "giga wrap around, and are zero in thousandths": ("18446744073710G", 448384000, 0),
    "nineteen digits are exact": ("9223372036854775807", MAX, -1000),
}


@pytest.mark.parametrize(("text", "value", "milli"), QUANTITIES.values(), ids=QUANTITIES.keys())
def test_a_quantity_has_its_value_in_units_and_in_thousandths(text: str | float, value: int, milli: int) -> None:
    assert (quantity.value(text), quantity.milli_value(text)) == (value, milli)


@pytest.mark.parametrize(
    "text",
    ["", "5gb", "1 Gi", "Gib", "1e", "e", "1.2.3", "--1", "1KI", "1ki", "1K", "0x10", "five", "1e5k", "1+3", "e-20"],
)
def test_an_invalid_quantity_is_rejected_with_a_description_of_the_syntax(text: str) -> None:
    with pytest.raises(ValueError, match="quantity") as error:
        quantity.parse(text)
    assert str(error.value) == f'quantity "{text}": want a number with an optional suffix such as m, k, M, Gi'


def test_nan_and_infinity_are_rejected() -> None:
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="want a number"):
            quantity.parse(number)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "milli_value"),
    [("1e999999999", 0), ("-1e999999999", 0), ("1e-999999999", 1), ("1" * 100000, 0), ("12345678901234567890e9999", 0)],
)
def test_a_huge_exponent_or_number_overflows_at_once(text: str, milli_value: int) -> None:
    """The API server accepts it. If it were an error, one pod would make pages and commands about all pods fail.

    Source: apimachinery/pkg/api/resource/math.go, positiveScaleInt64 (1.36).
    """
    assert quantity.milli_value(text) == milli_value


@pytest.mark.parametrize("text", ["1e" + "9" * 3000, "1" * 100000 + "Ki", "0" * 5000])
def test_a_long_quantity_that_the_api_server_does_not_store_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        quantity.parse(text)


def test_long_quantities_are_not_cached() -> None:
    """65,536 of them took 377 MiB."""
    cached_count = quantity._parse.cache_info().currsize
    for number in range(100):
        quantity.parse(f"{number + 1}{'1' * 3990}")
    assert quantity._parse.cache_info().currsize == cached_count


@pytest.mark.timeout(60)
@pytest.mark.parametrize("digits", ["1" * 4095, "1" * 2047 + "." + "1" * 2047])
def test_the_time_for_an_invalid_quantity_is_linear_in_its_length(digits: str) -> None:
    for _ in range(1000):  # 100 to 300 ms each, if the digits are divided in all possible ways
        with pytest.raises(ValueError, match="quantity"):
            quantity.parse(f"{digits}x")


def test_cpu_has_milli_units_and_other_resources_whole_units() -> None:
    assert quantity.to_base_units("cpu", "250m") == 250
    assert quantity.to_base_units("memory", "250m") == 1
    assert quantity.to_base_units("example.com/gpu", 2) == 2


def test_sums_are_exact_before_they_are_rounded() -> None:
    third = quantity.parse("333u")
    total = third.plus(third).plus(third)
    assert quantity.milli_value(third) == 1
    assert quantity.milli_value(total) == 1
    assert quantity.value(quantity.parse("0.5").plus(quantity.parse("1.5"))) == 2
    assert quantity.value(quantity.parse("1Gi").plus(quantity.parse("0.5Gi"))) == 1610612736


def test_a_sum_with_zero_is_the_other_quantity() -> None:
    assert quantity.ZERO.plus(quantity.parse("2")) == quantity.parse("2")
    assert quantity.parse("2").plus(quantity.ZERO) == quantity.parse("2")


def test_a_big_sum_that_exceeds_int64_wraps() -> None:
    term = quantity.parse("900000000000000000")
    total = quantity.ZERO
    for _ in range(11):
        total = total.plus(term)
    assert term.is_int64_amount
    assert not total.is_int64_amount
    assert total.scaled_value(0) == -8546744073709551616


def test_a_small_sum_that_exceeds_int64_is_zero() -> None:
    total = quantity.parse("7E").plus(quantity.parse("7E"))
    assert total.is_int64_amount
    assert total.scaled_value(0) == 0


def test_quantities_are_compared_by_value() -> None:
    assert quantity.parse("1Gi").exceeds(quantity.parse("1G"))
    assert not quantity.parse("1000m").exceeds(quantity.parse("1"))
    assert quantity.parse("2").exceeds(quantity.parse("1999m"))


SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "Ki": Fraction(2**10), "Mi": Fraction(2**20),
    "Gi": Fraction(2**30), "Ti": Fraction(2**40), "e2": Fraction(100), "E-5": Fraction(1, 10**5),
}  # fmt: skip


@given(
    whole=st.integers(0, 10**5),
    digits=st.text("0123456789", max_size=12),
    suffix=st.sampled_from(sorted(SUFFIXES)),
    scale=st.sampled_from([0, -3]),
)
def test_a_value_within_int64_is_the_exact_fraction_rounded_up(
    whole: int, digits: str, suffix: str, scale: int
) -> None:
    exact = (whole + Fraction(int(digits or "0"), 10 ** len(digits))) * SUFFIXES[suffix] * 10**-scale
    text = f"{whole}.{digits}{suffix}" if digits else f"{whole}{suffix}"
    if exact < 2**53:
        assert quantity.parse(text).scaled_value(scale) == -(-exact.numerator // exact.denominator)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(["m", "", "k", "Ki", "Mi"])), max_size=6))
def test_a_sum_of_quantities_is_the_sum_of_their_fractions(terms: list[tuple[int, str]]) -> None:
    total = quantity.ZERO
    for number, suffix in terms:
        total = total.plus(quantity.parse(f"{number}{suffix}"))
    exact = sum((number * SUFFIXES[suffix] for number, suffix in terms), Fraction())
    assert quantity.value(total) == -(-exact.numerator // exact.denominator)


@given(st.text("0123456789+-.eEinumkKMGTP ", max_size=10))
def test_any_text_is_parsed_or_raises_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(quantity.milli_value(text), int)


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
