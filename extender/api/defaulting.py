"""Set defaults on objects from files, as an API server does on the objects that it stores.

Only fields that scheduling reads are set. Objects printed by `kubectl get` have these fields and are not changed.

Source: pkg/apis/core/v1/defaults.go, SetDefaults_Namespace, SetDefaults_Pod, defaultHugePagePodLimits,
defaultPodRequests; pkg/apis/resource/v1/defaults.go, SetDefaults_ExactDeviceRequest (1.36); pkg/api/pod/util.go,
DefaultPodLevelResources (1.37).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from extender.api.container_requests import Quantities, get_spec_requests, parse_resources, sum_containers
from extender.api.defaults import (
    DEFAULT_NAMESPACE,
    DEFAULT_SCHEDULER_NAME,
    SYSTEM_PRIORITIES,
    default_host_port,
    fill_requests_from_limits,
)
from extender.api.kinds.affinity import Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity
from extender.api.kinds.devices import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from extender.api.kinds.disruption import PodDisruptionBudget, PriorityClass
from extender.api.kinds.meta import KubernetesObject, LabelSelectorRequirement, ObjectMeta, ResourceList
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Container, Pod, PodSpec, ResourceRequirements
from extender.api.kinds.pod_group import CompositePodGroup, PodGroup
from extender.api.kinds.storage import CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from extender.api.kinds.workload import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from extender.api.requests import is_hugepages_resource, is_pod_level_resource

T = TypeVar("T", bound=KubernetesObject)
DeviceRequestT = TypeVar("DeviceRequestT", ExactDeviceRequest, DeviceSubRequest)

_NAMESPACED_KINDS: Final = (
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
    CompositePodGroup,
)
_DEFAULT_CLASS_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_NAME_LABEL: Final = "kubernetes.io/metadata.name"


def set_defaults(obj: T) -> T:
    """Return *obj* with its default namespace and field values."""
    if not obj.metadata.namespace and isinstance(obj, _NAMESPACED_KINDS):
        obj = replace(obj, metadata=replace(obj.metadata, namespace=DEFAULT_NAMESPACE))
    if isinstance(obj, Pod):
        spec = _default_pod_spec(obj.spec)
        if spec.affinity is not None and not obj.metadata.uid:  # an API server merges the keys of pods that it creates
            spec = replace(spec, affinity=_merge_label_keys(spec.affinity, obj.metadata.labels))
        return obj if spec is obj.spec else replace(obj, spec=spec)
    if isinstance(obj, Node) and obj.status.capacity and not obj.status.allocatable:
        return replace(obj, status=replace(obj.status, allocatable=obj.status.capacity))
    if isinstance(obj, Namespace):
        labels = {**obj.metadata.labels, _NAME_LABEL: obj.metadata.name}
        return replace(obj, metadata=replace(obj.metadata, labels=labels))
    if isinstance(obj, StorageClass) and obj.volume_binding_mode is None:
        return replace(obj, volume_binding_mode="Immediate")
    if isinstance(obj, ResourceClaim):
        return replace(obj, spec=_default_claim_spec(obj.spec))
    if isinstance(obj, ResourceClaimTemplate):
        return replace(obj, spec=replace(obj.spec, spec=_default_claim_spec(obj.spec.spec)))
    return obj


def set_priority(obj: T, priority_classes: Mapping[str, PriorityClass]) -> T:
    """Return a pod or pod group with the priority of its PriorityClass, or of the global default if it names no class.

    An object is returned unchanged if it has a priority, if its class does not exist, or if it is of another kind. A
    pod group with a uid is returned unchanged too: the gates of its API server decide whether it has a priority. Of
    several global defaults, the one with the lowest priority is used.

    Source: plugin/pkg/admission/priority/admission.go, Plugin.admitPod, Plugin.admitPodGroup,
    Plugin.admitCompositePodGroup, Plugin.getDefaultPriorityClass (1.37).
    """
    if not isinstance(obj, Pod | PodGroup | CompositePodGroup) or obj.spec.priority is not None:
        return obj
    if obj.metadata.uid and not isinstance(obj, Pod):
        return obj
    name = obj.spec.priority_class_name
    if name:
        priority_class = priority_classes.get(name)
    else:
        global_defaults = [candidate for candidate in priority_classes.values() if candidate.global_default]
        priority_class = min(global_defaults, key=lambda candidate: candidate.value, default=None)
    priority = priority_class.value if priority_class else SYSTEM_PRIORITIES.get(name)
    if priority is None:
        return obj
    changes: dict[str, Any] = {"priority": priority}
    if priority_class and obj.spec.preemption_policy is None:
        changes["preemption_policy"] = priority_class.preemption_policy
    return replace(obj, spec=replace(obj.spec, **changes))


def set_storage_class(claim: PersistentVolumeClaim, classes: Iterable[StorageClass]) -> PersistentVolumeClaim:
    """Return *claim* with the default class if it has none: the newest of *classes* with that annotation.

    A claim of an API server, which has a UID, is returned unchanged.

    Source: plugin/pkg/admission/storage/storageclass/setdefault/admission.go, claimDefaulterPlugin.Admit;
    pkg/volume/util/storageclass.go, GetDefaultClass (1.36).
    """
    if claim.metadata.uid or claim.spec.storage_class_name is not None:
        return claim
    names = [
        meta.name
        for meta in sorted((item.metadata for item in classes), key=_get_age_order)
        if "true" in map(meta.annotations.get, _DEFAULT_CLASS_ANNOTATIONS)
    ]
    return replace(claim, spec=replace(claim.spec, storage_class_name=names[0])) if names else claim


def _get_age_order(meta: ObjectMeta) -> tuple[float, str]:
    return -meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0, meta.name


def _default_pod_spec(spec: PodSpec) -> PodSpec:
    changes: dict[str, Any] = {}
    if not spec.scheduler_name:
        changes["scheduler_name"] = DEFAULT_SCHEDULER_NAME
    for field in ("containers", "init_containers"):
        containers: tuple[Container, ...] = getattr(spec, field)
        defaulted_containers = tuple(
            _default_container(container, host_network=spec.host_network) for container in containers
        )
        if any(
            defaulted_container is not container
            for defaulted_container, container in zip(defaulted_containers, containers, strict=True)
        ):
            changes[field] = defaulted_containers
    spec = replace(spec, **changes) if changes else spec
    resources = default_pod_level_resources(spec)
    return spec if resources is spec.resources else replace(spec, resources=resources)


def _merge_label_keys(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    """Add the requirements of matchLabelKeys and mismatchLabelKeys to the label selectors of all pod affinity terms.

    Source: pkg/registry/core/pod/strategy.go, mutatePodAffinity (1.37).
    """

    def merge(term: PodAffinityTerm) -> PodAffinityTerm:
        requirements = tuple(
            LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
            for operator, keys in (("In", term.match_label_keys), ("NotIn", term.mismatch_label_keys))
            for key in keys
            if key in labels
        )
        selector = term.label_selector
        if selector is None or not requirements:
            return term
        selector = replace(selector, match_expressions=(*selector.match_expressions, *requirements))
        return replace(term, label_selector=selector)

    changes: dict[str, Any] = {}
    for field in ("pod_affinity", "pod_anti_affinity"):
        rules: PodAffinity | PodAntiAffinity | None = getattr(affinity, field)
        if rules is not None:
            required = map(merge, rules.required_during_scheduling_ignored_during_execution)
            preferred = (
                replace(weighted_term, pod_affinity_term=merge(weighted_term.pod_affinity_term))
                for weighted_term in rules.preferred_during_scheduling_ignored_during_execution
            )
            changes[field] = type(rules)(
                required_during_scheduling_ignored_during_execution=tuple(required),
                preferred_during_scheduling_ignored_during_execution=tuple(preferred),
            )
    return replace(affinity, **changes)


def _default_container(container: Container, *, host_network: bool) -> Container:
    """Default the requests to the limits. With host networking, default the host ports to the container ports."""
    changes: dict[str, Any] = {}
    resources = container.resources
    if resources.limits and not resources.limits.keys() <= resources.requests.keys():
        changes["resources"] = replace(
            resources, requests=fill_requests_from_limits(resources.requests, resources.limits)
        )
    if host_network and any(not port.host_port for port in container.ports):
        changes["ports"] = tuple(
            replace(port, host_port=default_host_port(port.container_port, port.host_port, host_network=True))
            for port in container.ports
        )
    return replace(container, **changes) if changes else container


def _default_claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = tuple(_default_device_request(request) for request in spec.devices.requests)
    return replace(spec, devices=replace(spec.devices, requests=requests))


def _default_device_request(request: DeviceRequest) -> DeviceRequest:
    return replace(
        request,
        exactly=_default_mode_and_count(request.exactly) if request.exactly else None,
        first_available=tuple(_default_mode_and_count(subrequest) for subrequest in request.first_available),
    )


def _default_mode_and_count(request: DeviceRequestT) -> DeviceRequestT:
    """Default the allocation mode to ExactCount, and the count of that mode to 1."""
    mode = request.allocation_mode or "ExactCount"
    count = request.count or 1 if mode == "ExactCount" else request.count
    return replace(request, allocation_mode=mode, count=count)


def default_pod_level_resources(spec: PodSpec) -> ResourceRequirements | None:
    """Return the pod-level resources of *spec*, if there are some, with their defaults.

    With pod-level limits, cpu or memory without a pod-level request gets the requests of the containers, and any
    resource without one gets the limit then. Limits of huge pages default to those of the containers. Release 1.37
    also defaults the requests of a pod without limits, which changes no sum.

    The containers of *spec* have their default requests.
    """
    resources = spec.resources
    if resources is None or not (resources.limits or resources.requests):
        return resources
    try:
        limits = _default_limits(spec, resources)
        requests = _default_requests(spec, resources.requests, limits) if limits else resources.requests
    except ValueError:  # an invalid quantity is reported where it is used
        return resources
    if limits == resources.limits and requests == resources.requests:
        return resources
    return replace(resources, limits=limits, requests=requests)


def _default_limits(spec: PodSpec, resources: ResourceRequirements) -> ResourceList:
    limits = dict(resources.limits)
    for name, amount in _format(
        sum_containers(Pod(spec=spec), lambda container: parse_resources(container.resources.limits), {})
    ).items():
        if is_hugepages_resource(name) and name not in resources.requests:
            limits.setdefault(name, amount)
    return limits


def _default_requests(spec: PodSpec, requests: ResourceList, limits: ResourceList) -> ResourceList:
    defaulted_requests = dict(requests)
    for name, amount in _format(sum_containers(Pod(spec=spec), get_spec_requests, {})).items():
        if name in {"cpu", "memory"}:
            defaulted_requests.setdefault(name, amount)
    for name, limit in limits.items():
        if is_pod_level_resource(name):
            defaulted_requests.setdefault(name, limit)
    return defaulted_requests


def _format(quantities: Quantities) -> ResourceList:
    """Return the quantities as texts with an exact decimal exponent."""
    return {name: f"{amount.unscaled}e{amount.scale}" for name, amount in quantities.items()}
