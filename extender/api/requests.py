"""Resource requests of a pod, in the variants that the scheduler computes.

| function | upstream caller |
|---|---|
| `pod_requests`, `assigned_pod_nonzero_requests` | NodeInfo, for assigned pods |
| `incoming_pod_requests` | NodeResourcesFit PreFilter and Filter, for the pod to schedule |
| `fit_score_requests` | the NodeResourcesFit scorer, for the pod to schedule |
| `pod_requests` | NodeResourcesBalancedAllocation, for the pod to schedule |

Results are in base units: milli-CPU for cpu, bytes or counts for all other resources.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from extender.api import quantity
from extender.api.container_requests import (
    Quantities,
    add_resources,
    apply_default_requests,
    determine_effective_requests,
    determine_effective_sum,
    is_pod_resize_infeasible,
    parse_resources,
    sum_effective_requests,
    sum_spec_requests,
)
from extender.api.kinds.meta import find_condition
from extender.api.kinds.pod import NodeAllocatableResourceClaimStatus, Pod
from extender.api.label_syntax import is_qualified_name
from extender.api.quantity import Quantity

DEFAULT_MILLI_CPU: Final = 100
"""The cpu request that scoring assumes for a container without one, in milli-CPU."""
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
"""The memory request that scoring assumes for a container without one, in bytes."""

_DEFAULT_REQUESTS: Final = {
    "cpu": Quantity(DEFAULT_MILLI_CPU, -3, is_int64_amount=True),
    "memory": Quantity(DEFAULT_MEMORY, 0, is_int64_amount=True),
}
_NO_DEFAULT_REQUESTS: Final[Mapping[str, Quantity]] = {}

_MAX_CACHED_REQUESTS: Final = 32
"""Limit of the requests of all containers whose sum is cached. Those of a thousand containers take half a MB."""


def is_extended_resource(name: str) -> bool:
    """Return whether *name* is an extended resource, such as `example.com/gpu`.

    Its prefix must not end with `kubernetes.io` and must not begin with `requests.`.

    Source: pkg/scheduler/util/utils.go, IsScalarResourceName (1.36).
    """
    if "/" not in name or is_prefixed_native_resource(name) or name.startswith("requests."):
        return False
    return is_qualified_name(f"requests.{name}")


def is_prefixed_native_resource(name: str) -> bool:
    """Return whether a resource name contains `kubernetes.io/`.

    Source: pkg/scheduler/util/utils.go, IsScalarResourceName (1.36).
    """
    return "kubernetes.io/" in name


def is_hugepages_resource(name: str) -> bool:
    """Return whether a resource is huge pages of any size.

    Source: pkg/scheduler/util/utils.go, IsScalarResourceName (1.36).
    """
    return name.startswith("hugepages-")


def is_attachable_volumes_resource(name: str) -> bool:
    """Return whether a resource is a limit of attachable volumes.

    Source: pkg/scheduler/util/utils.go, IsScalarResourceName (1.36).
    """
    return name.startswith("attachable-volumes-")


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Return whether NodeInfo counts a resource in ScalarResources.

    Other resources, such as cpu and memory, have fields of their own or are not counted.

    Source: pkg/scheduler/util/utils.go, IsScalarResourceName (1.36).
    """
    return (
        is_extended_resource(name)
        or is_hugepages_resource(name)
        or is_prefixed_native_resource(name)
        or is_attachable_volumes_resource(name)
    )


def is_dra_extended_resource(name: str) -> bool:
    """Return whether devices can satisfy a resource: it is extended or names a device class.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA (1.36).
    """
    return is_extended_resource(name) or name.startswith("deviceclass.resource.kubernetes.io/")


def is_pod_level_resource(name: str) -> bool:
    """Return whether a resource can be requested at pod level: cpu, memory or huge pages.

    Source: component-helpers/resource/helpers.go, IsSupportedPodLevelResource (1.36).
    """
    return name in {"cpu", "memory"} or is_hugepages_resource(name)


def has_pod_level_requests(pod: Pod) -> bool:
    """Return whether the pod has pod-level requests.

    Source: component-helpers/resource/helpers.go, IsPodLevelRequestsSet (1.36).
    """
    return pod.spec.resources is not None and any(map(is_pod_level_resource, pod.spec.resources.requests))


