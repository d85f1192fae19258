"""The API calls that unreserve, deallocate and delete claims, and the check that bound devices are ready.

Merge patches write the claims. Each contains the claim's resource version in the snapshot, so it fails if the claim has
changed since. A strategic merge patch without a version removes a pod from `reservedFor`.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PostFilter (1.36).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from extender.api.kinds.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from extender.api.kinds.meta import ObjectMeta, OwnerReference
from extender.api.kinds.pod import NodeAllocatableResourceClaimStatus, Pod
from extender.cache.snapshot import Snapshot
from extender.dra.allocated_devices import EXTENDED_RESOURCE_CLAIM_ANNOTATION
from extender.framework.api_plan import ApiCall, ApiPlan, WaitCondition
from extender.framework.status import SUCCESS, Status, error_status
from extender.plugins.dynamic_resources.pod_claims import (
    get_binding_error,
    is_binding_timed_out,
    is_ready_for_binding,
    is_reserved_for_pod,
    is_reserved_for_pod_group,
)
from extender.plugins.dynamic_resources.state import SPECIAL_CLAIM_IN_MEM_NAME, StateData

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
CLAIM_KIND: Final = "ResourceClaim"

_NEW_CLAIM_SECONDS: Final = 120.0
"""Seconds to wait until the watch shows a new claim.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
AssumeExtendedResourceTimeoutDefaultSeconds (1.37).
"""


def make_extended_resource_claim(pod: Pod) -> ResourceClaim:
    """Return a claim for the extended resources of *pod*. It is not created yet and has no requests.

    Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
    DynamicResources.filterExtendedResources (1.36).
    """
    meta = pod.metadata
    owner = OwnerReference(api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            namespace=meta.namespace,
            name=SPECIAL_CLAIM_IN_MEM_NAME,
            owner_references=(owner,),
            annotations={EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
        )
    )


def get_in_flight_key(claim: ResourceClaim, pod: Pod) -> str:
    """Return the key of an in-flight allocation: the claim's uid, or the pod's uid if the claim is not created yet."""
    return pod.metadata.uid if claim.metadata.name == SPECIAL_CLAIM_IN_MEM_NAME else claim.metadata.uid


def iterate_unwritten_results(
    state_data: StateData, pod: Pod, snapshot: Snapshot
) -> Iterator[tuple[str, AllocationResult]]:
    """Yield the in-flight key and the allocation of each claim that Reserve allocates.

    A claim that was allocated after PreFilter has read it is left out, because *snapshot* has its devices already.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go, claimTracker.SignalClaimPendingAllocation
    (1.37).
    """
    for index, result in state_data.allocation_results.items():
        claim = state_data.claims[index]
        current_claim = snapshot.get_object(ResourceClaim, claim.key)
        if (
            current_claim is None
            or current_claim.metadata.uid != claim.metadata.uid
            or current_claim.status.allocation is None
        ):
            yield get_in_flight_key(claim, pod), result


def plan_deallocation(claim: ResourceClaim) -> ApiPlan:
    """Return the plan that removes the allocation of *claim*."""
    status = {"allocation": None, "reservedFor": None, "devices": None}
    return ApiPlan((_make_claim_patch(claim, {"status": status}, subresource="status"),))


def plan_unreserve_for_pod_group(claim: ResourceClaim, pod: Pod) -> ApiPlan:
    """Return the plan that removes the group of *pod* from `reservedFor` of *claim*."""
    remaining_consumers = [
        consumer
        for consumer in claim.status.reserved_for
        if not is_reserved_for_pod_group(_copy_with_consumer(claim, consumer), pod)
    ]
    body = {"status": {"reservedFor": to_builtins(remaining_consumers)}}
    return ApiPlan((_make_claim_patch(claim, body, subresource="status"),))


def _copy_with_consumer(claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> ResourceClaim:
    status = msgspec.structs.replace(claim.status, reserved_for=(consumer,))
    return msgspec.structs.replace(claim, status=status)


def plan_deletion(claim: ResourceClaim) -> ApiPlan:
    """Return the plan that removes the finalizer of *claim* and deletes the claim."""
    remaining_finalizers = [name for name in claim.metadata.finalizers if name != FINALIZER]
    meta = claim.metadata
    patch = _make_claim_patch(claim, {"metadata": {"finalizers": remaining_finalizers}})
    return ApiPlan((patch, ApiCall("delete", CLAIM_KIND, meta.namespace, meta.name, {})))


def make_undo_calls(state_data: StateData, index: int) -> tuple[ApiCall, ...]:
    """Return the calls that undo PreBind for a claim.

    They remove the pod from `reservedFor`, or delete the claim that was created for its extended resources.
    """
    claim, pod = state_data.bound_claims.get(index, state_data.claims[index]), state_data.pod
    meta = claim.metadata
    if state_data.claims[index] is state_data.extended_resource_claim:
        if meta.name == SPECIAL_CLAIM_IN_MEM_NAME:
            return ()
        patch = ApiCall("patch", CLAIM_KIND, meta.namespace, meta.name, {"metadata": {"finalizers": []}})
        return patch, ApiCall("delete", CLAIM_KIND, meta.namespace, meta.name, {})
    if claim.status.allocation is None or not is_reserved_for_pod(claim, pod):
        return ()
    body = {"metadata": {"uid": meta.uid}, "status": {"reservedFor": [{"$patch": "delete", "uid": pod.metadata.uid}]}}
    call = ApiCall("patch", CLAIM_KIND, meta.namespace, meta.name, body, "status", strategic=True, is_resent=True)
    return (call,)


def make_node_allocatable_statuses_patch(pod: Pod, statuses: Sequence[NodeAllocatableResourceClaimStatus]) -> ApiCall:
    """Return the call that writes *statuses* to the pod's status. Empty *statuses* clear the field.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.36).
    """
    meta = pod.metadata
    body = {
        "metadata": {"uid": meta.uid},
        "status": {"nodeAllocatableResourceClaimStatuses": to_builtins(statuses) or None},
    }
    purpose = f"updating pod {pod.key} NodeAllocatableResourceClaimStatuses"
    return ApiCall("patch", "Pod", meta.namespace, meta.name, body, "status", purpose=purpose)


def to_builtins(value: Any) -> Any:
    """Return *value* as JSON objects and lists."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _make_claim_patch(claim: ResourceClaim, body: dict[str, Any], *, subresource: str = "") -> ApiCall:
    meta = claim.metadata
    metadata = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    body = {**body, "metadata": {**metadata, **body.get("metadata", {})}}
    return ApiCall("patch", CLAIM_KIND, meta.namespace, meta.name, body, subresource)


