"""Leadership: the leader process alone may write."""

from typing import Protocol


class Leadership(Protocol):
    """The leader state of this process."""

    def may_act(self) -> bool:
        """Return whether this process may bind and evict now. Called before each such write, so it is cheap."""


class AlwaysLeader:
    """Leadership without leader election."""

    def may_act(self) -> bool:
        """Return True."""
        return True
