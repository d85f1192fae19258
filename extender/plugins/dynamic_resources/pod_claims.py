"""Look up and validate the claims of a pod, and check reservations and binding conditions.

A claim may be reserved for a pod group and shared by its pods (gate DRAWorkloadResourceClaims).

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter,
DynamicResources.bindClaim, AllocatorFeatures (1.36).
"""

from collections.abc import Mapping
from typing import Final

from extender.api.kinds.devices import (
    AllocatedDeviceStatus,
    DeviceClass,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from extender.api.kinds.pod import Pod, PodResourceClaim
from extender.api.kinds.pod_group import PodGroup, PodGroupResourceClaim
from extender.api.requests import incoming_pod_requests, is_dra_extended_resource
from extender.basics.visible_text import quote
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.framework.status import Status, error_status, unresolvable_status

_API_GROUP: Final = "scheduling.k8s.io"
_RESOURCE: Final = "podgroups"


def get_pod_claims(
    pod: Pod, snapshot: Snapshot, *, workload_claims: bool = False
) -> tuple[ResourceClaim, ...] | Status:
    """Return the claims of *pod*, or a rejection if a claim is missing or unusable.

    With *workload_claims* (gate DRAWorkloadResourceClaims), the group of the pod may own claims.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
    DynamicResources.foreachPodResourceClaim (1.36).
    """
    claims: list[ResourceClaim] = []
    for pod_claim in pod.spec.resource_claims:
        name, is_generated = get_claim_name(pod, pod_claim)
        if isinstance(name, Status):
            return name
        if name is None:
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = snapshot.get_object(ResourceClaim, key)
        if claim is None:
            return unresolvable_status(f"could not find ResourceClaim {quote(key)}")
        if claim.metadata.deletion_timestamp is not None:
            return unresolvable_status(f'resourceclaim "{name}" is being deleted')
        if is_generated and not claim.metadata.is_controlled_by(pod.metadata.uid):
            if not workload_claims:
                return unresolvable_status(f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)")
            if not is_owned_by_pod_group(claim, pod):
                owner_message = f"(neither Pod nor PodGroup {get_pod_group_name(pod)} is the owner)"
                return unresolvable_status(f"ResourceClaim {key} was not created for Pod {pod.key} {owner_message}")
        claims.append(claim)
    return tuple(claims)


def get_claim_name(pod: Pod, pod_claim: PodResourceClaim) -> tuple[str | Status | None, bool]:
    """Return the claim name of *pod_claim*, and whether the claim is generated for the pod.

    The name is None if the pod needs no claim for *pod_claim*. Instead of a name, a status is returned if the claim is
    not created yet or *pod_claim* is invalid.
    """
    if pod_claim.resource_claim_name is not None:
        return pod_claim.resource_claim_name, False
    meta = pod.metadata
    if pod_claim.resource_claim_template_name is None:
        description = f'pod "{meta.namespace}/{meta.name}", spec.resourceClaim "{pod_claim.name}"'
        return unresolvable_status(f"{description}: none of the supported fields are set"), False
    for status in pod.status.resource_claim_statuses:
        if status.name == pod_claim.name:
            return status.resource_claim_name, True
    return unresolvable_status(f'pod "{meta.namespace}/{meta.name}": ResourceClaim not created yet'), True


def is_reserved_for_pod(claim: ResourceClaim, pod: Pod, *, workload_claims: bool = False) -> bool:
    """Return whether *claim* is reserved for *pod* or its group."""
    if any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for):
        return True
    return workload_claims and is_reserved_for_pod_group(claim, pod)


def validate_claim(
    claim: ResourceClaim, classes: Mapping[str, DeviceClass], *, prioritized_list: bool
) -> Status | None:
    """Return a rejection if *claim* has an unknown request type or device class, else None.

    *claim* has no allocation. *prioritized_list* is the gate DRAPrioritizedList.
    """
    for request in claim.spec.devices.requests:
        location = f"resource claim {claim.key}, request {request.name}"
        if request.exactly is not None:
            device_classes = [(request.exactly.device_class_name, request.name)]
        elif not request.first_available:
            return unresolvable_status(f"{location}: unknown request type")
        elif not prioritized_list:
            return unresolvable_status(f"{location}: has subrequests, but the DRAPrioritizedList feature is disabled")
        else:
            device_classes = [
                (subrequest.device_class_name, f"{request.name}/{subrequest.name}")
                for subrequest in request.first_available
            ]
        for name, request_name in device_classes:
            if not name:
                return error_status(f"request {request_name}: unsupported request type")
            if name not in classes:
                return unresolvable_status(f"request {request_name}: device class {name} does not exist")
    return None


