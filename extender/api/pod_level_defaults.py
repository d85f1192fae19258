"""The default pod-level resources of a pod that has some, as an API server sets them.

Source: pkg/apis/core/v1/defaults.go, defaultHugePagePodLimits, defaultPodRequests (1.36); pkg/api/pod/util.go,
DefaultPodLevelResources (1.37).
"""

from msgspec.structs import replace

from extender.api.container_requests import Quantities, get_spec_requests, parse_resources, sum_containers
from extender.api.kinds.meta import ResourceList
from extender.api.kinds.pod import Container, Pod, PodSpec, ResourceRequirements
from extender.api.requests import is_hugepages_resource, is_pod_level_resource


def default_pod_level_resources(spec: PodSpec) -> ResourceRequirements | None:
    """Return the pod-level resources of *spec* with their defaults.

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
    for name, amount in _format(sum_containers(Pod(spec=spec), _get_limits, {})).items():
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


def _get_limits(container: Container) -> Quantities:
    return parse_resources(container.resources.limits)


def _format(quantities: Quantities) -> ResourceList:
    """Return the quantities as texts with an exact decimal exponent."""
    return {name: f"{amount.unscaled}e{amount.scale}" for name, amount in quantities.items()}
