"""NodeVolumeLimits limits the number of CSI volumes of a node.

**Rejects** a node if the volumes of a driver on the node and those of the pod exceed `allocatable.count` of the node's
CSINode. The distinct volumes of the node's pods and of VolumeAttachments count. An unbound claim counts as a volume of
the provisioner of its class. Disks of in-tree drivers (EBS, GCE PD, Azure Disk, Cinder, Portworx) count for the CSI
driver that replaces them, if the node has a CSINode. Nodes without a CSINode, or without a limit in it, are not
limited. With the gate VolumeLimitScaling, a node that lacks a driver is rejected if the CSIDriver has
`preventPodSchedulingIfMissing`. Preemption may help. If a claim of the pod does not exist, the rejection is
unresolvable. The plugin skips pods that have neither claims nor disks of in-tree drivers.

**Scores** no node.

**Requeued on** a new CSINode, a limit that grows, a deleted pod with volumes, a new claim of the pod, or a detached
volume.

**Options** none.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import CSIDriver, CSINode, VolumeAttachment
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import SKIP, PreFilterResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection
from extender.volumes.attachments import AttachmentCache, AttachmentTable
from extender.volumes.claims import uses_claim
from extender.volumes.csi_migration import TranslationError, find_in_tree_driver, get_inline_csi_handle
from extender.volumes.volume_ids import AttachableVolumes, find_attachable_volumes, may_need_attachment

_MAX_VOLUME_COUNT_EXCEEDED = Reason("node(s) exceed max volume count")


@dataclass(frozen=True, slots=True)
class _PreFilterState:
    """The pod's volumes for nodes with and without a CSINode, and the drivers that must be installed."""

    with_csi_node: AttachableVolumes
    without_csi_node: AttachableVolumes
    required_drivers: frozenset[str]


