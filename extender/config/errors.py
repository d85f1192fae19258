"""The errors of a configuration: one per field, and the exception that contains all of them."""

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
