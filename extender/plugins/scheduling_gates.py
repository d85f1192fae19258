"""SchedulingGates keeps pods with scheduling gates out of the active queue.

**Rejects** in PreEnqueue every pod whose `spec.schedulingGates` is not empty.

**Scores** no node.

**Requeued on** the removal of the pod's last gate.

**Options** none.

Source: pkg/registry/core/pod/strategy.go, applySchedulingGatedCondition (1.36).
"""

from collections.abc import Sequence
from typing import ClassVar

from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource, queue_changed_pod
from extender.framework.status import Status, unresolvable_status


class SchedulingGates:
    """Rejects gated pods in PreEnqueue."""

    name: ClassVar[str] = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status | None:  # noqa: ARG002  the extension point's signature
        """Reject a pod with gates. The message lists them in the pod's order.

        Source: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go, SchedulingGates.PreEnqueue
        (1.36).
        """
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return unresolvable_status(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the event of a pod whose last gate was removed.

        Source: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go,
        SchedulingGates.isSchedulableAfterUpdatePodSchedulingGatesEliminated (1.36).
        """
        return (
            ClusterEventWithHint(
                EventResource.TARGET_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, queue_changed_pod
            ),
        )