class NodeVolumeLimits:
    """Compares each node's volume counts with its limits."""

    name: ClassVar[str] = "NodeVolumeLimits"
    cacheable_for_spec_class: ClassVar[bool] = True

    def __init__(self, args: PluginArgs[None]) -> None:
        self._volume_limit_scaling = "VolumeLimitScaling" in args.gates
        self._attachments = AttachmentCache()

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Get the pod's volumes. Skip pods without attachable volumes.

        Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, CSILimits.PreFilter (1.36).
        """
        return (
            PreFilterResult(state=self._collect_volumes(pod, snapshot)) if may_need_attachment(pod.signature) else SKIP
        )

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether the pod has no attachable volumes."""
        return not may_need_attachment(pod.signature)

    def _collect_volumes(self, pod: PodInfo, snapshot: Snapshot) -> _PreFilterState:
        with_csi_node, without_csi_node = (
            find_attachable_volumes(pod.pod, pod.signature, snapshot, translate_in_tree=has_csi_node, assigned=False)
            for has_csi_node in (True, False)
        )
        required_drivers: frozenset[str] = frozenset()
        if self._volume_limit_scaling:
            drivers = {driver for pod_volumes in (with_csi_node, without_csi_node) for driver, _ in pod_volumes.volumes}
            required_drivers = frozenset(
                driver for driver in drivers if _must_be_installed(snapshot.get_object(CSIDriver, driver))
            )
        return _PreFilterState(with_csi_node, without_csi_node, required_drivers)

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        """Reject nodes over a limit. If PreFilter is disabled, get the pod's volumes here.

        Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, CSILimits.Filter, CSILimits.getCSIDriverInfo,
        CSILimits.filterAttachableVolumes (1.36).
        """
        if not may_need_attachment(pod.signature):
            return ()
        pre_filter_state: _PreFilterState = self._collect_volumes(pod, nodes.snapshot) if state is None else state
        table, slots = self._attachments.get_table(nodes)
        has_csi_node = table.has_csi_node[slots]
        rejections: list[Rejection] = []
        remaining_nodes = np.ones(len(nodes), dtype=np.bool_)
        for pod_volumes, nodes_mask in (
            (pre_filter_state.with_csi_node, has_csi_node),
            (pre_filter_state.without_csi_node, ~has_csi_node),
        ):
            if pod_volumes.error and nodes_mask.any():
                code = Code.UNRESOLVABLE if pod_volumes.claim_missing else Code.ERROR
                rejections.append(Rejection(nodes_mask, Reason(pod_volumes.error, code)))
                remaining_nodes &= ~nodes_mask
            for driver in dict.fromkeys(driver for driver, _ in pod_volumes.volumes):
                if driver in pre_filter_state.required_drivers:
                    lacks_driver = remaining_nodes & nodes_mask & ~table.is_installed(driver)[slots]
                    rejections.append(
                        Rejection(lacks_driver, Reason(f"{driver} CSI driver is not installed on the node"))
                    )
                    remaining_nodes &= ~lacks_driver
        if pre_filter_state.with_csi_node.volumes:
            remaining_nodes &= table.has_limits[slots]
            rejections += _reject_nodes_with_errors(table, slots, remaining_nodes)
            rejections.append(
                Rejection(
                    remaining_nodes & _exceeds_limits(table, slots, pre_filter_state.with_csi_node),
                    _MAX_VOLUME_COUNT_EXCEEDED,
                )
            )
        return tuple(rejection for rejection in rejections if rejection.nodes.any())

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may lower a count or raise a limit.

        Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, CSILimits.EventsToRegister (1.36).
        """
        return (
            ClusterEventWithHint(EventResource.CSI_NODE, ActionType.ADD),
            ClusterEventWithHint(EventResource.CSI_NODE, ActionType.UPDATE, _is_schedulable_after_csi_node_updated),
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _is_schedulable_after_pod_deleted),
            ClusterEventWithHint(
                EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, _is_schedulable_after_claim_added
            ),
            ClusterEventWithHint(
                EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, _is_schedulable_after_volume_attachment_deleted
            ),
        )


def _must_be_installed(driver: CSIDriver | None) -> bool:
    return driver is not None and bool(driver.spec.prevent_pod_scheduling_if_missing)


def _reject_nodes_with_errors(table: AttachmentTable, slots: IntArray, remaining_nodes: BoolArray) -> list[Rejection]:
    """Return an error for each node with unknown volumes, and remove these nodes from *remaining_nodes*."""
    if not table.errors:
        return []
    rejections: list[Rejection] = []
    for slot, message in table.errors.items():
        mask = remaining_nodes & (slots == slot)
        if mask.any():
            rejections.append(Rejection(mask, Reason(message, Code.ERROR)))
            remaining_nodes &= ~mask
    return rejections


def _exceeds_limits(table: AttachmentTable, slots: IntArray, pod_volumes: AttachableVolumes) -> BoolArray:
    """Return the nodes where the new volumes among *pod_volumes* exceed the limit of a driver."""
    exceeds_limit = np.zeros(len(slots), dtype=np.bool_)
    for driver, volume_count in Counter(driver for driver, _ in pod_volumes.volumes).items():
        new_volumes = np.full(len(slots), volume_count, dtype=np.int64)
        for volume in pod_volumes.volumes:
            if volume[0] == driver:
                new_volumes -= table.uses_volume(volume)[slots]
        exceeds_limit |= (new_volumes > 0) & (
            table.get_counts(driver)[slots] + new_volumes > table.get_limits(driver)[slots]
        )
    return exceeds_limit


def _is_schedulable_after_csi_node_updated(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001  a hint's signature
    old_csi_node: CSINode = event.old
    new_csi_node: CSINode = event.new
    old_limits = dict(_get_driver_limits(old_csi_node))
    has_increased = any(limit > old_limits.get(driver, 0) for driver, limit in _get_driver_limits(new_csi_node))
    return QueueingHint.queue_if(has_increased)


def _get_driver_limits(csi_node: CSINode) -> list[tuple[str, int]]:
    """Return the name and limit of each driver of *csi_node*; a missing limit is 0."""
    return [
        (driver.name, (driver.allocatable.count or 0) if driver.allocatable is not None else 0)
        for driver in csi_node.spec.drivers
    ]


def _is_schedulable_after_pod_deleted(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001
    deleted_pod: Pod = event.old
    if not deleted_pod.spec.node_name and not deleted_pod.status.nominated_node_name:
        return QueueingHint.SKIP
    has_volumes = any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or find_in_tree_driver(volume) is not None
        for volume in deleted_pod.spec.volumes
    )
    return QueueingHint.queue_if(has_volumes)


def _is_schedulable_after_claim_added(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    return QueueingHint.queue_if(uses_claim(pod.pod, pod.signature.volume_uses.claims, event.new))


def _is_schedulable_after_volume_attachment_deleted(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    deleted_attachment: VolumeAttachment = event.old
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return QueueingHint.QUEUE
        driver = find_in_tree_driver(volume)
        if driver is None:
            continue
        if driver.migrated:
            try:
                get_inline_csi_handle(volume)
            except TranslationError:
                return QueueingHint.QUEUE  # the pod is queued if its hint fails, as upstream
        if driver.csi_driver == deleted_attachment.spec.attacher:
            return QueueingHint.QUEUE
    return QueueingHint.SKIP
