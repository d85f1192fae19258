"""The errors of a configuration: one per field with its path, and the exception that contains all of them.

Functions for field paths such as `profiles[0].pluginConfig[1].args` are here, too.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class FieldError:
    """An error in a document, like upstream's field.Error.

    Attributes:
        path: the field path, such as ``profiles[0].pluginConfig[1].args.scoringStrategy.type``; empty for the whole
            document.
        message: the description of the error, with a valid value where this helps.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(Exception):
    """The exception for an invalid configuration. It contains all errors, not only the first."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))


def child(path: str, key: str) -> str:
    """Return the path of the field *key* of the object at *path*."""
    return f"{path}.{key}" if path else key


def item(path: str, index: int) -> str:
    """Return the path of element *index* of the list at *path*; the first index is 0."""
    return f"{path}[{index}]"


def is_within(path: str, ancestor: str) -> bool:
    """Return whether *path* is *ancestor* or a path below it."""
    return path == ancestor or path.startswith((f"{ancestor}.", f"{ancestor}["))


def drop_cascading_errors(later_errors: Iterable[FieldError], earlier_errors: Iterable[FieldError]) -> list[FieldError]:
    """Return the later errors, except those about a field that has an earlier error, or about a field below it.

    A field that could not be decoded keeps its default, so validation errors about it would be misleading.
    """
    failed_paths = [error.path for error in earlier_errors if error.path]
    return [error for error in later_errors if not any(is_within(error.path, path) for path in failed_paths)]
