"""A pod in the queue, with what the queue must remember of its attempts. Source: D004."""

from dataclasses import dataclass, field

from extender.cluster.pods import PodQuery
from extender.framework.changes import Registration
from extender.framework.points import Queued


@dataclass(slots=True)
class QueuedPod:
    """One waiting pod.

    Attributes:
        query: the pod, compiled.
        since: when it was last put into the queue, in seconds.
        attempts: how often it was popped.
        first_active: when it first entered the active queue; None if it never did.
        rejections: attempts that ended with a rejection.
        errors: attempts that ended with an error, since the last rejection.
        rejectors: the plugins that rejected it in the last attempt.
        pending: those of them that wait for something outside (code Pending).
        gate: the plugin that keeps it from the active queue; empty if none does.
        gate_events: the events that plugin waits for.
        flushed: it was moved because it had been parked too long.
    """

    query: PodQuery
    since: float
    attempts: int = 0
    first_active: float | None = None
    rejections: int = 0
    errors: int = 0
    rejectors: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    gate: str = ""
    gate_events: tuple[Registration, ...] = field(default=())
    flushed: bool = False

    @property
    def key(self) -> str:
        """`namespace/name`, by which the queue knows it. Source: D001."""
        return self.query.key

    @property
    def uid(self) -> str:
        """Identifies the pod while it is in flight."""
        return self.query.uid

    @property
    def failures(self) -> int:
        """What its backoff is worked out of. Source: D021, D026."""
        return self.errors or self.rejections

    @property
    def all_rejectors(self) -> frozenset[str]:
        """Every plugin that rejected it; empty after an error."""
        return self.rejectors | self.pending

    @property
    def entry(self) -> Queued:
        """As the QueueSort plugin sees it."""
        return Queued(self.query, self.since)
