"""Conversion between seconds and Go durations such as `1m30s` and `100ms`."""

import re
from typing import Annotated, Final

NANOSECONDS_PER_SECOND: Final = 1_000_000_000
_MAX_NANOSECONDS: Final = 2**63 - 1
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek mu
    "ms": 1_000_000,
    "s": NANOSECONDS_PER_SECOND,
    "m": 60 * NANOSECONDS_PER_SECOND,
    "h": 3600 * NANOSECONDS_PER_SECOND,
}
_COMPONENT: Final = re.compile(r"([0-9]*)(\.([0-9]*))?([^0-9.]*)")


class GoDuration:
    """The annotation of a field in seconds. Documents contain the field as a Go duration."""

    __slots__ = ()


Duration = Annotated[float, GoDuration()]
"""A number of seconds. Documents contain it as a Go duration, such as `1m30s`."""


def parse(text: str) -> float:
    """Parse a Go duration such as `1m30s`, `-1.5h` or `0` to seconds.

    Source: Go's time.ParseDuration, used by metav1.Duration.

    Raises:
        ValueError: *text* is not a duration. The message is Go's.
    """
    unsigned_text = text[1:] if text[:1] in {"-", "+"} else text
    if unsigned_text == "0":
        return 0.0
    if not unsigned_text:
        raise ValueError(f'time: invalid duration "{text}"')
    total = 0
    position = 0
    while position < len(unsigned_text):
        component = _COMPONENT.match(unsigned_text, position)
        if component is None or not (component[1] or component[3]):
            raise ValueError(f'time: invalid duration "{text}"')
        if not component[4]:
            raise ValueError(f'time: missing unit in duration "{text}"')
        if component[4] not in _UNITS:
            raise ValueError(f'time: unknown unit "{component[4]}" in duration "{text}"')
        fraction = component[3] or ""
        total += int(component[1] + fraction or "0") * _UNITS[component[4]] // 10 ** len(fraction)
        position = component.end()
    if total > _MAX_NANOSECONDS:
        raise ValueError(f'time: invalid duration "{text}"')
    return (-total if text[0] == "-" else total) / NANOSECONDS_PER_SECOND


def render(seconds: float) -> str:
    """Format *seconds* as Go's Duration.String does: `15s`, `1m30s`, `1h0m0s`, `1.5ms`, `0s`."""
    nanoseconds = round(seconds * NANOSECONDS_PER_SECOND)
    sign, remaining = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if remaining == 0:
        return "0s"
    if remaining < NANOSECONDS_PER_SECOND:
        unit = next(unit for unit in ("ms", "\u00b5s", "ns") if remaining >= _UNITS[unit])
        return sign + _format_decimal(remaining, _UNITS[unit]) + unit
    minutes, remainder = divmod(remaining, 60 * NANOSECONDS_PER_SECOND)
    text = _format_decimal(remainder, NANOSECONDS_PER_SECOND) + "s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = (f"{hours}h" if hours else "") + f"{minutes}m" + text
    return sign + text


def _format_decimal(value: int, unit: int) -> str:
    whole, remainder = divmod(value, unit)
    if not remainder:
        return str(whole)
    digits = str(remainder).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"
