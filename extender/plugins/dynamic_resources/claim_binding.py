"""The API calls that write the allocations of a pod's claims and reserve the claims for the pod.

Merge patches write the claims. Each contains the claim's resource version, so it fails if the claim has changed since:
first the version in the snapshot, then the version that the previous write returned. After a conflict the claim is read
again; unless it is deleted or allocated, it is written with its current version.

If the response to the patch with the allocation is lost, the patch is sent again until the outcome is known. Meanwhile
the devices stay in flight, so no other claim gets them. kube-scheduler frees them at once.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.37).
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec

from extender.api.codec import decode
from extender.api.kinds.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from extender.api.kinds.pod import ContainerExtendedResourceRequest, PodExtendedResourceClaimStatus
from extender.cache.snapshot import Snapshot
from extender.dra.allocated_devices import AllocatedDevices
from extender.framework.api_plan import ApiCall, ignore_version
from extender.plugins.dynamic_resources.api_calls import CLAIM_KIND, FINALIZER, get_in_flight_key, to_builtins
from extender.plugins.dynamic_resources.pod_claims import is_reserved_for_pod, make_pod_consumer
from extender.plugins.dynamic_resources.state import SPECIAL_CLAIM_IN_MEM_NAME, StateData

_NAME_SUFFIX_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_MAX_NAME_LENGTH: Final = 63
_MAX_GENERATE_NAME_LENGTH: Final = 253


def bind_claim(
    state_data: StateData, index: int, now: float | None, allocated_devices: AllocatedDevices
) -> tuple[tuple[ApiCall, ...], ResourceClaim]:
    """Return the calls that write a claim's allocation and reserve the claim, and the resulting claim.

    *index* is that of the claim, and *state_data* has the results of Reserve. Without *now*, no timestamp is written.
    When the claim is written, its in-flight allocation in *allocated_devices* is marked as written.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.37).
    """
    claim, allocation = state_data.claims[index], state_data.allocation_results.get(index)
    in_flight_key = get_in_flight_key(claim, state_data.pod)
    is_new_claim = claim.metadata.name == SPECIAL_CLAIM_IN_MEM_NAME
    if is_new_claim:
        claim = _name_extended_resource_claim(state_data, claim)
    is_user_claim = index < len(state_data.consumers)
    consumer = state_data.consumers[index] if is_user_claim else make_pod_consumer(state_data.pod)
    binding = _ClaimBinding(claim, allocation, consumer, now)
    bound_claim = binding.update_bodies(claim)
    on_written = partial(allocated_devices.mark_written, in_flight_key, claim.key, is_new_claim=is_new_claim)
    if not is_new_claim and bound_claim.status.allocation is claim.status.allocation:
        return (_make_reservation_patch(claim, consumer, on_written),), bound_claim
    status_call = replace(binding.make_status_call(), on_written=on_written)
    if is_new_claim:
        create_call = replace(_make_create_call(claim), on_written=binding.set_version)
        if not _get_mappings(state_data):
            return (create_call, status_call), bound_claim
        return (create_call, status_call, _make_extended_resource_status_patch(state_data, claim)), bound_claim
    if allocation is None or FINALIZER in claim.metadata.finalizers:
        return (status_call,), bound_claim
    return (binding.make_finalizer_call(), status_call), bound_claim


@dataclass(frozen=True, slots=True)
class _ClaimBinding:
    """The calls that write an allocation and a reservation. After a conflict, they change to fit the current claim.

    Attributes:
        claim: the claim; without a uid if it is not created yet.
        allocation: the allocation to write; None if the claim is allocated already.
        consumer: the pod or pod group to add to `reservedFor`.
        now: the timestamp of the allocation in seconds; None for no timestamp.
        finalizer_body: the body of the call that adds the finalizer.
        status_body: the body of the call that writes the status.
    """

    claim: ResourceClaim
    allocation: AllocationResult | None
    consumer: ResourceClaimConsumerReference
    now: float | None
    finalizer_body: dict[str, Any] = field(default_factory=dict)
    status_body: dict[str, Any] = field(default_factory=dict)

    def update_bodies(self, claim: ResourceClaim) -> ResourceClaim:
        """Make the bodies for the current *claim*. Return the claim with its allocation and reservation."""
        meta, status = claim.metadata, claim.status
        allocation = _add_timestamp(self.allocation or status.allocation, self.now)
        status = msgspec.structs.replace(
            status, allocation=allocation, reserved_for=(*status.reserved_for, self.consumer)
        )
        version = {"uid": meta.uid, "resourceVersion": meta.resource_version} if meta.uid else {}
        finalizers = [name for name in meta.finalizers if name != FINALIZER]
        self.finalizer_body["metadata"] = {**version, "finalizers": [*finalizers, FINALIZER]}
        self.status_body["metadata"] = version
        self.status_body["status"] = {
            "reservedFor": to_builtins(status.reserved_for),
            **({} if allocation is None else {"allocation": to_builtins(allocation)}),
        }
        return msgspec.structs.replace(claim, status=status)

    def set_version(self, resource_version: str) -> None:
        """Write the status of the claim with *resource_version*."""
        self.status_body["metadata"]["resourceVersion"] = resource_version

    def make_finalizer_call(self) -> ApiCall:
        meta = self.claim.metadata
        call = ApiCall("patch", CLAIM_KIND, meta.namespace, meta.name, self.finalizer_body)
        purpose = f"add finalizer to claim {self.claim.key}"
        return replace(call, on_written=self.set_version, on_conflict=self._read_again, purpose=purpose)

    def make_status_call(self) -> ApiCall:
        meta = self.claim.metadata
        call = ApiCall("patch", CLAIM_KIND, meta.namespace, meta.name, self.status_body, "status", is_resent=True)
        added = "reservation" if self.allocation is None else "allocation and reservation"
        return replace(call, on_conflict=self._restore_finalizer, purpose=f"add {added} to claim {self.claim.key}")

    def _read_again(self, current_object: bytes) -> tuple[ApiCall, ...] | str:
        current = decode(current_object, ResourceClaim)
        original = self.claim if self.claim.metadata.uid else current
        message = _get_claim_conflict(original, current, is_new_allocation=self.allocation is not None)
        if message is not None:
            return message
        self.update_bodies(current)
        return ()

    def _restore_finalizer(self, current_object: bytes) -> tuple[ApiCall, ...] | str:
        """Read the claim again. The controller of claims may have removed the finalizer after a deallocation."""
        result = self._read_again(current_object)
        return result if isinstance(result, str) or self.allocation is None else (self.make_finalizer_call(),)


def _make_reservation_patch(
    claim: ResourceClaim, consumer: ResourceClaimConsumerReference, on_written: Callable[[str], None]
) -> ApiCall:
    """Return the call that adds *consumer* to `reservedFor` of an allocated claim.

    It has no resource version, because other pods may be reserved at the same time. kube-scheduler reads the claim
    again after a conflict. The API server rejects the call if the claim is not allocated any more.
    """
    meta = claim.metadata
    body = {"metadata": {"uid": meta.uid}, "status": {"reservedFor": [to_builtins(consumer)]}}
    call = ApiCall("patch", CLAIM_KIND, meta.namespace, meta.name, body, "status", strategic=True)
    return replace(call, on_written=on_written, is_resent=True, purpose=f"add reservation to claim {claim.key}")


def _add_timestamp(allocation: AllocationResult | None, now: float | None) -> AllocationResult | None:
    """Return *allocation* with the timestamp *now*, unless it has a timestamp already."""
    if allocation is None or allocation.allocation_timestamp is not None or now is None:
        return allocation
    return msgspec.structs.replace(allocation, allocation_timestamp=datetime.fromtimestamp(int(now), UTC))


def _name_extended_resource_claim(state_data: StateData, claim: ResourceClaim) -> ResourceClaim:
    """Return the claim for extended resources with the requests for the node and a generated name."""
    request = state_data.reserved_request
    request_claim = (request.extended_resource_claim if request is not None else None) or claim
    prefix = f"{state_data.pod.metadata.name}-extended-resources-"
    name = prefix[: _MAX_NAME_LENGTH - 5] + "".join(secrets.choice(_NAME_SUFFIX_CHARACTERS) for _ in range(5))
    metadata = msgspec.structs.replace(
        request_claim.metadata,
        name=name,
        generate_name=prefix[:_MAX_GENERATE_NAME_LENGTH],  # kube-scheduler leaves the name to the API server
        finalizers=(FINALIZER,),
    )
    return msgspec.structs.replace(request_claim, metadata=metadata)


def _make_create_call(claim: ResourceClaim) -> ApiCall:
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": CLAIM_KIND,
        "metadata": to_builtins(claim.metadata),
        "spec": to_builtins(claim.spec),
    }
    # kube-scheduler leaves the name to the API server, so its message has none.
    purpose = f"create claim for extended resources {claim.metadata.namespace}/"
    return ApiCall("create", CLAIM_KIND, claim.metadata.namespace, claim.metadata.name, body, purpose=purpose)


def _get_mappings(state_data: StateData) -> tuple[ContainerExtendedResourceRequest, ...]:
    """Return the device requests of containers on the node; empty if a device plugin serves the extended resources."""
    request = state_data.reserved_request
    extended_requests = request.extended_requests if request is not None else None
    return extended_requests.mappings if extended_requests is not None else ()


def find_mapping_error(state_data: StateData) -> str | None:
    """Return why PreBind fails after it has written the claims; None if it does not.

    For a pod with claims, a claim for extended resources is created even if a device plugin serves them on the node.
    Its status cannot be written, so the pod is never bound there.

    Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
    DynamicResources.patchPodExtendedResourceClaimStatus (1.37).
    """
    if state_data.extended_resource_claim is None or state_data.extended_claim_exists:
        return None
    index = len(state_data.claims) - 1
    if index not in state_data.bound_claims or _get_mappings(state_data):
        return None
    return f"nil or empty request mappings, no update of pod {state_data.pod.key} ExtendedResourceClaimStatus"


def _make_extended_resource_status_patch(state_data: StateData, claim: ResourceClaim) -> ApiCall:
    """Return the call that writes `extendedResourceClaimStatus`: the claim and the device requests of containers."""
    mappings, name = _get_mappings(state_data), claim.metadata.name
    status = PodExtendedResourceClaimStatus(request_mappings=mappings, resource_claim_name=name)
    meta = state_data.pod.metadata
    body = {"metadata": {"uid": meta.uid}, "status": {"extendedResourceClaimStatus": to_builtins(status)}}
    purpose = f"update pod {state_data.pod.key} ExtendedResourceClaimStatus"
    return ApiCall("patch", "Pod", meta.namespace, meta.name, body, "status", purpose=purpose)


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

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.37).
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
            if is_reserved_for_pod(claim, state_data.pod):  # Unreserve may have changed it since then
                calls.append(_make_reservation_patch(claim, make_pod_consumer(state_data.pod), ignore_version))
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

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.bindClaim (1.37).
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
