"""What is attached to each node, and how much each node takes, in columns that are kept between cycles. Source: B086.

Nodes without a CSINode that limits a driver are not looked into: nothing can be too much for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.object_index import ObjectIndex
from extender.cluster.snapshot import NodeView, Snapshot
from extender.objects.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from extender.volumes.identity import VolumeId, attachables

UNLIMITED: Final = 1 << 62
"""The limit of a driver that has none on a node."""

_FEW: Final = 64
"""Choices of up to so many nodes of a cluster that was not seen before, a hypothesis say, are read directly."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of one node.

    Attributes:
        has_csi_node: there is a CSINode of its name.
        drivers: the CSI drivers installed.
        limits: how many volumes of a driver it takes.
        held: the volumes of the pods on it.
        counts: volumes attached or about to be, by driver.
        fault: why `held` cannot be told; empty if it can.
    """

    has_csi_node: bool = False
    drivers: frozenset[str] = frozenset()
    limits: tuple[tuple[str, int], ...] = ()
    held: frozenset[VolumeId] = frozenset()
    counts: tuple[tuple[str, int], ...] = ()
    fault: str = ""


_BARE: Final = _Facts()


class Table:
    """Facts by slot, a slot a node; int64 and bool columns, one entry a slot."""

    __slots__ = ("_counts", "_facts", "_holders", "_installed", "_limits", "faults", "has_csi_node", "limited")

    def __init__(self, size: int) -> None:
        self.has_csi_node: BoolArray = np.zeros(size, dtype=np.bool_)
        self.limited: BoolArray = np.zeros(size, dtype=np.bool_)
        self.faults: dict[int, str] = {}
        self._facts: list[_Facts] = [_BARE] * size
        self._counts: dict[str, IntArray] = {}
        self._limits: dict[str, IntArray] = {}
        self._installed: dict[str, BoolArray] = {}
        self._holders: dict[VolumeId, set[int]] = {}

    def __len__(self) -> int:
        return len(self._facts)

    def counts(self, driver: str) -> IntArray:
        """Volumes of *driver* attached or about to be."""
        return self._counts.get(driver, np.zeros(len(self), dtype=np.int64))

    def limits(self, driver: str) -> IntArray:
        """How many volumes of *driver* a node takes; `UNLIMITED` without a limit."""
        return self._limits.get(driver, np.full(len(self), UNLIMITED, dtype=np.int64))

    def installed(self, driver: str) -> BoolArray:
        """Where *driver* is installed."""
        return self._installed.get(driver, np.zeros(len(self), dtype=np.bool_))

    def holding(self, volume: VolumeId) -> BoolArray:
        """Where a pod uses *volume*: a new array."""
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[list(self._holders.get(volume, ()))] = True
        return mask

    def write(self, slot: int, facts: _Facts) -> None:
        """The node of *slot* is like this now."""
        before, self._facts[slot] = self._facts[slot], facts
        for driver, _ in before.limits:
            self._limits[driver][slot] = UNLIMITED
        for driver, _ in before.counts:
            self._counts[driver][slot] = 0
        for driver in before.drivers:
            self._installed[driver][slot] = False
        for volume in before.held - facts.held:
            self._holders[volume].discard(slot)
            if not self._holders[volume]:
                del self._holders[volume]
        self.has_csi_node[slot], self.limited[slot] = facts.has_csi_node, bool(facts.limits)
        for driver, limit in facts.limits:
            self._limits.setdefault(driver, np.full(len(self), UNLIMITED, dtype=np.int64))[slot] = limit
        for driver, count in facts.counts:
            self._counts.setdefault(driver, np.zeros(len(self), dtype=np.int64))[slot] = count
        for driver in facts.drivers:
            self._installed.setdefault(driver, np.zeros(len(self), dtype=np.bool_))[slot] = True
        for volume in facts.held - before.held:
            self._holders.setdefault(volume, set()).add(slot)
        self.faults.pop(slot, None)
        if facts.fault:
            self.faults[slot] = facts.fault


class Attachments:
    """The table of a cluster, brought up to date by what was written. Belongs to one plugin; not thread-safe."""

    __slots__ = ("_attached", "_attached_volume", "_claims", "_moment", "_revisions", "_table")

    def __init__(self) -> None:
        self._claims = ObjectIndex(PersistentVolumeClaim, lambda claim: claim.spec.volume_name, lambda claim: claim.key)
        self._attached = ObjectIndex(VolumeAttachment, lambda each: each.spec.node_name, lambda each: each)
        self._attached_volume = ObjectIndex(
            VolumeAttachment,
            lambda each: each.spec.source.persistent_volume_name or "",
            lambda each: each.spec.node_name,
        )
        self._moment: tuple[object, object, int, int] = (None, None, 0, 0)
        self._revisions: dict[type[object], int] = {}
        self._table = Table(0)

    def of(self, nodes: NodeView) -> tuple[Table, IntArray]:
        """A table, and the slot in it of each node of the view. Read them only, and not after the next call."""
        cluster = nodes.snapshot
        rows = np.arange(len(cluster), dtype=np.int64) if nodes.rows is None else nodes.rows
        if nodes.rows is not None and self._moment[0] is not cluster.lineage and len(rows) <= _FEW:
            table = Table(len(rows))
            for slot, row in enumerate(rows.tolist()):
                table.write(slot, self._facts(cluster, cluster.names[row]))
            return table, np.arange(len(rows), dtype=np.int64)
        self._catch_up(cluster)
        return self._table, rows

    def _catch_up(self, cluster: Snapshot) -> None:
        stale = self._stale(cluster)
        if stale is None:
            self._table = Table(len(cluster))
            stale = range(len(cluster))
        names = cluster.names
        for row in stale:
            self._table.write(row, self._facts(cluster, names[row]))
        self._moment = (cluster.lineage, cluster.object_history, cluster.node_position, cluster.pod_position)
        self._revisions = {kind: cluster.revision(kind) for kind in _KINDS}

    def _stale(self, cluster: Snapshot) -> Sequence[int] | None:
        """The rows to write again; None: all."""
        lineage, history, node_position, pod_position = self._moment
        if lineage is not cluster.lineage or history is not cluster.object_history or len(self._table) != len(cluster):
            return None
        if node_position > cluster.node_position or pod_position > cluster.pod_position:
            return None  # the snapshot is older than the table
        if self._revisions[StorageClass] != cluster.revision(StorageClass):
            return None
        rows = cluster.changed_rows(node_position=node_position, pod_position=pod_position)
        claims = cluster.written(PersistentVolumeClaim, self._revisions[PersistentVolumeClaim])
        volumes = cluster.written(PersistentVolume, self._revisions[PersistentVolume])
        csi_nodes = cluster.written(CSINode, self._revisions[CSINode])
        attached = self._attached.catch_up(cluster)
        if rows is None or claims is None or volumes is None or csi_nodes is None or attached is None:
            return None
        stale = set(rows.tolist())
        nodes = {str(name) for name in attached} | csi_nodes
        keys = set(claims)
        for name in volumes:
            keys.update(self._claims.of(cluster, name).values())
            nodes.update(self._attached_volume.of(cluster, name).values())
        for key in keys:
            stale |= cluster.claim_rows(key)
        stale.update(row for name in nodes if (row := cluster.row(name)) is not None)
        return sorted(stale)

    def _facts(self, cluster: Snapshot, name: str) -> _Facts:
        csi_node = cluster.find(CSINode, name)
        if csi_node is None:
            return _BARE
        drivers = csi_node.spec.drivers
        installed = frozenset(driver.name for driver in drivers)
        limits = {
            driver.name: driver.allocatable.count
            for driver in drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        if not limits:
            return _Facts(has_csi_node=True, drivers=installed)
        held: set[VolumeId] = set()
        fault = ""
        for pod in cluster.pods_on(name).values():
            found = attachables(pod.pod, pod.shape, cluster, migrated=True, placed=True)
            fault = fault or found.fault
            held.update(found.volumes)
        counts: dict[str, int] = {}
        for driver, _ in held | self._attached_to(cluster, name):
            counts[driver] = counts.get(driver, 0) + 1
        return _Facts(
            has_csi_node=True,
            drivers=installed,
            limits=tuple(limits.items()),
            held=frozenset(held),
            counts=tuple(counts.items()),
            fault=fault,
        )

    def _attached_to(self, cluster: Snapshot, node: str) -> set[VolumeId]:
        """What VolumeAttachments say is attached to *node*; volumes of old drivers are left out, as upstream."""
        found: set[VolumeId] = set()
        for each in self._attached.of(cluster, node).values():
            name = each.spec.source.persistent_volume_name
            volume = cluster.find(PersistentVolume, name) if name is not None and each.spec.attacher else None
            if volume is not None and volume.spec.csi is not None:
                found.add((each.spec.attacher, volume.spec.csi.volume_handle))
        return found


_KINDS: Final[tuple[type[object], ...]] = (CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass)
