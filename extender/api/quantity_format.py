"""Quantities with their format, for arithmetic whose result is written back to the API.

Source: apimachinery/pkg/api/resource/quantity.go, Format, Quantity.CanonicalizeBytes (1.36).
"""

from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from extender.api import quantity
from extender.api.quantity import Quantity

_NANO: Final = -9
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
    amount = quantity.parse(text)
    return FormattedQuantity(amount, _detect_format(str(text).strip(), amount))


def _detect_format(text: str, amount: Quantity) -> Format:
    if text.endswith("i"):
        below_one = amount.unscaled > 0 and Quantity(1, 0, is_int64_amount=True).exceeds(amount)
        return Format.DECIMAL if below_one else Format.BINARY
    return Format.EXPONENT if "e" in text or "E" in text[:-1] else Format.DECIMAL
