"""Functions that Kubernetes adds to CEL and the library lacks.

The module has all functions for device selectors of Kubernetes 1.36: quantities, semantic versions, URLs, IP addresses
and CIDRs, sets, lists, named formats, and regular expressions. `call_rewrites` rewrites unsupported calls to these
functions. `type_checks` finds the type errors in lists.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote

from extender.dra.cel import values
from extender.dra.cel.costs import COST_METER
from extender.dra.cel.formats import FORMATS
from extender.dra.cel.function_signature import CEL_VALUE, Function, check_kind
from extender.dra.cel.lists import LISTS
from extender.dra.cel.regex import find, find_all, spend_pattern
from extender.dra.cel.urls import get_hostname, get_port, parse_query, split_url
from extender.dra.cel.values import CIDR, IP, NANO, QUANTITY, SEMVER, URL, CelValue

_UNESCAPED_PATH_CHARACTERS: Final = "/%:@!$&'()*+,;=~"


def _can_parse(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _compare(left: CelValue, right: CelValue) -> int:
    if left.kind != right.kind or left.kind not in {QUANTITY, SEMVER}:
        raise ValueError("no such overload")
    if left.kind == QUANTITY:
        left_amount, right_amount = int(left.text), int(right.text)
        return (left_amount > right_amount) - (left_amount < right_amount)
    left_key, right_key = values.make_semver_sort_key(left.text), values.make_semver_sort_key(right.text)
    return (left_key > right_key) - (left_key < right_key)


def _convert_to_integer(text: str) -> int:
    number = values.to_int64(text)
    if number is None:
        raise ValueError("cannot convert value to integer")
    return number


def _make_quantity(amount: int) -> CelValue:
    return CelValue(QUANTITY, str(amount))


def _get_sign(text: str) -> int:
    amount = int(text)
    return (amount > 0) - (amount < 0)


def _method(kind: str, name: str, result: str, body: Callable[..., Any], *parameters: str) -> Function:
    """Return a method of the values of *kind*. Its body gets texts instead of values."""
    return Function(name, result, (CEL_VALUE, *parameters), True, check_kind(kind, body))


_COMPARISONS: Final = (
    Function("compareTo", "int", (CEL_VALUE, CEL_VALUE), True, _compare),
    Function("isGreaterThan", "bool", (CEL_VALUE, CEL_VALUE), True, lambda left, right: _compare(left, right) > 0),
    Function("isLessThan", "bool", (CEL_VALUE, CEL_VALUE), True, lambda left, right: _compare(left, right) < 0),
)

_QUANTITIES: Final = (
    Function("quantity", CEL_VALUE, ("string",), False, values.parse_quantity),
    Function("isQuantity", "bool", ("string",), False, _can_parse(values.parse_quantity)),
    Function("sign", "int", (CEL_VALUE,), False, check_kind(QUANTITY, _get_sign)),
    _method(QUANTITY, "isInteger", "bool", lambda text: values.to_int64(text) is not None),
    _method(QUANTITY, "asInteger", "int", _convert_to_integer),
    _method(QUANTITY, "asApproximateFloat", "double", lambda text: int(text) / NANO),
    _method(QUANTITY, "add", CEL_VALUE, lambda left, right: _make_quantity(int(left) + int(right)), CEL_VALUE),
    _method(QUANTITY, "add", CEL_VALUE, lambda left, right: _make_quantity(int(left) + right * NANO), "int"),
    _method(QUANTITY, "sub", CEL_VALUE, lambda left, right: _make_quantity(int(left) - int(right)), CEL_VALUE),
    _method(QUANTITY, "sub", CEL_VALUE, lambda left, right: _make_quantity(int(left) - right * NANO), "int"),
)

_VERSIONS: Final = (
    Function("semver", CEL_VALUE, ("string",), False, values.parse_semver),
    Function(
        "semver",
        CEL_VALUE,
        ("string", "bool"),
        False,
        lambda text, normalize: values.parse_semver(text, normalize=normalize),
    ),
    Function("isSemver", "bool", ("string",), False, _can_parse(values.parse_semver)),
    Function(
        "isSemver",
        "bool",
        ("string", "bool"),
        False,
        lambda text, normalize: _can_parse(lambda version: values.parse_semver(version, normalize=normalize))(text),
    ),
    _method(SEMVER, "major", "int", lambda text: values.get_semver_numbers(text)[0]),
    _method(SEMVER, "minor", "int", lambda text: values.get_semver_numbers(text)[1]),
    _method(SEMVER, "patch", "int", lambda text: values.get_semver_numbers(text)[2]),
)


_URLS: Final = (
    Function("url", CEL_VALUE, ("string",), False, values.parse_url),
    Function("isURL", "bool", ("string",), False, _can_parse(values.parse_url)),
    _method(URL, "getScheme", "string", lambda text: split_url(text).scheme),
    _method(URL, "getHost", "string", lambda text: split_url(text).host),
    _method(URL, "getHostname", "string", get_hostname),
    _method(URL, "getPort", "string", get_port),
    _method(
        URL,
        "getEscapedPath",
        "string",
        lambda text: quote(split_url(text).path, safe=_UNESCAPED_PATH_CHARACTERS),
    ),
    _method(
        URL,
        "getQuery",
        "map(string, list(string))",
        lambda text: parse_query(split_url(text).query),
    ),
)


def _is_global(text: str) -> bool:
    address = ipaddress.ip_address(text)
    is_broadcast = text == "255.255.255.255"
    is_local = address.is_loopback or address.is_link_local or address.is_multicast
    return not (is_broadcast or address.is_unspecified or is_local)


def _is_local_multicast(text: str) -> bool:
    address = ipaddress.ip_address(text)
    if address.version == 4:
        return address in ipaddress.ip_network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 2


def _contains_cidr(outer_text: str, inner_text: str) -> bool:
    inner_network, outer_network = (ipaddress.ip_interface(text).network for text in (inner_text, outer_text))
    if isinstance(inner_network, ipaddress.IPv4Network) and isinstance(outer_network, ipaddress.IPv4Network):
        return inner_network.subnet_of(outer_network)
    if isinstance(inner_network, ipaddress.IPv6Network) and isinstance(outer_network, ipaddress.IPv6Network):
        return inner_network.subnet_of(outer_network)
    return False


def _contains_ip(outer: CelValue, inner: CelValue) -> bool:
    if (outer.kind, inner.kind) != (CIDR, IP):
        raise ValueError("no such overload")
    return _contains_cidr(outer.text, inner.text)


_IPS_AND_CIDRS: Final = (
    Function("ip", CEL_VALUE, ("string",), False, values.parse_ip_address),
    Function("isIP", "bool", ("string",), False, _can_parse(values.parse_ip_address)),
    Function("ip.isCanonical", "bool", ("string",), False, lambda text: values.parse_ip_address(text).text == text),
    _method(IP, "family", "int", lambda text: ipaddress.ip_address(text).version),
    _method(IP, "isUnspecified", "bool", lambda text: ipaddress.ip_address(text).is_unspecified),
    _method(IP, "isLoopback", "bool", lambda text: ipaddress.ip_address(text).is_loopback),
    _method(IP, "isLinkLocalUnicast", "bool", lambda text: ipaddress.ip_address(text).is_link_local),
    _method(IP, "isLinkLocalMulticast", "bool", _is_local_multicast),
    _method(IP, "isGlobalUnicast", "bool", _is_global),
    Function("cidr", CEL_VALUE, ("string",), False, values.parse_cidr),
    Function("isCIDR", "bool", ("string",), False, _can_parse(values.parse_cidr)),
    Function("containsIP", "bool", (CEL_VALUE, CEL_VALUE), True, _contains_ip),
    Function(
        "containsIP",
        "bool",
        (CEL_VALUE, "string"),
        True,
        lambda outer, text: _contains_ip(outer, values.parse_ip_address(text)),
    ),
    _method(CIDR, "containsCIDR", "bool", _contains_cidr, CEL_VALUE),
    _method(
        CIDR,
        "containsCIDR",
        "bool",
        lambda outer_text, inner_text: _contains_cidr(outer_text, values.parse_cidr(inner_text).text),
        "string",
    ),
    _method(CIDR, "ip", CEL_VALUE, lambda text: CelValue(IP, str(ipaddress.ip_interface(text).ip))),
    _method(CIDR, "masked", CEL_VALUE, lambda text: CelValue(CIDR, str(ipaddress.ip_interface(text).network))),
    _method(CIDR, "prefixLength", "int", lambda text: ipaddress.ip_interface(text).network.prefixlen),
)


_REGEXES: Final = (
    Function("find", "string", ("string", "string"), True, find),
    Function("findAll", "list(string)", ("string", "string"), True, find_all),
    Function("findAll", "list(string)", ("string", "string", "int"), True, find_all),
    Function("__spendPattern", "string", ("string",), False, spend_pattern),
)


def _get_ip_or_cidr_text(value: CelValue) -> str:
    if value.kind not in {IP, CIDR}:
        raise ValueError("no such overload")
    return value.text


def _format_timestamp(time: datetime) -> str:
    """Return the text of a timestamp as Go's format RFC3339Nano: a fraction has no zeros at its end."""
    text = time.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"


