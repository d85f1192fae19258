"""Volumes in use: which claims and which disks the pods on each node name. Source: B080, B081, B086."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from extender.basics.cow import CowDict
from extender.objects.pod import Pod
from extender.objects.volumes import Volume

K = TypeVar("K", bound=Hashable)

DiskKey: TypeAlias = tuple[str, ...]
"""What two volumes share that are one disk."""


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A volume that stands for a claim in the pod's namespace.

    Attributes:
        name: of the claim; of the volume if the claim is generated.
        generated: it is a generic ephemeral volume, whose claim is made for the pod and called after both.
    """

    name: str
    generated: bool = False

    def claim_name(self, pod_name: str) -> str:
        """The name of the claim in the hands of the pod *pod_name*. Source: B091."""
        return f"{pod_name}-{self.name}" if self.generated else self.name


@dataclass(frozen=True, slots=True)
class VolumeUses:
    """The volumes of a pod that matter to others.

    Attributes:
        claims: in the order of the volumes.
        disks: disks that the pod names itself; True: it only reads. One RBD image has an entry a monitor.
    """

    claims: tuple[ClaimUse, ...] = ()
    disks: tuple[tuple[DiskKey, bool], ...] = ()


NO_USES = VolumeUses()


def volume_uses(pod: Pod) -> VolumeUses:
    """What *pod* uses."""
    volumes = pod.spec.volumes
    if not volumes:
        return NO_USES
    claims = tuple(use for volume in volumes if (use := _claim_use(volume)) is not None)
    disks = tuple(disk for volume in volumes for disk in _disks(volume))
    return VolumeUses(claims, disks) if claims or disks else NO_USES


def _claim_use(volume: Volume) -> ClaimUse | None:
    if volume.persistent_volume_claim is not None:
        return ClaimUse(volume.persistent_volume_claim.claim_name)
    return ClaimUse(volume.name, generated=True) if volume.ephemeral is not None else None


def _disks(volume: Volume) -> Iterator[tuple[DiskKey, bool]]:
    if (gce := volume.gce_persistent_disk) is not None:
        yield ("gce", gce.pd_name), gce.read_only
    if (ebs := volume.aws_elastic_block_store) is not None:
        yield ("ebs", ebs.volume_id), False  # not shared, read or written
    if (iscsi := volume.iscsi) is not None:
        yield ("iscsi", iscsi.iqn), iscsi.read_only
    if (rbd := volume.rbd) is not None:
        for monitor in dict.fromkeys(rbd.monitors):
            yield ("rbd", monitor, rbd.pool, rbd.image), rbd.read_only


def disks_conflict(ours: VolumeUses, theirs: VolumeUses) -> bool:
    """Whether two pods with these disks cannot share a node. Source: B081."""
    return any(
        key == other and not (reads and other_reads) for key, reads in ours.disks for other, other_reads in theirs.disks
    )


_Rows: TypeAlias = dict[int, int]
"""Rows and how many pods on each."""


class VolumeTable:
    """Claims and disks to the rows whose pods use them."""

    __slots__ = ("_claims", "_disks", "_generated", "_written")

    def __init__(self) -> None:
        self._claims: CowDict[str, _Rows] = CowDict(dict)
        self._generated: CowDict[str, _Rows] = CowDict(dict)
        self._disks: CowDict[DiskKey, _Rows] = CowDict(dict)
        self._written: CowDict[DiskKey, _Rows] = CowDict(dict)

    def fork(self) -> "VolumeTable":
        """The same uses, to be written without touching these."""
        child = object.__new__(VolumeTable)
        child._claims = self._claims.fork()
        child._generated = self._generated.fork()
        child._disks = self._disks.fork()
        child._written = self._written.fork()
        return child

    def count(self, pod: Pod, uses: VolumeUses, row: int, sign: int) -> None:
        """*pod*, which uses *uses*, comes to *row* (*sign* 1) or leaves it (-1)."""
        meta = pod.metadata
        for use in uses.claims:
            table = self._generated if use.generated else self._claims
            _count(table, f"{meta.namespace}/{use.claim_name(meta.name)}", row, sign)
        for key, reads in uses.disks:
            _count(self._disks, key, row, sign)
            if not reads:
                _count(self._written, key, row, sign)

    def is_claimed(self, key: str) -> bool:
        """Whether a pod on a node names the claim *key* (`namespace/name`); generated claims do not count.

        Source: B080.
        """
        return key in self._claims

    def claim_rows(self, key: str) -> set[int]:
        """The rows with pods that use the claim *key*."""
        return {*(self._claims.get(key) or ()), *(self._generated.get(key) or ())}

    def conflicts(self, uses: VolumeUses) -> set[int]:
        """The rows with a pod whose disks exclude those of *uses*: the same disk, and not only read by both.

        Source: B081.
        """
        taken: set[int] = set()
        for key, reads in uses.disks:
            rows: Mapping[int, int] | None = (self._written if reads else self._disks).get(key)
            taken.update(rows or ())
        return taken


def _count(table: CowDict[K, _Rows], key: K, row: int, sign: int) -> None:
    rows = table.writable(key, dict)
    left = rows.get(row, 0) + sign
    if left > 0:
        rows[row] = left
    else:
        rows.pop(row, None)
        if not rows:
            table.drop(key)
