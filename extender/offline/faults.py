"""What can be wrong with a recorded cluster: each fault one line that says where, what, and what would be right."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands.

    Attributes:
        source: the file's name, or `stdin`.
        position: `line 3`, `items[17]`, or both, as exactly as it is known; empty for the whole file.
    """

    source: str
    position: str = ""

    def __str__(self) -> str:
        return f"{self.source}: {self.position}" if self.position else self.source


@dataclass(frozen=True, slots=True)
class InputFault:
    """One thing wrong with the input.

    Attributes:
        place: where.
        message: what is wrong, and what would be right.
        about: the object, such as `Pod default/web`; empty where no object is known.
        path: the field, such as `spec.containers[0].resources.requests.cpu`; empty for the whole.
    """

    place: Place
    message: str
    about: str = ""
    path: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (str(self.place), self.about, self.path, self.message) if part)


class InputError(Exception):
    """Input that cannot be used. Carries every fault found; the exception's text is one line a fault."""

    def __init__(self, faults: Iterable[InputFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


class UnreadableError(Exception):
    """A file cannot be read, or not any further; what follows the fault is unknown."""

    def __init__(self, source: str, message: str, position: str = "") -> None:
        self.fault = InputFault(Place(source, position), message)
        super().__init__(str(self.fault))
