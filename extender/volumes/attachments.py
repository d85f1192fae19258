"""The attached volumes and the volume limits of each node, by CSI driver. They are cached between cycles.

Nodes without a CSINode, and nodes whose CSINode has no limit, are skipped.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, CSILimits.Filter (1.36).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.api.kinds.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from extender.cache.object_index import ObjectIndex
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray, make_mask
from extender.cache.tables.history import HistoryPosition
from extender.cache.tables.object_store import KindVersion
from extender.volumes.volume_ids import VolumeId, find_attachable_volumes

UNLIMITED: Final = 1 << 62
"""The limit of a driver on nodes that do not limit it."""

_MAX_UNCACHED_NODES: Final = 64
"""Views with at most this many nodes get a temporary table if the cached table is of another history."""


@dataclass(frozen=True, slots=True)
class _NodeAttachments:
    """The volumes and limits of one node.

    Attributes:
        has_csi_node: whether a CSINode with the node's name exists.
        drivers: the installed CSI drivers.
        limits: the maximum number of volumes by driver.
        used_volumes: the volumes of the pods on the node.
        counts: the number of volumes of pods and VolumeAttachments, by driver.
        error: the first error in the computation of `used_volumes`; empty if there is none.
    """

    has_csi_node: bool = False
    drivers: frozenset[str] = frozenset()
    limits: tuple[tuple[str, int], ...] = ()
    used_volumes: frozenset[VolumeId] = frozenset()
    counts: tuple[tuple[str, int], ...] = ()
    error: str = ""


_EMPTY: Final = _NodeAttachments()


class AttachmentTable:
    """The attached volumes and volume limits of nodes. Each node has one slot in each array.

    Attributes:
        has_csi_node: whether the node has a CSINode, bool, by slot.
        has_limits: whether the node limits a driver, bool, by slot.
        errors: error messages by slot.
    """

    def __init__(self, size: int) -> None:
        self.has_csi_node: BoolArray = np.zeros(size, dtype=np.bool_)
        self.has_limits: BoolArray = np.zeros(size, dtype=np.bool_)
        self.errors: dict[int, str] = {}
        self._nodes: list[_NodeAttachments] = [_EMPTY] * size
        self._counts: dict[str, IntArray] = {}
        self._limits: dict[str, IntArray] = {}
        self._installed: dict[str, BoolArray] = {}
        self._slots_by_volume: dict[VolumeId, set[int]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get_counts(self, driver: str) -> IntArray:
        """Return the number of volumes of *driver*, in use by pods or attached, by slot: int64."""
        return self._counts.get(driver, np.zeros(len(self), dtype=np.int64))

    def get_limits(self, driver: str) -> IntArray:
        """Return the maximum number of volumes of *driver* by slot: int64; `UNLIMITED` without a limit."""
        return self._limits.get(driver, np.full(len(self), UNLIMITED, dtype=np.int64))

    def is_installed(self, driver: str) -> BoolArray:
        """Return whether *driver* is installed, by slot: bool."""
        return self._installed.get(driver, np.zeros(len(self), dtype=np.bool_))

    def uses_volume(self, volume: VolumeId) -> BoolArray:
        """Return whether a pod on the node uses *volume*, by slot: bool. The caller may modify the array."""
        return make_mask(list(self._slots_by_volume.get(volume, ())), len(self))

    def write(self, slot: int, attachments: _NodeAttachments) -> None:
        """Replace the entries of *slot*."""
        old_attachments, self._nodes[slot] = self._nodes[slot], attachments
        for driver, _ in old_attachments.limits:
            self._limits[driver][slot] = UNLIMITED
        for driver, _ in old_attachments.counts:
            self._counts[driver][slot] = 0
        for driver in old_attachments.drivers:
            self._installed[driver][slot] = False
        for volume in old_attachments.used_volumes - attachments.used_volumes:
            self._slots_by_volume[volume].discard(slot)
            if not self._slots_by_volume[volume]:
                del self._slots_by_volume[volume]
        self.has_csi_node[slot], self.has_limits[slot] = attachments.has_csi_node, bool(attachments.limits)
        for driver, limit in attachments.limits:
            self._limits.setdefault(driver, np.full(len(self), UNLIMITED, dtype=np.int64))[slot] = limit
        for driver, count in attachments.counts:
            self._counts.setdefault(driver, np.zeros(len(self), dtype=np.int64))[slot] = count
        for driver in attachments.drivers:
            self._installed.setdefault(driver, np.zeros(len(self), dtype=np.bool_))[slot] = True
        for volume in attachments.used_volumes - old_attachments.used_volumes:
            self._slots_by_volume.setdefault(volume, set()).add(slot)
        self.errors.pop(slot, None)
        if attachments.error:
            self.errors[slot] = attachments.error


class AttachmentCache:
    """A cache of a cluster's attachment table, updated incrementally. One cache per plugin; not thread-safe."""

    def __init__(self) -> None:
        self._claims_by_volume = ObjectIndex(
            PersistentVolumeClaim, lambda claim: claim.spec.volume_name, lambda claim: claim.key
        )
        self._attachments_by_node = ObjectIndex(
            VolumeAttachment, lambda attachment: attachment.spec.node_name, lambda attachment: attachment
        )
        self._nodes_by_volume = ObjectIndex(
            VolumeAttachment,
            lambda attachment: attachment.spec.source.persistent_volume_name or "",
            lambda attachment: attachment.spec.node_name,
        )
        self._position: HistoryPosition | None = None
        self._versions: dict[type[object], KindVersion] = {}
        self._table = AttachmentTable(0)

    def get_table(self, nodes: NodeView) -> tuple[AttachmentTable, IntArray]:
        """Return a table and the slot of each node in it: int64, shape (len(nodes),).

        Do not modify the results. They are valid until the next call.
        """
        snapshot = nodes.snapshot
        rows = np.arange(len(snapshot), dtype=np.int64) if nodes.rows is None else nodes.rows
        is_other_history = self._position is None or self._position.history_id is not snapshot.position.history_id
        if nodes.rows is not None and is_other_history and len(rows) <= _MAX_UNCACHED_NODES:
            table = AttachmentTable(len(rows))
            for slot, row in enumerate(rows.tolist()):
                table.write(slot, self._read_node(snapshot, snapshot.names[row]))
            return table, np.arange(len(rows), dtype=np.int64)
        self._update(snapshot)
        return self._table, rows

    def _update(self, snapshot: Snapshot) -> None:
        stale_rows = self._find_stale_rows(snapshot)
        if stale_rows is None:
            self._table = AttachmentTable(len(snapshot))
            stale_rows = range(len(snapshot))
        names = snapshot.names
        for row in stale_rows:
            self._table.write(row, self._read_node(snapshot, names[row]))
        self._position = snapshot.position
        self._versions = {kind: snapshot.kind_version(kind) for kind in _KINDS}

    def _find_stale_rows(self, snapshot: Snapshot) -> Sequence[int] | None:
        """Return the rows to update; None if all rows must be updated."""
        if self._position is None or len(self._table) != len(snapshot):
            return None
        if self._versions[StorageClass] != snapshot.kind_version(StorageClass):
            return None
        changed_rows = snapshot.find_changed_rows(self._position)
        claim_keys = snapshot.keys_written_since(PersistentVolumeClaim, self._versions[PersistentVolumeClaim])
        volume_names = snapshot.keys_written_since(PersistentVolume, self._versions[PersistentVolume])
        csi_node_names = snapshot.keys_written_since(CSINode, self._versions[CSINode])
        nodes_with_changed_attachments = self._attachments_by_node.update(snapshot)
        if changed_rows is None or claim_keys is None or volume_names is None or csi_node_names is None:
            return None
        if nodes_with_changed_attachments is None:
            return None
        stale_rows = set(changed_rows.tolist())
        stale_node_names = {str(name) for name in nodes_with_changed_attachments} | csi_node_names
        changed_claim_keys = set(claim_keys)
        for volume_name in volume_names:
            changed_claim_keys.update(self._claims_by_volume.get_entries(snapshot, volume_name).values())
            stale_node_names.update(self._nodes_by_volume.get_entries(snapshot, volume_name).values())
        for key in changed_claim_keys:
            stale_rows |= snapshot.rows_using_pvc(key)
        stale_rows.update(row for name in stale_node_names if (row := snapshot.row(name)) is not None)
        return sorted(stale_rows)

    def _read_node(self, snapshot: Snapshot, name: str) -> _NodeAttachments:
        csi_node = snapshot.get_object(CSINode, name)
        if csi_node is None:
            return _EMPTY
        drivers = csi_node.spec.drivers
        installed_drivers = frozenset(driver.name for driver in drivers)
        limits = {
            driver.name: driver.allocatable.count
            for driver in drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        if not limits:
            return _NodeAttachments(has_csi_node=True, drivers=installed_drivers)
        used_volumes: set[VolumeId] = set()
        error = ""
        for pod in snapshot.pods_on(name).values():
            pod_volumes = find_attachable_volumes(
                pod.pod, pod.signature, snapshot, translate_in_tree=True, assigned=True
            )
            error = error or pod_volumes.error
            used_volumes.update(pod_volumes.volumes)
        counts: dict[str, int] = {}
        for driver, _ in used_volumes | self._get_attached_volumes(snapshot, name):
            counts[driver] = counts.get(driver, 0) + 1
        return _NodeAttachments(
            has_csi_node=True,
            drivers=installed_drivers,
            limits=tuple(limits.items()),
            used_volumes=frozenset(used_volumes),
            counts=tuple(counts.items()),
            error=error,
        )

    def _get_attached_volumes(self, snapshot: Snapshot, node_name: str) -> set[VolumeId]:
        """Return the CSI volumes that VolumeAttachments attach to a node. As upstream, in-tree ones do not count."""
        volume_ids: set[VolumeId] = set()
        for attachment in self._attachments_by_node.get_entries(snapshot, node_name).values():
            volume_name, attacher = attachment.spec.source.persistent_volume_name, attachment.spec.attacher
            volume = (
                snapshot.get_object(PersistentVolume, volume_name) if volume_name is not None and attacher else None
            )
            if volume is not None and volume.spec.csi is not None:
                volume_ids.add((attacher, volume.spec.csi.volume_handle))
        return volume_ids


_KINDS: Final[tuple[type[object], ...]] = (CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass)
