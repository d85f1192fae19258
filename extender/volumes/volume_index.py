"""Index of volumes and storage capacity by storage class.

Each object is compiled once after each write. The index contains only stored objects. `assume_cache` contains the
assumed versions.
"""

from dataclasses import dataclass

from extender.api.kinds.meta import LabelSelector
from extender.api.kinds.storage import CSINode, CSIStorageCapacity, PersistentVolume
from extender.api.matching import NOTHING, CompiledNodeSelector, Selector, selector_from_label_selector
from extender.api.quantity import parse, value
from extender.cache.object_index import ObjectIndex
from extender.cache.snapshot import Snapshot
from extender.volumes.claims import get_volume_capacity, get_volume_class, to_nanos
from extender.volumes.csi_migration import get_migrated_plugins
from extender.volumes.topology import compile_volume_node_selector


@dataclass(frozen=True, slots=True, eq=False)
class IndexedVolume:
    """A persistent volume with its compiled node affinity.

    Attributes:
        volume: the persistent volume.
        size: the exact capacity of the volume, in nano units (billionths of a byte).
        node_affinity: the compiled node affinity; None matches all nodes.
        label_key, label_values: if the node affinity only requires certain values of one label, as that of a local
            volume, this label and these values; else empty.
    """

    volume: PersistentVolume
    size: int
    node_affinity: CompiledNodeSelector | None
    label_key: str = ""
    label_values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class StoragePool:
    """Storage capacity of a class for the nodes of a topology segment.

    Attributes:
        volume_size_limit: the maximum size of a volume to provision, in bytes; None if unknown.
        capacity: the remaining capacity in bytes; 0 if unknown.
        selector: the label selector of the nodes.
    """

    volume_size_limit: int | None
    capacity: int
    selector: Selector


def get_volume_size_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return the maximum size of a volume to provision, in bytes: `maximumVolumeSize`, else `capacity`, else None.

    Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.checkVolumeProvisions (1.36).
    """
    quantity_text = capacity.maximum_volume_size
    if quantity_text is None:
        quantity_text = capacity.capacity
    return None if quantity_text is None else value(parse(quantity_text))


def compile_node_affinity(volume: PersistentVolume) -> CompiledNodeSelector | None:
    """Compile the node affinity of *volume*; None matches all nodes."""
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    return None if required is None else compile_volume_node_selector(required)


def _index_volume(volume: PersistentVolume) -> IndexedVolume:
    node_affinity = compile_node_affinity(volume)
    terms = () if node_affinity is None else node_affinity.terms
    requirements = terms[0].label_requirements if len(terms) == 1 and not terms[0].errors else ()
    is_local = len(requirements) == 1 and requirements[0].operator == "In"
    label_key, label_values = (requirements[0].key, requirements[0].values) if is_local else ("", ())
    return IndexedVolume(volume, to_nanos(get_volume_capacity(volume)), node_affinity, label_key, label_values)


def _make_pool(capacity: CSIStorageCapacity) -> StoragePool:
    remaining = 0 if capacity.capacity is None else value(parse(capacity.capacity))
    return StoragePool(get_volume_size_limit(capacity), remaining, _compile_selector(capacity.node_topology))


def _compile_selector(topology: LabelSelector | None) -> Selector:
    try:
        return selector_from_label_selector(topology)
    except ValueError:
        return NOTHING  # an invalid selector matches no nodes


class VolumeIndex:
    """Index of volumes and storage pools by class, and of nodes by migrated in-tree driver. Each plugin has its own."""

    def __init__(self) -> None:
        self._volumes = ObjectIndex(PersistentVolume, get_volume_class, _index_volume)
        self._pools = ObjectIndex(CSIStorageCapacity, lambda capacity: capacity.storage_class_name, _make_pool)
        self._migrated_nodes = ObjectIndex(CSINode, get_migrated_plugins, lambda csi_node: csi_node.metadata.name)

    def get_volumes(self, snapshot: Snapshot, class_name: str) -> list[IndexedVolume]:
        """Return the volumes of a class in the order in which they were added."""
        return list(self._volumes.get_entries(snapshot, class_name).values())

    def get_pools(self, snapshot: Snapshot, class_name: str) -> list[StoragePool]:
        """Return the storage pools of a class in the order in which they were added."""
        return list(self._pools.get_entries(snapshot, class_name).values())

    def find_nodes_with_migrated_driver(self, snapshot: Snapshot, driver: str) -> list[str]:
        """Return the names of the nodes whose CSINode lists the in-tree driver *driver* as migrated."""
        return [
            name
            for plugins, names in self._migrated_nodes.get_entries_by_group(snapshot).items()
            if isinstance(plugins, frozenset) and driver in plugins
            for name in names.values()
        ]
