"""The claims of a pod: which they are, whether they are in order, for whom they are reserved. Source: B110, B111."""

from collections.abc import Mapping

from extender.cluster.snapshot import Snapshot
from extender.framework.verdict import Status, error, unresolvable
from extender.objects.devices import AllocatedDeviceStatus, DeviceClass, DeviceRequestAllocationResult, ResourceClaim
from extender.objects.pod import Pod, PodResourceClaim
from extender.plugins.dynamic_resources.groups import group_name, is_of_group, is_reserved_for_group


def claims_of(pod: Pod, cluster: Snapshot, *, grouped: bool = False) -> tuple[ResourceClaim, ...] | Status:
    """The claims of *pod*, or why they are not in order. Source: B110.

    Args:
        pod: whose.
        cluster: where they are.
        grouped: whether claims may belong to the pod's group (gate DRAWorkloadResourceClaims).
    """
    found: list[ResourceClaim] = []
    for entry in pod.spec.resource_claims:
        name, generated = claim_name(pod, entry)
        if isinstance(name, Status):
            return name
        if name is None:
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = cluster.find(ResourceClaim, key)
        if claim is None:
            return unresolvable(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletion_timestamp is not None:
            return unresolvable(f'resourceclaim "{name}" is being deleted')
        if generated and not _is_controlled(claim, pod):
            if not grouped:
                return unresolvable(f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)")
            if not is_of_group(claim, pod):
                owners = f"(neither Pod nor PodGroup {group_name(pod)} is the owner)"
                return unresolvable(f"ResourceClaim {key} was not created for Pod {pod.key} {owners}")
        found.append(claim)
    return tuple(found)


def claim_name(pod: Pod, entry: PodResourceClaim) -> tuple[str | Status | None, bool]:
    """The name of the claim (None: none is needed), and whether it was generated for the pod."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    meta = pod.metadata
    if entry.resource_claim_template_name is None:
        what = f'pod "{meta.namespace}/{meta.name}", spec.resourceClaim "{entry.name}"'
        return unresolvable(f"{what}: none of the supported fields are set"), False
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name, True
    return unresolvable(f'pod "{meta.namespace}/{meta.name}": ResourceClaim not created yet'), True


def _is_controlled(claim: ResourceClaim, pod: Pod) -> bool:
    controller = next((owner for owner in claim.metadata.owner_references if owner.controller), None)
    return controller is not None and controller.uid == pod.metadata.uid


def is_reserved(claim: ResourceClaim, pod: Pod, *, grouped: bool = False) -> bool:
    """Whether *claim* is reserved for *pod*, or for its group."""
    if any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for):
        return True
    return grouped and is_reserved_for_group(claim, pod)


def objection(claim: ResourceClaim, classes: Mapping[str, DeviceClass], *, alternatives: bool) -> Status | None:
    """Why *claim* cannot be allocated anywhere: a request of no known kind, or a class that does not exist.

    Args:
        claim: not allocated yet.
        classes: by name.
        alternatives: whether prioritized lists are known.
    """
    for request in claim.spec.devices.requests:
        where = f"resource claim {claim.key}, request {request.name}"
        if request.exactly is not None:
            wanted = [(request.exactly.device_class_name, request.name)]
        elif not request.first_available:
            return unresolvable(f"{where}: unknown request type")
        elif not alternatives:
            return unresolvable(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
        else:
            wanted = [(each.device_class_name, f"{request.name}/{each.name}") for each in request.first_available]
        for name, called in wanted:
            if not name:
                return error(f"request {called}: unsupported request type")
            if name not in classes:
                return unresolvable(f"request {called}: device class {name} does not exist")
    return None


# -- binding conditions, B120


def binding_fault(claim: ResourceClaim) -> str | None:
    """Why the devices of *claim* will not get ready: a failure condition is true; None if none is."""
    return _readiness(claim)[1]


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all binding conditions of the allocated devices are true."""
    return _readiness(claim)[0]


def _readiness(claim: ResourceClaim) -> tuple[bool, str | None]:
    allocation = claim.status.allocation
    if allocation is None:
        return False, None
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        status = _device_status(claim, result)
        if status is None:
            return False, None
        conditions = {condition.type: condition for condition in reversed(status.conditions)}
        for name in result.binding_failure_conditions:
            failed = conditions.get(name)
            if failed is not None and failed.status == "True":
                what = f"claim={claim.metadata.name}, reason={failed.reason}"
                return False, f'device binding failed: {what}, message="{failed.message}"'
        if any(name not in conditions or conditions[name].status != "True" for name in result.binding_conditions):
            return False, None
    return True, None


def _device_status(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    return next((each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted), None)


def waits(claim: ResourceClaim) -> bool:
    """Whether a device of *claim* has binding conditions."""
    allocation = claim.status.allocation
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def is_overdue(claim: ResourceClaim, timeout: float, now: float) -> bool:
    """Whether *claim* was allocated more than *timeout* seconds before *now* and has binding conditions."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not waits(claim):
        return False
    return allocation.allocation_timestamp.timestamp() + timeout < now
