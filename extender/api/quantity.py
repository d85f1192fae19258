"""Resource quantities: text such as `1500m` or `2Gi`, and the integers the scheduler computes with.

As upstream, a quantity has one of two representations, which differ on overflow. An int64 amount (`int64Amount`) is
an int64 and a power of ten; an overflow wraps around or yields 0. A decimal amount (`infDecAmount`) has any number of
digits and is rounded up to nano units; an overflow wraps around.

Source: apimachinery/pkg/api/resource/quantity.go, Quantity, ParseQuantity (1.36).
"""

import re
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

MAX_INT64: Final = 2**63 - 1
_NANO: Final = -9
_SAFE_INT64_DIGITS: Final = 18
_WRAPPING_SHIFTS: Final = (1, 2, 3, 6, 9)
"""Powers of ten with which upstream multiplies without a loop, so that an overflow wraps around."""
_MAX_LENGTH: Final = 4096
_MAX_EXPONENT: Final = 4096
"""A larger exponent counts as this one: both numbers exceed 64 bits. So a short text cannot become a huge number."""

_MAX_CACHED_LENGTH: Final = 64
"""The longest text whose quantity is cached; pods may have thousands of different long ones."""

_LONG_NUMBER: Final = re.compile(rf"[1-9][0-9]{{{_MAX_LENGTH},}}", re.ASCII)
_GRAMMAR: Final = re.compile(r"([+-]?)([0-9]*+)(?:(\.)([0-9]*+))?+([eEinumkKMGTP]*+[+-]?[0-9]*+)", re.ASCII)
_EXPONENT_SUFFIX: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL_EXPONENTS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class Quantity(NamedTuple):
    """A quantity with the exact value `unscaled` * 10**`scale`.

    Attributes:
        unscaled: the number without its power of ten.
        scale: the exponent of the power of ten.
        is_int64_amount: whether upstream stores the quantity as an `int64Amount` instead of an `infDecAmount`.
    """

    unscaled: int
    scale: int
    is_int64_amount: bool

    def scaled_value(self, scale: int) -> int:
        """Round the value to units of 10**`scale` and return it as an int64.

        An int64 amount is rounded away from zero; an overflow wraps around if the number is multiplied by a power in
        `_WRAPPING_SHIFTS`, and yields 0 otherwise. A decimal amount is rounded up, and an overflow wraps around.
        """
        return _scale_int64_amount(self, scale) if self.is_int64_amount else _scale_decimal_amount(self, scale)

    def plus(self, other: "Quantity") -> "Quantity":
        """Return the exact sum. It is an int64 amount if both quantities are and the sum fits an int64."""
        if self.is_int64_amount and other.is_int64_amount:
            if not other.unscaled:
                return self
            if not self.unscaled:
                return other
        scale = min(self.scale, other.scale)
        left = self.unscaled * _compute_power_of_ten(self.scale - scale)
        right = other.unscaled * _compute_power_of_ten(other.scale - scale)
        total = left + right
        is_int64_amount = self.is_int64_amount and other.is_int64_amount and all(map(_fits_int64, (left, right, total)))
        return Quantity(total, scale, is_int64_amount)

    def exceeds(self, other: "Quantity") -> bool:
        """Return whether this quantity is greater than *other*."""
        if self.scale == other.scale:
            return self.unscaled > other.unscaled
        scale = min(self.scale, other.scale)
        return self.unscaled * _compute_power_of_ten(self.scale - scale) > other.unscaled * _compute_power_of_ten(
            other.scale - scale
        )


ZERO: Final = Quantity(0, 0, is_int64_amount=True)


def _compute_power_of_ten(exponent: int) -> int:
    """Return 10**exponent for an exponent of at least 0."""
    return int(10**exponent)


def _fits_int64(number: int) -> bool:
    return -MAX_INT64 - 1 <= number <= MAX_INT64


def _wrap_int64(number: int) -> int:
    """Convert to int64 with wraparound, as Go does."""
    return (number + 2**63) % 2**64 - 2**63


