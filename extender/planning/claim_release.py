"""Release the claims of a pod that leaves its node, and make new claims for the pod that replaces it.

Source: pkg/controller/resourceclaim/controller.go, Controller.syncClaim;
pkg/controller/volume/ephemeral/controller.go, ephemeralController.handleVolume (1.36).
"""

from typing import Final

from msgspec.structs import replace

from extender.api.kinds.devices import ResourceClaim, ResourceClaimStatus
from extender.api.kinds.meta import ObjectMeta
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolumeClaim, PersistentVolumeClaimStatus
from extender.cache.cache import Cache
from extender.planning.cache_edits import CacheEdits
from extender.volumes.claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE

_BINDING_ANNOTATIONS: Final = frozenset((BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE))


def release_claims(pod: Pod, new_uid: str, cache: Cache, edits: CacheEdits) -> None:
    """Release the claims of *pod*, which has left its node.

    A claim that was created for an ephemeral volume or from a claim template is replaced by a new claim. The new claim
    belongs to the pod *new_uid*. A ResourceClaim that pods share loses its allocation if no other pod has reserved it.
    """
    if not pod.spec.volumes and not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None:
        return
    namespace = pod.metadata.namespace
    old_uid = pod.metadata.uid
    volume_claims = [
        claim
        for volume in pod.spec.volumes
        if volume.ephemeral is not None
        and (claim := cache.get_object(PersistentVolumeClaim, f"{namespace}/{pod.metadata.name}-{volume.name}"))
        and claim.metadata.is_controlled_by(old_uid)
    ]
    device_claims = [
        device_claim
        for name in sorted(set(pod.existing_claim_names))
        if (device_claim := cache.get_object(ResourceClaim, f"{namespace}/{name}")) is not None
    ]
    for volume_claim in volume_claims:
        edits.put_object(_renew_volume_claim(volume_claim, old_uid, new_uid), volume_claim)
    for device_claim in device_claims:
        edits.put_object(_release_device_claim(device_claim, old_uid, new_uid), device_claim)


def _change_owner(meta: ObjectMeta, old_uid: str, new_uid: str) -> ObjectMeta:
    """Return the metadata of a new claim of the same name, which belongs to the new pod."""
    owners = tuple(replace(owner, uid=new_uid) if owner.uid == old_uid else owner for owner in meta.owner_references)
    annotations = {key: value for key, value in meta.annotations.items() if key not in _BINDING_ANNOTATIONS}
    return replace(meta, uid=f"replacement-of/{meta.uid}", owner_references=owners, annotations=annotations)


def _renew_volume_claim(claim: PersistentVolumeClaim, old_uid: str, new_uid: str) -> PersistentVolumeClaim:
    return replace(
        claim,
        metadata=_change_owner(claim.metadata, old_uid, new_uid),
        spec=replace(claim.spec, volume_name=""),
        status=PersistentVolumeClaimStatus(phase="Pending"),
    )


def _release_device_claim(claim: ResourceClaim, old_uid: str, new_uid: str) -> ResourceClaim:
    if claim.metadata.is_controlled_by(old_uid):
        metadata = _change_owner(claim.metadata, old_uid, new_uid)
        return replace(claim, metadata=metadata, status=ResourceClaimStatus())
    consumers = tuple(consumer for consumer in claim.status.reserved_for if consumer.uid != old_uid)
    if len(consumers) == len(claim.status.reserved_for):
        return claim
    status = replace(claim.status, reserved_for=consumers) if consumers else ResourceClaimStatus()
    return replace(claim, status=status)