class PodResourcesOptions(NamedTuple):
    """Sources of requests in addition to the containers of the spec. Each option follows a feature gate or the release.

    Attributes:
        use_status_resources: count resources in the pod status (gate InPlacePodVerticalScaling).
        pod_level_resources: count pod-level requests (gate PodLevelResources).
        in_place_pod_level_resize: with `use_status_resources`, count pod-level resources in the status (gate
            InPlacePodLevelResourcesVerticalScaling).
        dra_node_allocatable: count node resources allocated through claims (gate DRANodeAllocatableResources).
        maximum_of_sums: with `use_status_resources`, take the maximum of three sums over the containers: the sums of
            their spec requests, allocated requests and actuated requests. Otherwise take the sum of each container's
            maximum.

    Source: component-helpers/resource/helpers.go, PodResourcesOptions;
    pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
    """

    use_status_resources: bool = True
    pod_level_resources: bool = True
    in_place_pod_level_resize: bool = True
    dra_node_allocatable: bool = False
    maximum_of_sums: bool = True


DEFAULT_POD_RESOURCES_OPTIONS: Final = PodResourcesOptions()
"""The options with the default feature gates."""


def incoming_pod_requests(pod: Pod) -> dict[str, int]:
    """Return the requests of the pod to schedule, from its spec alone. Upstream's NodeResourcesFit PreFilter uses them.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go, computePodResourceRequest (1.36).
    """
    return pod_requests(pod, PodResourcesOptions(use_status_resources=False))


def fit_score_requests(pod: Pod) -> dict[str, int]:
    """Return the requests of the pod to schedule for the NodeResourcesFit scorer.

    Containers without a cpu or memory request get the default requests. Pod-level requests and status are ignored.

    Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
    resourceAllocationScorer.calculateNodeAllocatableRequest; pkg/scheduler/framework/plugins/noderesources/fit.go,
    NewFit (1.36).
    """
    return _to_base_units(
        _get_pod_quantities(
            pod, PodResourcesOptions(use_status_resources=False, pod_level_resources=False), _DEFAULT_REQUESTS
        )
    )


def pod_requests(pod: Pod, options: PodResourcesOptions = DEFAULT_POD_RESOURCES_OPTIONS) -> dict[str, int]:
    """Return the requests of a pod by resource. Upstream adds and subtracts those of assigned pods in NodeInfo.

    Returns:
        The requested amounts of cpu, memory, ephemeral-storage and scalar resources, in base units. Requests of 0 are
        included.

    Raises:
        ValueError: a request is not a quantity.

    Source: pkg/scheduler/framework/types.go, NodeInfo; pkg/scheduler/util/utils.go, IsScalarResourceName;
    component-helpers/resource/helpers.go, PodRequests, determineEffectiveRequests (1.36).
    """
    return _to_base_units(_get_pod_quantities(pod, options))


def assigned_pod_nonzero_requests(
    pod: Pod, options: PodResourcesOptions = DEFAULT_POD_RESOURCES_OPTIONS
) -> tuple[int, int]:
    """Return the nonzero requests of an assigned pod as (milli-CPU, bytes of memory).

    Containers without a request get 100 milli-CPU or 200 MiB. If the pod has pod-level requests, only a resource that
    neither the pod nor a container requests gets the default. NodeInfo.AddPod adds the result to NonZeroRequested.

    Source: pkg/scheduler/framework/types.go, NodeInfo; component-helpers/resource/helpers.go, PodRequests;
    pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
    resourceAllocationScorer.calculateNodeAllocatableRequest (1.36).
    """
    defaults: Mapping[str, Quantity] = _DEFAULT_REQUESTS
    if options.pod_level_resources and has_pod_level_requests(pod):
        requests = _get_pod_quantities(pod, options)
        defaults = {name: amount for name, amount in _DEFAULT_REQUESTS.items() if name not in requests}
    quantities = _get_pod_quantities(pod, options, defaults)
    return (
        quantity.milli_value(quantities.get("cpu", quantity.ZERO)),
        quantity.value(quantities.get("memory", quantity.ZERO)),
    )


def requests_more(pod: Pod, other: Pod, options: PodResourcesOptions) -> bool:
    """Return whether *pod* requests more of a resource than *other*, or a resource that *other* does not request.

    Amounts are compared in thousandths of a unit, also bytes.

    Raises:
        ValueError: a request is not a quantity.

    Source: pkg/scheduler/framework/events.go, extractPodScaleDown, extractPodScaleUp (1.37).
    """
    if pod.spec is other.spec and pod.status is other.status:
        return False
    other_requests = _get_pod_quantities(other, options)
    return any(
        name not in other_requests or quantity.milli_value(amount) > quantity.milli_value(other_requests[name])
        for name, amount in _get_pod_quantities(pod, options).items()
    )