def _scale_int64_amount(quantity: Quantity, scale: int) -> int:
    # Source: apimachinery/pkg/api/resource/math.go, positiveScaleInt64 (1.36).
    shift = quantity.scale - scale
    if shift >= 0:
        result = quantity.unscaled * _compute_power_of_ten(shift)
        if _fits_int64(result):
            return result
        return _wrap_int64(result) if shift in _WRAPPING_SHIFTS else 0
    magnitude = -(-abs(quantity.unscaled) // _compute_power_of_ten(-shift))
    return magnitude if quantity.unscaled > 0 else -magnitude


def _scale_decimal_amount(quantity: Quantity, scale: int) -> int:
    shift = quantity.scale - scale
    if shift >= 0:
        return _wrap_int64(_wrap_int64(quantity.unscaled) * _wrap_int64(_compute_power_of_ten(shift)))
    divisor = _compute_power_of_ten(-shift)
    if quantity.unscaled < MAX_INT64 and -shift < _SAFE_INT64_DIGITS + 1:
        # Go divides towards zero and adds one for any remainder, even if the quantity is negative.
        unscaled = _wrap_int64(quantity.unscaled)
        quotient, remainder = divmod(abs(unscaled), divisor)
        return (quotient if unscaled >= 0 else -quotient) + (1 if remainder else 0)
    quotient, remainder = divmod(quantity.unscaled, divisor)
    return _wrap_int64(quotient + (1 if remainder else 0))


def parse(text: str | float) -> Quantity:
    """Parse a quantity from JSON or YAML.

    Args:
        text: a number, which may have an exponent or one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei.
            Surrounding spaces are ignored.

    Raises:
        ValueError: the text is not a quantity.

    Source: apimachinery/pkg/api/resource/quantity.go, ParseQuantity (1.36).
    """
    text = text.strip() if isinstance(text, str) else str(text)
    if len(text) > _MAX_LENGTH and _LONG_NUMBER.fullmatch(text):  # the API server stores it as it is
        text = f"{text[: _SAFE_INT64_DIGITS + 1]}e400"
    return _parse(text) if len(text) <= _MAX_CACHED_LENGTH else _parse.__wrapped__(text)


def _make_syntax_error(text: str) -> ValueError:
    return ValueError(f'quantity "{text[:64]}": want a number with an optional suffix such as m, k, M, Gi')


@lru_cache(maxsize=65536)
def _parse(text: str) -> Quantity:
    match = _GRAMMAR.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if match is None:
        raise _make_syntax_error(text)
    sign, integer, _, fraction, suffix = match.groups(default="")
    binary_exponent = _BINARY_EXPONENTS.get(suffix)
    exponent = _parse_exponent(text, suffix) if binary_exponent is None else 0
    digits = integer.lstrip("0") or "0"
    unscaled = _parse_int64_amount(digits, fraction, exponent, binary_exponent)
    if unscaled is not None:
        return Quantity(-unscaled if sign == "-" else unscaled, exponent - len(fraction), is_int64_amount=True)
    if not integer and not fraction:
        raise _make_syntax_error(text)
    number, scale = _round_up_to_nano(int(digits + fraction) << (binary_exponent or 0), exponent - len(fraction))
    if binary_exponent is not None and number > MAX_INT64 * _compute_power_of_ten(-scale):
        number, scale = MAX_INT64, 0
    return Quantity(-number if sign == "-" else number, scale, is_int64_amount=False)


def _parse_exponent(text: str, suffix: str) -> int:
    """Return the power of ten of a suffix."""
    exponent = _DECIMAL_EXPONENTS.get(suffix)
    if exponent is not None:
        return exponent
    match = _EXPONENT_SUFFIX.fullmatch(suffix)
    if match is None:
        raise _make_syntax_error(text)
    digits = match.group(1)
    if len(digits) > _SAFE_INT64_DIGITS:  # so that no long number is converted
        raise _make_syntax_error(text)
    return max(-_MAX_EXPONENT, min(int(digits), _MAX_EXPONENT))


def _parse_int64_amount(digits: str, fraction: str, exponent: int, binary_exponent: int | None) -> int | None:
    """Return the unscaled int64 of an int64 amount, or None if the quantity is a decimal amount."""
    if binary_exponent is None:
        spare_digits, factor = _SAFE_INT64_DIGITS - len(digits) - len(fraction), 1
    elif fraction:
        return None
    else:
        spare_digits, factor = 15 - len(digits) - binary_exponent * 3 // 10 - 1, 1 << binary_exponent
    if spare_digits < 0 or exponent - len(fraction) < _NANO:
        return None
    unscaled = int(digits + fraction) * factor
    return unscaled if _fits_int64(unscaled) else None


def _round_up_to_nano(number: int, scale: int) -> tuple[int, int]:
    """Return the number rounded up to nano units, and its scale. The scale of the number 0 is at most 0."""
    if not number:
        return 0, min(scale, 0)
    if scale >= _NANO:
        return number * _compute_power_of_ten(scale - _NANO), _NANO
    return -(-number // _compute_power_of_ten(_NANO - scale)), _NANO


def value(quantity: str | float | Quantity) -> int:
    """Return the value in whole units (bytes, counts), rounded up.

    Source: apimachinery/pkg/api/resource/quantity.go, Quantity.Value (1.36).
    """
    return (quantity if isinstance(quantity, Quantity) else parse(quantity)).scaled_value(0)


def milli_value(quantity: str | float | Quantity) -> int:
    """Return the value in thousandths, such as milli-CPU, rounded up.

    Source: apimachinery/pkg/api/resource/quantity.go, Quantity.MilliValue (1.36).
    """
    return (quantity if isinstance(quantity, Quantity) else parse(quantity)).scaled_value(-3)


def to_base_units(resource: str, quantity: str | float | Quantity) -> int:
    """Return the value in the base unit of a resource: milli-CPU for cpu, whole units for all others."""
    return milli_value(quantity) if resource == "cpu" else value(quantity)


_SI_SUFFIXES: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class Format(Enum):
    """The format of a quantity: `1500M`, `1500Mi`, `15e8`."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


class FormattedQuantity(NamedTuple):
    """A quantity and its format."""

    amount: Quantity
    format: Format

    def plus(self, other: "FormattedQuantity") -> "FormattedQuantity":
        """Return the exact sum in the format of this quantity, or of *other* if this one is zero."""
        sum_format = self.format if self.amount.unscaled else other.format
        return FormattedQuantity(self.amount.plus(other.amount), sum_format)

    def times(self, factor: Quantity) -> "FormattedQuantity":
        """Return the exact product in the format of this quantity."""
        amount = self.amount
        product = Quantity(amount.unscaled * factor.unscaled, amount.scale + factor.scale, is_int64_amount=False)
        return FormattedQuantity(product, self.format)

    @property
    def text(self) -> str:
        """The canonical text: an integer with the largest exact suffix. Fractions of nano units are rounded up."""
        number, exponent = self.amount.unscaled, self.amount.scale
        if exponent < _NANO:
            number, exponent = -(-number // 10 ** (_NANO - exponent)), _NANO
        while number and number % 10 == 0:
            number, exponent = number // 10, exponent + 1
        if not number:
            return "0"
        if self.format is Format.BINARY and exponent >= 0 and abs(whole := number * 10**exponent) >= 1 << 10:
            return _format_binary(whole)
        shift = exponent % 3
        number, exponent = number * 10**shift, exponent - shift
        if self.format is Format.EXPONENT or exponent not in _SI_SUFFIXES:
            return f"{number}e{exponent}" if exponent else str(number)
        return f"{number}{_SI_SUFFIXES[exponent]}"


def _format_binary(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_BINARY_SUFFIXES[power]}"


@lru_cache(maxsize=4096)
def parse_formatted(text: str | float) -> FormattedQuantity:
    """Parse a quantity from JSON or YAML with its format.

    Raises:
        ValueError: the text is not a quantity.
    """
    amount = parse(text)
    return FormattedQuantity(amount, _detect_format(str(text).strip(), amount))


def _detect_format(text: str, amount: Quantity) -> Format:
    if text.endswith("i"):
        below_one = amount.unscaled > 0 and Quantity(1, 0, is_int64_amount=True).exceeds(amount)
        return Format.DECIMAL if below_one else Format.BINARY
    return Format.EXPONENT if "e" in text or "E" in text[:-1] else Format.DECIMAL
