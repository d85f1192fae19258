"""Validation of label keys, label values and node selector requirements, and messages about fields, of apimachinery.

Source: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go, RequiredNodeAffinity.Match;
apimachinery/pkg/util/validation/validation.go, IsQualifiedName, IsValidLabelValue;
apimachinery/pkg/labels/selector.go, NewRequirement;
apimachinery/pkg/util/validation/field/errors.go, Error.ErrorBody (1.36).
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from extender.basics.visible_text import quote

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
_NAME_ERROR: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_SUBDOMAIN_ERROR: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
DNS_LABEL_ERROR: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    f" an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{DNS_LABEL}')"
)
_VALUE_ERROR: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    f" '({_NAME})?')"
)
_MAX_LENGTH: Final = 63
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
"""The operators of a label selector requirement."""

OPERATORS: Final = (*LABEL_OPERATORS, "Gt", "Lt")
"""The operators of a node selector requirement on a label."""

FIELD_OPERATORS: Final = ("In", "NotIn")
"""The operators of a node selector requirement on a field."""


def parse_int64(text: str) -> int | None:
    """Parse a base 10 integer. Return None if *text* is not an integer or exceeds int64."""
    if _INTEGER.fullmatch(text) is None or len(text.lstrip("+-").lstrip("0")) > 19:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def validate_subdomain(name: str) -> str:
    """Validate *name* as a DNS subdomain, except its length. Return the error message, or an empty string if valid."""
    return "" if re.fullmatch(_SUBDOMAIN, name) else _SUBDOMAIN_ERROR


def validate_dns_label(name: str) -> str:
    """Validate *name* as a DNS label, such as a namespace. Return the error message, or an empty string if valid."""
    if len(name) > _MAX_LENGTH:
        return f"must be no more than {_MAX_LENGTH} bytes"
    return "" if re.fullmatch(DNS_LABEL, name) else DNS_LABEL_ERROR


def validate_qualified_name(name: str) -> list[str]:
    """Validate *name* as a qualified name such as `example.com/MyName`, and return the errors."""
    *prefix_parts, name_part = name.split("/")
    if len(prefix_parts) > 1:
        prefix_hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_ERROR}{prefix_hint}"]
    errors: list[str] = []
    if prefix_parts == [""]:
        errors.append("prefix part must be non-empty")
    elif prefix_parts:
        if len(prefix_parts[0].encode()) > 253:
            errors.append("prefix part must be no more than 253 bytes")
        if error := validate_subdomain(prefix_parts[0]):
            errors.append(f"prefix part {error}")
    if not name_part:
        errors.append("name part must be non-empty")
    elif len(name_part.encode()) > _MAX_LENGTH:
        errors.append(f"name part must be no more than {_MAX_LENGTH} bytes")
    if not re.fullmatch(_NAME, name_part):
        errors.append(f"name part {_NAME_ERROR}")
    return errors


@lru_cache(maxsize=16384)
def is_qualified_name(text: str) -> bool:
    """Return whether `validate_qualified_name` finds no error in *text*."""
    return not validate_qualified_name(text)


def validate_label_value(value: str) -> list[str]:
    """Validate *value* as a label value, and return the errors."""
    errors: list[str] = []
    if len(value.encode()) > _MAX_LENGTH:
        errors.append(f"must be no more than {_MAX_LENGTH} bytes")
    if value and not re.fullmatch(_NAME, value):
        errors.append(_VALUE_ERROR)
    return errors


def validate_requirement(key: str, operator: str, values: Sequence[str]) -> list[str]:
    """Return the errors of a requirement on a label, each with its path in the requirement: `values[0][zone]: ...`."""
    if operator not in OPERATORS:
        return [f"operator: {unsupported_value(operator, OPERATORS)}"]
    errors: list[str] = []
    if key_errors := validate_qualified_name(key):
        errors.append(format_invalid_value("key", key, "; ".join(key_errors)))
    match operator:
        case "In" | "NotIn" if not values:
            message = "for 'in', 'notin' operators, values set can't be empty"
            errors.append(format_invalid_value("values", values, message))
        case "Exists" | "DoesNotExist" if values:
            message = "values set must be empty for exists and does not exist"
            errors.append(format_invalid_value("values", values, message))
        case "Gt" | "Lt":
            if len(values) != 1:
                message = "for 'Gt', 'Lt' operators, exactly one value is required"
                errors.append(format_invalid_value("values", values, message))
            message = "for 'Gt', 'Lt' operators, the value must be an integer"
            errors += [
                format_invalid_value(f"values[{index}]", value, message)
                for index, value in enumerate(values)
                if parse_int64(value) is None
            ]
    for index, value in enumerate(values):
        if value_errors := validate_label_value(value):
            errors.append(format_invalid_value(f"values[{index}][{key}]", value, "; ".join(value_errors)))
    return errors


def format_invalid_value(path: str, value: str | Sequence[str], detail: str) -> str:
    """Return the path and the message of field.Invalid; an empty list is null, as in Go."""
    return f"{path}: {invalid_value(value if value or isinstance(value, str) else None, detail)}"


def invalid_value(value: Any, detail: str) -> str:
    """Return the message of field.Invalid: `Invalid value: 0: must be greater than 0`."""
    return f"Invalid value: {format_value(value)}: {detail}"


def unsupported_value(value: str, supported_values: Iterable[str]) -> str:
    """Return the message of field.NotSupported: `Unsupported value: "a": supported values: "b", "c"`."""
    supported = ", ".join(map(format_value, supported_values))
    return f"Unsupported value: {format_value(value)}: supported values: {supported}"


def format_value(value: Any) -> str:
    """Return a value as messages show it: a text as Go's verb %q, other values as JSON."""
    return quote(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def join_errors(errors: Iterable[str]) -> str:
    """Join the distinct errors to one line, in brackets if there are several, as utilerrors.Aggregate does."""
    distinct_errors = list(dict.fromkeys(errors))
    return distinct_errors[0] if len(distinct_errors) == 1 else f"[{', '.join(distinct_errors)}]"
