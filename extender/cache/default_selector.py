"""Compute the default selector of a pod from the services that select the pod and from its controller."""

from extender.api.kinds.meta import LabelSelector
from extender.api.kinds.workload import ReplicaSet, ReplicationController, Service, StatefulSet
from extender.api.matching import EVERYTHING, Selector, selector_from_label_selector, selector_from_labels
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.cache.tables.object_store import KindVersion

_KINDS = (Service, ReplicationController, ReplicaSet, StatefulSet)
_CACHE_KEY = ("default_selector", "cached")


class _CachedSelector:
    """The last default selector of a pod signature, and the versions of the objects from which it was computed."""

    __slots__ = ("selector", "versions")

    def __init__(self) -> None:
        self.versions: tuple[KindVersion, ...] = ()
        self.selector = EVERYTHING


def determine_default_selector(pod: PodInfo, snapshot: Snapshot) -> Selector:
    """Combine the selectors of the services that select *pod* and of its controller.

    The result is empty if there are none. The controller is used only if it is an existing ReplicationController,
    ReplicaSet or StatefulSet.

    Source: pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector (1.36).
    """
    cached_selector = pod.signature.get_or_create(_CACHE_KEY, _CachedSelector)
    versions = tuple(map(snapshot.kind_version, _KINDS))
    if cached_selector.versions != versions:
        cached_selector.selector = _compute_default_selector(pod, snapshot)
        cached_selector.versions = versions
    return cached_selector.selector


def get_last_default_selector(pod: PodInfo) -> Selector | None:
    """Return the last result of `determine_default_selector` for the signature of *pod*; None without a result."""
    cached_selector = pod.signature.get_or_create(_CACHE_KEY, _CachedSelector)
    return cached_selector.selector if cached_selector.versions else None


def _compute_default_selector(pod: PodInfo, snapshot: Snapshot) -> Selector:
    namespace, labels = pod.namespace, pod.labels
    service_labels: dict[str, str] = {}
    for service in snapshot.objects(Service).values():
        selector = service.spec.selector
        if selector and service.metadata.namespace == namespace and selector.items() <= labels.items():
            service_labels |= selector
    owner = pod.signature.controller
    if owner is None:
        return selector_from_labels(service_labels)
    key = f"{namespace}/{owner.name}"
    match owner.api_version, owner.kind:
        case "v1", "ReplicationController":
            controller = snapshot.get_object(ReplicationController, key)
            return selector_from_labels(service_labels | (controller.spec.selector if controller else {}))
        case "apps/v1", "ReplicaSet":
            replica_set = snapshot.get_object(ReplicaSet, key)
            owner_selector = _compile_owner_selector(replica_set.spec.selector if replica_set else None)
            return owner_selector.with_labels(service_labels)
        case "apps/v1", "StatefulSet":
            stateful_set = snapshot.get_object(StatefulSet, key)
            owner_selector = _compile_owner_selector(stateful_set.spec.selector if stateful_set else None)
            return owner_selector.with_labels(service_labels)
    return selector_from_labels(service_labels)


def _compile_owner_selector(selector: LabelSelector | None) -> Selector:
    """Compile an owner's selector; the result for a missing or invalid selector is empty."""
    if selector is None:
        return EVERYTHING
    try:
        return selector_from_label_selector(selector)
    except ValueError:
        return EVERYTHING
