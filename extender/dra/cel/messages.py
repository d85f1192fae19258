"""Translates error messages of the CEL library to the texts of Kubernetes.

Source: cel-go common/types/err.go, list.go, int.go, string.go, ext/lists.go, common/error.go, checker/errors.go (0.26);
apimachinery/pkg/api/resource/quantity.go, ErrFormatWrong (1.36).
"""

import re
from typing import Final

from extender.basics.input_limits import shorten
from extender.dra.cel.costs import COST_LIMIT_EXCEEDED

_MAX_MESSAGE_LENGTH: Final = 300
_MAX_COMPILE_MESSAGE_LENGTH: Final = 1000
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

_COMPILE_ERROR: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*?)(?=\n \||$)", re.DOTALL)
_COMPILE_TEXTS: Final = (
    (re.compile(r"expression of type '(.*)' cannot be the operand of a select operation"),
     r"type '\1' does not support field selection"),
    (re.compile(r"(expression of type '.*' cannot be) the (range of a comprehension)"), r"\1 \2"),
    (re.compile(r"has\(\) argument must be a field selection"), "invalid argument to has() macro"),
    (re.compile(r"\w+\(\) variable name must be a simple identifier"), "argument must be a simple name"),
    (re.compile(r"undeclared reference to 'device\.(\w+)' \(in container ''\)"), r"undefined field '\1'"),
    (re.compile(r"google\.protobuf\.(Timestamp|Duration)"), lambda match: match[1].lower()),
    (re.compile(r"null_type"), "null"),
)  # fmt: skip
"""Kubernetes' texts of compile errors, by patterns of those of the library."""

_OVERLOAD_ERROR: Final = re.compile(r"(found no matching overload for '(\w+)' applied to ')\((.*)\)'")
_METHOD_CALL: Final = re.compile(r"\.\s*\w+\s*$")
_INVALID_QUANTITY: Final = re.compile(r'quantity ".*": want a number with an optional suffix .*', re.DOTALL)
_QUANTITY_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_MISSING_KEY: Final = "Key not found in map : "
_NO_SUCH_FIELD: Final = "no_such_field : "
_INDEX_ERROR: Final = re.compile(r"Index error: index=(-?\d+) size=\d+")


def translate_message(text: str) -> str:
    """Translate a message of the library to upstream's text. In an unknown message, only spaces and prefixes change."""
    _, _, detail = text.partition(": ")
    if detail.startswith(_MISSING_KEY):
        return f"no such key: {detail.removeprefix(_MISSING_KEY).strip(chr(34))}"
    if detail.startswith(_NO_SUCH_FIELD):
        return f"no such key: {detail.removeprefix(_NO_SUCH_FIELD)}"
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


def translate_compile_error(text: str, expression: str) -> str:
    """Translate the errors of a compilation, and sort them by their places, which Kubernetes shows below each error.

    Args:
        text: the message of the library.
        expression: the compiled expression.
    """
    errors = sorted((int(line), int(column), error) for line, column, error in _COMPILE_ERROR.findall(text))
    if not errors:
        return translate_message(text)
    messages = [
        format_compile_error(line, column, _translate_compile_text(error, expression, line, column), expression)
        for line, column, error in errors
    ]
    return shorten("\n".join(messages), _MAX_COMPILE_MESSAGE_LENGTH)


def format_compile_error(line: int, column: int, error: str, expression: str) -> str:
    """Return an error with its place in *expression*. *line* and *column* start at 1.

    Source: cel-go common/error.go, Error.ToDisplayString (0.26).
    """
    lines = expression[:_MAX_RAW_LENGTH].split("\n")
    source = lines[line - 1] if line <= len(lines) else ""
    is_wide = [ord(character) > 0x7F for character in source]
    dots = "".join("\uff0e" if wide else "." for wide in is_wide[: column - 1])
    pointer = "\uff3e" if column <= len(source) and is_wide[column - 1] else "^"
    return f"ERROR: <input>:{line}:{column}: {error}\n | {source}\n | {dots}{pointer}"


def _translate_compile_text(error: str, expression: str, line: int, column: int) -> str:
    error = error.removesuffix(" [INVALID_ARGUMENT]").replace("'__", "'")
    for pattern, replacement in _COMPILE_TEXTS:
        error = pattern.sub(replacement, error)
    lines = expression.split("\n")
    is_method = line <= len(lines) and _METHOD_CALL.search(lines[line - 1][: column - 1])
    overload = _OVERLOAD_ERROR.fullmatch(error)
    if overload is None or not is_method:
        return error
    target, arguments = _split_first_type(overload[3])
    return f"{overload[1]}{target}.({arguments})'"


def _split_first_type(types: str) -> tuple[str, str]:
    """Return the first of *types*, which commas separate, and the others."""
    depth = 0
    for index, character in enumerate(types):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            return types[:index], types[index + 1 :].strip()
    return types, ""


def explain_bool_conversion(type_name: str, kind: str) -> str:
    """Return the error of a value that is no bool.

    Args:
        type_name: the library's name of the type, such as `INT`.
        kind: the kind of a Kubernetes value, such as `semver`; empty for other values.

    Source: cel-go common/types/list.go, baseList.ConvertToNative; common/types/map.go, baseMap.ConvertToNative (0.26).
    """
    name = f"kubernetes.{kind.capitalize()}" if kind else type_name.lower().partition("<")[0]
    message = f"CEL result of type {name} could not be converted to bool"
    if name == "string":
        return f"{message}: unsupported native conversion from string to 'bool'"
    if name == "int":
        return f"{message}: unsupported type conversion from 'int' to bool"
    if name in {"list", "map"}:
        return f"{message}: type conversion error from {name} to 'bool'"
    return f"{message}: type conversion error from '{kind.capitalize()}' to 'bool'" if kind else message
