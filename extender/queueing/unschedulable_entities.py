"""The unschedulable entities, grouped by their rejections, and by signature below that.

Most events match no registration of the plugins that rejected the pods of a group, or they do not help any of several
equal pods. Such an event does not look at each of these pods, so its cost does not grow with their number.

Source: pkg/scheduler/backend/queue/unschedulable_pods.go, unschedulablePods (1.36).
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

from extender.cache.pod_info import PodInfo
from extender.cache.pod_signature import PodSignature
from extender.queueing.queued_entities import QueuedEntity, QueuedPodInfo


class PodRejection(NamedTuple):
    """What decides which events may requeue a pod.

    Attributes:
        scheduler_name: the name of the pod's profile.
        rejector_plugins: the plugins that rejected the pod in the last attempt.
        gating_plugin: the PreEnqueue plugin that gates the pod; empty if the pod is not gated.
    """

    scheduler_name: str
    rejector_plugins: frozenset[str]
    gating_plugin: str


class UnschedulableEntities:
    """Entities by key, in the order in which they were added."""

    __slots__ = ("_next_number", "_places", "_pods", "_ungrouped_entities")

    def __init__(self) -> None:
        self._next_number = count()
        self._places: dict[str, tuple[int, PodRejection | None, PodSignature | None]] = {}
        self._pods: dict[PodRejection, dict[PodSignature, dict[str, QueuedPodInfo]]] = {}
        self._ungrouped_entities: dict[str, QueuedEntity] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[QueuedEntity]:
        return (entity for key in self._places if (entity := self.get(key)) is not None)

    def get(self, key: str) -> QueuedEntity | None:
        """Return the entity with *key*, or None."""
        _, rejection, signature = self._places.get(key, (0, None, None))
        if rejection is None or signature is None:
            return self._ungrouped_entities.get(key)
        return self._pods[rejection][signature][key]

    def add_or_update(self, entity: QueuedEntity) -> None:
        """Add *entity*, or move it to another group. Call this after each change of its plugins, gate or pod.

        Pod groups, whose members may differ, are in no group, and neither are pods on nodes, which wait for a resize of
        a certain node.
        """
        key, rejection, signature = entity.key, None, None
        if isinstance(entity, QueuedPodInfo) and not entity.pod_info.spec.node_name:
            rejection = PodRejection(entity.pod_info.spec.scheduler_name, entity.rejector_plugins, entity.gating_plugin)
            signature = entity.pod_info.signature
        place = self._places.get(key)
        if place is not None:
            if place[1] == rejection and place[2] is signature:
                return
            self.remove(key)
        self._places[key] = next(self._next_number), rejection, signature
        if isinstance(entity, QueuedPodInfo) and rejection is not None and signature is not None:
            self._pods.setdefault(rejection, {}).setdefault(signature, {})[key] = entity
        else:
            self._ungrouped_entities[key] = entity

    def remove(self, key: str) -> QueuedEntity | None:
        """Remove and return the entity with *key*; None if there is none."""
        _, rejection, signature = self._places.pop(key, (0, None, None))
        if rejection is None or signature is None:
            return self._ungrouped_entities.pop(key, None)
        pods_by_signature = self._pods[rejection]
        pods = pods_by_signature[signature]
        pod = pods.pop(key)
        if not pods:
            del pods_by_signature[signature]
        if not pods_by_signature:
            del self._pods[rejection]
        return pod

    def list_entities(
        self,
        may_concern: Callable[[PodRejection], bool],
        may_concern_equal_pods: Callable[[QueuedPodInfo, Callable[[PodInfo], bool] | None], bool],
        find_concerned: Callable[[PodRejection], Callable[[PodInfo], bool] | None] = lambda _: None,
    ) -> list[QueuedEntity]:
        """Return the entities that an event may concern.

        These are the entities that are in no group, and the pods with a rejection that *may_concern* accepts. Of
        several pods with equal signatures, *may_concern_equal_pods* is called with the first one; if it returns false,
        none of them is listed. If *find_concerned* returns a function for a rejection, this function selects the pods,
        and is passed to *may_concern_equal_pods*.
        """
        listed: list[QueuedEntity] = list(self._ungrouped_entities.values())
        for rejection, pods_by_signature in self._pods.items():
            if may_concern(rejection):
                concerns = find_concerned(rejection)
                for pods in pods_by_signature.values():
                    if len(pods) == 1 or may_concern_equal_pods(next(iter(pods.values())), concerns):
                        listed += (
                            pods.values()
                            if concerns is None
                            else [pod for pod in pods.values() if concerns(pod.pod_info)]
                        )
        listed.sort(key=lambda entity: self._places[entity.key][0])
        return listed