def _to_base_units(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    return {
        name: quantity.to_base_units(name, amount)
        for name, amount in quantities.items()
        if name in {"cpu", "memory", "ephemeral-storage"} or is_scalar_resource(name)
    }


def find_exceeded_pod_level_requests(pod: Pod) -> list[str]:
    """Return the sorted names of the resources whose pod-level request is below the sum over containers and claims."""
    pod_level = _get_pod_quantities(pod, PodResourcesOptions(use_status_resources=False, dra_node_allocatable=True))
    options = PodResourcesOptions(use_status_resources=False, pod_level_resources=False, dra_node_allocatable=True)
    totals = _get_pod_quantities(pod, options)
    return sorted(name for name, amount in totals.items() if name in pod_level and amount.exceeds(pod_level[name]))


def _get_pod_quantities(
    pod: Pod, options: PodResourcesOptions, defaults: Mapping[str, Quantity] = _NO_DEFAULT_REQUESTS
) -> Mapping[str, Quantity]:
    """Return the requests of a pod as quantities; callers must not change the mapping."""
    if not _has_only_app_container_requests(pod):
        return _sum_requests(pod, options, defaults)
    requests = tuple(tuple(container.resources.requests.items()) for container in pod.spec.containers)
    is_cached = sum(map(len, requests)) <= _MAX_CACHED_REQUESTS
    sum_requests = _sum_container_requests if is_cached else _sum_container_requests.__wrapped__
    return sum_requests(requests, with_defaults=bool(defaults))


@lru_cache(maxsize=4096)
def _sum_container_requests(requests: tuple[tuple[tuple[str, Any], ...], ...], *, with_defaults: bool) -> Quantities:
    """Return the sum of the requests of containers, cached because many pods have the same requests."""
    defaults = _DEFAULT_REQUESTS if with_defaults else _NO_DEFAULT_REQUESTS
    total: Quantities = {}
    for container_requests in requests:
        add_resources(total, apply_default_requests(parse_resources(dict(container_requests)), defaults))
    return total


def _has_only_app_container_requests(pod: Pod) -> bool:
    """Return whether the pod has no requests except those of its app containers, and they count in all releases."""
    spec, status = pod.spec, pod.status
    return not (
        spec.init_containers
        or spec.overhead
        or spec.resources
        or status.resources
        or status.allocated_resources
        or status.container_statuses
        or status.init_container_statuses
        or status.node_allocatable_resource_claim_statuses
        or is_pod_resize_infeasible(pod)
    )


def _add_claim_resources(total: Quantities, claim: NodeAllocatableResourceClaimStatus) -> None:
    """Add the node resources that a pod takes through *claim*.

    Source: component-helpers/resource/helpers.go, addDRANodeAllocatableClaimResources (1.37).
    """
    add_resources(total, parse_resources(claim.resources))
    for mapped in claim.mapping:
        add_resources(total, parse_resources({mapped.name: mapped.quantity} if mapped.quantity is not None else {}))
    for overhead in claim.overhead:
        per_container = [overhead.per_container] * len(claim.containers)
        for amount in (overhead.per_pod, *per_container):
            add_resources(total, parse_resources({} if amount is None else {overhead.name: amount}))


def _sum_requests(pod: Pod, options: PodResourcesOptions, defaults: Mapping[str, Quantity]) -> Quantities:
    claim_requests: Quantities = {}
    if options.dra_node_allocatable:
        for claim in pod.status.node_allocatable_resource_claim_statuses:
            _add_claim_resources(claim_requests, claim)
    uses_pod_status = options.use_status_resources and options.in_place_pod_level_resize
    if options.use_status_resources and options.maximum_of_sums:
        total = determine_effective_sum(pod, defaults, claim_requests, uses_pod_status=uses_pod_status)
    else:
        sum_requests = sum_effective_requests if options.use_status_resources else sum_spec_requests
        total = sum_requests(pod, defaults)
        add_resources(total, claim_requests)
    if options.pod_level_resources and has_pod_level_requests(pod):
        spec_requests = parse_resources(pod.spec.resources.requests if pod.spec.resources else {})
        effective_requests = spec_requests
        if uses_pod_status and pod.status.resources is not None:
            effective_requests = determine_effective_requests(
                pod,
                spec_requests,
                parse_resources(pod.status.resources.requests),
                parse_resources(pod.status.allocated_resources),
            )
        # Release 1.36 replaces only the resources of the spec. Later releases also replace those of the status.
        for name in effective_requests if options.maximum_of_sums else spec_requests:
            if is_pod_level_resource(name):
                total[name] = effective_requests.get(name, quantity.ZERO)
    add_resources(total, parse_resources(pod.spec.overhead))
    return total


def is_resize_deferred(pod: Pod) -> bool:
    """Return whether the kubelet deferred the resize of *pod*, because its node has too few free resources now.

    Source: component-helpers/resource/helpers.go, IsPodResizeDeferred (1.37).
    """
    condition = find_condition(pod.status.conditions, "PodResizePending")
    return condition is not None and condition.reason == "Deferred"
