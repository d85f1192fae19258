"""What an API server fills in, for objects that were written by hand and never saw one.

Only what scheduling reads. Objects that `kubectl get` printed have all of it, and come back as they are.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from extender.config.defaults import DEFAULT_SCHEDULER_NAME
from extender.objects.defaults import DEFAULT_NAMESPACE, SYSTEM_PRIORITIES, host_port, with_limits
from extender.objects.devices import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from extender.objects.groups import PodGroup
from extender.objects.meta import KubernetesObject
from extender.objects.node import Node
from extender.objects.pod import Container, Pod, PodSpec
from extender.objects.policy import PodDisruptionBudget, PriorityClass
from extender.objects.storage import CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from extender.objects.workload import ReplicaSet, ReplicationController, Service, StatefulSet

T = TypeVar("T", bound=KubernetesObject)
Body = TypeVar("Body", ExactDeviceRequest, DeviceSubRequest)

_NAMESPACED: Final = (
    Pod,
    Service,
    ReplicationController,
    ReplicaSet,
    StatefulSet,
    PodDisruptionBudget,
    PersistentVolumeClaim,
    CSIStorageCapacity,
    ResourceClaim,
    ResourceClaimTemplate,
    PodGroup,
)


def completed(thing: T) -> T:
    """The object with its namespace and the defaults of its fields."""
    if not thing.metadata.namespace and isinstance(thing, _NAMESPACED):
        thing = replace(thing, metadata=replace(thing.metadata, namespace=DEFAULT_NAMESPACE))
    if isinstance(thing, Pod):
        spec = _spec(thing.spec)
        return thing if spec is thing.spec else replace(thing, spec=spec)
    if isinstance(thing, Node) and thing.status.capacity and not thing.status.allocatable:
        return replace(thing, status=replace(thing.status, allocatable=thing.status.capacity))
    if isinstance(thing, StorageClass) and thing.volume_binding_mode is None:
        return replace(thing, volume_binding_mode="Immediate")
    if isinstance(thing, ResourceClaim):
        return replace(thing, spec=_claim(thing.spec))
    if isinstance(thing, ResourceClaimTemplate):
        return replace(thing, spec=replace(thing.spec, spec=_claim(thing.spec.spec)))
    return thing


def with_priority(pod: Pod, classes: Mapping[str, PriorityClass]) -> Pod:
    """The pod with the priority of the class it names, if it has none of its own and the class is known."""
    name = pod.spec.priority_class_name
    if not name or pod.spec.priority is not None:
        return pod
    found = classes.get(name)
    priority = found.value if found else SYSTEM_PRIORITIES.get(name)
    if priority is None:
        return pod
    changes: dict[str, Any] = {"priority": priority}
    if found and pod.spec.preemption_policy is None:
        changes["preemption_policy"] = found.preemption_policy
    return replace(pod, spec=replace(pod.spec, **changes))


def _spec(spec: PodSpec) -> PodSpec:
    changes: dict[str, Any] = {}
    if not spec.scheduler_name:
        changes["scheduler_name"] = DEFAULT_SCHEDULER_NAME
    for field in ("containers", "init_containers"):
        before: tuple[Container, ...] = getattr(spec, field)
        after = tuple(_container(each, host_network=spec.host_network) for each in before)
        if any(new is not old for new, old in zip(after, before, strict=True)):
            changes[field] = after
    return replace(spec, **changes) if changes else spec


def _container(container: Container, *, host_network: bool) -> Container:
    """A limit without a request is a request too; on the host's network every port is one of the host."""
    changes: dict[str, Any] = {}
    resources = container.resources
    if resources.limits and not resources.limits.keys() <= resources.requests.keys():
        changes["resources"] = replace(resources, requests=with_limits(resources.requests, resources.limits))
    if host_network and any(not port.host_port for port in container.ports):
        changes["ports"] = tuple(
            replace(port, host_port=host_port(port.container_port, port.host_port, host_network=True))
            for port in container.ports
        )
    return replace(container, **changes) if changes else container


def _claim(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = tuple(_request(each) for each in spec.devices.requests)
    return replace(spec, devices=replace(spec.devices, requests=requests))


def _request(request: DeviceRequest) -> DeviceRequest:
    return replace(
        request,
        exactly=_counted(request.exactly) if request.exactly else None,
        first_available=tuple(_counted(each) for each in request.first_available),
    )


def _counted(body: Body) -> Body:
    """A request that does not say how many devices wants one."""
    mode = body.allocation_mode or "ExactCount"
    count = body.count or 1 if mode == "ExactCount" else body.count
    return replace(body, allocation_mode=mode, count=count)
