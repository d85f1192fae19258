"""Named formats: what a text lacks to be a label, a name, a date and the like.

`format.named("date")` and `validate` give optional values in expressions; here both are lists, empty for no value
(see `calls`). Source: B123.
"""

import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final

from extender.cel import values
from extender.cel.costs import METER
from extender.cel.signature import KEPT, Function, of
from extender.cel.values import FORMAT, Kept
from extender.objects.label_syntax import label_value_faults, qualified_name_faults, subdomain_fault

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_FAULT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    f" an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_LABEL_1035_FAULT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    f" '{_LABEL_1035}')"
)
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)

Check = Callable[[str], list[str]]
"""From a text to what is wrong with it."""


def _too_long(text: str, longest: int) -> list[str]:
    return [f"must be no more than {longest} characters"] if len(text.encode()) > longest else []


def _subdomain(text: str) -> list[str]:
    fault = subdomain_fault(text)
    return [*_too_long(text, 253), *([fault] if fault else [])]


def _label(text: str) -> list[str]:
    faults = _too_long(text, 63)
    if not re.fullmatch(_LABEL, text):
        faults.append(_LABEL_FAULT if subdomain_fault(text) else "must not contain dots")
    return faults


def _label_1035(text: str) -> list[str]:
    return [*_too_long(text, 63), *([] if re.fullmatch(_LABEL_1035, text) else [_LABEL_1035_FAULT])]


def _prefix(check: Check) -> Check:
    """*check* for a text that something will be appended to: it may end with a dash."""
    return lambda text: check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _uri(text: str) -> list[str]:
    try:
        values.url(text)
    except ValueError:
        return [f'parse "{text}": invalid URI for request']
    return []


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_datetime(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    return _is_date(day) and _TIME.fullmatch(rest.split("t")[0]) is not None


def _unless(holds: Callable[[str], Any], fault: str) -> Check:
    return lambda text: [] if holds(text) else [fault]


_CHECKS: Final[dict[str, Check]] = {
    "dns1123Label": _label,
    "dns1123Subdomain": _subdomain,
    "dns1035Label": _label_1035,
    "qualifiedName": qualified_name_faults,
    "dns1123LabelPrefix": _prefix(_label),
    "dns1123SubdomainPrefix": _prefix(_subdomain),
    "dns1035LabelPrefix": _prefix(_label_1035),
    "labelValue": label_value_faults,
    "uri": _uri,
    "uuid": _unless(_UUID.fullmatch, "does not match the UUID format"),
    "byte": _unless(_BASE64.fullmatch, "invalid base64"),
    "date": _unless(_is_date, "invalid date"),
    "datetime": _unless(_is_datetime, "invalid datetime"),
}


def _named(name: str) -> list[Kept]:
    return [Kept(FORMAT, name)] if name in _CHECKS else []


def _faults(name: str, text: str) -> list[str]:
    METER.spend(len(text))
    return _CHECKS[name](text)


def _always(name: str) -> Callable[[], Kept]:
    return lambda: Kept(FORMAT, name)


FORMATS: Final = (
    *(Function(f"format.{name}", KEPT, (), False, _always(name)) for name in _CHECKS),
    Function("format.named", "kepts", ("string",), False, _named),
    Function("__validate", "strings", (KEPT, "string"), True, of(FORMAT, _faults)),
)
"""Functions of named formats."""
