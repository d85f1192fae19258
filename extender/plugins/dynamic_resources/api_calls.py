"""The API calls that bind, unreserve, deallocate and delete claims, and the check that bound devices are ready.

Merge patches write the claims. Each contains the claim's resource version, so it fails if the claim has changed since:
first the version in the snapshot, then the version that the previous write returned. A strategic merge patch without a
version removes a pod from `reservedFor`.

If the response to the patch with the allocation is lost, the patch is sent again until the outcome is known. Meanwhile
the devices stay in flight, so no other claim gets them. kube-scheduler frees them at once.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PostFilter (1.36).
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec

from extender.api.kinds.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from extender.api.kinds.meta import ObjectMeta, OwnerReference
from extender.api.kinds.pod import NodeAllocatableResourceClaimStatus, Pod, PodExtendedResourceClaimStatus
from extender.cache.snapshot import Snapshot
from extender.dra.allocated_devices import EXTENDED_RESOURCE_CLAIM_ANNOTATION, AllocatedDevices
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.status import SUCCESS, Status, error_status
from extender.plugins.dynamic_resources.pod_claims import (
    get_binding_error,
    is_binding_timed_out,
    is_ready_for_binding,
    is_reserved_for_pod,
    is_reserved_for_pod_group,
    make_pod_consumer,
)
from extender.plugins.dynamic_resources.state import SPECIAL_CLAIM_IN_MEM_NAME, StateData

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_CLAIM_KIND: Final = "ResourceClaim"
_NAME_SUFFIX_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_MAX_NAME_LENGTH: Final = 63


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
    body = {"status": {"reservedFor": _to_builtins(remaining_consumers)}}
    return ApiPlan((_make_claim_patch(claim, body, subresource="status"),))


def _copy_with_consumer(claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> ResourceClaim:
    status = msgspec.structs.replace(claim.status, reserved_for=(consumer,))
    return msgspec.structs.replace(claim, status=status)


def plan_deletion(claim: ResourceClaim) -> ApiPlan:
    """Return the plan that removes the finalizer of *claim* and deletes the claim."""
    remaining_finalizers = [name for name in claim.metadata.finalizers if name != FINALIZER]
    meta = claim.metadata
    patch = _make_claim_patch(claim, {"metadata": {"finalizers": remaining_finalizers}})
    return ApiPlan((patch, ApiCall("delete", _CLAIM_KIND, meta.namespace, meta.name, {})))


def make_undo_calls(state_data: StateData, index: int) -> tuple[ApiCall, ...]:
    """Return the calls that undo PreBind for a claim.

    They remove the pod from `reservedFor`, or delete the claim that was created for its extended resources.
    """
    claim, pod = state_data.bound_claims.get(index, state_data.claims[index]), state_data.pod
    meta = claim.metadata
    if state_data.claims[index] is state_data.extended_resource_claim:
        if meta.name == SPECIAL_CLAIM_IN_MEM_NAME:
            return ()
        patch = ApiCall("patch", _CLAIM_KIND, meta.namespace, meta.name, {"metadata": {"finalizers": []}})
        return patch, ApiCall("delete", _CLAIM_KIND, meta.namespace, meta.name, {})
    if claim.status.allocation is None or not is_reserved_for_pod(claim, pod):
        return ()
    body = {"metadata": {"uid": meta.uid}, "status": {"reservedFor": [{"$patch": "delete", "uid": pod.metadata.uid}]}}
    return (ApiCall("patch", _CLAIM_KIND, meta.namespace, meta.name, body, "status", strategic=True),)


def make_node_allocatable_statuses_patch(pod: Pod, statuses: Sequence[NodeAllocatableResourceClaimStatus]) -> ApiCall:
    """Return the call that writes *statuses* to the pod's status. Empty *statuses* clear the field.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.36).
    """
    meta = pod.metadata
    body = {
        "metadata": {"uid": meta.uid},
        "status": {"nodeAllocatableResourceClaimStatuses": _to_builtins(statuses) or None},
    }
    return ApiCall("patch", "Pod", meta.namespace, meta.name, body, "status")


def _to_builtins(value: Any) -> Any:
    """Return *value* as JSON objects and lists."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _make_claim_patch(claim: ResourceClaim, body: dict[str, Any], *, subresource: str = "") -> ApiCall:
    meta = claim.metadata
    metadata = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    body = {**body, "metadata": {**metadata, **body.get("metadata", {})}}
    return ApiCall("patch", _CLAIM_KIND, meta.namespace, meta.name, body, subresource)


