"""The API calls that follow from a decision: an allocation is written down, given up, or deleted. Source: B115, B119.

Writes to claims are merge patches. The first of a claim carries the version it was made from, so that it fails if the
claim has changed since; the one after it cannot, since the first made a new version. Taking a pod off a claim is a
strategic patch without a version.
"""

import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from extender.allocation.allocated import EXTENDED_CLAIM
from extender.framework.points import Plan, Write
from extender.objects.devices import AllocationResult, ResourceClaim
from extender.objects.meta import ObjectMeta, OwnerReference
from extender.objects.pod import NodeAllocatableResourceClaimStatus, Pod, PodExtendedResourceClaimStatus
from extender.plugins.dynamic_resources.claims import is_reserved
from extender.plugins.dynamic_resources.cycle import UNNAMED, Cycle
from extender.plugins.dynamic_resources.groups import is_reserved_for_group, pod_consumer

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_KIND: Final = "ResourceClaim"
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_NAME: Final = 63


def unnamed_claim(pod: Pod) -> ResourceClaim:
    """The claim for the extended resources of *pod*, before it is known what has to be claimed. Source: B114."""
    meta = pod.metadata
    owner = OwnerReference(api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            namespace=meta.namespace,
            name=UNNAMED,
            owner_references=(owner,),
            annotations={EXTENDED_CLAIM: "true"},
        )
    )


def promise_key(claim: ResourceClaim, pod: Pod) -> str:
    """What an allocation in flight is kept under: the claim, or the pod of a claim that does not exist yet."""
    return pod.metadata.uid if claim.metadata.name == UNNAMED else claim.metadata.uid


def released(claim: ResourceClaim) -> Plan:
    """Give up the allocation of *claim*."""
    status = {"allocation": None, "reservedFor": None, "devices": None}
    return Plan((_patch(claim, {"status": status}, versioned=True, subresource="status"),))


def unreserved(claim: ResourceClaim, pod: Pod) -> Plan:
    """Take the group of *pod* off those *claim* is reserved for."""
    alone = msgspec.structs.replace
    kept = [
        each
        for each in claim.status.reserved_for
        if not is_reserved_for_group(alone(claim, status=alone(claim.status, reserved_for=(each,))), pod)
    ]
    body = {"status": {"reservedFor": _plain(kept)}}
    return Plan((_patch(claim, body, versioned=True, subresource="status"),))


def deleted(claim: ResourceClaim) -> Plan:
    """Delete *claim*, its finalizer first."""
    kept = [name for name in claim.metadata.finalizers if name != FINALIZER]
    meta = claim.metadata
    patch = _patch(claim, {"metadata": {"finalizers": kept}}, versioned=True)
    return Plan((patch, Write("delete", _KIND, meta.namespace, meta.name, {})))


def taken_back(cycle: Cycle, number: int) -> tuple[Write, ...]:
    """Of a claim that is reserved for the pod, the pod is taken off; one that was made for it is deleted."""
    claim, pod = cycle.bound.get(number, cycle.claims[number]), cycle.pod
    meta = claim.metadata
    if cycle.claims[number] is cycle.special:
        if meta.name == UNNAMED:
            return ()
        patch = Write("patch", _KIND, meta.namespace, meta.name, {"metadata": {"finalizers": []}})
        return patch, Write("delete", _KIND, meta.namespace, meta.name, {})
    if claim.status.allocation is None or not is_reserved(claim, pod):
        return ()
    body = {"metadata": {"uid": meta.uid}, "status": {"reservedFor": [{"$patch": "delete", "uid": pod.metadata.uid}]}}
    return (Write("patch", _KIND, meta.namespace, meta.name, body, "status", strategic=True),)


def taken(pod: Pod, statuses: Sequence[NodeAllocatableResourceClaimStatus]) -> Write:
    """The pod is told what it takes of its node through claims; nothing clears that. Source: H063."""
    meta = pod.metadata
    body = {"metadata": {"uid": meta.uid}, "status": {"nodeAllocatableResourceClaimStatuses": _plain(statuses) or None}}
    return Write("patch", "Pod", meta.namespace, meta.name, body, "status")


