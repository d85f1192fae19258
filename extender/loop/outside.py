"""What the loop needs of the world beside the API server: a recorder of events, leadership, a place to count."""

from typing import Protocol

from extender.objects.groups import PodGroup
from extender.objects.pod import Pod


class Recorder(Protocol):
    """Writes events; never blocks and never fails its caller."""

    def event(
        self,
        pod: Pod,
        *,
        warning: bool,
        reason: str,
        action: str,
        note: str,
        related: Pod | PodGroup | None = None,
        scheduler: str = "",
    ) -> None:
        """Something worth telling happened to *pod*; told in the name of *scheduler*, by default the pod's own.

        Source: H053 to H056.
        """


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

    def created_claim(self, *, well: bool) -> None:
        """A resource claim was created for a pod, or could not be."""

    def attached(self, profile: str, driver: str, status: str, seconds: float, *, counts: bool) -> None:
        """The wait for devices is over: success, timeout, failure or error; *counts*: for this device too."""

    def group_attempted(self, profile: str, result: str, seconds: float) -> None:
        """An attempt for a pod group ended: scheduled, unschedulable, waiting_on_preemption or error."""

    def group_decided(self, seconds: float) -> None:
        """The members of a pod group were decided."""


class Always:
    """Leadership without an election."""

    def may_act(self) -> bool:
        """True."""
        return True


class Uncounted(Tally):
    """A tally that keeps nothing."""
