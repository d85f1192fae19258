"""Look up the claims of a pod, split into bound claims and claims with delayed binding."""

from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolumeClaim, StorageClass
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.volume_uses import PVCUse
from extender.framework.status import Status, error_status, unresolvable_status
from extender.volumes.assume_cache import AssumeCache
from extender.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    format_not_found_message,
    get_claim_class,
    get_ownership_error,
    is_fully_bound,
    resolve_claim_uses,
)
from extender.volumes.find_pod_volumes import PodVolumeClaims

_IMMEDIATE = unresolvable_status("pod has unbound immediate PersistentVolumeClaims")


def get_pod_volume_claims(pod: PodInfo, snapshot: Snapshot, assume_cache: AssumeCache) -> PodVolumeClaims | Status:
    """Return the claims of *pod* with assumed changes, or a rejection if a claim is not usable.

    Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.podHasPVCs;
    pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.GetPodVolumeClaims (1.36).
    """
    claims: list[PersistentVolumeClaim] = []
    for use, name, key in resolve_claim_uses(pod.pod, pod.signature.volume_uses.claims):
        claim = snapshot.get_object(PersistentVolumeClaim, key)
        message = _get_claim_error(pod.pod, use, name, claim)
        if claim is None or message is not None:
            return unresolvable_status(message or format_not_found_message(name))
        claims.append(assume_cache.get_latest_claim(claim))
    bound_claims: list[PersistentVolumeClaim] = []
    delayed_claims: list[PersistentVolumeClaim] = []
    has_unbound_immediate = False
    for claim in claims:
        if is_fully_bound(claim):
            bound_claims.append(claim)
            continue
        is_delayed = _is_delay_binding_mode(claim, snapshot)
        if isinstance(is_delayed, Status):
            return is_delayed
        if is_delayed and not claim.spec.volume_name:
            delayed_claims.append(claim)
        else:
            has_unbound_immediate = True
    return _IMMEDIATE if has_unbound_immediate else PodVolumeClaims(tuple(bound_claims), tuple(delayed_claims))


def _get_claim_error(pod: Pod, use: PVCUse, name: str, claim: PersistentVolumeClaim | None) -> str | None:
    if claim is None:
        if use.ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return format_not_found_message(name)
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return get_ownership_error(pod, claim) if use.ephemeral else None


def _is_delay_binding_mode(claim: PersistentVolumeClaim, snapshot: Snapshot) -> bool | Status:
    """Return whether the claim's class delays binding until the pod is scheduled; False without a class."""
    class_name = get_claim_class(claim)
    storage_class = snapshot.get_object(StorageClass, class_name)
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        return error_status(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
