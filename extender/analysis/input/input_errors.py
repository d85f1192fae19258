"""Errors in the files of a recorded cluster. Each error is one line with a location, a problem and a fix."""

from collections.abc import Iterable
from dataclasses import dataclass

from extender.basics.input_limits import shorten


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
    """One error in the input, which is formatted as one line.

    Attributes:
        message: the problem and the fix.
        object_name: the kind and the name of the object, such as `Pod default/web`; empty if it is unknown.
        path: the path of the field, such as `spec.containers[0].resources.requests.cpu`; empty for the whole object.
    """

    location: SourceLocation
    message: str
    object_name: str = ""
    path: str = ""

    def __str__(self) -> str:
        parts = (str(self.location), self.object_name, self.path, self.message)
        return ": ".join(shorten(part) for part in parts if part)


class InputError(Exception):
    """The exception for invalid input. Its text has one line per error."""

    def __init__(self, errors: Iterable[InputErrorLine]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


def make_input_error(source: str, *messages: str) -> InputError:
    """Return an error with one line for each message; *source* is the file or the option, or empty."""
    return InputError(InputErrorLine(SourceLocation(source), message) for message in messages)


class UnreadableError(Exception):
    """The exception for a file that cannot be read, or cannot be parsed to its end."""

    def __init__(self, source: str, message: str, position: str = "") -> None:
        self.error = InputErrorLine(SourceLocation(source, position), message)
        super().__init__(str(self.error))
