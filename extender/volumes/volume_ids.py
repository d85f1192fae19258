"""The volumes of a pod that its node must attach, by CSI driver and volume handle.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, CSILimits.Filter, CSILimits.getCSIDriverInfo,
CSILimits.filterAttachableVolumes (1.36).
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.api.kinds.volumes import Volume
from extender.cache.pod_signature import PodSignature
from extender.cache.snapshot import Snapshot
from extender.cache.tables.volume_uses import find_pvc_use
from extender.volumes.claims import format_not_found_message, get_claim_class, get_ownership_error
from extender.volumes.csi_migration import (
    IN_TREE_DRIVERS_BY_NAME,
    TranslationError,
    find_in_tree_driver,
    get_inline_csi_handle,
    get_persistent_volume_csi_handle,
)

VolumeId: TypeAlias = tuple[str, str]
"""The CSI driver of a volume and its volume handle."""

_UNBOUND_PREFIX: Final = "\0unbound-"
"""The prefix of the handle for a volume that does not exist yet; no CSI driver uses it."""


@dataclass(frozen=True, slots=True)
class AttachableVolumes:
    """The volumes of a pod that its node must attach.

    Attributes:
        volumes: distinct ids, in the order of the pod's volumes.
        error: the first error; empty if there is none.
        claim_missing: whether the error is a missing claim.
    """

    volumes: tuple[VolumeId, ...] = ()
    error: str = ""
    claim_missing: bool = False


_NO_VOLUMES: Final = AttachableVolumes()


def may_need_attachment(signature: PodSignature) -> bool:
    """Return whether pods with this signature have claims or in-tree disks, which may need attachment.

    Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, CSILimits.PreFilter (1.36).
    """
    return signature.get_or_create(
        ("volumes", "may attach"),
        lambda: any(
            find_pvc_use(volume) is not None or find_in_tree_driver(volume) is not None
            for volume in signature.spec.volumes
        ),
    )


def find_attachable_volumes(
    pod: Pod, signature: PodSignature, snapshot: Snapshot, *, translate_in_tree: bool, assigned: bool
) -> AttachableVolumes:
    """Return the volumes of *pod* that its node must attach.

    With *translate_in_tree*, for nodes with a CSINode, volumes of in-tree drivers count for their CSI drivers.
    *assigned*: the pod is on a node; missing claims of such a pod are skipped.
    """
    if not may_need_attachment(signature):
        return _NO_VOLUMES
    volume_ids: dict[VolumeId, None] = {}
    for volume in signature.spec.volumes:
        volume_id = _get_volume_id(pod, volume, snapshot, translate_in_tree=translate_in_tree)
        if isinstance(volume_id, AttachableVolumes):
            if volume_id.claim_missing and assigned:
                continue
            return volume_id
        if volume_id is not None:
            volume_ids[volume_id] = None
    return AttachableVolumes(tuple(volume_ids))


def _get_volume_id(
    pod: Pod, volume: Volume, snapshot: Snapshot, *, translate_in_tree: bool
) -> VolumeId | AttachableVolumes | None:
    """Return the id of the pod's *volume*, a result with an error, or None if the volume does not count."""
    meta = pod.metadata
    use = find_pvc_use(volume)
    if use is None:
        return _get_inline_volume_id(volume, translate_in_tree=translate_in_tree)
    claim_name = use.get_claim_name(meta.name)
    if not claim_name:
        return AttachableVolumes(error="PersistentVolumeClaim had no name")
    claim = snapshot.get_object(PersistentVolumeClaim, f"{meta.namespace}/{claim_name}")
    if claim is None:
        message = f"looking up PVC {meta.namespace}/{claim_name}: {format_not_found_message(claim_name)}"
        return AttachableVolumes(error=message, claim_missing=True)
    if use.ephemeral and (error := get_ownership_error(pod, claim)) is not None:
        return AttachableVolumes(error=error)
    return get_claim_volume_id(claim, snapshot, translate_in_tree=translate_in_tree)


def _get_inline_volume_id(volume: Volume, *, translate_in_tree: bool) -> VolumeId | AttachableVolumes | None:
    driver = find_in_tree_driver(volume) if translate_in_tree else None
    if driver is None or not driver.migrated:
        return None
    try:
        return driver.csi_driver, get_inline_csi_handle(volume) or ""
    except TranslationError as error:
        return AttachableVolumes(error=f"converting volume({volume.name}) from inline to csi: {error}")


def get_claim_volume_id(
    claim: PersistentVolumeClaim, snapshot: Snapshot, *, translate_in_tree: bool
) -> VolumeId | None:
    """Return the id of the claim's volume; a placeholder if the claim is unbound; None if the volume does not count.

    Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, CSILimits.getCSIDriverInfo (1.36).
    """
    volume = snapshot.get_object(PersistentVolume, claim.spec.volume_name)
    if volume:
        volume_id = _get_bound_volume_id(volume, translate_in_tree=translate_in_tree)
    else:
        volume_id = _get_unbound_volume_id(claim, snapshot, translate_in_tree=translate_in_tree)
    return volume_id if volume_id is not None and all(volume_id) else None


def _get_bound_volume_id(volume: PersistentVolume, *, translate_in_tree: bool) -> VolumeId | None:
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    driver = find_in_tree_driver(volume.spec) if translate_in_tree else None
    if driver is None or not driver.migrated:
        return None
    try:
        return driver.csi_driver, get_persistent_volume_csi_handle(volume) or ""
    except TranslationError:
        return None


def _get_unbound_volume_id(
    claim: PersistentVolumeClaim, snapshot: Snapshot, *, translate_in_tree: bool
) -> VolumeId | None:
    storage_class = snapshot.get_object(StorageClass, get_claim_class(claim))
    if storage_class is None:
        return None
    handle = f"{_UNBOUND_PREFIX}{claim.key}"
    in_tree_driver = IN_TREE_DRIVERS_BY_NAME.get(storage_class.provisioner)
    if in_tree_driver is None:
        return storage_class.provisioner, handle
    return (in_tree_driver.csi_driver, handle) if in_tree_driver.migrated and translate_in_tree else None
