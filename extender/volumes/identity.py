"""Which volumes of a pod its node must attach, and how their CSI drivers call them. Source: B086 to B088."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from extender.cluster.shape import Shape
from extender.cluster.snapshot import Snapshot
from extender.objects.pod import Pod
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.objects.volumes import Volume
from extender.volumes.claims import claim_class, not_found, ownership_fault
from extender.volumes.migration import BY_NAME, TranslationError, in_tree_driver, inline_handle, volume_handle

VolumeId: TypeAlias = tuple[str, str]
"""The CSI driver of a volume and the driver's name for it."""

_UNBOUND: Final = "\0unbound-"
"""Starts the name of a volume that does not exist yet; no driver names one so."""


@dataclass(frozen=True, slots=True)
class Attachables:
    """The volumes of a pod that its node must attach.

    Attributes:
        volumes: without repetition, in the order of the pod.
        fault: why they cannot all be told; empty if they can.
        missing: a claim does not exist.
    """

    volumes: tuple[VolumeId, ...] = ()
    fault: str = ""
    missing: bool = False


_NONE: Final = Attachables()


def may_attach(shape: Shape) -> bool:
    """Whether pods of *shape* have volumes that may count: claims, or disks of an old driver. Source: B085."""
    return shape.remember(
        ("volumes", "may attach"),
        lambda: any(
            volume.persistent_volume_claim is not None
            or volume.ephemeral is not None
            or in_tree_driver(volume) is not None
            for volume in shape.spec.volumes
        ),
    )


def attachables(pod: Pod, shape: Shape, cluster: Snapshot, *, migrated: bool, placed: bool) -> Attachables:
    """The volumes of *pod* that its node must attach.

    Args:
        pod: of *shape*.
        shape: its shape.
        cluster: with claims, volumes and classes.
        migrated: the node has a CSINode, so that old drivers count as their CSI drivers.
        placed: the pod has its node; claims that do not exist are left out then.
    """
    if not may_attach(shape):
        return _NONE
    found: dict[VolumeId, None] = {}
    for volume in shape.spec.volumes:
        each = _identity(pod, volume, cluster, migrated=migrated)
        if isinstance(each, Attachables):
            if each.missing and placed:
                continue
            return each
        if each is not None:
            found[each] = None
    return Attachables(tuple(found))


def _identity(pod: Pod, volume: Volume, cluster: Snapshot, *, migrated: bool) -> VolumeId | Attachables | None:
    meta = pod.metadata
    if volume.persistent_volume_claim is not None:
        name = volume.persistent_volume_claim.claim_name
    elif volume.ephemeral is not None:
        name = f"{meta.name}-{volume.name}"
    else:
        return _inline(volume, migrated=migrated)
    if not name:
        return Attachables(fault="PersistentVolumeClaim had no name")
    claim = cluster.find(PersistentVolumeClaim, f"{meta.namespace}/{name}")
    if claim is None:
        return Attachables(fault=f"looking up PVC {meta.namespace}/{name}: {not_found(name)}", missing=True)
    if volume.persistent_volume_claim is None and (fault := ownership_fault(pod, claim)) is not None:
        return Attachables(fault=fault)
    return claim_identity(claim, cluster, migrated=migrated)


def _inline(volume: Volume, *, migrated: bool) -> VolumeId | Attachables | None:
    driver = in_tree_driver(volume) if migrated else None
    if driver is None or not driver.migrated:
        return None
    try:
        return driver.driver, inline_handle(volume) or ""
    except TranslationError as fault:
        return Attachables(fault=f"converting volume({volume.name}) from inline to csi: {fault}")


def claim_identity(claim: PersistentVolumeClaim, cluster: Snapshot, *, migrated: bool) -> VolumeId | None:
    """The volume behind *claim*, or one that stands for it until it is bound; None: it does not count. Source: B087."""
    volume = cluster.find(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    found = _existing(volume, migrated=migrated) if volume else _to_come(claim, cluster, migrated=migrated)
    return found if found is not None and all(found) else None


def _existing(volume: PersistentVolume, *, migrated: bool) -> VolumeId | None:
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    driver = in_tree_driver(volume.spec) if migrated else None
    if driver is None or not driver.migrated:
        return None
    try:
        return driver.driver, volume_handle(volume) or ""
    except TranslationError:
        return None


def _to_come(claim: PersistentVolumeClaim, cluster: Snapshot, *, migrated: bool) -> VolumeId | None:
    name = claim_class(claim)
    storage_class = cluster.find(StorageClass, name) if name else None
    if storage_class is None:
        return None
    old = BY_NAME.get(storage_class.provisioner)
    if old is None:
        return storage_class.provisioner, f"{_UNBOUND}{claim.key}"
    return (old.driver, f"{_UNBOUND}{claim.key}") if old.migrated and migrated else None
