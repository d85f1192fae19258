"""What a pod asks of a node, in the variants the scheduler computes it.

| function | who uses it upstream |
|---|---|
| `placed_requests`, `placed_nonzero_requests` | NodeInfo, for pods that are on a node |
| `incoming_requests` | NodeResourcesFit PreFilter and Filter, for the pod to place |
| `fit_score_requests` | the NodeResourcesFit scorer, for the pod to place |
| `balanced_requests` | NodeResourcesBalancedAllocation, for the pod to place |

All amounts are base units: milli-CPU for cpu, bytes or counts for everything else.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

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


def placed_requests(pod: Pod) -> dict[str, int]:
    """The requests of a pod on a node: what is wanted or in effect, whichever is more.

    Used by NodeInfo.AddPod and RemovePod. Source: A110 to A113.
    """
    return pod_requests(pod, use_status=True)


def incoming_requests(pod: Pod) -> dict[str, int]:
    """The requests of the pod to place, from its spec alone. Used by NodeResourcesFit PreFilter. Source: B030."""
    return pod_requests(pod, use_status=False)


def balanced_requests(pod: Pod) -> dict[str, int]:
    """The requests of the pod to place as BalancedAllocation sees them: no defaults, status and pod level count.

    Source: B041, B047.
    """
    return pod_requests(pod, use_status=True)


def fit_score_requests(pod: Pod) -> dict[str, int]:
    """The requests of the pod to place as the NodeResourcesFit scorer sees them.

    Containers without cpu or memory request count for the defaults; pod-level requests and status do not count.
    Source: B036, B041.
    """
    return _base_units(_pod_amounts(pod, use_status=False, pod_level=False, defaults=_DEFAULTS))


def placed_nonzero_requests(pod: Pod) -> tuple[int, int]:
    """What a pod on a node counts for in scores, as (milli-CPU, bytes of memory).

    Used by NodeInfo.AddPod for NonZeroRequested. Source: A110, B036.
    """
    return nonzero_requests(pod, use_status=True)


def pod_requests(
    pod: Pod, *, use_status: bool, pod_level: bool = True, pod_level_resize: bool = True
) -> dict[str, int]:
    """The requests of a pod for every resource the scheduler counts.

    Args:
        pod: the pod.
        use_status: whether resources in effect count (gate InPlacePodVerticalScaling).
        pod_level: whether requests of the pod as a whole count (gate PodLevelResources).
        pod_level_resize: whether, with `use_status`, pod-level resources in effect count (gate
            InPlacePodLevelResourcesVerticalScaling).

    Returns:
        cpu, memory, ephemeral-storage and scalar resources that are requested, also with 0; in base units.

    Raises:
        ValueError: a request is not a quantity.

    Source: A111 to A113.
    """
    return _base_units(_pod_amounts(pod, use_status=use_status, pod_level=pod_level, pod_level_resize=pod_level_resize))


def nonzero_requests(pod: Pod, *, use_status: bool, pod_level: bool = True) -> tuple[int, int]:
    """What a pod counts for in scores, as (milli-CPU, bytes of memory); arguments as for `pod_requests`.

    Containers without a request count for 100 milli-CPU or 200 MiB. Where the pod has requests as a whole that holds
    only for a resource that neither the pod nor any container requests. Source: A110, A112.
    """
    defaults: Mapping[str, Quantity] = _DEFAULTS
    if pod_level and has_pod_level_requests(pod):
        requested = _pod_amounts(pod, use_status=use_status, pod_level=pod_level)
        defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in requested}
    amounts = _pod_amounts(pod, use_status=use_status, pod_level=pod_level, defaults=defaults)
    return (
        quantity.milli_value(amounts.get("cpu", quantity.ZERO)),
        quantity.value(amounts.get("memory", quantity.ZERO)),
    )


def _base_units(amounts: Amounts) -> dict[str, int]:
    return {
        name: quantity.base_units(name, amount)
        for name, amount in amounts.items()
        if name in {"cpu", "memory", "ephemeral-storage"} or is_scalar(name)
    }


def _pod_amounts(
    pod: Pod,
    *,
    use_status: bool,
    pod_level: bool,
    pod_level_resize: bool = True,
    defaults: Mapping[str, Quantity] = _NO_DEFAULTS,
) -> Amounts:
    total = _container_amounts(pod, use_status=use_status, defaults=defaults)
    if pod_level and has_pod_level_requests(pod):
        _put_pod_level(pod, total, in_effect=use_status and pod_level_resize)
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
