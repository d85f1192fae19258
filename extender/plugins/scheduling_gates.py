"""SchedulingGates: a pod with scheduling gates does not enter the queue.

**Refuses** every pod whose `spec.schedulingGates` is not empty, before it is queued.

**Scores** none.

**Undone by** the removal of the last gate of the pod.

**Options** none.

Source: B010 to B012.
"""

from collections.abc import Sequence
from typing import ClassVar

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.verdict import Status, unresolvable


class SchedulingGates:
    """Keeps gated pods out of the queue."""

    name: ClassVar[str] = "SchedulingGates"

    def pre_enqueue(self, pod: PodQuery, cluster: Snapshot) -> Status | None:  # noqa: ARG002  the point's signature
        """Names all gates, in the pod's order. Source: B010."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events(self) -> Sequence[Registration]:
        """Source: B011."""
        return (Registration(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _after_gates_eliminated),)


def _after_gates_eliminated(pod: PodQuery, change: Change) -> Hint:
    return Hint.QUEUE if change.new.metadata.uid == pod.pod.metadata.uid else Hint.SKIP
