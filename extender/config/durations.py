"""Durations as Go writes them, `1m30s` and `100ms`, to and from seconds."""

import re
from typing import Annotated, Final

NANOSECONDS: Final = 1_000_000_000
_LONGEST: Final = 2**63 - 1
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek mu
    "ms": 1_000_000,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}
_PART: Final = re.compile(r"([0-9]*)(\.([0-9]*))?([^0-9.]*)")


class GoDuration:
    """Marks a float of seconds that a document writes as a Go duration."""

    __slots__ = ()


Duration = Annotated[float, GoDuration()]
"""Seconds; `100ms` in a document. Annotate a field of an options type with it."""


def parse(text: str) -> float:
    """The seconds of a Go duration such as `1m30s`, `-1.5h` or `0`.

    Source: metav1.Duration, which reads with Go's time.ParseDuration.

    Raises:
        ValueError: it is not one, in Go's words.
    """
    unsigned = text[1:] if text[:1] in {"-", "+"} else text
    if unsigned == "0":
        return 0.0
    if not unsigned:
        raise ValueError(f'time: invalid duration "{text}"')
    total = 0
    at = 0
    while at < len(unsigned):
        part = _PART.match(unsigned, at)
        if part is None or not (part[1] or part[3]):
            raise ValueError(f'time: invalid duration "{text}"')
        if not part[4]:
            raise ValueError(f'time: missing unit in duration "{text}"')
        if part[4] not in _UNITS:
            raise ValueError(f'time: unknown unit "{part[4]}" in duration "{text}"')
        fraction = part[3] or ""
        total += int(part[1] + fraction or "0") * _UNITS[part[4]] // 10 ** len(fraction)
        at = part.end()
    if total > _LONGEST:
        raise ValueError(f'time: invalid duration "{text}"')
    return (-total if text[0] == "-" else total) / NANOSECONDS


def render(seconds: float) -> str:
    """*seconds* as Go's Duration.String writes them: `15s`, `1m30s`, `1h0m0s`, `1.5ms`, `0s`."""
    nanoseconds = round(seconds * NANOSECONDS)
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if left == 0:
        return "0s"
    if left < NANOSECONDS:
        unit = next(unit for unit in ("ms", "\u00b5s", "ns") if left >= _UNITS[unit])
        return sign + _decimal(left, _UNITS[unit]) + unit
    minutes, rest = divmod(left, 60 * NANOSECONDS)
    written = _decimal(rest, NANOSECONDS) + "s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        written = (f"{hours}h" if hours else "") + f"{minutes}m" + written
    return sign + written


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"
