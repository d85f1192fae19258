"""Resource requests of a pod, in the variants that the scheduler computes.

| function | upstream caller |
|---|---|
| `assigned_pod_requests`, `assigned_pod_nonzero_requests` | NodeInfo, for assigned pods |
| `incoming_pod_requests` | NodeResourcesFit PreFilter and Filter, for the pod to schedule |
| `fit_score_requests` | the NodeResourcesFit scorer, for the pod to schedule |
| `pod_requests` | NodeResourcesBalancedAllocation, for the pod to schedule |

Results are in base units: milli-CPU for cpu, bytes or counts for all other resources.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from extender.api import quantity
from extender.api.kinds.pod import Container, ContainerStatus, Pod
from extender.api.kinds.struct_base import ResourceList
from extender.api.matching import is_qualified_name
from extender.api.quantity import Quantity

Quantities = dict[str, Quantity]

DEFAULT_MILLI_CPU: Final = 100
"""The cpu request that scoring assumes for a container without one, in milli-CPU."""
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
"""The memory request that scoring assumes for a container without one, in bytes."""

_DEFAULT_REQUESTS: Final = {
    "cpu": Quantity(DEFAULT_MILLI_CPU, -3, small=True),
    "memory": Quantity(DEFAULT_MEMORY, 0, small=True),
}
_NO_DEFAULT_REQUESTS: Final[Mapping[str, Quantity]] = {}


def is_extended_resource(name: str) -> bool:
    """Return whether a resource is extended: its name has a domain prefix other than *kubernetes.io.

    Source: pkg/scheduler/util/utils.go, IsScalarResourceName (1.36).
    """
    if "/" not in name or is_prefixed_native_resource(name) or name.startswith("requests."):
        return False
    return is_qualified_name(f"requests.{name}")


def is_prefixed_native_resource(name: str) -> bool:
    """Return whether a resource name contains kubernetes.io/.

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
    """Return whether NodeInfo counts a resource as scalar, unlike cpu, memory, ephemeral-storage and pods.

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
    """Sources of requests in addition to the containers of the spec. Each option follows a feature gate.

    Attributes:
        use_status_resources: resources in the pod status (gate InPlacePodVerticalScaling).
        pod_level_resources: pod-level requests (gate PodLevelResources).
        in_place_pod_level_resize: with `use_status_resources`, pod-level resources in the status (gate
            InPlacePodLevelResourcesVerticalScaling).
        dra_node_allocatable: node resources allocated through claims (gate DRANodeAllocatableResources).

    Source: component-helpers/resource/helpers.go, PodResourcesOptions;
    pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
    """

    use_status_resources: bool = True
    pod_level_resources: bool = True
    in_place_pod_level_resize: bool = True
    dra_node_allocatable: bool = False


DEFAULT_POD_RESOURCES_OPTIONS: Final = PodResourcesOptions()
"""The options with the default feature gates."""


def assigned_pod_requests(pod: Pod, options: PodResourcesOptions = DEFAULT_POD_RESOURCES_OPTIONS) -> dict[str, int]:
    """Return the requests of an assigned pod: the maximum of its spec and its status.

    Used by NodeInfo.AddPod and RemovePod.

    Source: pkg/scheduler/framework/types.go, NodeInfo; pkg/scheduler/util/utils.go, IsScalarResourceName;
    component-helpers/resource/helpers.go, PodRequests, determineEffectiveRequests (1.36).
    """
    return pod_requests(pod, options)


def incoming_pod_requests(pod: Pod) -> dict[str, int]:
    """Return the requests of the pod to schedule, from its spec alone. Used by NodeResourcesFit PreFilter.

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


def pod_requests(pod: Pod, options: PodResourcesOptions) -> dict[str, int]:
    """Return the requests of a pod by resource.

    Returns:
        cpu, memory, ephemeral-storage and scalar resources that are requested, including requests of 0; in base units.

    Raises:
        ValueError: a request is not a quantity.

    Source: pkg/scheduler/util/utils.go, IsScalarResourceName; component-helpers/resource/helpers.go, PodRequests,
    determineEffectiveRequests (1.36).
    """
    return _to_base_units(_get_pod_quantities(pod, options))


