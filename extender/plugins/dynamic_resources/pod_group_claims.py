"""Claims that are reserved for a pod group and shared by its pods (gate DRAWorkloadResourceClaims).

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
DynamicResources.foreachPodResourceClaim, DynamicResources.bindClaim, AllocatorFeatures (1.36).
"""

from typing import Final

from extender.api.kinds.devices import ResourceClaim, ResourceClaimConsumerReference
from extender.api.kinds.pod import Pod, PodResourceClaim
from extender.api.kinds.pod_group import PodGroup, PodGroupResourceClaim
from extender.cache.snapshot import Snapshot

_API_GROUP: Final = "scheduling.k8s.io"
_RESOURCE: Final = "podgroups"


def get_pod_group_name(pod: Pod) -> str | None:
    """Return the name of the pod's group; None if it has no group."""
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else None


def is_owned_by_pod_group(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether the group of *pod* owns *claim*."""
    name = get_pod_group_name(pod)
    controller = claim.metadata.controller
    if name is None or controller is None:
        return False
    owner_key = (controller.kind, controller.name)
    return owner_key == ("PodGroup", name) and controller.api_version.startswith(f"{_API_GROUP}/")


def is_reserved_for_pod_group(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether *claim* is reserved for the group of *pod*."""
    name = get_pod_group_name(pod)
    return name is not None and any(
        (consumer.api_group, consumer.resource, consumer.name) == (_API_GROUP, _RESOURCE, name)
        for consumer in claim.status.reserved_for
    )


def get_pod_group(pod: Pod, snapshot: Snapshot) -> PodGroup | str | None:
    """Return the group of *pod*, None if it has no group, or an error message."""
    name = get_pod_group_name(pod)
    if name is None:
        return None
    pod_group = snapshot.get_object(PodGroup, f"{pod.metadata.namespace}/{name}")
    return pod_group or f'podgroup.{_API_GROUP} "{name}" not found'


def get_claim_consumer(pod: Pod, group: PodGroup | None, pod_claim: PodResourceClaim) -> ResourceClaimConsumerReference:
    """Return the consumer of *pod_claim*: the pod group if its spec has the same claim, else the pod."""
    if group is not None and any(_is_same_claim(group_claim, pod_claim) for group_claim in group.spec.resource_claims):
        meta = group.metadata
        return ResourceClaimConsumerReference(api_group=_API_GROUP, resource=_RESOURCE, name=meta.name, uid=meta.uid)
    return make_pod_consumer(pod)


def make_pod_consumer(pod: Pod) -> ResourceClaimConsumerReference:
    """Return a consumer reference to *pod*."""
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


def _is_same_claim(group_claim: PodGroupResourceClaim, pod_claim: PodResourceClaim) -> bool:
    return (group_claim.name, group_claim.resource_claim_name, group_claim.resource_claim_template_name) == (
        pod_claim.name,
        pod_claim.resource_claim_name,
        pod_claim.resource_claim_template_name,
    )


def find_unused_pod_group_claim(pod: Pod, snapshot: Snapshot) -> ResourceClaim | None:
    """Return an allocated claim that is reserved for the group of *pod*; None if a pod of the group is assigned.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PostFilter (1.36).
    """
    group = get_pod_group(pod, snapshot)
    if not isinstance(group, PodGroup) or any(
        _is_in_same_group(assigned_pod.pod, pod) for assigned_pod in snapshot.assigned_pods()
    ):
        return None
    for group_claim in group.spec.resource_claims:
        name = group_claim.resource_claim_name or _get_generated_claim_name(group, group_claim.name)
        claim = snapshot.get_object(ResourceClaim, f"{group.metadata.namespace}/{name}") if name else None
        if claim is None or claim.status.allocation is None:
            continue
        if (group_claim.resource_claim_name or is_owned_by_pod_group(claim, pod)) and is_reserved_for_pod_group(
            claim, pod
        ):
            return claim
    return None


def _get_generated_claim_name(group: PodGroup, claim_name: str) -> str | None:
    statuses = group.status.resource_claim_statuses
    return next((status.resource_claim_name for status in statuses if status.name == claim_name), None)


def _is_in_same_group(assigned_pod: Pod, pod: Pod) -> bool:
    return assigned_pod.metadata.namespace == pod.metadata.namespace and get_pod_group_name(
        assigned_pod
    ) == get_pod_group_name(pod)
