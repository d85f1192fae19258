"""The messages of the API server for invalid fields, and its rules for names, labels and enumerations.

Source: apimachinery/pkg/util/validation/validation.go, IsQualifiedName, IsValidLabelValue (1.37).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from extender.api.label_syntax import format_value, invalid_value, validate_label_value, validate_qualified_name
from extender.api.validation import ObjectError

# The objects of a cluster repeat few names and values.
_find_name_errors = lru_cache(maxsize=16384)(validate_qualified_name)
_find_value_errors = lru_cache(maxsize=16384)(validate_label_value)


def required_value(detail: str) -> str:
    """Return the message for a missing field."""
    return f"Required value: {detail}"


def duplicate_value(value: str) -> str:
    """Return the message for a value that occurs twice in a list."""
    return f"Duplicate value: {format_value(value)}"


def check_supported_value(path: str, value: str, supported_values: Sequence[str]) -> Iterator[ObjectError]:
    """Yield an error if *value* is none of the supported values; an empty one is missing."""
    supported = f"supported values: {', '.join(map(format_value, supported_values))}"
    if not value:
        yield path, required_value(supported)
    elif value not in supported_values:
        yield path, f"Unsupported value: {format_value(value)}: {supported}"


def check_qualified_name(path: str, name: str) -> Iterator[ObjectError]:
    """Yield the errors of a label key or another qualified name."""
    return ((path, invalid_value(name, error)) for error in _find_name_errors(name))


def check_label_value(path: str, value: str) -> Iterator[ObjectError]:
    """Yield the errors of a label value."""
    return ((path, invalid_value(value, error)) for error in _find_value_errors(value))


def check_labels(labels: Mapping[str, str]) -> Iterator[ObjectError]:
    """Yield the errors of a mapping of labels, without a path, as in the API server."""
    for key, value in labels.items():
        yield from check_qualified_name("", key)
        yield from check_label_value("", value)


def check_names(
    path: str, names: Iterable[str], check: Callable[[str, str], Iterable[ObjectError]]
) -> Iterator[ObjectError]:
    """Yield the errors of the names in the list at *path*, which must differ."""
    found: set[str] = set()
    for index, name in enumerate(names):
        if name in found:
            yield f"{path}[{index}]", duplicate_value(name)
        found.add(name)
        yield from check(f"{path}[{index}]", name)