def assigned_pod_nonzero_requests(
    pod: Pod, options: PodResourcesOptions = DEFAULT_POD_RESOURCES_OPTIONS
) -> tuple[int, int]:
    """Return the nonzero requests of an assigned pod as (milli-CPU, bytes of memory).

    Containers without a request get 100 milli-CPU or 200 MiB. If the pod has pod-level requests, only a resource that
    neither the pod nor a container requests gets the default. Used by NodeInfo.AddPod for NonZeroRequested.

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


def _to_base_units(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    return {
        name: quantity.to_base_units(name, amount)
        for name, amount in quantities.items()
        if name in {"cpu", "memory", "ephemeral-storage"} or is_scalar_resource(name)
    }


def find_resources_above_pod_level(pod: Pod) -> list[str]:
    """Return the sorted resources for which containers and claims together request more than the pod level."""
    pod_level = _get_pod_quantities(pod, PodResourcesOptions(use_status_resources=False, dra_node_allocatable=True))
    options = PodResourcesOptions(use_status_resources=False, pod_level_resources=False, dra_node_allocatable=True)
    totals = _get_pod_quantities(pod, options)
    return sorted(name for name, amount in totals.items() if name in pod_level and amount.exceeds(pod_level[name]))


def _get_pod_quantities(
    pod: Pod, options: PodResourcesOptions, defaults: Mapping[str, Quantity] = _NO_DEFAULT_REQUESTS
) -> Mapping[str, Quantity]:
    """Return the requests of a pod as quantities; callers must not change the mapping."""
    if not _has_only_container_requests(pod):
        return _sum_requests(pod, options, defaults)
    requests = tuple(tuple(container.resources.requests.items()) for container in pod.spec.containers)
    return _sum_container_requests(requests, with_defaults=bool(defaults))


@lru_cache(maxsize=4096)
def _sum_container_requests(requests: tuple[tuple[tuple[str, Any], ...], ...], *, with_defaults: bool) -> Quantities:
    """Return the sum of the requests of containers, cached because many pods have the same requests."""
    defaults = _DEFAULT_REQUESTS if with_defaults else _NO_DEFAULT_REQUESTS
    total: Quantities = {}
    for container_requests in requests:
        _add_resources(total, _apply_default_requests(_parse_resources(dict(container_requests)), defaults))
    return total


def _has_only_container_requests(pod: Pod) -> bool:
    """Return whether the pod has no requests except those of its app containers."""
    spec, status = pod.spec, pod.status
    return not (
        spec.init_containers
        or spec.overhead
        or spec.resources
        or status.container_statuses
        or status.init_container_statuses
        or status.node_allocatable_resource_claim_statuses
    )


def _sum_requests(pod: Pod, options: PodResourcesOptions, defaults: Mapping[str, Quantity]) -> Quantities:
    total = _aggregate_container_requests(pod, use_status=options.use_status_resources, defaults=defaults)
    if options.dra_node_allocatable:
        for claim in pod.status.node_allocatable_resource_claim_statuses:
            _add_resources(total, _parse_resources(claim.resources))
    if options.pod_level_resources and has_pod_level_requests(pod):
        _apply_pod_level_requests(
            pod, total, use_status=options.use_status_resources and options.in_place_pod_level_resize
        )
    _add_resources(total, _parse_resources(pod.spec.overhead))
    return total


def _apply_pod_level_requests(pod: Pod, total: Quantities, *, use_status: bool) -> None:
    """Replace the sums of the containers by the pod-level requests."""
    spec_requests = _parse_resources(pod.spec.resources.requests if pod.spec.resources else {})
    effective_requests = spec_requests
    if use_status and pod.status.resources is not None:
        effective_requests = _determine_effective_requests(
            pod,
            spec_requests,
            _parse_resources(pod.status.resources.requests),
            _parse_resources(pod.status.allocated_resources),
        )
    for name in spec_requests:
        if is_pod_level_resource(name):
            total[name] = effective_requests.get(name, quantity.ZERO)


def _aggregate_container_requests(pod: Pod, *, use_status: bool, defaults: Mapping[str, Quantity]) -> Quantities:
    """Return per resource the sum of app containers and sidecars, or the peak during init containers if higher.

    Source: component-helpers/resource/helpers.go, AggregateContainerRequests (1.36).
    """
    statuses: dict[str, ContainerStatus] = {}
    if use_status:
        # As upstream, a later status of the same name replaces an earlier one.
        statuses = {
            status.name: status for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)
        }
    total: Quantities = {}
    for container in pod.spec.containers:
        _add_resources(total, _apply_default_requests(_get_container_requests(pod, container, statuses), defaults))
    sidecar_requests: Quantities = {}
    peak_requests: Quantities = {}
    for container in pod.spec.init_containers:
        requests = _apply_default_requests(
            _get_container_requests(pod, container, statuses if container.is_sidecar else {}), defaults
        )
        if container.is_sidecar:
            _add_resources(total, requests)
            _add_resources(sidecar_requests, requests)
            _take_maximum(peak_requests, sidecar_requests)
        else:
            init_peak = dict(requests)
            _add_resources(init_peak, sidecar_requests)
            _take_maximum(peak_requests, init_peak)
    _take_maximum(total, peak_requests)
    return total


def _get_container_requests(pod: Pod, container: Container, statuses: Mapping[str, ContainerStatus]) -> Quantities:
    """Return the requests of one container, or its effective requests if it has a status with resources."""
    spec_requests = _parse_resources(container.resources.requests)
    status = statuses.get(container.name)
    if status is None or status.resources is None:
        return spec_requests
    return _determine_effective_requests(
        pod, spec_requests, _parse_resources(status.resources.requests), _parse_resources(status.allocated_resources)
    )


def _determine_effective_requests(
    pod: Pod, spec_requests: Quantities, actuated_requests: Quantities, allocated_resources: Quantities
) -> Quantities:
    """Return the maximum of the requests by resource. The spec is ignored if its resize is infeasible.

    Source: component-helpers/resource/helpers.go, determineEffectiveRequests (1.36).
    """
    effective_requests = {} if is_pod_resize_infeasible(pod) else dict(spec_requests)
    _take_maximum(effective_requests, actuated_requests)
    _take_maximum(effective_requests, allocated_resources)
    return effective_requests


def is_pod_resize_infeasible(pod: Pod) -> bool:
    """Return whether the kubelet reported the pending resize of the pod as infeasible.

    Source: component-helpers/resource/helpers.go, IsPodResizeInfeasible (1.36).
    """
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _apply_default_requests(requests: Quantities, defaults: Mapping[str, Quantity]) -> Quantities:
    return {**defaults, **requests} if defaults else requests


def _parse_resources(resources: ResourceList) -> Quantities:
    return {name: quantity.parse(raw) for name, raw in resources.items()}


def _add_resources(total: Quantities, resources: Mapping[str, Quantity]) -> None:
    for name, amount in resources.items():
        current = total.get(name)
        total[name] = amount if current is None else current.plus(amount)


def _take_maximum(maximum: Quantities, resources: Mapping[str, Quantity]) -> None:
    for name, amount in resources.items():
        current = maximum.get(name)
        if current is None or amount.exceeds(current):
            maximum[name] = amount
