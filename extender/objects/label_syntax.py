"""What keys and values of labels and conditions on them may look like, in kube-scheduler's words.

Source: B008, F008.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_NAME_FAULT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_SUBDOMAIN_FAULT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_VALUE_FAULT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    f" '({_NAME})?')"
)
_LONGEST: Final = 63
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
"""What a condition on the label of a node may be."""


def int64(text: str) -> int | None:
    """The integer a text stands for in base 10, or None if it is none or leaves int64."""
    if _INTEGER.fullmatch(text) is None or len(text.lstrip("+-").lstrip("0")) > 19:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def subdomain_fault(name: str) -> str:
    """What keeps *name* from being a DNS subdomain, whatever its length; nothing when it is one."""
    return "" if re.fullmatch(_SUBDOMAIN, name) else _SUBDOMAIN_FAULT


def qualified_name_faults(name: str) -> list[str]:
    """What keeps *name* from being a qualified name, `example.com/MyName`; empty when it is one."""
    *prefix, last = name.split("/")
    if len(prefix) > 1:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_FAULT}{optional}"]
    faults: list[str] = []
    if prefix == [""]:
        faults.append("prefix part must be non-empty")
    elif prefix:
        if len(prefix[0].encode()) > 253:
            faults.append("prefix part must be no more than 253 bytes")
        if fault := subdomain_fault(prefix[0]):
            faults.append(f"prefix part {fault}")
    if not last:
        faults.append("name part must be non-empty")
    elif len(last.encode()) > _LONGEST:
        faults.append(f"name part must be no more than {_LONGEST} bytes")
    if not re.fullmatch(_NAME, last):
        faults.append(f"name part {_NAME_FAULT}")
    return faults


def label_value_faults(value: str) -> list[str]:
    """What keeps *value* from being the value of a label; empty when it may be."""
    faults: list[str] = []
    if len(value.encode()) > _LONGEST:
        faults.append(f"must be no more than {_LONGEST} bytes")
    if value and not re.fullmatch(_NAME, value):
        faults.append(_VALUE_FAULT)
    return faults


def condition_faults(key: str, operator: str, values: Sequence[str]) -> list[str]:
    """What is wrong with a condition on a label, each with the place within the condition: `values[0][zone]: ...`."""
    if operator not in OPERATORS:
        known = ", ".join(f'"{name}"' for name in OPERATORS)
        return [f"operator: Unsupported value: {_shown(operator)}: supported values: {known}"]
    faults: list[str] = []
    if wrong := qualified_name_faults(key):
        faults.append(invalid("key", key, "; ".join(wrong)))
    match operator:
        case "In" | "NotIn" if not values:
            faults.append(invalid("values", values, "for 'in', 'notin' operators, values set can't be empty"))
        case "Exists" | "DoesNotExist" if values:
            faults.append(invalid("values", values, "values set must be empty for exists and does not exist"))
        case "Gt" | "Lt":
            if len(values) != 1:
                faults.append(invalid("values", values, "for 'Gt', 'Lt' operators, exactly one value is required"))
            whole = "for 'Gt', 'Lt' operators, the value must be an integer"
            faults += [invalid(f"values[{at}]", text, whole) for at, text in enumerate(values) if int64(text) is None]
    for at, text in enumerate(values):
        if wrong := label_value_faults(text):
            faults.append(invalid(f"values[{at}][{key}]", text, "; ".join(wrong)))
    return faults


def invalid(place: str, value: str | Sequence[str], why: str) -> str:
    """That *value* at *place* will not do."""
    return f"{place}: Invalid value: {_shown(value)}: {why}"


def _shown(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(list(value), ensure_ascii=False, separators=(",", ":")) if value else "null"


def joined(faults: Iterable[str]) -> str:
    """Faults in one line, each once: several in brackets."""
    each = list(dict.fromkeys(faults))
    return each[0] if len(each) == 1 else f"[{', '.join(each)}]"
