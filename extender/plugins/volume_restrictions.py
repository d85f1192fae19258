"""VolumeRestrictions rejects nodes where another pod uses the same disk, and enforces ReadWriteOncePod.

**Rejects** a pod in PreFilter if one of its claims does not exist. This rejection is unresolvable. Rejects a node where
a pod uses the same disk. Disks of Amazon EBS always conflict. GCE, iSCSI and Ceph RBD disks conflict unless both pods
only read them. iSCSI disks are the same if their qualified names are equal. RBD images are the same if they share a
monitor, the pool and the image. Rejects all nodes if another pod uses one of the pod's ReadWriteOncePod claims.
Preemption may help in both cases. Disks behind claims are not compared. The plugin skips pods that have neither such
disks nor such claims in use.

**Scores** no node.

**Requeued on** a deleted pod of the same namespace that used such a disk or claim, a new node, or a new claim of the
pod.

**Options** none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolumeClaim
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import make_mask
from extender.cache.tables.volume_uses import collect_volume_uses, disks_conflict
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import SKIP, PreFilterResult
from extender.framework.status import Code, Reason, Rejection, unresolvable_status
from extender.volumes.claims import format_not_found_message

_DISK_CONFLICT = Reason("node(s) had no available disk")
_READ_WRITE_ONCE_POD_CONFLICT = Reason(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_NO_STATE = Reason('cannot read "PreFilterVolumeRestrictions" from cycleState', Code.ERROR)
_READ_WRITE_ONCE_POD = "ReadWriteOncePod"


@dataclass(slots=True)
class _PreFilterState:
    """The pod's ReadWriteOncePod claims, and the number of uses of these claims by other pods."""

    claim_names: frozenset[str]
    conflicting_uses: int


class VolumeRestrictions:
    """Looks up the pod's disks and claims in the snapshot's table of volumes."""

    name: ClassVar[str] = "VolumeRestrictions"
    pod_changes_are_reversible: ClassVar[bool] = True
    cacheable_for_spec_class: ClassVar[bool] = True

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Count conflicting uses of ReadWriteOncePod claims. Skip pods that have neither such conflicts nor disks.

        Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go,
        VolumeRestrictions.PreFilter (1.36).
        """
        uses = pod.signature.volume_uses
        claim_names: set[str] = set()
        for name in uses.list_claim_names():
            claim = snapshot.get_object(PersistentVolumeClaim, f"{pod.namespace}/{name}")
            if claim is None:
                return PreFilterResult(status=unresolvable_status(format_not_found_message(name)))
            if _READ_WRITE_ONCE_POD in claim.spec.access_modes:
                claim_names.add(name)
        conflicting_uses = sum(snapshot.is_pvc_used_by_pods(f"{pod.namespace}/{name}") for name in claim_names)
        has_rbd = any(volume.rbd is not None for volume in pod.spec.volumes)  # even if it lists no monitors
        if not (uses.disks or has_rbd or conflicting_uses):
            return SKIP
        return PreFilterResult(state=_PreFilterState(frozenset(claim_names), conflicting_uses))

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether the pod has no claims."""
        return not pod.signature.volume_uses.claims

    def filter(self, pod: PodInfo, nodes: NodeView, state: _PreFilterState | None) -> Sequence[Rejection]:
        """Reject nodes with a disk conflict, and the other nodes if a ReadWriteOncePod claim is in use.

        Return an error for the other nodes if PreFilter is disabled, as upstream.

        Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go, isVolumeConflict,
        satisfyReadWriteOncePod (1.36).
        """
        rows = list(nodes.snapshot.rows_with_disk_conflict(pod))
        disk_conflict = nodes.take(make_mask(rows, len(nodes.snapshot)))
        rejections = (Rejection(disk_conflict, _DISK_CONFLICT),) if disk_conflict.any() else ()
        if state is not None and state.conflicting_uses <= 0:
            return rejections
        return (*rejections, Rejection(~disk_conflict, _NO_STATE if state is None else _READ_WRITE_ONCE_POD_CONFLICT))

    # -- PreFilter extensions

    def clone(self, state: _PreFilterState) -> _PreFilterState:
        """Return a copy that can be updated independently.

        Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go,
        preFilterState.Clone (1.36).
        """
        return replace(state)

    def add_pod(self, pod: PodInfo, pod_to_add: AssignedPodInfo, row: int, snapshot: Snapshot, state: Any) -> None:  # noqa: ARG002
        """Add the conflicting uses by *pod_to_add*.

        Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go,
        preFilterState.conflictingPVCRefCountForPod (1.36).
        """
        state.conflicting_uses += _count_uses(pod_to_add, state.claim_names)

    def remove_pod(
        self,
        pod: PodInfo,  # noqa: ARG002  the extension point's signature
        pod_to_remove: AssignedPodInfo,
        row: int,  # noqa: ARG002
        snapshot: Snapshot,  # noqa: ARG002
        state: _PreFilterState,
    ) -> None:
        """Subtract the conflicting uses by *pod_to_remove*.

        Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go,
        preFilterState.conflictingPVCRefCountForPod (1.36).
        """
        state.conflicting_uses -= _count_uses(pod_to_remove, state.claim_names)

    # -- events

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may free disks or claims.

        Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go,
        VolumeRestrictions.EventsToRegister (1.36).
        """
        return (
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _is_schedulable_after_pod_deleted),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD),
            ClusterEventWithHint(
                EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, _is_schedulable_after_claim_added
            ),
        )


def _count_uses(assigned_pod: AssignedPodInfo, claim_names: frozenset[str]) -> int:
    """Return the number of claims of *assigned_pod* that are in *claim_names*. Namespaces are ignored, as upstream."""
    return sum(name in claim_names for name in assigned_pod.signature.volume_uses.list_claim_names())


def _is_schedulable_after_pod_deleted(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    deleted_pod: Pod = event.old
    if deleted_pod.metadata.namespace != pod.namespace:
        return QueueingHint.SKIP
    uses, deleted_uses = pod.signature.volume_uses, collect_volume_uses(deleted_pod)
    shared_claims = set(uses.list_claim_names()) & set(deleted_uses.list_claim_names())
    return QueueingHint.queue_if(shared_claims or disks_conflict(uses, deleted_uses))


def _is_schedulable_after_claim_added(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    meta = event.new.metadata
    claim_names = pod.signature.volume_uses.list_claim_names()
    return QueueingHint.queue_if(meta.namespace == pod.namespace and meta.name in claim_names)
