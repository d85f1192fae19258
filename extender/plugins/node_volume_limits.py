"""NodeVolumeLimits: no node gets more volumes of a CSI driver than the driver says it takes.

**Refuses** a node that would have more volumes of a driver than `allocatable.count` in its CSINode, counted once each:
those of its pods, those that VolumeAttachments say are attached, and those of the pod that no pod there uses. A claim
that is not bound counts as a volume of its class's provisioner. Disks of drivers that Kubernetes once contained (EBS,
GCE PD, Azure Disk, Cinder, Portworx) count for the CSI driver that took over, where the node has a CSINode. A node
without a CSINode, or without a limit, takes any number. With the gate VolumeLimitScaling, a node lacks a driver whose
CSIDriver has `preventPodSchedulingIfMissing`. Preemption may help. For good: a pod whose claim does not exist. Not
asked for pods without claims and such disks.

**Scores** none.

**Undone by** a new CSINode, a limit that grew, the end of a pod that had volumes, the creation of a claim of the pod, a
volume detached.

**Options** none.

Source: B085 to B090.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import SKIP, PreFiltered
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection
from extender.objects.pod import Pod
from extender.objects.storage import CSIDriver, CSINode, VolumeAttachment
from extender.volumes.attachments import Attachments, Table
from extender.volumes.claims import names_claim
from extender.volumes.identity import Attachables, attachables, may_attach
from extender.volumes.migration import TranslationError, in_tree_driver, inline_handle

_TOO_MANY = Reason("node(s) exceed max volume count")


@dataclass(frozen=True, slots=True)
class _Notes:
    """The pod's volumes as seen by nodes with and without a CSINode, and the drivers that must be installed."""

    with_csi_node: Attachables
    without: Attachables
    demanding: frozenset[str]


class NodeVolumeLimits:
    """Compares counts of volumes with limits, both kept by node."""

    name: ClassVar[str] = "NodeVolumeLimits"
    kept_for_kin: ClassVar[bool] = True

    def __init__(self, setup: Setup[None]) -> None:
        self._scaling = "VolumeLimitScaling" in setup.gates
        self._attachments = Attachments()

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Source: B085."""
        return PreFiltered(notes=self._volumes(pod, cluster)) if may_attach(pod.shape) else SKIP

    def pre_filter_kept(self, pod: PodQuery) -> bool:
        """For pods without volumes that may count."""
        return not may_attach(pod.shape)

    def _volumes(self, pod: PodQuery, cluster: Snapshot) -> _Notes:
        seen = [attachables(pod.pod, pod.shape, cluster, migrated=has, placed=False) for has in (True, False)]
        demanding: frozenset[str] = frozenset()
        if self._scaling:
            drivers = {driver for each in seen for driver, _ in each.volumes}
            demanding = frozenset(driver for driver in drivers if _demands(cluster.find(CSIDriver, driver)))
        return _Notes(seen[0], seen[1], demanding)

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        """Needs no `pre_filter`. Source: B086 to B089."""
        if not may_attach(pod.shape):
            return ()
        known: _Notes = self._volumes(pod, nodes.snapshot) if notes is None else notes
        table, slots = self._attachments.of(nodes)
        has = table.has_csi_node[slots]
        groups: list[Rejection] = []
        left = np.ones(len(nodes), dtype=np.bool_)
        for found, where in ((known.with_csi_node, has), (known.without, ~has)):
            if found.fault and where.any():
                code = Code.UNRESOLVABLE if found.missing else Code.ERROR
                groups.append(Rejection(where, Reason(found.fault, code)))
                left &= ~where
            for driver in dict.fromkeys(driver for driver, _ in found.volumes):
                if driver in known.demanding:
                    missing = left & where & ~table.installed(driver)[slots]
                    groups.append(Rejection(missing, Reason(f"{driver} CSI driver is not installed on the node")))
                    left &= ~missing
        if known.with_csi_node.volumes:
            left &= table.limited[slots]
            groups += _faults(table, slots, left)
            groups.append(Rejection(left & _exceeded(table, slots, known.with_csi_node), _TOO_MANY))
        return tuple(group for group in groups if group.nodes.any())

    def events(self) -> Sequence[Registration]:
        """Source: B090."""
        return (
            Registration(Resource.CSI_NODE, Action.ADD),
            Registration(Resource.CSI_NODE, Action.UPDATE, _after_csi_node_update),
            Registration(Resource.POD, Action.DELETE, _after_pod_deleted),
            Registration(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, _after_claim_added),
            Registration(Resource.VOLUME_ATTACHMENT, Action.DELETE, _after_detached),
        )


def _demands(driver: CSIDriver | None) -> bool:
    return driver is not None and bool(driver.spec.prevent_pod_scheduling_if_missing)


def _faults(table: Table, slots: IntArray, left: BoolArray) -> list[Rejection]:
    """Nodes whose pods have volumes that cannot be told; they leave *left*."""
    if not table.faults:
        return []
    groups: list[Rejection] = []
    for slot, fault in table.faults.items():
        mine = left & (slots == slot)
        if mine.any():
            groups.append(Rejection(mine, Reason(fault, Code.ERROR)))
            left &= ~mine
    return groups


def _exceeded(table: Table, slots: IntArray, found: Attachables) -> BoolArray:
    """Where the volumes in *found* that are new to the node are too many for some driver."""
    exceeded = np.zeros(len(slots), dtype=np.bool_)
    for driver, number in Counter(driver for driver, _ in found.volumes).items():
        new = np.full(len(slots), number, dtype=np.int64)
        for volume in found.volumes:
            if volume[0] == driver:
                new -= table.holding(volume)[slots]
        exceeded |= (new > 0) & (table.counts(driver)[slots] + new > table.limits(driver)[slots])
    return exceeded


def _after_csi_node_update(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001  hints have this signature
    old: CSINode = change.old
    new: CSINode = change.new
    before = dict(_limits(old))
    grew = any(limit > before.get(driver, 0) for driver, limit in _limits(new))
    return Hint.QUEUE if grew else Hint.SKIP


def _limits(csi_node: CSINode) -> list[tuple[str, int]]:
    """The limit of each driver of *csi_node*; none counts as 0."""
    return [
        (driver.name, (driver.allocatable.count or 0) if driver.allocatable is not None else 0)
        for driver in csi_node.spec.drivers
    ]


def _after_pod_deleted(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001
    gone: Pod = change.old
    if not gone.spec.node_name and not gone.status.nominated_node_name:
        return Hint.SKIP
    had_some = any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or in_tree_driver(volume) is not None
        for volume in gone.spec.volumes
    )
    return Hint.QUEUE if had_some else Hint.SKIP


def _after_claim_added(pod: PodQuery, change: Change) -> Hint:
    return Hint.QUEUE if names_claim(pod.pod, pod.shape.volumes.claims, change.new) else Hint.SKIP


def _after_detached(pod: PodQuery, change: Change) -> Hint:
    gone: VolumeAttachment = change.old
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        driver = in_tree_driver(volume)
        if driver is None:
            continue
        if driver.migrated:
            try:
                inline_handle(volume)
            except TranslationError:
                return Hint.QUEUE  # as for any hint that fails
        if driver.driver == gone.spec.attacher:
            return Hint.QUEUE
    return Hint.SKIP
