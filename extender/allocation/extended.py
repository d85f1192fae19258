"""Extended resources that devices stand in for: the requests of a claim made for a pod's containers. Source: B114."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from extender.objects.devices import DeviceClass, DeviceRequest, ExactDeviceRequest
from extender.objects.pod import Container, ContainerExtendedResourceRequest, Pod
from extender.objects.quantity import parse

_MAX_INT64: Final = 2**63 - 1


class Served(NamedTuple):
    """What a node has to serve by devices.

    Attributes:
        requests: of the claim, by name.
        mappings: from containers to requests.
    """

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def served(pod: Pod, resources: frozenset[str], classes: Mapping[str, DeviceClass]) -> Served:
    """The requests and mappings for *resources* of *pod*.

    Containers that end before others start use the devices of those, and one more request for what that leaves short.

    Args:
        pod: whose containers ask.
        resources: extended resources that are served by devices.
        classes: by extended resource.
    """
    init = pod.spec.init_containers
    containers = (*init, *pod.spec.containers)
    brief = [at for at, each in enumerate(init) if not each.is_sidecar]
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        found = _OneResource(containers, resource, classes[resource].metadata.name)
        found.add_lasting([at for at in range(len(containers)) if at not in brief])
        found.add_brief(brief)
        requests.extend(found.requests())
        mappings.extend(found.mappings())
    return Served(tuple(sorted(requests, key=lambda request: request.name)), tuple(mappings))


class _OneResource:
    """The requests for one resource."""

    def __init__(self, containers: tuple[Container, ...], resource: str, class_name: str) -> None:
        self._containers = containers
        self._resource = resource
        self._class = class_name
        self._lasting: list[DeviceRequest | None] = [None] * len(containers)
        self._most: DeviceRequest | None = None
        self._brief_names: set[str] = set()
        self._lasting_mappings: list[ContainerExtendedResourceRequest] = []
        self._brief_mappings: list[ContainerExtendedResourceRequest] = []

    def add_lasting(self, positions: list[int]) -> None:
        """Containers that run as long as the pod."""
        for at in positions:
            self._lasting[at], made = self._request(at, [])
            self._lasting_mappings.extend(made)

    def add_brief(self, positions: list[int]) -> None:
        """Init containers that end; only the largest of their requests is kept."""
        for at in positions:
            request, made = self._request(at, [each for each in self._lasting[at:] if each is not None])
            self._brief_mappings.extend(made)
            if request is None:
                continue
            self._brief_names.add(request.name)
            if self._most is None or _count(self._most) < _count(request):
                self._most = request

    def requests(self) -> list[DeviceRequest]:
        """All requests."""
        return [each for each in (self._most, *self._lasting) if each is not None]

    def mappings(self) -> list[ContainerExtendedResourceRequest]:
        """All mappings; those of dropped requests lead to the one that was kept."""
        brief = self._brief_mappings
        if self._most is not None:
            kept = self._most.name
            brief = [
                msgspec.structs.replace(each, request_name=kept) if each.request_name in self._brief_names else each
                for each in brief
            ]
        return [*self._lasting_mappings, *brief]

    def _request(
        self, at: int, usable: list[DeviceRequest]
    ) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
        """What the container at *at* needs beyond the *usable* requests, and which requests it uses."""
        container = self._containers[at]
        asked = container.resources.requests
        amount = _whole(asked.get(self._resource, 0))
        mappings: list[ContainerExtendedResourceRequest] = []
        if not amount:
            return None, mappings
        had = 0
        for request in usable:
            had += _count(request)
            mappings.append(_mapping(container, self._resource, request.name))
            if had >= amount:
                return None, mappings
        name = f"container-{at}-request-{sorted(asked).index(self._resource)}"
        exact = ExactDeviceRequest(device_class_name=self._class, allocation_mode="ExactCount", count=amount - had)
        mappings.append(_mapping(container, self._resource, name))
        return DeviceRequest(name=name, exactly=exact), mappings


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=request)


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _whole(raw: str | float) -> int:
    """The amount as an int64, 0 if it is not whole."""
    amount = parse(raw)
    if not amount.small or amount.scale < 0:
        return 0
    whole = int(amount.unscaled * 10**amount.scale)
    return whole if abs(whole) <= _MAX_INT64 else 0
