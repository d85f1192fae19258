"""Translates error messages of the CEL library to the texts of Kubernetes.

Source: cel-go common/types/err.go, list.go, int.go, string.go, ext/lists.go (0.26); apimachinery/pkg/api/resource/
quantity.go, ErrFormatWrong (1.36).
"""

import re
from typing import Final

from extender.basics.input_limits import shorten
from extender.dra.cel.costs import COST_LIMIT_EXCEEDED

_MAX_MESSAGE_LENGTH: Final = 300
_MAX_RAW_LENGTH: Final = 4000

_TEXTS: Final = {
    "divide by zero": "division by zero",
    "cannot convert string to int": "type conversion error from 'string' to 'int'",
    "cannot convert string to uint": "type conversion error from 'string' to 'uint'",
    "cannot convert string to double": "type conversion error from 'string' to 'double'",
    "Type conversion error from 'string' to 'bool'": "type conversion error from 'string' to 'bool'",
    "String to Duration conversion failed": "type conversion error from 'string' to 'google.protobuf.Duration'",
    "String to Timestamp conversion failed": "type conversion error from 'string' to 'google.protobuf.Timestamp'",
    "int64 out of uint64 range": "unsigned integer overflow",
    "flatten(): level must be non-negative": "level must be non-negative",
}
"""Kubernetes' texts by the library's messages."""

_INVALID_QUANTITY: Final = re.compile(r'quantity ".*": want a number with an optional suffix .*', re.DOTALL)
_QUANTITY_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_INDEX_ERROR: Final = re.compile(r"Index error: index=(-?\d+) size=\d+")


def translate_message(text: str) -> str:
    """Translate a message of the library to upstream's text. In an unknown message, only spaces and prefixes change."""
    _, _, detail = text.partition(": ")
    if detail.startswith("Key not found in map"):
        return f"no such key: {detail.rpartition(':')[2].strip().strip(chr(34))}"
    if detail.startswith("No matching overloads found"):
        return "no such overload"
    if detail.startswith("Iteration budget exceeded"):
        return COST_LIMIT_EXCEEDED
    if index_error := _INDEX_ERROR.fullmatch(detail):
        return f"index out of bounds: {index_error[1]}"
    if _INVALID_QUANTITY.fullmatch(detail):
        return _QUANTITY_FORMAT
    message = _TEXTS.get(detail) or " ".join((detail or text)[:_MAX_RAW_LENGTH].split()).replace("'__", "'")
    return shorten(message, _MAX_MESSAGE_LENGTH)


def explain_bool_conversion(type_name: str, kind: str) -> str:
    """Return the error of a value that is no bool.

    Args:
        type_name: the library's name of the type, such as `INT`.
        kind: the kind of a Kubernetes value, such as `semver`; empty for other values.
    """
    name = f"kubernetes.{kind.capitalize()}" if kind else type_name.lower()
    message = f"CEL result of type {name} could not be converted to bool"
    if name == "string":
        return f"{message}: unsupported native conversion from string to 'bool'"
    if name == "int":
        return f"{message}: unsupported type conversion from 'int' to bool"
    return f"{message}: type conversion error from '{kind.capitalize()}' to 'bool'" if kind else message
