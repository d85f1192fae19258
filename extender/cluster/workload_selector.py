"""The selector of the workload a pod belongs to, deduced from its services and its controller. Source: B068."""

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.objects.matching import EVERYTHING, Selector, from_label_selector, from_labels
from extender.objects.meta import LabelSelector
from extender.objects.workload import ReplicaSet, ReplicationController, Service, StatefulSet

_KINDS = (Service, ReplicationController, ReplicaSet, StatefulSet)


_KEY = ("workload_selector", "kept")


class _Kept:
    """The selector found last for one shape, and how often the objects had been written then."""

    __slots__ = ("revisions", "selector")

    def __init__(self) -> None:
        self.revisions: tuple[int, ...] = ()
        self.selector = EVERYTHING


def workload_selector(pod: PodQuery, cluster: Snapshot) -> Selector:
    """All that the services selecting *pod* and its controller ask of their pods' labels; empty if that is nothing.

    Only the owner marked as controller counts, and only a ReplicationController, ReplicaSet or StatefulSet that exists.
    Source: B068.
    """
    kept = pod.shape.remember(_KEY, _Kept)
    revisions = tuple(map(cluster.revision, _KINDS))
    if kept.revisions != revisions:
        kept.selector = _deduced(pod, cluster)
        kept.revisions = revisions
    return kept.selector


def last_workload_selector(pod: PodQuery) -> Selector:
    """What `workload_selector` found when it was last asked about pods like *pod*; empty if it never was."""
    return pod.shape.remember(_KEY, _Kept).selector


def _deduced(pod: PodQuery, cluster: Snapshot) -> Selector:
    namespace, labels = pod.namespace, pod.labels
    wanted: dict[str, str] = {}
    for service in cluster.objects(Service).values():
        selector = service.spec.selector
        if selector and service.metadata.namespace == namespace and selector.items() <= labels.items():
            wanted |= selector
    owner = pod.shape.controller
    if owner is None:
        return from_labels(wanted)
    key = f"{namespace}/{owner.name}"
    match owner.api_version, owner.kind:
        case "v1", "ReplicationController":
            controller = cluster.find(ReplicationController, key)
            return from_labels(wanted | (controller.spec.selector if controller else {}))
        case "apps/v1", "ReplicaSet":
            replica_set = cluster.find(ReplicaSet, key)
            return _of_owner(replica_set.spec.selector if replica_set else None).and_labels(wanted)
        case "apps/v1", "StatefulSet":
            stateful_set = cluster.find(StatefulSet, key)
            return _of_owner(stateful_set.spec.selector if stateful_set else None).and_labels(wanted)
    return from_labels(wanted)


def _of_owner(selector: LabelSelector | None) -> Selector:
    """An owner's selector; a missing or faulty one asks for nothing and is passed over."""
    if selector is None:
        return EVERYTHING
    try:
        return from_label_selector(selector)
    except ValueError:
        return EVERYTHING
