"""The functions that Kubernetes adds to CEL, beside those the library has.

Known are all of the environment of Kubernetes 1.36 that a device selector can use: quantities, semantic versions, URLs,
IP addresses and CIDRs, sets, lists, named formats, what regular expressions find. `calls` writes in them what the
library cannot be taught. Lists of values of several types, and comparisons in sets and `indexOf` of values of another
type than the list's, are refused by Kubernetes when an expression is compiled, and here when it is evaluated or not at
all. Source: B123.
"""

import ipaddress
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs, quote

from extender.cel import values
from extender.cel.finding import find, find_all
from extender.cel.formats import FORMATS
from extender.cel.lists import LISTS
from extender.cel.signature import KEPT, Function, of
from extender.cel.values import CIDR, IP, NANO, QUANTITY, SEMVER, URL, Kept

_SAFE: Final = "/%:@!$&'()*+,;=~"


def _succeeds(make: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            make(text)
        except ValueError:
            return False
        return True

    return check


def _order(one: Kept, other: Kept) -> int:
    if one.kind != other.kind or one.kind not in {QUANTITY, SEMVER}:
        raise ValueError("no such overload")
    if one.kind == QUANTITY:
        left, right = int(one.text), int(other.text)
        return (left > right) - (left < right)
    before, after = values.version_order(one.text), values.version_order(other.text)
    return (before > after) - (before < after)


def _as_integer(text: str) -> int:
    number = values.whole(text)
    if number is None:
        raise ValueError("cannot convert value to integer")
    return number


def _sum(amount: int) -> Kept:
    return Kept(QUANTITY, str(amount))


def _sign(text: str) -> int:
    amount = int(text)
    return (amount > 0) - (amount < 0)


_COMPARISONS: Final = (
    Function("compareTo", "int", (KEPT, KEPT), True, _order),
    Function("isGreaterThan", "bool", (KEPT, KEPT), True, lambda one, other: _order(one, other) > 0),
    Function("isLessThan", "bool", (KEPT, KEPT), True, lambda one, other: _order(one, other) < 0),
)

_QUANTITIES: Final = (
    Function("quantity", KEPT, ("string",), False, values.quantity),
    Function("isQuantity", "bool", ("string",), False, _succeeds(values.quantity)),
    Function("sign", "int", (KEPT,), False, of(QUANTITY, _sign)),
    Function("isInteger", "bool", (KEPT,), True, of(QUANTITY, lambda text: values.whole(text) is not None)),
    Function("asInteger", "int", (KEPT,), True, of(QUANTITY, _as_integer)),
    Function("asApproximateFloat", "double", (KEPT,), True, of(QUANTITY, lambda text: int(text) / NANO)),
    Function("add", KEPT, (KEPT, KEPT), True, of(QUANTITY, lambda text, other: _sum(int(text) + int(other)))),
    Function("add", KEPT, (KEPT, "int"), True, of(QUANTITY, lambda text, other: _sum(int(text) + other * NANO))),
    Function("sub", KEPT, (KEPT, KEPT), True, of(QUANTITY, lambda text, other: _sum(int(text) - int(other)))),
    Function("sub", KEPT, (KEPT, "int"), True, of(QUANTITY, lambda text, other: _sum(int(text) - other * NANO))),
)

_VERSIONS: Final = (
    Function("semver", KEPT, ("string",), False, values.semver),
    Function("semver", KEPT, ("string", "bool"), False, lambda text, lax: values.semver(text, normalize=lax)),
    Function("isSemver", "bool", ("string",), False, _succeeds(values.semver)),
    Function(
        "isSemver",
        "bool",
        ("string", "bool"),
        False,
        lambda text, lax: _succeeds(lambda each: values.semver(each, normalize=lax))(text),
    ),
    Function("major", "int", (KEPT,), True, of(SEMVER, lambda text: values.version_numbers(text)[0])),
    Function("minor", "int", (KEPT,), True, of(SEMVER, lambda text: values.version_numbers(text)[1])),
    Function("patch", "int", (KEPT,), True, of(SEMVER, lambda text: values.version_numbers(text)[2])),
)


def _host(text: str) -> str:
    return values.parsed_url(text).netloc.rpartition("@")[2]


def _hostname(text: str) -> str:
    return _host(text).rpartition("]")[0].lstrip("[") if "]" in _host(text) else _host(text).partition(":")[0]


def _port(text: str) -> str:
    port = values.parsed_url(text).port
    return "" if port is None else str(port)


_URLS: Final = (
    Function("url", KEPT, ("string",), False, values.url),
    Function("isURL", "bool", ("string",), False, _succeeds(values.url)),
    Function("getScheme", "string", (KEPT,), True, of(URL, lambda text: values.parsed_url(text).scheme)),
    Function("getHost", "string", (KEPT,), True, of(URL, _host)),
    Function("getHostname", "string", (KEPT,), True, of(URL, _hostname)),
    Function("getPort", "string", (KEPT,), True, of(URL, _port)),
    Function(
        "getEscapedPath",
        "string",
        (KEPT,),
        True,
        of(URL, lambda text: quote(values.parsed_url(text).path, safe=_SAFE)),
    ),
    Function(
        "getQuery",
        "map",
        (KEPT,),
        True,
        of(URL, lambda text: parse_qs(values.parsed_url(text).query, keep_blank_values=True)),
    ),
)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text)


