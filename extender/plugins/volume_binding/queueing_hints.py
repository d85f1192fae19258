"""Queueing hints of VolumeBinding.

Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.EventsToRegister (1.36).
"""

from collections.abc import Sequence

from extender.api.kinds.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from extender.cache.pod_info import PodInfo
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.volumes.claims import uses_claim
from extender.volumes.csi_migration import have_migrated_plugins_changed
from extender.volumes.volume_index import get_volume_size_limit

_ADD_OR_UPDATE = ActionType.ADD | ActionType.UPDATE


def _is_schedulable_after_storage_class_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001  a hint's signature
    old_class: StorageClass | None = event.old
    new_class: StorageClass = event.new
    return QueueingHint.queue_if(old_class is None or old_class.allowed_topologies != new_class.allowed_topologies)


def _is_schedulable_after_claim_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    claim: PersistentVolumeClaim = event.new
    return QueueingHint.queue_if(uses_claim(pod.pod, pod.signature.volume_uses.claims, claim))


def _is_schedulable_after_csi_node_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001
    old_csi_node: CSINode | None = event.old
    new_csi_node: CSINode = event.new
    return QueueingHint.queue_if(old_csi_node is None or have_migrated_plugins_changed(old_csi_node, new_csi_node))


def _is_schedulable_after_csi_driver_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue *pod* if the driver of one of its inline volumes stops tracking storage capacity."""
    old_driver: CSIDriver = event.old
    new_driver: CSIDriver = event.new
    has_inline_volume = any(
        volume.csi is not None and volume.csi.driver == new_driver.metadata.name for volume in pod.spec.volumes
    )
    return QueueingHint.queue_if(
        has_inline_volume and bool(old_driver.spec.storage_capacity) and not new_driver.spec.storage_capacity
    )


def _is_schedulable_after_storage_capacity_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001
    old_capacity: CSIStorageCapacity | None = event.old
    new_capacity: CSIStorageCapacity = event.new
    if old_capacity is None:
        return QueueingHint.QUEUE
    old_limit, new_limit = get_volume_size_limit(old_capacity), get_volume_size_limit(new_capacity)
    return QueueingHint.queue_if(new_limit is not None and (old_limit is None or new_limit > old_limit))


EVENTS_TO_REGISTER: Sequence[ClusterEventWithHint] = (
    ClusterEventWithHint(EventResource.STORAGE_CLASS, _ADD_OR_UPDATE, _is_schedulable_after_storage_class_change),
    ClusterEventWithHint(EventResource.PERSISTENT_VOLUME_CLAIM, _ADD_OR_UPDATE, _is_schedulable_after_claim_change),
    ClusterEventWithHint(EventResource.PERSISTENT_VOLUME, _ADD_OR_UPDATE),
    ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
    ClusterEventWithHint(EventResource.CSI_NODE, _ADD_OR_UPDATE, _is_schedulable_after_csi_node_change),
    ClusterEventWithHint(EventResource.CSI_DRIVER, ActionType.UPDATE, _is_schedulable_after_csi_driver_change),
    ClusterEventWithHint(
        EventResource.CSI_STORAGE_CAPACITY, _ADD_OR_UPDATE, _is_schedulable_after_storage_capacity_change
    ),
)
