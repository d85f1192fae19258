"""Leadership: whether this process is the leader. Only the leader writes to the API server."""

from typing import Protocol


class Leadership(Protocol):
    """The leader state of this process."""

    def may_act(self) -> bool:
        """Return whether this process may bind and evict now. The call is cheap, because it precedes each write."""


class AlwaysLeader:
    """The leadership of a process without leader election, which may always write."""

    def may_act(self) -> bool:
        """Return True."""
        return True