def bind_claim(
    state_data: StateData, index: int, now: float | None, allocated_devices: AllocatedDevices
) -> tuple[tuple[ApiCall, ...], ResourceClaim]:
    """Return the calls that write a claim's allocation and reserve the claim, and the resulting claim.

    *index* is that of the claim, and *state_data* has the results of Reserve. Without *now*, no timestamp is written.
    When the claim is written, its in-flight allocation in *allocated_devices* is marked as written.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.36).
    """
    claim, allocation = state_data.claims[index], state_data.allocation_results.get(index)
    calls: list[ApiCall] = []
    claim_exists = claim.metadata.name != SPECIAL_CLAIM_IN_MEM_NAME
    in_flight_key = get_in_flight_key(claim, state_data.pod)
    if not claim_exists:
        claim = _name_extended_resource_claim(state_data, claim)
        calls.append(_make_create_call(claim))
    elif allocation is not None and FINALIZER not in claim.metadata.finalizers:
        finalizers = [*claim.metadata.finalizers, FINALIZER]
        calls.append(_make_claim_patch(claim, {"metadata": {"finalizers": finalizers}}))
    status = claim.status
    allocation_to_write = _add_timestamp(allocation or status.allocation, now)
    is_user_claim = index < len(state_data.consumers)
    consumer = state_data.consumers[index] if is_user_claim else make_pod_consumer(state_data.pod)
    status = msgspec.structs.replace(
        status, allocation=allocation_to_write, reserved_for=(*status.reserved_for, consumer)
    )
    bound_claim = msgspec.structs.replace(claim, status=status)
    on_written = partial(allocated_devices.mark_written, in_flight_key, claim.key, is_new_claim=not claim_exists)
    if claim_exists and allocation_to_write is claim.status.allocation:
        return (_make_reservation_patch(claim, consumer, on_written),), bound_claim
    meta, metadata = claim.metadata, dict[str, str]()
    if claim_exists:
        metadata = {"uid": meta.uid, "resourceVersion": meta.resource_version}

    def set_version(resource_version: str) -> None:
        metadata["resourceVersion"] = resource_version

    calls = [replace(call, on_written=set_version) for call in calls]
    body = {
        "metadata": metadata,
        "status": {"reservedFor": _to_builtins(status.reserved_for), **_make_allocation_patch(allocation_to_write)},
    }
    calls.append(
        ApiCall("patch", _CLAIM_KIND, meta.namespace, meta.name, body, "status", on_written=on_written, is_resent=True)
    )
    if not claim_exists:
        calls.append(_make_extended_resource_status_patch(state_data, claim))
    return tuple(calls), bound_claim


def _make_reservation_patch(
    claim: ResourceClaim, consumer: ResourceClaimConsumerReference, on_written: Callable[[str], None]
) -> ApiCall:
    """Return the call that adds *consumer* to `reservedFor` of an allocated claim.

    It has no resource version, because other pods may be reserved at the same time. kube-scheduler reads the claim
    again after a conflict. The API server rejects the call if the claim is not allocated any more.
    """
    meta = claim.metadata
    body = {"metadata": {"uid": meta.uid}, "status": {"reservedFor": [_to_builtins(consumer)]}}
    call = ApiCall("patch", _CLAIM_KIND, meta.namespace, meta.name, body, "status", strategic=True)
    return replace(call, on_written=on_written, is_resent=True)


def _add_timestamp(allocation: AllocationResult | None, now: float | None) -> AllocationResult | None:
    """Return *allocation* with the timestamp *now*, unless it has a timestamp already."""
    if allocation is None or allocation.allocation_timestamp is not None or now is None:
        return allocation
    return msgspec.structs.replace(allocation, allocation_timestamp=datetime.fromtimestamp(int(now), UTC))


