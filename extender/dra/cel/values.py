"""Values of Kubernetes' CEL types: quantities, semantic versions, IP addresses, CIDRs, URLs and formats.

Each value has a kind and a text. The library has one message type for all kinds. Two values are equal if kind and text
are equal, so texts are canonical.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

import ipaddress
import re
from typing import Final, NamedTuple

from extender.api.quantity import MAX_INT64, parse
from extender.basics.visible_text import quote
from extender.dra.cel.urls import split_url

NANO: Final = 10**9
"""Nano units per unit. Quantities are integers of nano units, the finest precision of a quantity."""

QUANTITY: Final = "quantity"
SEMVER: Final = "semver"
IP: Final = "ip"
CIDR: Final = "cidr"
URL: Final = "url"
FORMAT: Final = "format"

_MAX_UINT64: Final = 2**64 - 1
_PREFIX_LENGTH: Final = re.compile("0|[1-9][0-9]{0,2}")
_SEMVER_NUMBER: Final = r"(0|[1-9][0-9]*)"
_SEMVER_PRERELEASE: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER: Final = re.compile(
    rf"{_SEMVER_NUMBER}\.{_SEMVER_NUMBER}\.{_SEMVER_NUMBER}(?:-({_SEMVER_PRERELEASE}(?:\.{_SEMVER_PRERELEASE})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


class CelValue(NamedTuple):
    """A value of a Kubernetes CEL type.

    Attributes:
        kind: QUANTITY, SEMVER, IP, CIDR, URL or FORMAT.
        text: the canonical text; the name of a format for FORMAT.
    """

    kind: str
    text: str


def parse_quantity(text: str) -> CelValue:
    """Parse a quantity.

    Raises:
        ValueError: *text* is invalid.
    """
    if text != text.strip():
        raise ValueError(f'quantity "{text[:64]}": want a number with an optional suffix such as m, k, M, Gi')
    return CelValue(QUANTITY, str(to_nanos(text)))


def to_nanos(text: str | float) -> int:
    """Convert a quantity to nano units, exactly.

    Raises:
        ValueError: *text* is invalid.
    """
    amount = parse(text)
    return int(amount.unscaled * 10 ** (amount.scale + 9))


def parse_semver(text: str, *, normalize: bool = False) -> CelValue:
    """Parse a semantic version; build metadata is ignored.

    Args:
        text: the version, such as `1.2.3-alpha.1+build`.
        normalize: whether a leading `v`, missing parts and leading zeros are accepted.

    Raises:
        ValueError: *text* is invalid.
    """
    version = _normalize_semver(text) if normalize else text
    match = _SEMVER.fullmatch(version)
    if match is None or max(map(int, match.group(1, 2, 3))) > _MAX_UINT64:
        raise ValueError(_explain_semver(version))
    major, minor, patch, prerelease = match.groups()
    return CelValue(SEMVER, f"{major}.{minor}.{patch}" + (f"-{prerelease}" if prerelease else ""))


def _explain_semver(text: str) -> str:
    """Return why *text* is no semantic version.

    Source: github.com/blang/semver/v4/semver.go, Parse (4.0.0).
    """
    if not text:
        return "Version string empty"
    parts = text.split(".", 2)
    if len(parts) < 3:
        return "No Major.Minor.Patch elements found"
    patch = re.split("[-+]", parts[2], maxsplit=1)[0]
    for name, number in zip(("major", "minor", "patch"), (*parts[:2], patch), strict=True):
        if number.strip("0123456789"):
            return f"Invalid character(s) found in {name} number {quote(number)}"
        if len(number) > 1 and number.startswith("0"):
            return f"{name.capitalize()} number must not contain leading zeroes {quote(number)}"
    return f'semantic version "{text[:64]}": want three numbers and parts such as 1.2.3-rc.1+build'


def _normalize_semver(text: str) -> str:
    text = text.removeprefix("v")
    core, suffix = re.match(r"([^-+]*)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]  # matches any text
    numbers = [number.lstrip("0") or number[-1:] for number in core.split(".")]
    if len(numbers) < 3 and suffix:
        raise ValueError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*numbers, *["0"] * (3 - len(numbers))]) + suffix


def get_semver_numbers(text: str) -> tuple[int, int, int]:
    """Return major, minor and patch of a canonical version."""
    major, minor, patch = text.split("-", 1)[0].split(".")
    return int(major), int(minor), int(patch)


def make_semver_sort_key(text: str) -> tuple[object, ...]:
    """Return a sort key of a canonical version. Prereleases sort before releases, numbers before other identifiers."""
    prerelease = text.partition("-")[2]
    identifiers = (
        tuple(
            (0, int(identifier), "") if identifier.isdigit() else (1, 0, identifier)
            for identifier in prerelease.split(".")
        )
        if prerelease
        else ()
    )
    return (*get_semver_numbers(text), not prerelease, identifiers)


def parse_ip_address(text: str) -> CelValue:
    """Parse an IP address; zones and IPv4 addresses in IPv6 form are rejected.

    Raises:
        ValueError: *text* is invalid.
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id is not None or address.ipv4_mapped is not None):
        raise ValueError(f'IP address "{text[:64]}": zones and IPv4 addresses in IPv6 form are not supported')
    return CelValue(IP, str(address))


def parse_cidr(text: str) -> CelValue:
    """Parse a CIDR; host bits are preserved.

    Raises:
        ValueError: *text* is invalid.
    """
    host, slash, prefix_length = text.partition("/")
    if not slash or not _PREFIX_LENGTH.fullmatch(prefix_length):
        raise ValueError(f'CIDR "{text[:64]}": want an address, a slash and a number of bits')
    return CelValue(CIDR, str(ipaddress.ip_interface(f"{parse_ip_address(host).text}/{int(prefix_length)}")))


def parse_url(text: str) -> CelValue:
    """Parse an absolute URL or an absolute path.

    Raises:
        ValueError: *text* is invalid.
    """
    split_url(text)
    return CelValue(URL, text)


def to_int64(text: str) -> int | None:
    """Convert a canonical quantity to an int64; None if it is fractional or out of range."""
    units, fraction = divmod(int(text), NANO)
    return None if fraction or not -MAX_INT64 - 1 <= units <= MAX_INT64 else units