def _format_duration(duration: timedelta) -> str:
    """Return the seconds of a duration as the shortest decimal number.

    Source: cel-go common/types/duration.go, Duration.ConvertToType (0.26).
    """
    return f"{Decimal(repr(duration.total_seconds())).normalize():f}s"


_STRING_ARGUMENTS: Final = (
    Function("__stringArgument", "string", (CEL_VALUE,), False, _get_ip_or_cidr_text),
    *(
        Function("__stringArgument", kind, (kind,), False, lambda value: value)
        for kind in ("bool", "int", "uint", "double", "string", "bytes")
    ),
    Function("__stringArgument", "string", ("timestamp",), False, _format_timestamp),
    Function("__stringArgument", "string", ("duration",), False, _format_duration),
)
"""The function for the arguments of `string`.

IP addresses, CIDRs, timestamps and durations become text; other values are unchanged. The library has times in
microseconds.
"""


def _get_milliseconds(duration: timedelta) -> int:
    milliseconds = abs(duration) // timedelta(milliseconds=1)
    return milliseconds if duration >= timedelta(0) else -milliseconds


_MILLISECONDS: Final = (
    Function("__getMilliseconds", "int", ("timestamp",), True, lambda time: time.microsecond // 1000),
    Function("__getMilliseconds", "int", ("duration",), True, _get_milliseconds),
)
"""The method `getMilliseconds`: of a time the part of a second, of a duration the whole, rounded towards zero.

Source: cel-go common/types/duration.go, DurationGetMilliseconds (0.26).
"""


def _has_field(values: Sequence[Any], name: str) -> bool:
    """Return whether the only one of *values* is a map with the key *name*. Other values have no fields."""
    (value,) = values
    return isinstance(value, Mapping) and name in value


_FIELDS: Final = (Function("__hasField", "bool", ("list(dyn)", "string"), False, _has_field),)
"""The function for `has` of a field of an attribute."""


def _with_cost(function: Function) -> Function:
    """Return *function* with a cost of 1 per character of its arguments.

    That is ten times Kubernetes' cost or more, because these functions take up to 2 microseconds per character.

    Source: apiserver/pkg/cel/library/cost.go, CostEstimator.CallCost (1.37).
    """
    body = function.body

    def spend_and_call(*arguments: Any) -> Any:
        texts = (argument.text if isinstance(argument, CelValue) else argument for argument in arguments)
        COST_METER.spend(sum(len(text) for text in texts if isinstance(text, str)))
        return body(*arguments)

    return function._replace(body=spend_and_call)


_TEXT_FUNCTIONS: Final = (*_COMPARISONS, *_QUANTITIES, *_VERSIONS, *_URLS, *_IPS_AND_CIDRS, *_REGEXES, *FORMATS)

FUNCTIONS: Final = (*map(_with_cost, _TEXT_FUNCTIONS), *LISTS, *_STRING_ARGUMENTS, *_MILLISECONDS, *_FIELDS)
"""The functions of all values."""
