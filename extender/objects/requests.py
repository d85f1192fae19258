"""What a pod asks of a node, in the variants the scheduler computes it.

| function | who uses it upstream |
|---|---|
| `placed_requests`, `placed_nonzero_requests` | NodeInfo, for pods that are on a node |
| `incoming_requests` | NodeResourcesFit PreFilter and Filter, for the pod to place |
| `fit_score_requests` | the NodeResourcesFit scorer, for the pod to place |
| `pod_requests` | NodeResourcesBalancedAllocation, for the pod to place |

All amounts are base units: milli-CPU for cpu, bytes or counts for everything else.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from extender.objects import quantity
from extender.objects.matching import is_qualified_name
from extender.objects.pod import Container, ContainerStatus, Pod
from extender.objects.quantity import Quantity
from extender.objects.record import ResourceList

Amounts = dict[str, Quantity]

DEFAULT_MILLI_CPU: Final = 100
"""What a container without a cpu request counts for in scores, in milli-CPU."""
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
"""What a container without a memory request counts for in scores, in bytes."""

_DEFAULTS: Final = {
    "cpu": Quantity(DEFAULT_MILLI_CPU, -3, small=True),
    "memory": Quantity(DEFAULT_MEMORY, 0, small=True),
}
_NO_DEFAULTS: Final[Mapping[str, Quantity]] = {}


def is_extended(name: str) -> bool:
    """Whether a resource is an extended one: qualified by a domain other than *kubernetes.io.

    Source: A111.
    """
    if "/" not in name or is_prefixed_native(name) or name.startswith("requests."):
        return False
    return is_qualified_name(f"requests.{name}")


def is_prefixed_native(name: str) -> bool:
    """Whether a resource name has *kubernetes.io/ in it. Source: A111."""
    return "kubernetes.io/" in name


def is_hugepages(name: str) -> bool:
    """Whether a resource is huge pages of some size. Source: A111."""
    return name.startswith("hugepages-")


def is_attachable_volumes(name: str) -> bool:
    """Whether a resource counts the volumes that can be attached. Source: A111."""
    return name.startswith("attachable-volumes-")


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Whether the scheduler counts a resource besides cpu, memory, ephemeral-storage and pods. Source: A111."""
    return is_extended(name) or is_hugepages(name) or is_prefixed_native(name) or is_attachable_volumes(name)


def is_dra_extended(name: str) -> bool:
    """Whether devices may serve a resource: it is extended, or names a device class. Source: B034."""
    return is_extended(name) or name.startswith("deviceclass.resource.kubernetes.io/")


