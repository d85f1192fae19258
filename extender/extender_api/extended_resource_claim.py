"""The ResourceClaim that a scheduler creates for the extended resources of a pod before it calls bind.

kube-scheduler's PreBind creates and allocates this claim, and names it in the pod's status. DynamicResources takes such
a claim of a pod without a node for one of a failed attempt, and rejects the pod. So the verb bind filters the pod as
if its spec named the claim.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
DynamicResources.patchPodExtendedResourceClaimStatus (1.37).
"""

from msgspec.structs import replace

from extender.api.kinds.devices import ResourceClaim
from extender.api.kinds.pod import Container, Pod, PodResourceClaim
from extender.cache.cache import Cache
from extender.dra.allocated_devices import get_extended_resource_pod


def is_claim_allocated(pod: Pod, cache: Cache) -> bool:
    """Return whether the claim that the status of *pod* names for extended resources is its own and is allocated."""
    status = pod.status.extended_resource_claim_status
    if status is None:
        return False
    claim = cache.get_object(ResourceClaim, f"{pod.metadata.namespace}/{status.resource_claim_name}")
    return (
        claim is not None
        and claim.metadata.deletion_timestamp is None
        and claim.status.allocation is not None
        and get_extended_resource_pod(claim) == pod.metadata.uid
    )


def use_claim(pod: Pod) -> Pod:
    """Return *pod* with the claim of its status in its spec, without the requests that the claim provides."""
    status = pod.status.extended_resource_claim_status
    if status is None:
        return pod
    provided = {(mapping.container_name, mapping.resource_name) for mapping in status.request_mappings}

    def remove_requests(container: Container) -> Container:
        requests = container.resources.requests
        remaining = {name: amount for name, amount in requests.items() if (container.name, name) not in provided}
        return replace(container, resources=replace(container.resources, requests=remaining))

    claim = PodResourceClaim(name=status.resource_claim_name, resource_claim_name=status.resource_claim_name)
    spec = replace(
        pod.spec,
        containers=tuple(map(remove_requests, pod.spec.containers)),
        init_containers=tuple(map(remove_requests, pod.spec.init_containers)),
        resource_claims=(*pod.spec.resource_claims, claim),
    )
    return replace(pod, spec=spec)
