"""Named formats, which validate labels, names, dates and other strings.

In expressions, `format.named("date")` and `validate` return optional values. The functions here return lists. An empty
list is the value `none` (see `call_rewrites`).

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final

from extender.api.label_syntax import (
    DNS_LABEL,
    DNS_LABEL_ERROR,
    validate_label_value,
    validate_qualified_name,
    validate_subdomain,
)
from extender.dra.cel import values
from extender.dra.cel.function_signature import CEL_VALUE, Function, check_kind
from extender.dra.cel.values import FORMAT, CelValue

_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035_ERROR: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    f" '{_LABEL_1035}')"
)
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)

Check = Callable[[str], list[str]]
"""Returns the validation errors of a text."""


def _check_length(text: str, max_length: int) -> list[str]:
    return [f"must be no more than {max_length} characters"] if len(text.encode()) > max_length else []


def _check_subdomain(text: str) -> list[str]:
    error = validate_subdomain(text)
    return [*_check_length(text, 253), *([error] if error else [])]


def _check_label(text: str) -> list[str]:
    errors = _check_length(text, 63)
    if not re.fullmatch(DNS_LABEL, text):
        errors.append(DNS_LABEL_ERROR if validate_subdomain(text) else "must not contain dots")
    return errors


def _check_label_1035(text: str) -> list[str]:
    return [*_check_length(text, 63), *([] if re.fullmatch(_LABEL_1035, text) else [_LABEL_1035_ERROR])]


def _allow_trailing_dash(check: Check) -> Check:
    """Adapt *check* for a prefix of a name, which may end with a dash."""
    return lambda text: check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _check_uri(text: str) -> list[str]:
    try:
        values.parse_url(text)
    except ValueError:
        return [f'parse "{text}": invalid URI for request']
    return []


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_datetime(text: str) -> bool:
    date_text, _, time_text = text.lower().partition("t")
    return _is_date(date_text) and _TIME.fullmatch(time_text.split("t")[0]) is not None


def _make_check(is_valid: Callable[[str], Any], error: str) -> Check:
    return lambda text: [] if is_valid(text) else [error]


_CHECKS: Final[dict[str, Check]] = {
    "dns1123Label": _check_label,
    "dns1123Subdomain": _check_subdomain,
    "dns1035Label": _check_label_1035,
    "qualifiedName": validate_qualified_name,
    "dns1123LabelPrefix": _allow_trailing_dash(_check_label),
    "dns1123SubdomainPrefix": _allow_trailing_dash(_check_subdomain),
    "dns1035LabelPrefix": _allow_trailing_dash(_check_label_1035),
    "labelValue": validate_label_value,
    "uri": _check_uri,
    "uuid": _make_check(_UUID.fullmatch, "does not match the UUID format"),
    "byte": _make_check(_BASE64.fullmatch, "invalid base64"),
    "date": _make_check(_is_date, "invalid date"),
    "datetime": _make_check(_is_datetime, "invalid datetime"),
}


def _find_format(name: str) -> list[CelValue]:
    return [CelValue(FORMAT, name)] if name in _CHECKS else []


def _validate(name: str, text: str) -> list[str]:
    return _CHECKS[name](text)


def _make_format_constant(name: str) -> Callable[[], CelValue]:
    return lambda: CelValue(FORMAT, name)


FORMATS: Final = (
    *(Function(f"format.{name}", CEL_VALUE, (), False, _make_format_constant(name)) for name in _CHECKS),
    Function("format.named", "list(value)", ("string",), False, _find_format),
    Function("__validate", "list(string)", (CEL_VALUE, "string"), True, check_kind(FORMAT, _validate)),
)
"""Functions of named formats."""