def _interface(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    return ipaddress.ip_interface(text)


def _is_global(text: str) -> bool:
    found = _address(text)
    broadcast = text == "255.255.255.255"
    local = found.is_loopback or found.is_link_local or found.is_multicast
    return not (broadcast or found.is_unspecified or local)


def _is_local_multicast(text: str) -> bool:
    found = _address(text)
    if found.version == 4:
        return found in ipaddress.ip_network("224.0.0.0/24")
    return found.packed[0] == 0xFF and found.packed[1] & 0x0F == 2


def _contains(text: str, other: str) -> bool:
    inner, outer = _interface(other).network, _interface(text).network
    if isinstance(inner, ipaddress.IPv4Network) and isinstance(outer, ipaddress.IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(inner, ipaddress.IPv6Network) and isinstance(outer, ipaddress.IPv6Network):
        return inner.subnet_of(outer)
    return False


def _holds_address(one: Kept, other: Kept) -> bool:
    if (one.kind, other.kind) != (CIDR, IP):
        raise ValueError("no such overload")
    return _contains(one.text, other.text)


_ADDRESSES: Final = (
    Function("ip", KEPT, ("string",), False, values.address),
    Function("isIP", "bool", ("string",), False, _succeeds(values.address)),
    Function("ip.isCanonical", "bool", ("string",), False, lambda text: values.address(text).text == text),
    Function("family", "int", (KEPT,), True, of(IP, lambda text: _address(text).version)),
    Function("isUnspecified", "bool", (KEPT,), True, of(IP, lambda text: _address(text).is_unspecified)),
    Function("isLoopback", "bool", (KEPT,), True, of(IP, lambda text: _address(text).is_loopback)),
    Function("isLinkLocalUnicast", "bool", (KEPT,), True, of(IP, lambda text: _address(text).is_link_local)),
    Function("isLinkLocalMulticast", "bool", (KEPT,), True, of(IP, _is_local_multicast)),
    Function("isGlobalUnicast", "bool", (KEPT,), True, of(IP, _is_global)),
    Function("cidr", KEPT, ("string",), False, values.network),
    Function("isCIDR", "bool", ("string",), False, _succeeds(values.network)),
    Function("containsIP", "bool", (KEPT, KEPT), True, _holds_address),
    Function("containsIP", "bool", (KEPT, "string"), True, lambda one, text: _holds_address(one, values.address(text))),
    Function("containsCIDR", "bool", (KEPT, KEPT), True, of(CIDR, _contains)),
    Function(
        "containsCIDR",
        "bool",
        (KEPT, "string"),
        True,
        of(CIDR, lambda text, other: _contains(text, values.network(other).text)),
    ),
    Function("ip", KEPT, (KEPT,), True, of(CIDR, lambda text: Kept(IP, str(_interface(text).ip)))),
    Function("masked", KEPT, (KEPT,), True, of(CIDR, lambda text: Kept(CIDR, str(_interface(text).network)))),
    Function("prefixLength", "int", (KEPT,), True, of(CIDR, lambda text: _interface(text).network.prefixlen)),
)


_TEXTS: Final = (
    Function("find", "string", ("string", "string"), True, find),
    Function("findAll", "strings", ("string", "string"), True, find_all),
    Function("findAll", "strings", ("string", "string", "int"), True, find_all),
)


def _text(value: Kept) -> str:
    if value.kind not in {IP, CIDR}:
        raise ValueError("no such overload")
    return value.text


_PLAIN: Final = (
    Function("__plain", "string", (KEPT,), False, _text),
    *(
        Function("__plain", kind, (kind,), False, lambda value: value)
        for kind in ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
    ),
)
"""What `string` makes a text of: of addresses and networks their texts, of all else itself."""

FUNCTIONS: Final[tuple[Function, ...]] = (
    *_COMPARISONS,
    *_QUANTITIES,
    *_VERSIONS,
    *_URLS,
    *_ADDRESSES,
    *LISTS,
    *_TEXTS,
    *_PLAIN,
    *FORMATS,
)
"""Functions that are always there."""
