"""The PVCs and inline disks that the pods on each node use, and the pods that take resources through a resource claim.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, CSILimits.Filter;
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from extender.api.kinds.pod import Pod
from extender.api.kinds.volumes import Volume
from extender.basics.copy_on_write import CopyOnWriteDict

_UidsByRow: TypeAlias = dict[int, frozenset[str]]

_NO_USERS: Final[Mapping[int, frozenset[str]]] = MappingProxyType({})


class ResourceClaimUseTable:
    """The pods that take node resources through each resource claim, by claim key and node row."""

    def __init__(self) -> None:
        self._users: CopyOnWriteDict[str, _UidsByRow] = CopyOnWriteDict(dict)

    def fork(self) -> "ResourceClaimUseTable":
        """Return a copy-on-write copy of the table."""
        child = object.__new__(ResourceClaimUseTable)
        child._users = self._users.fork()
        return child

    def add_or_remove(self, pod: Pod, uid: str, row: int, sign: int) -> None:
        """Add *pod* to *row* (*sign* 1) or remove it (-1)."""
        for claim in pod.status.node_allocatable_resource_claim_statuses:
            key = f"{pod.metadata.namespace}/{claim.resource_claim_name}"
            uids_by_row = self._users.get_writable(key, dict)
            user_uids = uids_by_row.get(row, frozenset())
            user_uids = user_uids | {uid} if sign > 0 else user_uids - {uid}
            if user_uids:
                uids_by_row[row] = user_uids
            else:
                uids_by_row.pop(row, None)
                if not uids_by_row:
                    self._users.remove(key)

    def get_users(self, key: str) -> Mapping[int, frozenset[str]]:
        """Return, by row, the uids of the pods that take node resources through the claim *key* (`namespace/name`)."""
        return self._users.get(key) or _NO_USERS


K = TypeVar("K", bound=Hashable)

DiskKey: TypeAlias = tuple[str, ...]
"""Identifies a disk: two volumes with the same key are the same disk."""


@dataclass(frozen=True, slots=True)
class PVCUse:
    """A pod volume that uses a PVC in the pod's namespace.

    Attributes:
        name: the name of the PVC; for a generic ephemeral volume, the name of the volume.
        ephemeral: whether it is a generic ephemeral volume. The PVC's name is then the pod's name, `-` and `name`.
    """

    name: str
    ephemeral: bool = False

    def get_claim_name(self, pod_name: str) -> str:
        """Return the name of the PVC for the pod *pod_name*.

        Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.podHasPVCs (1.36).
        """
        return f"{pod_name}-{self.name}" if self.ephemeral else self.name


@dataclass(frozen=True, slots=True)
class VolumeUses:
    """The volumes of a pod that can conflict with other pods.

    Attributes:
        claims: the PVCs, in the order of the volumes.
        disks: inline disks, with True for read-only use. An RBD image has one entry for each monitor.
    """

    claims: tuple[PVCUse, ...] = ()
    disks: tuple[tuple[DiskKey, bool], ...] = ()

    def list_claim_names(self) -> tuple[str, ...]:
        """Return the names of the PVCs, without those of ephemeral volumes."""
        return tuple(use.name for use in self.claims if not use.ephemeral)


NO_USES = VolumeUses()


def collect_volume_uses(pod: Pod) -> VolumeUses:
    """Collect the PVCs and inline disks of *pod*."""
    volumes = pod.spec.volumes
    if not volumes:
        return NO_USES
    claims = tuple(use for volume in volumes if (use := find_pvc_use(volume)) is not None)
    disks = tuple(disk for volume in volumes for disk in _iterate_disks(volume))
    return VolumeUses(claims, disks) if claims or disks else NO_USES


def find_pvc_use(volume: Volume) -> PVCUse | None:
    """Return the use of a PVC by a volume of a pod; None if the volume is no PVC."""
    if volume.persistent_volume_claim is not None:
        return PVCUse(volume.persistent_volume_claim.claim_name)
    return PVCUse(volume.name, ephemeral=True) if volume.ephemeral is not None else None


def _iterate_disks(volume: Volume) -> Iterator[tuple[DiskKey, bool]]:
    if (gce := volume.gce_persistent_disk) is not None:
        yield ("gce", gce.pd_name), gce.read_only
    if (ebs := volume.aws_elastic_block_store) is not None:
        yield ("ebs", ebs.volume_id), False  # never shared, not even read-only
    if (iscsi := volume.iscsi) is not None:
        yield ("iscsi", iscsi.iqn), iscsi.read_only
    if (rbd := volume.rbd) is not None:
        for monitor in dict.fromkeys(rbd.monitors):
            yield ("rbd", monitor, rbd.pool, rbd.image), rbd.read_only


def disks_conflict(first: VolumeUses, second: VolumeUses) -> bool:
    """Return whether two pods with these disks cannot run on one node.

    Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go, isVolumeConflict (1.36).
    """
    return any(
        key == other_key and not (read_only and other_read_only)
        for key, read_only in first.disks
        for other_key, other_read_only in second.disks
    )


_PodCountByRow: TypeAlias = dict[int, int]


class VolumeUseTable:
    """The number of pods that use each PVC and disk, by node row."""

    def __init__(self) -> None:
        self._claims: CopyOnWriteDict[str, _PodCountByRow] = CopyOnWriteDict(dict)
        self._ephemeral_claims: CopyOnWriteDict[str, _PodCountByRow] = CopyOnWriteDict(dict)
        self._disks: CopyOnWriteDict[DiskKey, _PodCountByRow] = CopyOnWriteDict(dict)
        self._writable_disks: CopyOnWriteDict[DiskKey, _PodCountByRow] = CopyOnWriteDict(dict)

    def fork(self) -> "VolumeUseTable":
        """Return a copy-on-write copy of the table."""
        child = object.__new__(VolumeUseTable)
        child._claims = self._claims.fork()
        child._ephemeral_claims = self._ephemeral_claims.fork()
        child._disks = self._disks.fork()
        child._writable_disks = self._writable_disks.fork()
        return child

    def add_or_remove(self, pod: Pod, uses: VolumeUses, row: int, sign: int) -> None:
        """Add *pod* to *row* (*sign* 1) or remove it (-1)."""
        meta = pod.metadata
        for use in uses.claims:
            table = self._ephemeral_claims if use.ephemeral else self._claims
            _add_pod_count(table, f"{meta.namespace}/{use.get_claim_name(meta.name)}", row, sign)
        for key, read_only in uses.disks:
            _add_pod_count(self._disks, key, row, sign)
            if not read_only:
                _add_pod_count(self._writable_disks, key, row, sign)

    def is_pvc_used_by_pods(self, key: str) -> bool:
        """Return whether a pod on a node refers to the PVC *key* (`namespace/name`); ephemeral volumes do not count.

        Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go,
        VolumeRestrictions.PreFilter (1.36).
        """
        return key in self._claims

    def find_rows_using_pvc(self, key: str) -> set[int]:
        """Return the rows with pods that use the PVC *key*, also through an ephemeral volume."""
        return {*(self._claims.get(key) or ()), *(self._ephemeral_claims.get(key) or ())}

    def find_conflicting_rows(self, uses: VolumeUses) -> set[int]:
        """Return the rows with a pod that uses one of these disks, unless both uses are read-only.

        Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go, isVolumeConflict (1.36).
        """
        conflicts: set[int] = set()
        for key, read_only in uses.disks:
            rows: Mapping[int, int] | None = (self._writable_disks if read_only else self._disks).get(key)
            conflicts.update(rows or ())
        return conflicts


def _add_pod_count(table: CopyOnWriteDict[K, _PodCountByRow], key: K, row: int, sign: int) -> None:
    counts_by_row = table.get_writable(key, dict)
    pod_count = counts_by_row.get(row, 0) + sign
    if pod_count > 0:
        counts_by_row[row] = pod_count
    else:
        counts_by_row.pop(row, None)
        if not counts_by_row:
            table.remove(key)
