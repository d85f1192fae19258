"""Device requests of the claim that the scheduler creates for the extended resources of a pod.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
DynamicResources.filterExtendedResources (1.36).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from extender.api.kinds.devices import DeviceClass, DeviceRequest, ExactDeviceRequest
from extender.api.kinds.pod import Container, ContainerExtendedResourceRequest, Pod
from extender.api.quantity import MAX_INT64, parse


class ExtendedResourceRequests(NamedTuple):
    """The device requests for the extended resources of a pod.

    Attributes:
        requests: the claim's requests, sorted by name.
        mappings: the mappings from containers to requests.
    """

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def build_device_requests(
    pod: Pod, resources: frozenset[str], classes: Mapping[str, DeviceClass]
) -> ExtendedResourceRequests:
    """Build the device requests and container mappings for *resources* of *pod*.

    Init containers reuse the devices of later containers. If the largest init container needs more devices, it has a
    request for the difference.

    *resources* are the extended resources to allocate as devices; *classes* has the device class of each.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    init_positions = [index for index, container in enumerate(pod.spec.init_containers) if not container.is_sidecar]
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        class_name = classes[resource].metadata.name
        built = _build_requests_for_resource(containers, init_positions, resource, class_name)
        requests.extend(built.requests)
        mappings.extend(built.mappings)
    return ExtendedResourceRequests(tuple(sorted(requests, key=lambda request: request.name)), tuple(mappings))


def _build_requests_for_resource(
    containers: Sequence[Container], init_positions: Sequence[int], resource: str, class_name: str
) -> ExtendedResourceRequests:
    """Build the requests for one extended resource.

    Of the init containers that terminate, only the largest request is used, and the others are mapped to it.
    """
    requests: dict[int, DeviceRequest] = {}  # of the containers that run as long as the pod, by position
    mappings: list[ContainerExtendedResourceRequest] = []
    for position in [position for position in range(len(containers)) if position not in init_positions]:
        request, container_mappings = _build_request(containers, position, resource, class_name, ())
        if request is not None:
            requests[position] = request
        mappings += container_mappings
    init_requests: list[DeviceRequest] = []
    init_mappings: list[ContainerExtendedResourceRequest] = []
    for init_position in init_positions:
        later_requests = [request for position, request in requests.items() if position > init_position]
        request, container_mappings = _build_request(containers, init_position, resource, class_name, later_requests)
        if request is not None:
            init_requests.append(request)
        init_mappings += container_mappings
    if not init_requests:
        return ExtendedResourceRequests(tuple(requests.values()), (*mappings, *init_mappings))
    largest_request = max(init_requests, key=_get_device_count)
    init_names = {request.name for request in init_requests}
    init_mappings = [
        msgspec.structs.replace(mapping, request_name=largest_request.name)
        if mapping.request_name in init_names
        else mapping
        for mapping in init_mappings
    ]
    return ExtendedResourceRequests((largest_request, *requests.values()), (*mappings, *init_mappings))


def _build_request(
    containers: Sequence[Container],
    position: int,
    resource: str,
    class_name: str,
    reusable_requests: Sequence[DeviceRequest],
) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
    """Return the request for devices beyond those of *reusable_requests*, and the container's mappings."""
    container = containers[position]
    amount = _to_int64(container.resources.requests.get(resource, 0))
    mappings: list[ContainerExtendedResourceRequest] = []
    if not amount:
        return None, mappings
    available_count = 0
    for request in reusable_requests:
        available_count += _get_device_count(request)
        mappings.append(_build_mapping(container, resource, request.name))
        if available_count >= amount:
            return None, mappings
    name = f"container-{position}-request-{sorted(container.resources.requests).index(resource)}"
    exact_request = ExactDeviceRequest(
        device_class_name=class_name, allocation_mode="ExactCount", count=amount - available_count
    )
    mappings.append(_build_mapping(container, resource, name))
    return DeviceRequest(name=name, exactly=exact_request), mappings


def _build_mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=request)


def _get_device_count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _to_int64(raw: str | float) -> int:
    """Return the amount as an int64; 0 if it is fractional or out of range."""
    amount = parse(raw)
    if not amount.is_int64_amount or amount.scale < 0:
        return 0
    value = int(amount.unscaled * 10**amount.scale)
    return value if abs(value) <= MAX_INT64 else 0
