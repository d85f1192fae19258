"""Claims that the pods of a group share, behind the gate DRAWorkloadResourceClaims: they are reserved for the group.

Source: B110, B119, B122.
"""

from typing import Final

from extender.cluster.snapshot import Snapshot
from extender.objects.devices import ResourceClaim, ResourceClaimConsumerReference
from extender.objects.groups import PodGroup, PodGroupResourceClaim
from extender.objects.pod import Pod, PodResourceClaim

_GROUP: Final = "scheduling.k8s.io"
_RESOURCE: Final = "podgroups"


def group_name(pod: Pod) -> str | None:
    """The name of the pod's group, if it has one."""
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else None


def is_of_group(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether *claim* was made for the group of *pod*."""
    name = group_name(pod)
    controller = next((owner for owner in claim.metadata.owner_references if owner.controller), None)
    if name is None or controller is None:
        return False
    made_for = (controller.kind, controller.name)
    return made_for == ("PodGroup", name) and controller.api_version.startswith(f"{_GROUP}/")


def is_reserved_for_group(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether *claim* is reserved for the group of *pod*."""
    name = group_name(pod)
    return name is not None and any(
        (each.api_group, each.resource, each.name) == (_GROUP, _RESOURCE, name) for each in claim.status.reserved_for
    )


def group_of(pod: Pod, cluster: Snapshot) -> PodGroup | str | None:
    """The group of *pod*, None if it has none, or why it cannot be had."""
    name = group_name(pod)
    if name is None:
        return None
    found = cluster.find(PodGroup, f"{pod.metadata.namespace}/{name}")
    return found or f'podgroup.{_GROUP} "{name}" not found'


def consumer(pod: Pod, group: PodGroup | None, entry: PodResourceClaim) -> ResourceClaimConsumerReference:
    """For whom the claim of *entry* is reserved: the group if it names the same claim, else the pod."""
    if group is not None and any(_same(each, entry) for each in group.spec.resource_claims):
        meta = group.metadata
        return ResourceClaimConsumerReference(api_group=_GROUP, resource=_RESOURCE, name=meta.name, uid=meta.uid)
    return pod_consumer(pod)


def pod_consumer(pod: Pod) -> ResourceClaimConsumerReference:
    """*pod* as a consumer."""
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


def _same(one: PodGroupResourceClaim, other: PodResourceClaim) -> bool:
    return (one.name, one.resource_claim_name, one.resource_claim_template_name) == (
        other.name,
        other.resource_claim_name,
        other.resource_claim_template_name,
    )


def held_in_vain(pod: Pod, cluster: Snapshot) -> ResourceClaim | None:
    """An allocated claim that is reserved for the group of *pod*, of which no pod is on a node. Source: B115."""
    group = group_of(pod, cluster)
    if not isinstance(group, PodGroup) or any(_is_member(each.pod, pod) for each in cluster.placed_pods()):
        return None
    for entry in group.spec.resource_claims:
        name = entry.resource_claim_name or _made_for(group, entry.name)
        claim = cluster.find(ResourceClaim, f"{group.metadata.namespace}/{name}") if name else None
        if claim is None or claim.status.allocation is None:
            continue
        if (entry.resource_claim_name or is_of_group(claim, pod)) and is_reserved_for_group(claim, pod):
            return claim
    return None


def _made_for(group: PodGroup, entry: str) -> str | None:
    statuses = group.status.resource_claim_statuses
    return next((each.resource_claim_name for each in statuses if each.name == entry), None)


def _is_member(other: Pod, pod: Pod) -> bool:
    return other.metadata.namespace == pod.metadata.namespace and group_name(other) == group_name(pod)
