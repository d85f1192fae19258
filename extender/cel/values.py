"""Kubernetes' own CEL types as texts of a kind: quantities, semantic versions, addresses, URLs, formats.

The library knows one type of message for all of them; two are equal when kind and text are. Texts are canonical, so
that equal amounts are equal values. Source: B123.
"""

import ipaddress
import re
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from extender.objects.quantity import parse

NANO: Final = 10**9
"""Quantities are integers of nano units; none is finer."""

QUANTITY: Final = "quantity"
SEMVER: Final = "semver"
IP: Final = "ip"
CIDR: Final = "cidr"
URL: Final = "url"
FORMAT: Final = "format"

_MAX_INT64: Final = 2**63 - 1
_NUMBER: Final = r"(0|[1-9][0-9]*)"
_PRE: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PRE}(?:\.{_PRE})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?", re.ASCII
)


class Kept(NamedTuple):
    """A value of one of these types.

    Attributes:
        kind: QUANTITY, SEMVER, IP, CIDR, URL or FORMAT.
        text: canonical; the name of a format.
    """

    kind: str
    text: str


def quantity(text: str) -> Kept:
    """The quantity that *text* stands for.

    Raises:
        ValueError: it is none.
    """
    return Kept(QUANTITY, str(nanos(text)))


def nanos(text: str | float) -> int:
    """A quantity in nano units, exact.

    Raises:
        ValueError: it is none.
    """
    amount = parse(text)
    return int(amount.unscaled * 10 ** (amount.scale + 9))


def semver(text: str, *, normalize: bool = False) -> Kept:
    """The semantic version that *text* stands for; build data does not count.

    Args:
        text: `1.2.3-alpha.1+build`.
        normalize: accept a leading `v`, missing parts and leading zeros.

    Raises:
        ValueError: it is none.
    """
    match = _VERSION.fullmatch(_normalized(text) if normalize else text)
    if match is None:
        raise ValueError(f'semantic version "{text[:64]}": want three numbers such as 1.2.3, without leading zeros')
    major, minor, patch, pre = match.groups()
    return Kept(SEMVER, f"{major}.{minor}.{patch}" + (f"-{pre}" if pre else ""))


def _normalized(text: str) -> str:
    text = text.removeprefix("v")
    core, rest = re.match(r"([^-+]*)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]  # matches any text
    parts = [part.lstrip("0") or part[-1:] for part in core.split(".")]
    return ".".join([*parts, *["0"] * (3 - len(parts))]) + rest


def version_numbers(text: str) -> tuple[int, int, int]:
    """Major, minor and patch of a canonical version."""
    major, minor, patch = text.split("-", 1)[0].split(".")
    return int(major), int(minor), int(patch)


def version_order(text: str) -> tuple[object, ...]:
    """A key by which canonical versions sort: a pre-release goes before its release, numbers before words."""
    pre = text.partition("-")[2]
    words = tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in pre.split(".")) if pre else ()
    return (*version_numbers(text), not pre, words)


def address(text: str) -> Kept:
    """The IP address that *text* stands for; zones and IPv4 in IPv6 are refused.

    Raises:
        ValueError: it is none.
    """
    found = ipaddress.ip_address(text)
    if isinstance(found, ipaddress.IPv6Address) and (found.scope_id is not None or found.ipv4_mapped is not None):
        raise ValueError(f'IP address "{text[:64]}": want one without a zone that is not an IPv4 address in IPv6 form')
    return Kept(IP, str(found))


def network(text: str) -> Kept:
    """The CIDR that *text* stands for, host bits kept.

    Raises:
        ValueError: it is none.
    """
    host, slash, bits = text.partition("/")
    if not slash or not bits.isdigit():
        raise ValueError(f'CIDR "{text[:64]}": want an address, a slash and a number of bits')
    return Kept(CIDR, str(ipaddress.ip_interface(f"{address(host).text}/{int(bits)}")))


def url(text: str) -> Kept:
    """The URL that *text* stands for: absolute, or an absolute path.

    Raises:
        ValueError: it is none.
    """
    parts = parsed_url(text)
    if not (parts.scheme or text.startswith("/")) or any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise ValueError(f'URL "{text[:64]}": want an absolute URL or an absolute path')
    return Kept(URL, text)


def parsed_url(text: str) -> SplitResult:
    """The parts of a URL.

    Raises:
        ValueError: its port is no number.
    """
    parts = urlsplit(text)
    _ = parts.port
    return parts


def whole(text: str) -> int | None:
    """A canonical quantity as an int64, or None if it is not whole or too large."""
    units, rest = divmod(int(text), NANO)
    return None if rest or not -_MAX_INT64 - 1 <= units <= _MAX_INT64 else units
