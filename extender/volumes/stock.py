"""What there is to bind claims to: volumes and storage capacity by class, compiled once a write.

Volumes and claims that were promised to a pod, and whose objects do not say so yet, count as promised (`assumptions`).
"""

from dataclasses import dataclass

from extender.cluster.object_index import ObjectIndex
from extender.cluster.snapshot import Snapshot
from extender.objects.matching import NOTHING, NodeTerms, Selector, from_label_selector
from extender.objects.meta import LabelSelector
from extender.objects.quantity import parse, value
from extender.objects.storage import CSINode, CSIStorageCapacity, PersistentVolume
from extender.volumes.claims import nano, offered_storage, volume_class
from extender.volumes.migration import migrated_plugins
from extender.volumes.places import node_terms


@dataclass(frozen=True, slots=True, eq=False)
class StockedVolume:
    """A volume.

    Attributes:
        volume: the object.
        size: what it holds, in thousand-millionths of a byte, exact.
        terms: the nodes it can be used on; None: all.
    """

    volume: PersistentVolume
    size: int
    terms: NodeTerms | None


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Storage of a class that the nodes of a segment can use.

    Attributes:
        most: the largest volume that can be made there, in bytes; None if unknown.
        capacity: what is left, in bytes, 0 if unknown.
        selector: the nodes.
    """

    most: int | None
    capacity: int
    selector: Selector


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can be made, in bytes: `maximumVolumeSize`, else `capacity`. Source: B096."""
    raw = capacity.maximum_volume_size
    raw = capacity.capacity if raw is None else raw
    return None if raw is None else value(parse(raw))


def affinity_terms(volume: PersistentVolume) -> NodeTerms | None:
    """The nodes *volume* can be used on; None: all."""
    affinity = volume.spec.node_affinity
    return None if affinity is None or affinity.required is None else node_terms(affinity.required)


def _stocked(volume: PersistentVolume) -> StockedVolume:
    return StockedVolume(volume, nano(offered_storage(volume)), affinity_terms(volume))


def _pool(capacity: CSIStorageCapacity) -> Pool:
    left = 0 if capacity.capacity is None else value(parse(capacity.capacity))
    return Pool(volume_limit(capacity), left, _selector(capacity.node_topology))


def _selector(topology: LabelSelector | None) -> Selector:
    try:
        return from_label_selector(topology)
    except ValueError:
        return NOTHING  # a segment that cannot be read has no nodes


class Stock:
    """Volumes and pools of a cluster by class, and which nodes migrated which drivers. Belongs to one plugin."""

    __slots__ = ("_migrated", "_pools", "_volumes")

    def __init__(self) -> None:
        self._volumes = ObjectIndex(PersistentVolume, volume_class, _stocked)
        self._pools = ObjectIndex(CSIStorageCapacity, lambda capacity: capacity.storage_class_name, _pool)
        self._migrated = ObjectIndex(CSINode, migrated_plugins, lambda csi_node: csi_node.metadata.name)

    def volumes(self, cluster: Snapshot, class_name: str) -> list[StockedVolume]:
        """The volumes of a class in the order of arrival."""
        return list(self._volumes.of(cluster, class_name).values())

    def pools(self, cluster: Snapshot, class_name: str) -> list[Pool]:
        """The pools of a class in the order of arrival."""
        return list(self._pools.of(cluster, class_name).values())

    def nodes_that_migrated(self, cluster: Snapshot, driver: str) -> list[str]:
        """The names of the nodes that say they migrated the old driver *driver*."""
        groups = self._migrated.groups(cluster)
        return [name for plugins, names in groups.items() if driver in _set(plugins) for name in names.values()]


def _set(group: object) -> frozenset[str]:
    return group if isinstance(group, frozenset) else frozenset()
