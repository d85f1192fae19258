"""VolumeZone rejects nodes outside the zones and regions of the pod's volumes.

**Rejects** a pod in PreFilter as unresolvable if a claim or volume does not exist. Also rejects a pod with an unbound
claim, unless the class of the claim delays binding. Rejects a node as unresolvable if its zone or region differs from
the labels of a bound volume. The label of a volume may list several zones, separated by `__`. A node without any zone
or region label passes. If a node has only the stable labels, they are compared with the beta labels of a volume.
Generic ephemeral volumes are ignored. The plugin skips pods without volumes to check.

**Scores** no node.

**Requeued on** a new class with delayed binding, a new or relabelled node, a changed claim of the pod, a new volume, or
a volume whose zones change.

**Options** none.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from extender.api.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.api.matching import Requirement
from extender.cache.node_matching import match_requirements
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray
from extender.cache.tables.node_table import ABSENT
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import SKIP, PreFilterResult
from extender.framework.status import Code, Reason, Rejection, reject_all, unresolvable_status
from extender.volumes.claims import WAIT_FOR_FIRST_CONSUMER, format_not_found_message, get_claim_class
from extender.volumes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER

_TOPOLOGY_CONFLICT = Reason("node(s) had no available volume zone", Code.UNRESOLVABLE)
_TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_STABLE_LABEL_BY_LABEL = {BETA_ZONE: ZONE, BETA_REGION: REGION, ZONE: ZONE, REGION: REGION}


class _Topology(NamedTuple):
    """A topology label of a volume, and the node label values that it allows."""

    label: str
    values: tuple[str, ...]


class VolumeZone:
    """Compares the zone and region labels of volumes and nodes."""

    name: ClassVar[str] = "VolumeZone"
    cacheable_for_spec_class: ClassVar[bool] = True

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Get the topologies of the pod's volumes. Skip pods without topologies.

        Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go, VolumeZone.getPVbyPod (1.36).
        """
        topologies = _get_pod_topologies(pod, snapshot)
        if isinstance(topologies, str):
            return PreFilterResult(status=unresolvable_status(topologies))
        return PreFilterResult(state=topologies) if topologies else SKIP

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether the pod has no claims."""
        return not pod.signature.volume_uses.claims

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        """Reject nodes outside a volume's topology. If PreFilter is disabled, get the topologies here.

        Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go, VolumeZone.Filter (1.36).
        """
        topologies: tuple[_Topology, ...] | str = _get_pod_topologies(pod, nodes.snapshot) if state is None else state
        if isinstance(topologies, str):
            return reject_all(len(nodes), Reason(topologies, Code.UNRESOLVABLE))
        mismatches = np.zeros(len(nodes), dtype=np.bool_)
        for topology in topologies:
            mismatches |= ~_matches_topology(nodes, topology)
        if not mismatches.any():
            return ()
        has_topology = np.zeros(len(nodes), dtype=np.bool_)
        for label in _TOPOLOGY_LABELS:
            has_topology |= nodes.label_value_ids(label) != ABSENT
        mismatches &= has_topology
        return (Rejection(mismatches, _TOPOLOGY_CONFLICT),) if mismatches.any() else ()

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events of storage classes, nodes, claims and volumes.

        Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go, VolumeZone.EventsToRegister (1.36).
        """
        added_or_updated = ActionType.ADD | ActionType.UPDATE
        return (
            ClusterEventWithHint(
                EventResource.STORAGE_CLASS, ActionType.ADD, _is_schedulable_after_storage_class_added
            ),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            ClusterEventWithHint(
                EventResource.PERSISTENT_VOLUME_CLAIM, added_or_updated, _is_schedulable_after_claim_change
            ),
            ClusterEventWithHint(
                EventResource.PERSISTENT_VOLUME, added_or_updated, _is_schedulable_after_volume_change
            ),
        )


def _get_pod_topologies(pod: PodInfo, snapshot: Snapshot) -> tuple[_Topology, ...] | str:
    """Return the topologies of the pod's volumes, or the message of a rejection."""
    topologies: list[_Topology] = []
    for name in pod.signature.volume_uses.list_claim_names():
        claim_topologies = _get_claim_topologies(pod.namespace, name, snapshot)
        if isinstance(claim_topologies, str):
            return claim_topologies
        topologies += claim_topologies
    return tuple(dict.fromkeys(topologies))


def _get_claim_topologies(namespace: str, name: str, snapshot: Snapshot) -> list[_Topology] | str:
    """Return the topologies of the volume of claim *name*, or the message of a rejection.

    Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go, VolumeZone.getPVbyPod (1.36).
    """
    if not name:
        return "PersistentVolumeClaim had no name"
    claim = snapshot.get_object(PersistentVolumeClaim, f"{namespace}/{name}")
    if claim is None:
        return format_not_found_message(name)
    if not claim.spec.volume_name:
        return _get_unbound_claim_error(claim, snapshot) or []
    volume = snapshot.get_object(PersistentVolume, claim.spec.volume_name)
    if volume is None:
        return f'persistentvolume "{claim.spec.volume_name}" not found'
    return _get_volume_topologies(volume)


def _get_unbound_claim_error(claim: PersistentVolumeClaim, snapshot: Snapshot) -> str | None:
    """Return the rejection message for an unbound claim; None if its binding is delayed."""
    class_name = get_claim_class(claim)
    if not class_name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = snapshot.get_object(StorageClass, class_name)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{class_name}" not found'
    if storage_class.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{class_name}"'
    return None if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"


def _get_volume_topologies(volume: PersistentVolume) -> list[_Topology]:
    """Return the topologies in the labels of *volume*. A label with an empty zone is ignored."""
    topologies = []
    for label in _TOPOLOGY_LABELS:
        label_value = volume.metadata.labels.get(label)
        zones = [zone.strip() for zone in label_value.split(ZONE_DELIMITER)] if label_value is not None else [""]
        if all(zones):
            topologies.append(_Topology(label, tuple(sorted(set(zones)))))
    return topologies


def _matches_topology(nodes: NodeView, topology: _Topology) -> BoolArray:
    """Return the nodes that match *topology*. On nodes without its label, compare the stable label."""
    matches = match_requirements(nodes, (Requirement(topology.label, "In", topology.values),))
    stable_label = _STABLE_LABEL_BY_LABEL[topology.label]
    if stable_label == topology.label:
        return matches
    matches_stable_label = match_requirements(nodes, (Requirement(stable_label, "In", topology.values),))
    return np.where(nodes.label_value_ids(topology.label) == ABSENT, matches_stable_label, matches)


def _is_schedulable_after_storage_class_added(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001  a hint's signature
    storage_class: StorageClass = event.new
    return QueueingHint.queue_if(storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)


def _is_schedulable_after_claim_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    meta, claim_names = event.new.metadata, pod.signature.volume_uses.list_claim_names()
    return QueueingHint.queue_if(meta.namespace == pod.namespace and meta.name in claim_names)


def _is_schedulable_after_volume_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001
    old_volume: PersistentVolume | None = event.old
    new_volume: PersistentVolume = event.new
    return QueueingHint.queue_if(
        old_volume is None or _get_volume_topologies(old_volume) != _get_volume_topologies(new_volume)
    )
