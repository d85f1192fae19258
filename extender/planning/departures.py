"""The pods that leave a node: their classes by kubectl drain's rules, their replacements, and their claims.

Source: k8s.io/kubectl/pkg/drain/filters.go, Helper.daemonSetFilter, Helper.mirrorPodFilter, Helper.unreplicatedFilter;
pkg/controller/resourceclaim/controller.go, Controller.syncClaim;
pkg/controller/volume/ephemeral/controller.go, ephemeralController.handleVolume (1.36).
"""

from enum import Enum
from typing import Final

from msgspec.structs import replace

from extender.api.kinds.devices import ResourceClaim, ResourceClaimStatus
from extender.api.kinds.meta import ObjectMeta
from extender.api.kinds.pod import Pod, PodStatus
from extender.api.kinds.storage import PersistentVolumeClaim, PersistentVolumeClaimStatus
from extender.cache.cache import Cache
from extender.planning.cache_edits import CacheEdits
from extender.volumes.claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE

_MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
_PENDING: Final = PodStatus(phase="Pending")


class Departure(Enum):
    """The outcome for a pod whose node is drained or lost.

    Attributes:
        REPLACED: the controller creates a new pod.
        LOST: the pod has no controller.
        DAEMON_OR_MIRROR: the pod belongs to the node, because it is a mirror pod or a pod of a DaemonSet.
        TERMINATING: the pod is being deleted already, and its replacement exists.
    """

    REPLACED = "replaced"
    LOST = "lost"
    DAEMON_OR_MIRROR = "daemon or mirror"
    TERMINATING = "terminating"


def classify_departure(pod: Pod) -> Departure:
    """Return what happens to *pod* when it must leave its node."""
    controller = pod.metadata.controller
    kind = controller.kind if controller is not None else ""
    if _MIRROR_ANNOTATION in pod.metadata.annotations or kind in ("Node", "DaemonSet"):
        return Departure.DAEMON_OR_MIRROR
    if pod.metadata.deletion_timestamp is not None:
        return Departure.TERMINATING
    return Departure.REPLACED if controller is not None else Departure.LOST


def make_pending_pod(pod: Pod, name: str, uid: str, status: PodStatus = _PENDING) -> Pod:
    """Return a new pending pod that equals *pod* except for its name, uid and *status*."""
    meta = replace(pod.metadata, name=name, uid=uid, creation_timestamp=None, deletion_timestamp=None)
    spec = replace(pod.spec, node_name="") if pod.spec.node_name else pod.spec
    return replace(pod, metadata=meta, spec=spec, status=status)


def make_replacement(pod: Pod) -> Pod:
    """Return the pending pod that the controller creates for *pod*. It keeps the name, and has a new uid.

    Its claims have the same names as the claims of *pod*; see `release_claims`.
    """
    status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
    return make_pending_pod(pod, pod.metadata.name, f"replacement-of/{pod.uid_or_key}", status)


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