def make_wait_condition(claims: Sequence[ResourceClaim], timeout: float, now: Callable[[], float]) -> WaitCondition:
    """Return the condition that waits until the devices of all allocated *claims* are ready.

    A claim without a uid is new. The condition first waits until the snapshot has all new claims.

    Args:
        claims: the bound claims of a pod.
        timeout: the timeout for binding conditions, in seconds.
        now: the function that returns the current time in seconds.

    Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
    DynamicResources.waitForExtendedClaimInAssumeCache (1.37).
    """
    keys = tuple(claim.key for claim in claims if claim.status.allocation is not None)
    unseen_keys = {claim.key for claim in claims if not claim.metadata.uid}
    deadline = now() + _NEW_CLAIM_SECONDS

    def wait_for(snapshot: Snapshot) -> Status | None:
        seen_keys = {key for key in unseen_keys if snapshot.get_object(ResourceClaim, key) is not None}
        unseen_keys.difference_update(seen_keys)
        return None if unseen_keys and now() < deadline else _check_bindings(keys, snapshot, timeout, now)

    return wait_for


def _check_bindings(
    claim_keys: tuple[str, ...], snapshot: Snapshot, timeout: float, now: Callable[[], float]
) -> Status | None:
    """Return success if the devices of all claims are ready, None if they are not ready yet, or an error.

    *timeout* for binding conditions is in seconds; *now* returns the current time in seconds.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreBind (1.36).
    """
    for key in claim_keys:
        claim = snapshot.get_object(ResourceClaim, key)
        if claim is None:
            return error_status(f'could not find ResourceClaim "{key}"')
        message = get_binding_error(claim)
        if message is not None:
            return error_status(message)
        if not is_ready_for_binding(claim):
            is_timed_out = is_binding_timed_out(claim, timeout, now())
            return error_status(f"device binding timeout: claim={claim.metadata.name}") if is_timed_out else None
    return SUCCESS


def get_allocated_devices(claims: Sequence[ResourceClaim]) -> tuple[tuple[str, bool], ...]:
    """Return the driver of each allocated device, and whether the device has binding conditions."""
    return tuple(
        (result.driver, bool(result.binding_conditions))
        for claim in claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    )
