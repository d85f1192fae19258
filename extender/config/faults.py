"""A fault in what a user wrote: where it stands, and what is wrong; and the error that carries all of them at once."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing wrong with a document.

    Attributes:
        path: where, as a field path: ``profiles[0].pluginConfig[1].args.scoringStrategy.type``; empty for the whole.
        message: what is wrong and, where it helps, what would be right.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(Exception):
    """A configuration that cannot be used; carries every fault found, never just the first."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(map(str, self.faults)))
