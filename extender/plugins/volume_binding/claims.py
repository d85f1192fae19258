"""The claims of a pod put in order: bound ones, and those that wait for the pod; or why the pod cannot be scheduled."""

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.cluster.volume_uses import ClaimUse
from extender.framework.verdict import Status, error, unresolvable
from extender.objects.pod import Pod
from extender.objects.storage import PersistentVolumeClaim, StorageClass
from extender.volumes.assumptions import Assumptions
from extender.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_keys,
    is_fully_bound,
    not_found,
    ownership_fault,
)
from extender.volumes.finding import PodClaims

_IMMEDIATE = unresolvable("pod has unbound immediate PersistentVolumeClaims")


def claims_in_order(pod: PodQuery, cluster: Snapshot, promised: Assumptions) -> PodClaims | Status:
    """The claims of *pod*, as they were promised to be, or why it cannot be scheduled. Source: B091, B092."""
    found: list[PersistentVolumeClaim] = []
    for use, name, key in claim_keys(pod.pod, pod.shape.volumes.claims):
        claim = cluster.find(PersistentVolumeClaim, key)
        fault = _fault(pod.pod, use, name, claim)
        if claim is None or fault is not None:
            return unresolvable(fault or not_found(name))
        found.append(promised.claim(claim))
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    immediate = False
    for claim in found:
        if is_fully_bound(claim):
            bound.append(claim)
            continue
        waits = _waits(claim, cluster)
        if isinstance(waits, Status):
            return waits
        if waits and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate = True
    return _IMMEDIATE if immediate else PodClaims(tuple(bound), tuple(delayed))


def _fault(pod: Pod, use: ClaimUse, name: str, claim: PersistentVolumeClaim | None) -> str | None:
    if claim is None:
        if use.generated:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return not_found(name)
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return ownership_fault(pod, claim) if use.generated else None


def _waits(claim: PersistentVolumeClaim, cluster: Snapshot) -> bool | Status:
    """Whether the claim is bound only when its pod has a node. A class that does not exist does not wait."""
    name = claim_class(claim)
    storage_class = cluster.find(StorageClass, name) if name else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        return error(f'VolumeBindingMode not set for StorageClass "{name}"')
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
