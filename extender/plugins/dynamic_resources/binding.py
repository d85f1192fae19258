"""Build the API calls that bind a pod's claims, and check the binding conditions of their devices.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim,
DynamicResources.PreBind (1.36).
"""

from collections.abc import Callable, Sequence

from extender.api.kinds.devices import ResourceClaim
from extender.cache.snapshot import Snapshot
from extender.dra.allocated_devices import AllocatedDevices
from extender.framework.api_plan import ApiCall
from extender.framework.status import SUCCESS, Status, error_status
from extender.plugins.dynamic_resources.api_calls import bind_claim
from extender.plugins.dynamic_resources.pod_claims import (
    get_binding_error,
    is_binding_timed_out,
    is_ready_for_binding,
    is_reserved_for_pod,
)
from extender.plugins.dynamic_resources.state import StateData


def bind_claims(
    state_data: StateData,
    snapshot: Snapshot,
    now: float | None,
    allocated_devices: AllocatedDevices,
    *,
    workload_claims: bool,
) -> tuple[list[ApiCall], list[ResourceClaim]] | str:
    """Return the API calls that bind the pod's claims, and the bound claims; or an error message.

    Args:
        state_data: the state, with the results of Reserve; the bound claims are stored in it.
        snapshot: a snapshot with the current claims.
        now: the timestamp of allocations; None writes no timestamp.
        allocated_devices: the allocated devices, with the in-flight allocations of the claims.
        workload_claims: whether claims may be reserved for the pod's group.

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

    Args:
        claim_keys: the keys of the claims.
        snapshot: a snapshot with the claims.
        timeout: the timeout for binding conditions, in seconds.
        now: the function that returns the current time in seconds.

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
