"""The requests of a pod's containers, and the requests of a pod in an in-place resize.

Release 1.36 takes the maximum of spec and status for each container, and adds these maxima. Since 1.37 there are three
sums over all containers: of the requests in the spec, of the allocated resources, and of the actuated resources. The
maximum of the three sums is used.

Source: component-helpers/resource/helpers.go, AggregateContainerRequests (1.36, 1.37).
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from extender.api import quantity
from extender.api.kinds.meta import ResourceList, find_condition
from extender.api.kinds.pod import Container, ContainerStatus, Pod
from extender.api.quantity import Quantity

Quantities: TypeAlias = dict[str, Quantity]

RequestsGetter: TypeAlias = Callable[[Container], Quantities]


def parse_resources(resources: ResourceList) -> Quantities:
    """Parse the quantities of a resource list.

    Raises:
        ValueError: a value is not a quantity.
    """
    return {name: quantity.parse(raw) for name, raw in resources.items()}


def add_resources(total: Quantities, resources: Mapping[str, Quantity]) -> None:
    """Add *resources* to *total*."""
    for name, amount in resources.items():
        current = total.get(name)
        total[name] = amount if current is None else current.plus(amount)


def take_maximum(maximum: Quantities, resources: Mapping[str, Quantity]) -> None:
    """Raise each value of *maximum* to the value in *resources*."""
    for name, amount in resources.items():
        current = maximum.get(name)
        if current is None or amount.exceeds(current):
            maximum[name] = amount


def apply_default_requests(requests: Quantities, defaults: Mapping[str, Quantity]) -> Quantities:
    """Return *requests* with *defaults* for the missing resources."""
    return {**defaults, **requests} if defaults else requests


def is_pod_resize_infeasible(pod: Pod) -> bool:
    """Return whether the kubelet reported the pending resize of the pod as infeasible.

    Source: component-helpers/resource/helpers.go, IsPodResizeInfeasible (1.36).
    """
    condition = find_condition(pod.status.conditions, "PodResizePending")
    return condition is not None and condition.reason == "Infeasible"


def determine_effective_requests(pod: Pod, spec_requests: Quantities, *status_requests: Quantities) -> Quantities:
    """Return, by resource, the maximum of the spec's requests and the requests in the status.

    The spec's requests are ignored if the resize of the pod is infeasible.

    Source: component-helpers/resource/helpers.go, determineEffectiveRequests (1.36), effectivePodLevelResources (1.37).
    """
    effective_requests = {} if is_pod_resize_infeasible(pod) else dict(spec_requests)
    for requests in status_requests:
        take_maximum(effective_requests, requests)
    return effective_requests


def sum_spec_requests(pod: Pod, defaults: Mapping[str, Quantity]) -> Quantities:
    """Return the requests of the containers in the spec; *defaults* apply to containers without a request."""
    return sum_containers(pod, get_spec_requests, defaults)


def sum_effective_requests(pod: Pod, defaults: Mapping[str, Quantity]) -> Quantities:
    """Return the sum of the effective requests of the containers, as release 1.36 counts them.

    The status of an init container that is not a sidecar is ignored.
    """
    # As upstream, a later status of the same name replaces an earlier one.
    statuses = {status.name: status for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    init_names = {container.name for container in pod.spec.init_containers if not container.is_sidecar}

    def get_requests(container: Container) -> Quantities:
        requests = parse_resources(container.resources.requests)
        status = None if container.name in init_names else statuses.get(container.name)
        if status is None or status.resources is None:
            return requests
        actuated_requests = parse_resources(status.resources.requests)
        return determine_effective_requests(
            pod, requests, actuated_requests, parse_resources(status.allocated_resources)
        )

    return sum_containers(pod, get_requests, defaults)


def determine_effective_sum(
    pod: Pod, defaults: Mapping[str, Quantity], claim_requests: Mapping[str, Quantity], *, uses_pod_status: bool
) -> Quantities:
    """Return the maximum of the three sums of requests, as releases since 1.37 count them.

    Args:
        pod: the pod.
        defaults: the requests of a container without a request.
        claim_requests: the node resources that claims consume, which the sums of spec and allocated requests include.
        uses_pod_status: whether the pod's own status replaces the sums of allocated and actuated requests, if it has
            both.
    """
    infeasible = is_pod_resize_infeasible(pod)
    spec_sum = sum_spec_requests(pod, defaults)
    add_resources(spec_sum, claim_requests)
    status = pod.status
    actuated_of_pod = status.resources.requests if status.resources is not None else {}
    if uses_pod_status and status.allocated_resources and actuated_of_pod:
        allocated_sum = parse_resources(status.allocated_resources)
        actuated_sum = parse_resources(actuated_of_pod)
    else:
        # As upstream, the first status of a name counts.
        container_statuses = (*status.container_statuses, *status.init_container_statuses)
        statuses = {container_status.name: container_status for container_status in reversed(container_statuses)}
        allocated_sum = sum_containers(pod, _make_allocated_getter(statuses, infeasible=infeasible), defaults)
        add_resources(allocated_sum, claim_requests)
        actuated_sum = sum_containers(pod, _make_actuated_getter(statuses, infeasible=infeasible), defaults)
    return determine_effective_requests(pod, spec_sum, actuated_sum, allocated_sum)


def get_spec_requests(container: Container) -> Quantities:
    """Return the requests in the spec of *container*.

    Raises:
        ValueError: a quantity is invalid.
    """
    return parse_resources(container.resources.requests)


def _make_allocated_getter(statuses: Mapping[str, ContainerStatus], *, infeasible: bool) -> RequestsGetter:
    """Return the function that returns a container's allocated resources, or else its spec requests."""

    def get_requests(container: Container) -> Quantities:
        status = statuses.get(container.name)
        if status is not None and status.allocated_resources:
            return parse_resources(status.allocated_resources)
        return {} if infeasible else get_spec_requests(container)

    return get_requests


def _make_actuated_getter(statuses: Mapping[str, ContainerStatus], *, infeasible: bool) -> RequestsGetter:
    """Return the function that returns a container's actuated requests, or else its allocated or spec requests."""
    get_allocated_requests = _make_allocated_getter(statuses, infeasible=infeasible)

    def get_requests(container: Container) -> Quantities:
        status = statuses.get(container.name)
        if status is not None and status.resources is not None and status.resources.requests:
            return parse_resources(status.resources.requests)
        return get_allocated_requests(container)

    return get_requests


def sum_containers(pod: Pod, get_requests: RequestsGetter, defaults: Mapping[str, Quantity]) -> Quantities:
    """Return, by resource, the sum over app containers and sidecars, or the peak during initialization if higher."""
    total: Quantities = {}
    for container in pod.spec.containers:
        add_resources(total, apply_default_requests(get_requests(container), defaults))
    sidecar_requests: Quantities = {}
    peak_requests: Quantities = {}
    for container in pod.spec.init_containers:
        requests = apply_default_requests(get_requests(container), defaults)
        if container.is_sidecar:
            add_resources(total, requests)
            add_resources(sidecar_requests, requests)
            take_maximum(peak_requests, sidecar_requests)
        else:
            init_peak = dict(requests)
            add_resources(init_peak, sidecar_requests)
            take_maximum(peak_requests, init_peak)
    take_maximum(total, peak_requests)
    return total
