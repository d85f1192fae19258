"""Device requests of the claim that the scheduler creates for the extended resources of a pod.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
DynamicResources.filterExtendedResources (1.36).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from extender.api.kinds.devices import DeviceClass, DeviceRequest, ExactDeviceRequest
from extender.api.kinds.pod import Container, ContainerExtendedResourceRequest, Pod
from extender.api.quantity import parse

_MAX_INT64: Final = 2**63 - 1


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

    Args:
        pod: the pod.
        resources: the extended resources to allocate as devices.
        classes: device classes by extended resource.
    """
    init_containers = pod.spec.init_containers
    containers = (*init_containers, *pod.spec.containers)
    init_positions = [position for position, container in enumerate(init_containers) if not container.is_sidecar]
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        builder = _DeviceRequestBuilder(containers, resource, classes[resource].metadata.name)
        builder.add_long_running([position for position in range(len(containers)) if position not in init_positions])
        builder.add_init_containers(init_positions)
        requests.extend(builder.list_requests())
        mappings.extend(builder.list_mappings())
    return ExtendedResourceRequests(tuple(sorted(requests, key=lambda request: request.name)), tuple(mappings))


class _DeviceRequestBuilder:
    """Builds the device requests for one extended resource of a pod."""

    def __init__(self, containers: tuple[Container, ...], resource: str, class_name: str) -> None:
        self._containers = containers
        self._resource = resource
        self._class_name = class_name
        self._long_running_requests: list[DeviceRequest | None] = [None] * len(containers)
        self._largest_init_request: DeviceRequest | None = None
        self._init_request_names: set[str] = set()
        self._long_running_mappings: list[ContainerExtendedResourceRequest] = []
        self._init_mappings: list[ContainerExtendedResourceRequest] = []

    def add_long_running(self, positions: list[int]) -> None:
        """Add containers that run as long as the pod."""
        for position in positions:
            self._long_running_requests[position], mappings = self._build_request(position, [])
            self._long_running_mappings.extend(mappings)

    def add_init_containers(self, positions: list[int]) -> None:
        """Add init containers that terminate; only their largest request is used."""
        for position in positions:
            request, mappings = self._build_request(
                position,
                [
                    later_request
                    for later_request in self._long_running_requests[position:]
                    if later_request is not None
                ],
            )
            self._init_mappings.extend(mappings)
            if request is None:
                continue
            self._init_request_names.add(request.name)
            if self._largest_init_request is None or _get_device_count(self._largest_init_request) < _get_device_count(
                request
            ):
                self._largest_init_request = request

    def list_requests(self) -> list[DeviceRequest]:
        """Return all requests."""
        return [
            request for request in (self._largest_init_request, *self._long_running_requests) if request is not None
        ]

    def list_mappings(self) -> list[ContainerExtendedResourceRequest]:
        """Return all mappings. Those of smaller init requests refer to the largest init request."""
        init_mappings = self._init_mappings
        if self._largest_init_request is not None:
            largest_name = self._largest_init_request.name
            init_mappings = [
                msgspec.structs.replace(mapping, request_name=largest_name)
                if mapping.request_name in self._init_request_names
                else mapping
                for mapping in init_mappings
            ]
        return [*self._long_running_mappings, *init_mappings]

    def _build_request(
        self, position: int, reusable_requests: list[DeviceRequest]
    ) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
        """Return the request for devices beyond those of *reusable_requests*, and the container's mappings."""
        container = self._containers[position]
        container_requests = container.resources.requests
        amount = _to_int64(container_requests.get(self._resource, 0))
        mappings: list[ContainerExtendedResourceRequest] = []
        if not amount:
            return None, mappings
        available_count = 0
        for request in reusable_requests:
            available_count += _get_device_count(request)
            mappings.append(_build_mapping(container, self._resource, request.name))
            if available_count >= amount:
                return None, mappings
        name = f"container-{position}-request-{sorted(container_requests).index(self._resource)}"
        exact_request = ExactDeviceRequest(
            device_class_name=self._class_name, allocation_mode="ExactCount", count=amount - available_count
        )
        mappings.append(_build_mapping(container, self._resource, name))
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
    return value if abs(value) <= _MAX_INT64 else 0
