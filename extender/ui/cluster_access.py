"""How a process reads the live cluster of the pages, and what it cannot read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


def list_nothing() -> Sequence[str]:
    """Return no line."""
    return ()


def get_no_kinds() -> Mapping[str, str]:
    """Return no kind."""
    return {}


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How a process reads a live cluster. The default is for one that reads everything, with the default kubeconfig.

    Attributes:
        command_options: the options that select the same cluster and configuration on the command line.
        list_problems: returns a line for each missing right and each lost watch; none while all is well.
        get_unreadable_kinds: returns the kinds that could not be read, such as `PersistentVolumeClaim`, with the
            reason.
    """

    command_options: str = ""
    list_problems: Callable[[], Sequence[str]] = list_nothing
    get_unreadable_kinds: Callable[[], Mapping[str, str]] = get_no_kinds