def _plain(thing: Any) -> Any:
    """*thing* as JSON has it: objects and lists."""
    return msgspec.json.decode(msgspec.json.encode(thing))


def _patch(claim: ResourceClaim, body: dict[str, Any], *, versioned: bool, subresource: str = "") -> Write:
    meta = claim.metadata
    known = {"uid": meta.uid} | ({"resourceVersion": meta.resource_version} if versioned else {})
    body = {**body, "metadata": {**known, **body.get("metadata", {})}}
    return Write("patch", _KIND, meta.namespace, meta.name, body, subresource)


def bound(cycle: Cycle, number: int, now: float | None) -> tuple[tuple[Write, ...], ResourceClaim]:
    """The writes that reserve a claim for the pod, its allocation with it, and the claim as it is then.

    Args:
        cycle: with the results of Reserve.
        number: of the claim.
        now: for the time stamp of the allocation; None leaves it out.
    """
    claim, allocation = cycle.claims[number], cycle.results.get(number)
    writes: list[Write] = []
    exists = claim.metadata.name != UNNAMED
    if not exists:
        claim = _named(cycle, claim)
        writes.append(_creation(claim))
    elif allocation is not None and FINALIZER not in claim.metadata.finalizers:
        finalizers = [*claim.metadata.finalizers, FINALIZER]
        writes.append(_patch(claim, {"metadata": {"finalizers": finalizers}}, versioned=True))
    status = claim.status
    given = allocation or status.allocation
    if given is not None and given.allocation_timestamp is None and now is not None:
        given = msgspec.structs.replace(given, allocation_timestamp=datetime.fromtimestamp(int(now), UTC))
    own = number < len(cycle.consumers)
    consumer = cycle.consumers[number] if own else pod_consumer(cycle.pod)
    status = msgspec.structs.replace(status, allocation=given, reserved_for=(*status.reserved_for, consumer))
    body = {"status": {"reservedFor": _plain(status.reserved_for), **_allocation(given)}}
    if exists:
        writes.append(_patch(claim, body, versioned=not writes, subresource="status"))
    else:
        writes.append(Write("patch", _KIND, claim.metadata.namespace, claim.metadata.name, body, "status"))
        writes.append(_mapped(cycle, claim))
    return tuple(writes), msgspec.structs.replace(claim, status=status)


def _allocation(given: AllocationResult | None) -> dict[str, Any]:
    return {} if given is None else {"allocation": _plain(given)}


def _named(cycle: Cycle, claim: ResourceClaim) -> ResourceClaim:
    """The claim for extended resources as it is on the node, with a name like those the API server makes."""
    made = cycle.reserved.special if cycle.reserved is not None and cycle.reserved.special is not None else claim
    start = f"{cycle.pod.metadata.name}-extended-resources-"[: _LONGEST_NAME - 5]
    name = start + "".join(secrets.choice(_SUFFIX) for _ in range(5))
    metadata = msgspec.structs.replace(made.metadata, name=name, finalizers=(FINALIZER,))
    return msgspec.structs.replace(made, metadata=metadata)


def _creation(claim: ResourceClaim) -> Write:
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": _KIND,
        "metadata": _plain(claim.metadata),
        "spec": _plain(claim.spec),
    }
    return Write("create", _KIND, claim.metadata.namespace, claim.metadata.name, body)


def _mapped(cycle: Cycle, claim: ResourceClaim) -> Write:
    """The pod is told which request serves which of its containers."""
    served = cycle.reserved.served if cycle.reserved is not None else None
    mappings = served.mappings if served is not None else ()
    status = PodExtendedResourceClaimStatus(request_mappings=mappings, resource_claim_name=claim.metadata.name)
    meta = cycle.pod.metadata
    body = {"metadata": {"uid": meta.uid}, "status": {"extendedResourceClaimStatus": _plain(status)}}
    return Write("patch", "Pod", meta.namespace, meta.name, body, "status")


def all_of(parts: Iterable[tuple[Write, ...]]) -> tuple[Write, ...]:
    """Writes one after the other."""
    return tuple(write for part in parts for write in part)
