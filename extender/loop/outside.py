"""What the loop needs of the world: the API server's write side, a recorder of events, leadership, a place to count."""

from typing import Protocol

from extender.framework.points import Write
from extender.objects.pod import Pod


class Api(Protocol):
    """The write side of the API server."""

    async def carry_out(self, write: Write) -> None:
        """Make the call.

        Raises:
            client.errors.ApiError: it did not succeed, or its outcome is unknown.
        """


class Recorder(Protocol):
    """Writes events; never blocks and never fails its caller."""

    def event(
        self, pod: Pod, *, warning: bool, reason: str, action: str, note: str, related: Pod | None = None
    ) -> None:
        """Something worth telling happened to *pod*. Source: H053 to H056."""


class Leadership(Protocol):
    """Whether this process may act."""

    def may_act(self) -> bool:
        """Asked immediately before each write that binds or evicts; cheap."""


class Tally(Protocol):
    """Counts and measures, in seconds. Source: H.1."""

    def attempted(self, profile: str, result: str, seconds: float) -> None:
        """An attempt ended: scheduled, unschedulable or error."""

    def decided(self, seconds: float) -> None:
        """A scheduling cycle came to a decision."""

    def bound(self, attempts: int, since_first_active: float) -> None:
        """A pod is bound, after so many attempts and so long since it first entered the active queue."""

    def waited(self, result: str, seconds: float) -> None:
        """A pod waited on Permit."""

    def preempted(self, victims: int) -> None:
        """Pods are evicted for another."""

    def evicted(self, result: str, seconds: float) -> None:
        """The evictions of one preemption are done: success or error."""

    def bound_after_flush(self) -> None:
        """A bound pod had been tried again only because it was parked too long."""


class Always:
    """Leadership without an election."""

    def may_act(self) -> bool:
        """True."""
        return True


class Uncounted:
    """A tally that keeps nothing."""

    def attempted(self, profile: str, result: str, seconds: float) -> None:
        """Nothing."""

    def decided(self, seconds: float) -> None:
        """Nothing."""

    def bound(self, attempts: int, since_first_active: float) -> None:
        """Nothing."""

    def waited(self, result: str, seconds: float) -> None:
        """Nothing."""

    def preempted(self, victims: int) -> None:
        """Nothing."""

    def evicted(self, result: str, seconds: float) -> None:
        """Nothing."""

    def bound_after_flush(self) -> None:
        """Nothing."""