def _make_allocation_patch(allocation: AllocationResult | None) -> dict[str, Any]:
    return {} if allocation is None else {"allocation": _to_builtins(allocation)}


def _name_extended_resource_claim(state_data: StateData, claim: ResourceClaim) -> ResourceClaim:
    """Return the claim for extended resources with the requests for the node and a generated name."""
    request = state_data.reserved_request
    request_claim = (request.extended_resource_claim if request is not None else None) or claim
    prefix = f"{state_data.pod.metadata.name}-extended-resources-"[: _MAX_NAME_LENGTH - 5]
    name = prefix + "".join(secrets.choice(_NAME_SUFFIX_CHARACTERS) for _ in range(5))
    metadata = msgspec.structs.replace(request_claim.metadata, name=name, finalizers=(FINALIZER,))
    return msgspec.structs.replace(request_claim, metadata=metadata)


def _make_create_call(claim: ResourceClaim) -> ApiCall:
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": _CLAIM_KIND,
        "metadata": _to_builtins(claim.metadata),
        "spec": _to_builtins(claim.spec),
    }
    return ApiCall("create", _CLAIM_KIND, claim.metadata.namespace, claim.metadata.name, body)


def _make_extended_resource_status_patch(state_data: StateData, claim: ResourceClaim) -> ApiCall:
    """Return the call that writes `extendedResourceClaimStatus`: the claim and the device requests of containers."""
    request = state_data.reserved_request
    extended_requests = request.extended_requests if request is not None else None
    mappings = extended_requests.mappings if extended_requests is not None else ()
    status = PodExtendedResourceClaimStatus(request_mappings=mappings, resource_claim_name=claim.metadata.name)
    meta = state_data.pod.metadata
    body = {"metadata": {"uid": meta.uid}, "status": {"extendedResourceClaimStatus": _to_builtins(status)}}
    return ApiCall("patch", "Pod", meta.namespace, meta.name, body, "status")


def bind_claims(
    state_data: StateData,
    snapshot: Snapshot,
    now: float | None,
    allocated_devices: AllocatedDevices,
    *,
    workload_claims: bool,
) -> tuple[list[ApiCall], list[ResourceClaim]] | str:
    """Return the API calls that bind the pod's claims, and the bound claims; or an error message.

    *state_data* has the results of Reserve; the bound claims are stored in it. Without *now*, no timestamps are
    written. With *workload_claims*, claims may be reserved for the group of the pod.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.36).
    """
    calls: list[ApiCall] = []
    claims: list[ResourceClaim] = []
    for index, claim in enumerate(state_data.claims):
        is_extended_resource_claim = claim is state_data.extended_resource_claim
        is_unused = (
            is_extended_resource_claim
            and index not in state_data.allocation_results
            and not claim.spec.devices.requests
        )
        if is_unused or is_reserved_for_pod(claim, state_data.pod, workload_claims=workload_claims):
            claims.append(claim)
            continue
        current_claim = claim if is_extended_resource_claim else snapshot.get_object(ResourceClaim, claim.key)
        message = _get_claim_conflict(claim, current_claim, is_new_allocation=index in state_data.allocation_results)
        if message is not None:
            return message
        claim_calls, bound_claim = bind_claim(state_data, index, now, allocated_devices)
        calls += claim_calls
        claims.append(bound_claim)
        state_data.bound_claims[index] = bound_claim
    return calls, claims


def _get_claim_conflict(
    original: ResourceClaim, current: ResourceClaim | None, *, is_new_allocation: bool
) -> str | None:
    """Return an error message if the claim was deleted, allocated or deallocated since PreFilter, else None.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.36).
    """
    if (
        current is None
        or current.metadata.uid != original.metadata.uid
        or current.metadata.deletion_timestamp is not None
    ):
        return f"claim {original.key} got deleted in the meantime"
    if is_new_allocation and current.status.allocation is not None:
        return f"claim {original.key} got allocated elsewhere in the meantime"
    if not is_new_allocation and current.status.allocation is None:
        return f"claim {original.key} got deallocated elsewhere in the meantime"
    return None


def check_bindings(
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
