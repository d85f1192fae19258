"""VolumeZone: volumes that say in their labels where they are can be used in that zone and region only.

**Refuses** for good. As a whole: a pod whose claim or volume does not exist, or whose claim has neither a volume nor a
class that waits for pods. A node whose zone or region is not among those of the labels of a bound volume. A volume in
several zones joins them with `__`. A node without any zone or region label takes every volume. Of a node that only has
the new labels, those are compared with the old beta labels of a volume. Generic ephemeral volumes do not count. Not
asked for pods without such volumes.

**Scores** none.

**Undone by** a class added that waits for pods, a node added or with other labels, a change of a claim of the pod, a
volume added or with other zones.

**Options** none.

Source: B103 to B106.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from extender.cluster.arrays import BoolArray
from extender.cluster.node_matching import requirements_mask
from extender.cluster.nodes import ABSENT
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import SKIP, PreFiltered
from extender.framework.verdict import Code, Reason, Rejection, unresolvable
from extender.objects.matching import Requirement
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.volumes.claims import WAIT_FOR_FIRST_CONSUMER, claim_class, not_found
from extender.volumes.migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER

_ELSEWHERE = Reason("node(s) had no available volume zone", Code.UNRESOLVABLE)
_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEW_LABEL = {BETA_ZONE: ZONE, BETA_REGION: REGION, ZONE: ZONE, REGION: REGION}


class _Topology(NamedTuple):
    """A label of a volume and the values it allows on a node."""

    label: str
    values: tuple[str, ...]


class VolumeZone:
    """Compares labels of volumes with labels of nodes."""

    name: ClassVar[str] = "VolumeZone"
    kept_for_kin: ClassVar[bool] = True

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Source: B103, B104."""
        found = _pod_topologies(pod, cluster)
        if isinstance(found, str):
            return PreFiltered(status=unresolvable(found))
        return PreFiltered(notes=found) if found else SKIP

    def pre_filter_kept(self, pod: PodQuery) -> bool:
        """For pods without claims."""
        return not pod.shape.volumes.claims

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        """Without `pre_filter`, what that would have said about the pod is said about every node. Source: B105."""
        topologies: tuple[_Topology, ...] | str = _pod_topologies(pod, nodes.snapshot) if notes is None else notes
        if isinstance(topologies, str):
            return (Rejection(np.ones(len(nodes), dtype=np.bool_), Reason(topologies, Code.UNRESOLVABLE)),)
        elsewhere = np.zeros(len(nodes), dtype=np.bool_)
        for topology in topologies:
            elsewhere |= ~_there(nodes, topology)
        if not elsewhere.any():
            return ()
        placed = np.zeros(len(nodes), dtype=np.bool_)
        for label in _LABELS:
            placed |= nodes.label(label) != ABSENT
        elsewhere &= placed
        return (Rejection(elsewhere, _ELSEWHERE),) if elsewhere.any() else ()

    def events(self) -> Sequence[Registration]:
        """Source: B106."""
        changed = Action.ADD | Action.UPDATE
        return (
            Registration(Resource.STORAGE_CLASS, Action.ADD, _after_class_added),
            Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            Registration(Resource.PERSISTENT_VOLUME_CLAIM, changed, _after_claim_change),
            Registration(Resource.PERSISTENT_VOLUME, changed, _after_volume_change),
        )


def _claim_names(pod: PodQuery) -> Iterator[str]:
    return (use.name for use in pod.shape.volumes.claims if not use.generated)


def _pod_topologies(pod: PodQuery, cluster: Snapshot) -> tuple[_Topology, ...] | str:
    """Where the volumes of *pod* are, or why it cannot be scheduled."""
    found: list[_Topology] = []
    for name in _claim_names(pod):
        where = _where(pod.namespace, name, cluster)
        if isinstance(where, str):
            return where
        found += where
    return tuple(dict.fromkeys(found))


def _where(namespace: str, name: str, cluster: Snapshot) -> list[_Topology] | str:
    """Where the volume of the claim *name* is, or why the pod cannot be scheduled. Source: B104."""
    if not name:
        return "PersistentVolumeClaim had no name"
    claim = cluster.find(PersistentVolumeClaim, f"{namespace}/{name}")
    if claim is None:
        return not_found(name)
    if not claim.spec.volume_name:
        return _unbound(claim, cluster) or []
    volume = cluster.find(PersistentVolume, claim.spec.volume_name)
    if volume is None:
        return f'persistentvolume "{claim.spec.volume_name}" not found'
    return _topologies(volume)


def _unbound(claim: PersistentVolumeClaim, cluster: Snapshot) -> str | None:
    """Why a claim without a volume is in the way; None if it waits for the pod."""
    name = claim_class(claim)
    if not name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = cluster.find(StorageClass, name)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{name}" not found'
    if storage_class.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{name}"'
    return None if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"


def _topologies(volume: PersistentVolume) -> list[_Topology]:
    """What the labels of *volume* say; a label with an empty zone in it says nothing."""
    found = []
    for label in _LABELS:
        written = volume.metadata.labels.get(label)
        zones = [zone.strip() for zone in written.split(ZONE_DELIMITER)] if written is not None else [""]
        if all(zones):
            found.append(_Topology(label, tuple(sorted(set(zones)))))
    return found


def _there(nodes: NodeView, topology: _Topology) -> BoolArray:
    """Which nodes are at *topology*, by its label or, if they lack that, by the new one."""
    there = requirements_mask(nodes, (Requirement(topology.label, "In", topology.values),))
    new = _NEW_LABEL[topology.label]
    if new == topology.label:
        return there
    instead = requirements_mask(nodes, (Requirement(new, "In", topology.values),))
    return np.where(nodes.label(topology.label) == ABSENT, instead, there)


def _after_class_added(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001  hints have this signature
    added: StorageClass = change.new
    return Hint.QUEUE if added.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else Hint.SKIP


def _after_claim_change(pod: PodQuery, change: Change) -> Hint:
    meta = change.new.metadata
    return Hint.QUEUE if meta.namespace == pod.namespace and meta.name in _claim_names(pod) else Hint.SKIP


def _after_volume_change(pod: PodQuery, change: Change) -> Hint:  # noqa: ARG001
    old: PersistentVolume | None = change.old
    new: PersistentVolume = change.new
    return Hint.QUEUE if old is None or _topologies(old) != _topologies(new) else Hint.SKIP
