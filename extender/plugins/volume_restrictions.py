"""VolumeRestrictions: disks that only one pod can use at a time, and claims that only one pod may use at all.

**Refuses** a pod whose claim does not exist, for good. A node where a pod uses the same disk: of Amazon EBS always, of
GCE, iSCSI (by its qualified name) and Ceph RBD (by a common monitor, pool and image) unless both pods only read it. All
nodes if a claim of the pod with the access mode ReadWriteOncePod is in use by a pod anywhere. Preemption may help with
both. Not asked for pods without such disks and without such claims in use. Disks behind claims do not count.

**Scores** none.

**Undone by** the end of a pod of the same namespace that used such a disk or claim, a new node, or the creation of a
claim of the pod.

**Options** none.

Source: B080 to B084.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.cluster.volume_uses import VolumeUses, disks_conflict, volume_uses
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import SKIP, PreFiltered
from extender.framework.verdict import Code, Reason, Rejection, unresolvable
from extender.objects.pod import Pod
from extender.objects.storage import PersistentVolumeClaim
from extender.volumes.claims import not_found

_DISK_TAKEN = Reason("node(s) had no available disk")
_CLAIM_TAKEN = Reason(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_UNPREPARED = Reason('cannot read "PreFilterVolumeRestrictions" from cycleState', Code.ERROR)
_ONE_POD = "ReadWriteOncePod"


@dataclass(slots=True)
class _Notes:
    """The pod's claims for one pod only, by name, and how many uses of them stand in its way."""

    claims: frozenset[str]
    in_use: int


class VolumeRestrictions:
    """Looks disks and claims up in the table of volumes in use."""

    name: ClassVar[str] = "VolumeRestrictions"
    kept_for_kin: ClassVar[bool] = True

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Source: B080."""
        uses = pod.shape.volumes
        claims: set[str] = set()
        for name in _claim_names(uses):
            claim = cluster.find(PersistentVolumeClaim, f"{pod.namespace}/{name}")
            if claim is None:
                return PreFiltered(status=unresolvable(not_found(name)))
            if _ONE_POD in claim.spec.access_modes:
                claims.add(name)
        in_use = sum(cluster.is_claimed(f"{pod.namespace}/{name}") for name in claims)
        if not uses.disks and not _has_rbd(pod) and not in_use:
            return SKIP
        return PreFiltered(notes=_Notes(frozenset(claims), in_use))

    def pre_filter_kept(self, pod: PodQuery) -> bool:
        """For pods without claims."""
        return not pod.shape.volumes.claims

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        """A node without a free disk is refused for that alone; the rest are an error without `pre_filter`.

        Source: B081, B082.
        """
        known: _Notes | None = notes
        taken = np.zeros(len(nodes.snapshot), dtype=np.bool_)
        taken[list(nodes.snapshot.disk_conflicts(pod))] = True
        mine = nodes.take(taken)
        groups = (Rejection(mine, _DISK_TAKEN),) if mine.any() else ()
        if known is not None and known.in_use <= 0:
            return groups
        return (*groups, Rejection(~mine, _UNPREPARED if known is None else _CLAIM_TAKEN))

    # -- pods imagined on or off a node

    def clone(self, notes: Any) -> Any:
        """Source: B083."""
        known: _Notes = notes
        return replace(known)

    def add_pod(self, pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: Any) -> None:  # noqa: ARG002
        """Source: B083."""
        known: _Notes = notes
        known.in_use += _uses(other, known.claims)

    def remove_pod(self, pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: Any) -> None:  # noqa: ARG002
        """Source: B083."""
        known: _Notes = notes
        known.in_use -= _uses(other, known.claims)

    # -- events

    def events(self) -> Sequence[Registration]:
        """Source: B084."""
        return (
            Registration(Resource.POD, Action.DELETE, _after_pod_deleted),
            Registration(Resource.NODE, Action.ADD),
            Registration(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, _after_claim_added),
        )


def _claim_names(uses: VolumeUses) -> tuple[str, ...]:
    return tuple(use.name for use in uses.claims if not use.generated)


def _has_rbd(pod: PodQuery) -> bool:
    """Whether the pod names an RBD image, perhaps without a monitor; such a pod is asked about and passes."""
    return any(volume.rbd is not None for volume in pod.spec.volumes)


def _uses(other: PlacedPod, claims: frozenset[str]) -> int:
    """How often *other* names one of *claims*. As upstream, its namespace does not matter."""
    return sum(name in claims for name in _claim_names(other.shape.volumes))


def _after_pod_deleted(pod: PodQuery, change: Change) -> Hint:
    gone: Pod = change.old
    if gone.metadata.namespace != pod.namespace:
        return Hint.SKIP
    ours, theirs = pod.shape.volumes, volume_uses(gone)
    shared = set(_claim_names(ours)) & set(_claim_names(theirs))
    return Hint.QUEUE if shared or disks_conflict(ours, theirs) else Hint.SKIP


def _after_claim_added(pod: PodQuery, change: Change) -> Hint:
    meta = change.new.metadata
    mine = meta.namespace == pod.namespace and meta.name in _claim_names(pod.shape.volumes)
    return Hint.QUEUE if mine else Hint.SKIP
