"""The outcome of one scheduling cycle."""

from dataclasses import dataclass, field
from typing import Any

from extender.cycle.diagnosis import Diagnosis
from extender.cycle.score import Ranking
from extender.framework.status import Status
from extender.framework.waiting_pods import WaitingPodSignal


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The node selected for a pod.

    Attributes:
        suggested_host: the name of the node.
        feasible_nodes: the number of nodes that passed all filters.
        evaluated_nodes: the number of nodes that were evaluated.
        cycle_state: the PreFilter state by plugin name, for Reserve and later extension points.
        ranking: the scores; None if a single feasible node was selected without scoring.
        skipped_plugins: the plugins whose Filter was skipped.

    Source: pkg/scheduler/scheduler.go, ScheduleResult (1.36).
    """

    suggested_host: str
    feasible_nodes: int
    evaluated_nodes: int
    cycle_state: dict[str, Any] = field(default_factory=dict)
    ranking: Ranking | None = None
    skipped_plugins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ScheduleFailure:
    """A scheduling cycle that selected no node.

    Attributes:
        status: UNSCHEDULABLE if nodes were rejected, ERROR after an error, UNRESOLVABLE if the cluster has no nodes.
        diagnosis: the feasible nodes and the rejections of the other nodes.
        rejectors: the plugins whose events may make the pod schedulable. Empty after an error: the pod is then retried
            after its backoff.
        nominated_node: the node to nominate for the pod; None keeps the current nomination, "" clears it.
        post_filter_plans: `PostFilterResult.plan` by plugin.
        rejections: the pods that wait on Permit and that PostFilter plugins reject.
    """

    status: Status
    diagnosis: Diagnosis
    rejectors: frozenset[str] = frozenset()
    nominated_node: str | None = None
    post_filter_plans: dict[str, Any] = field(default_factory=dict)
    rejections: tuple[WaitingPodSignal, ...] = ()

    @property
    def message(self) -> str:
        """The message of the pod's event and condition."""
        return self.status.message


Decision = ScheduleResult | ScheduleFailure


@dataclass(frozen=True, slots=True)
class AttemptFailure:
    """A failed attempt to schedule a pod, with its reasons.

    Attributes:
        status: an ERROR or a rejection, with the whole message for the log, the event and the condition.
        rejectors: the plugins whose events may make the pod schedulable. Empty after an error, and for a member that
            fails only because its pod group fails.
        nominated_node: the node to nominate for the pod; None keeps the current nomination, "" clears it.
        pending_rejectors: those of the rejectors that returned the code PENDING.
        is_on_other_node: whether another scheduler bound the pod; its status is left alone.
    """

    status: Status
    rejectors: frozenset[str] = frozenset()
    nominated_node: str | None = ""
    pending_rejectors: frozenset[str] = frozenset()
    is_on_other_node: bool = False