def is_pod_level(name: str) -> bool:
    """Whether a resource may be requested for the pod as a whole: cpu, memory, huge pages. Source: A112."""
    return name in {"cpu", "memory"} or is_hugepages(name)


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether the pod requests a resource as a whole. Source: A112."""
    return pod.spec.resources is not None and any(map(is_pod_level, pod.spec.resources.requests))


class Counting(NamedTuple):
    """What counts of a pod beside its containers' requests, each behind a feature gate. Source: A112, A113, B122.

    Attributes:
        status: resources in effect (gate InPlacePodVerticalScaling).
        pod_level: requests of the pod as a whole (gate PodLevelResources).
        pod_level_resize: with `status`, what is in effect of those (gate InPlacePodLevelResourcesVerticalScaling).
        devices: what it takes of its node through claims (gate DRANodeAllocatableResources).
    """

    status: bool = True
    pod_level: bool = True
    pod_level_resize: bool = True
    devices: bool = False


BY_DEFAULT: Final = Counting()
"""What counts with the default gates."""


def placed_requests(pod: Pod, counting: Counting = BY_DEFAULT) -> dict[str, int]:
    """The requests of a pod on a node: what is wanted or in effect, whichever is more.

    Used by NodeInfo.AddPod and RemovePod. Source: A110 to A113.
    """
    return pod_requests(pod, counting)


def incoming_requests(pod: Pod) -> dict[str, int]:
    """The requests of the pod to place, from its spec alone. Used by NodeResourcesFit PreFilter. Source: B030."""
    return pod_requests(pod, Counting(status=False))


def fit_score_requests(pod: Pod) -> dict[str, int]:
    """The requests of the pod to place as the NodeResourcesFit scorer sees them.

    Containers without cpu or memory request count for the defaults; pod-level requests and status do not count.
    Source: B036, B041.
    """
    return _base_units(_pod_amounts(pod, Counting(status=False, pod_level=False), _DEFAULTS))


def pod_requests(pod: Pod, counting: Counting) -> dict[str, int]:
    """The requests of a pod for every resource the scheduler counts.

    Returns:
        cpu, memory, ephemeral-storage and scalar resources that are requested, also with 0; in base units.

    Raises:
        ValueError: a request is not a quantity.

    Source: A111 to A113.
    """
    return _base_units(_pod_amounts(pod, counting))


def placed_nonzero_requests(pod: Pod, counting: Counting = BY_DEFAULT) -> tuple[int, int]:
    """What a pod on a node counts for in scores, as (milli-CPU, bytes of memory).

    Containers without a request count for 100 milli-CPU or 200 MiB. Where the pod has requests as a whole that holds
    only for a resource that neither the pod nor any container requests. Used by NodeInfo.AddPod for NonZeroRequested.
    Source: A110, A112, B036.
    """
    defaults: Mapping[str, Quantity] = _DEFAULTS
    if counting.pod_level and has_pod_level_requests(pod):
        requested = _pod_amounts(pod, counting)
        defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in requested}
    amounts = _pod_amounts(pod, counting, defaults)
    return (
        quantity.milli_value(amounts.get("cpu", quantity.ZERO)),
        quantity.value(amounts.get("memory", quantity.ZERO)),
    )


def _base_units(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {
        name: quantity.base_units(name, amount)
        for name, amount in amounts.items()
        if name in {"cpu", "memory", "ephemeral-storage"} or is_scalar(name)
    }


def not_covered(pod: Pod) -> list[str]:
    """The resources, sorted, of which a pod requests less as a whole than its parts and its claims take together."""
    whole = _pod_amounts(pod, Counting(status=False, devices=True))
    parts = _pod_amounts(pod, Counting(status=False, pod_level=False, devices=True))
    return sorted(name for name, amount in parts.items() if name in whole and amount.exceeds(whole[name]))


def _pod_amounts(
    pod: Pod, counting: Counting, defaults: Mapping[str, Quantity] = _NO_DEFAULTS
) -> Mapping[str, Quantity]:
    """In one sum; not to be changed."""
    if not _is_plain(pod):
        return _sum(pod, counting, defaults)
    requests = tuple(tuple(container.resources.requests.items()) for container in pod.spec.containers)
    return _plain_sum(requests, with_defaults=bool(defaults))


@lru_cache(maxsize=4096)
def _plain_sum(requests: tuple[tuple[tuple[str, Any], ...], ...], *, with_defaults: bool) -> Amounts:
    """Of containers, each with what it requests: other pods request the same."""
    total: Amounts = {}
    for container in requests:
        _add(total, _with_defaults(_parsed(dict(container)), _DEFAULTS if with_defaults else _NO_DEFAULTS))
    return total


def _is_plain(pod: Pod) -> bool:
    """Whether nothing is asked for but what its containers request."""
    spec, status = pod.spec, pod.status
    return not (
        spec.init_containers
        or spec.overhead
        or spec.resources
        or status.container_statuses
        or status.init_container_statuses
        or status.node_allocatable_resource_claim_statuses
    )


def _sum(pod: Pod, counting: Counting, defaults: Mapping[str, Quantity]) -> Amounts:
    total = _container_amounts(pod, use_status=counting.status, defaults=defaults)
    if counting.devices:
        for claim in pod.status.node_allocatable_resource_claim_statuses:
            _add(total, _parsed(claim.resources))
    if counting.pod_level and has_pod_level_requests(pod):
        _put_pod_level(pod, total, in_effect=counting.status and counting.pod_level_resize)
    _add(total, _parsed(pod.spec.overhead))
    return total


def _put_pod_level(pod: Pod, total: Amounts, *, in_effect: bool) -> None:
    """Replaces the sums of the containers by what the pod requests as a whole."""
    requested = _parsed(pod.spec.resources.requests if pod.spec.resources else {})
    effective = requested
    if in_effect and pod.status.resources is not None:
        effective = _effective(
            pod, requested, _parsed(pod.status.resources.requests), _parsed(pod.status.allocated_resources)
        )
    for name in requested:
        if is_pod_level(name):
            total[name] = effective.get(name, quantity.ZERO)


def _container_amounts(pod: Pod, *, use_status: bool, defaults: Mapping[str, Quantity]) -> Amounts:
    """App containers and sidecars together, or the peak while init containers run, whichever is more."""
    statuses: dict[str, ContainerStatus] = {}
    if use_status:
        # A later status of the same name wins, as upstream.
        statuses = {each.name: each for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _with_defaults(_container(pod, container, statuses), defaults))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        own = _with_defaults(_container(pod, container, statuses if container.is_sidecar else {}), defaults)
        if container.is_sidecar:
            _add(total, own)
            _add(sidecars, own)
            _raise(peak, sidecars)
        else:
            now = dict(own)
            _add(now, sidecars)
            _raise(peak, now)
    _raise(total, peak)
    return total


def _container(pod: Pod, container: Container, statuses: Mapping[str, ContainerStatus]) -> Amounts:
    """One container's request, or what is in effect for it if that is more."""
    requested = _parsed(container.resources.requests)
    status = statuses.get(container.name)
    if status is None or status.resources is None:
        return requested
    return _effective(pod, requested, _parsed(status.resources.requests), _parsed(status.allocated_resources))


def _effective(pod: Pod, requested: Amounts, actuated: Amounts, allocated: Amounts) -> Amounts:
    """The most of the three; a resize that can never happen does not count. Source: A113."""
    amounts = {} if is_resize_infeasible(pod) else dict(requested)
    _raise(amounts, actuated)
    _raise(amounts, allocated)
    return amounts


def is_resize_infeasible(pod: Pod) -> bool:
    """Whether the kubelet has declared the pod's pending resize impossible. Source: A113."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _with_defaults(amounts: Amounts, defaults: Mapping[str, Quantity]) -> Amounts:
    return {**defaults, **amounts} if defaults else amounts


def _parsed(resources: ResourceList) -> Amounts:
    return {name: quantity.parse(raw) for name, raw in resources.items()}


def _add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        present = total.get(name)
        total[name] = amount if present is None else present.plus(amount)


def _raise(total: Amounts, other: Mapping[str, Quantity]) -> None:
    for name, amount in other.items():
        present = total.get(name)
        if present is None or amount.exceeds(present):
            total[name] = amount
