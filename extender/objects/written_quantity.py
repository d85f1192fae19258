"""Quantities with the form they were written in: added up, multiplied, and written again as the API server does."""

from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from extender.objects import quantity
from extender.objects.quantity import Quantity

_NANO: Final = -9
_SI: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class Form(Enum):
    """How a quantity is written: `1500M`, `1500Mi`, `15e8`."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


class WrittenQuantity(NamedTuple):
    """An amount and its form."""

    amount: Quantity
    form: Form

    def plus(self, other: "WrittenQuantity") -> "WrittenQuantity":
        """The exact sum, in this form unless this is zero."""
        form = self.form if self.amount.unscaled else other.form
        return WrittenQuantity(self.amount.plus(other.amount), form)

    def times(self, factor: Quantity) -> "WrittenQuantity":
        """The exact product, in this form."""
        amount, other = self.amount, factor
        product = Quantity(amount.unscaled * other.unscaled, amount.scale + other.scale, small=False)
        return WrittenQuantity(product, self.form)

    @property
    def text(self) -> str:
        """The canonical text: no fraction, the greatest suffix that keeps it exact; nothing is finer than nano."""
        number, exponent = self.amount.unscaled, self.amount.scale
        if exponent < _NANO:
            number, exponent = -(-number // 10 ** (_NANO - exponent)), _NANO
        while number and number % 10 == 0:
            number, exponent = number // 10, exponent + 1
        if not number:
            return "0"
        if self.form is Form.BINARY and exponent >= 0 and abs(whole := number * 10**exponent) >= 1 << 10:
            return _binary(whole)
        up = exponent % 3
        number, exponent = number * 10**up, exponent - up
        if self.form is Form.EXPONENT or exponent not in _SI:
            return f"{number}e{exponent}" if exponent else str(number)
        return f"{number}{_SI[exponent]}"


def _binary(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < len(_BINARY) - 1:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_BINARY[power]}"


@lru_cache(maxsize=4096)
def written(text: str | float) -> WrittenQuantity:
    """A quantity as it stands in JSON or YAML, with its form.

    Raises:
        ValueError: it is none.
    """
    amount = quantity.parse(text)
    return WrittenQuantity(amount, _form(str(text).strip(), amount))


def _form(text: str, amount: Quantity) -> Form:
    if text.endswith("i"):
        below_one = amount.unscaled > 0 and Quantity(1, 0, small=True).exceeds(amount)
        return Form.DECIMAL if below_one else Form.BINARY
    return Form.EXPONENT if "e" in text or "E" in text[:-1] else Form.DECIMAL