def may_have_claims(pod: PodInfo) -> bool:
    """Return whether *pod* has claims, or requests a resource that a device class may back."""
    return bool(pod.spec.resource_claims) or any(map(is_dra_extended_resource, incoming_pod_requests(pod.pod)))


# -- binding conditions


def get_binding_error(claim: ResourceClaim) -> str | None:
    """Return an error message if a binding failure condition of *claim* is true, else None."""
    return _get_binding_status(claim)[1]


def is_ready_for_binding(claim: ResourceClaim) -> bool:
    """Return whether all binding conditions of the allocated devices are true.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
    DynamicResources.isClaimReadyForBinding (1.36).
    """
    return _get_binding_status(claim)[0]


def _get_binding_status(claim: ResourceClaim) -> tuple[bool, str | None]:
    allocation = claim.status.allocation
    if allocation is None:
        return False, None
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        status = _get_device_status(claim, result)
        if status is None:
            return False, None
        conditions = {condition.type: condition for condition in reversed(status.conditions)}
        for name in result.binding_failure_conditions:
            failure_condition = conditions.get(name)
            if failure_condition is not None and failure_condition.status == "True":
                description = f"claim={claim.metadata.name}, reason={failure_condition.reason}"
                return False, f'device binding failed: {description}, message="{failure_condition.message}"'
        if any(name not in conditions or conditions[name].status != "True" for name in result.binding_conditions):
            return False, None
    return True, None


def _get_device_status(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    device_key = (result.driver, result.pool, result.device)
    statuses = claim.status.devices
    return next((status for status in statuses if (status.driver, status.pool, status.device) == device_key), None)


def has_binding_conditions(claim: ResourceClaim) -> bool:
    """Return whether a device of *claim* has binding conditions."""
    allocation = claim.status.allocation
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def has_binding_failed(claim: ResourceClaim, timeout: float, now: float) -> bool:
    """Return whether the allocated devices failed to bind or their binding timed out.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Filter,
    DynamicResources.PreBind (1.36).
    """
    if claim.status.allocation is None:
        return False
    if get_binding_error(claim) is not None:
        return True
    return not is_ready_for_binding(claim) and is_binding_timed_out(claim, timeout, now)


def is_binding_timed_out(claim: ResourceClaim, timeout: float, now: float) -> bool:
    """Return whether *claim* has binding conditions and was allocated more than *timeout* seconds before *now*.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.isClaimTimeout
    (1.36).
    """
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not has_binding_conditions(claim):
        return False
    return allocation.allocation_timestamp.timestamp() + timeout < now


# -- claims of pod groups


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


def find_unused_pod_group_claim(pod: Pod, snapshot: Snapshot) -> ResourceClaim | str | None:
    """Return an allocated claim of the group of *pod* that is reserved for it; None if a pod of the group is assigned.

    Return an error message if a claim of the group does not exist.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
    DynamicResources.unreservePodGroupClaims (1.36), DynamicResources.deallocatePodGroupClaims (1.37);
    dynamic-resource-allocation/resourceclaim/resourceclaim.go, NameFromPodGroup (1.37).
    """
    group = get_pod_group(pod, snapshot)
    if not isinstance(group, PodGroup):
        return None
    namespace, key = group.metadata.namespace, f"{group.metadata.namespace}/{group.metadata.name}"
    if snapshot.pod_group(key).assigned:
        return None
    names = {status.name: status.resource_claim_name for status in group.status.resource_claim_statuses}
    for group_claim in group.spec.resource_claims:
        name, is_generated = group_claim.resource_claim_name, group_claim.resource_claim_name is None
        if is_generated:
            if group_claim.resource_claim_template_name is None:
                return f"PodGroup {key}, spec.resourceClaim {group_claim.name}: none of the supported fields are set"
            if group_claim.name not in names:
                return f"PodGroup {key}: ResourceClaim not created yet"
            name = names[group_claim.name]
        if name is None:
            continue
        claim = snapshot.get_object(ResourceClaim, f"{namespace}/{name}")
        if claim is None:
            return f"could not find ResourceClaim {quote(f'{namespace}/{name}')}"
        if is_generated and not claim.metadata.is_controlled_by(group.metadata.uid):
            continue
        if claim.status.allocation is not None and is_reserved_for_pod(claim, pod, workload_claims=True):
            return claim
    return None
