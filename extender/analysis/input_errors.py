"""Errors in a recorded cluster: one line each, with location, problem and fix."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A position in an input file.

    Attributes:
        source: the file's name, or `stdin`.
        position: `line 3`, `items[17]`, or both; empty for the whole file.
    """

    source: str
    position: str = ""

    def __str__(self) -> str:
        return f"{self.source}: {self.position}" if self.position else self.source


@dataclass(frozen=True, slots=True)
class InputErrorLine:
    """One error of the input.

    Attributes:
        location: the position in the input.
        message: the problem and the fix.
        object_name: the object, such as `Pod default/web`; empty if it is unknown.
        path: the field, such as `spec.containers[0].resources.requests.cpu`; empty for the whole object.
    """

    location: SourceLocation
    message: str
    object_name: str = ""
    path: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (str(self.location), self.object_name, self.path, self.message) if part)


class InputError(Exception):
    """The input is invalid; the text has one line per error."""

    def __init__(self, errors: Iterable[InputErrorLine]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


class UnreadableError(Exception):
    """A file, or the remainder of a file, cannot be read or parsed."""

    def __init__(self, source: str, message: str, position: str = "") -> None:
        self.error = InputErrorLine(SourceLocation(source, position), message)
        super().__init__(str(self.error))
