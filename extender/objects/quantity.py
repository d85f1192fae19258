"""Resource quantities: text such as `1500m` or `2Gi`, and the integers the scheduler counts with.

A quantity is kept as upstream keeps it, in one of two forms, because their overflow differs: small ones (an int64 and
a power of ten), whose value is 0 when it leaves int64, and big ones, rounded up to nano units, whose value wraps.
Ordinary quantities never come near either.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

MAX_INT64: Final = 2**63 - 1
_NANO: Final = -9
_SMALL_DIGITS: Final = 18
_MAX_LENGTH: Final = 4096
_MAX_EXPONENT: Final = 4096
"""Far beyond any amount with a value; keeps a short text from becoming a huge number."""

_GRAMMAR: Final = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class Quantity(NamedTuple):
    """The exact amount `unscaled` times ten to the power of `scale`; `small` if it is held as an int64."""

    unscaled: int
    scale: int
    small: bool

    def scaled(self, scale: int) -> int:
        """The amount in units of ten to the power of `scale`, rounded up, as an int64.

        Small quantities round away from zero and are 0 on overflow. Big ones round up and wrap.
        """
        return _scaled_small(self, scale) if self.small else _scaled_big(self, scale)

    def plus(self, other: "Quantity") -> "Quantity":
        """The exact sum; small as long as both terms and the sum are."""
        if self.small and other.small:
            if not other.unscaled:
                return self
            if not self.unscaled:
                return other
        scale = min(self.scale, other.scale)
        left = self.unscaled * _power(self.scale - scale)
        right = other.unscaled * _power(other.scale - scale)
        total = left + right
        small = self.small and other.small and all(_fits(part) for part in (left, right, total))
        return Quantity(total, scale, small)

    def exceeds(self, other: "Quantity") -> bool:
        """Whether this amount is greater."""
        if self.scale == other.scale:
            return self.unscaled > other.unscaled
        scale = min(self.scale, other.scale)
        return self.unscaled * _power(self.scale - scale) > other.unscaled * _power(other.scale - scale)


ZERO: Final = Quantity(0, 0, small=True)


def _power(exponent: int) -> int:
    """Ten to the power of an exponent of at least 0."""
    return int(10**exponent)


def _fits(number: int) -> bool:
    return -MAX_INT64 - 1 <= number <= MAX_INT64


def _wrapped(number: int) -> int:
    """The number as a conversion to int64 leaves it."""
    return (number + 2**63) % 2**64 - 2**63


def _scaled_small(quantity: Quantity, scale: int) -> int:
    up = quantity.scale - scale
    if up >= 0:
        result = quantity.unscaled * _power(up)
        return result if _fits(result) else 0
    magnitude = -(-abs(quantity.unscaled) // _power(-up))
    return magnitude if quantity.unscaled > 0 else -magnitude


def _scaled_big(quantity: Quantity, scale: int) -> int:
    up = quantity.scale - scale
    if up >= 0:
        return _wrapped(_wrapped(quantity.unscaled) * _wrapped(_power(up)))
    divisor = _power(-up)
    if quantity.unscaled < MAX_INT64 and -up < _SMALL_DIGITS + 1:
        # Go divides towards zero and then adds one for any remainder, also below zero.
        start = _wrapped(quantity.unscaled)
        floor, rest = divmod(abs(start), divisor)
        return (floor if start >= 0 else -floor) + (1 if rest else 0)
    floor, rest = divmod(quantity.unscaled, divisor)
    return _wrapped(floor + (1 if rest else 0))


def parse(text: str | float) -> Quantity:
    """Reads a quantity as it stands in JSON or YAML.

    Args:
        text: a number, or a number with one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an exponent;
            space around it does not count.

    Raises:
        ValueError: the text is not a quantity; the message says what is right.

    Source: A111.
    """
    return _parse(text.strip() if isinstance(text, str) else str(text))


def _wrong(text: str) -> ValueError:
    return ValueError(f'quantity "{text[:64]}": want a number with an optional suffix such as m, k, M, Gi')


@lru_cache(maxsize=65536)
def _parse(text: str) -> Quantity:
    match = _GRAMMAR.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if match is None:
        raise _wrong(text)
    sign, integer, _, fraction, suffix = match.groups(default="")
    binary = _BINARY.get(suffix)
    exponent = _decimal_exponent(text, suffix) if binary is None else 0
    digits = integer.lstrip("0") or "0"
    unscaled = _small_unscaled(digits, fraction, exponent, binary)
    if unscaled is not None:
        return Quantity(-unscaled if sign == "-" else unscaled, exponent - len(fraction), small=True)
    if not integer and not fraction:
        raise _wrong(text)
    number, scale = _rounded_up(int(digits + fraction) << (binary or 0), exponent - len(fraction))
    if binary is not None and number > MAX_INT64 * _power(-scale):
        number, scale = MAX_INT64, 0
    return Quantity(-number if sign == "-" else number, scale, small=False)


def _decimal_exponent(text: str, suffix: str) -> int:
    """The power of ten a suffix stands for."""
    known = _DECIMAL.get(suffix)
    if known is not None:
        return known
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise _wrong(text)
    digits = match.group(1)
    # The digits are counted first: reading millions of them would take long.
    if len(digits) > _SMALL_DIGITS or abs(int(digits)) > _MAX_EXPONENT:
        raise ValueError(f'quantity "{text[:64]}": want an exponent between -{_MAX_EXPONENT} and {_MAX_EXPONENT}')
    return int(digits)


def _small_unscaled(digits: str, fraction: str, exponent: int, binary: int | None) -> int | None:
    """The int64 of a quantity with few enough digits, else None."""
    if binary is None:
        room, factor = _SMALL_DIGITS - len(digits) - len(fraction), 1
    elif fraction:
        return None
    else:
        room, factor = 15 - len(digits) - binary * 3 // 10 - 1, 1 << binary
    if room < 0 or exponent - len(fraction) < _NANO:
        return None
    unscaled = int(digits + fraction) * factor
    return unscaled if _fits(unscaled) else None


def _rounded_up(number: int, scale: int) -> tuple[int, int]:
    """The number in nano units, rounded up; a number of 0 keeps its scale."""
    if not number:
        return 0, min(scale, 0)
    if scale >= _NANO:
        return number * _power(scale - _NANO), _NANO
    return -(-number // _power(_NANO - scale)), _NANO


def value(quantity: str | float | Quantity) -> int:
    """The amount in whole units (bytes, counts), rounded up. Source: A111."""
    return (quantity if isinstance(quantity, Quantity) else parse(quantity)).scaled(0)


def milli_value(quantity: str | float | Quantity) -> int:
    """The amount in thousandths, such as milli-CPU, rounded up. Source: A111."""
    return (quantity if isinstance(quantity, Quantity) else parse(quantity)).scaled(-3)


def base_units(resource: str, quantity: str | float | Quantity) -> int:
    """The amount in the units the scheduler counts a resource in: milli-CPU for cpu, whole units for all others."""
    return milli_value(quantity) if resource == "cpu" else value(quantity)
