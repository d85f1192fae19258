"""The unschedulable entities, grouped by their rejections.

Most events match no registration of the plugins that rejected the pods of a rejection. Such an event does not look at
these pods, so its cost does not grow with their number.

Source: pkg/scheduler/backend/queue/unschedulable_pods.go, unschedulablePods (1.36).
"""

from collections.abc import Callable, Iterator
from itertools import chain, count
from typing import NamedTuple

from extender.queueing.queued_entities import QueuedEntity, QueuedPodInfo


class Rejection(NamedTuple):
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

    __slots__ = ("_entities_by_rejection", "_next_number", "_positions")

    def __init__(self) -> None:
        self._positions: dict[str, tuple[Rejection | None, int]] = {}
        self._entities_by_rejection: dict[Rejection | None, dict[str, QueuedEntity]] = {}
        self._next_number = count()

    def __contains__(self, key: str) -> bool:
        return key in self._positions

    def __iter__(self) -> Iterator[QueuedEntity]:
        return (self._entities_by_rejection[rejection][key] for key, (rejection, _) in self._positions.items())

    def get(self, key: str) -> QueuedEntity | None:
        """Return the entity with *key*, or None."""
        position = self._positions.get(key)
        return None if position is None else self._entities_by_rejection[position[0]][key]

    def add_or_update(self, entity: QueuedEntity) -> None:
        """Add *entity*, or note that its rejection changed. Call this after each change of its plugins or its gate."""
        key, rejection = entity.key, _get_rejection(entity)
        position = self._positions.get(key)
        if position is not None:
            if position[0] == rejection:
                return
            self.remove(key)
        self._positions[key] = rejection, next(self._next_number)
        self._entities_by_rejection.setdefault(rejection, {})[key] = entity

    def remove(self, key: str) -> QueuedEntity | None:
        """Remove and return the entity with *key*; None if there is none."""
        position = self._positions.pop(key, None)
        if position is None:
            return None
        entities = self._entities_by_rejection[position[0]]
        entity = entities.pop(key)
        if not entities:
            del self._entities_by_rejection[position[0]]
        return entity

    def list_entities(self, may_concern: Callable[[Rejection], bool]) -> list[QueuedEntity]:
        """Return the pods with the rejections that *may_concern* accepts, and all pod groups."""
        selected = [
            entities.values()
            for rejection, entities in self._entities_by_rejection.items()
            if rejection is None or may_concern(rejection)
        ]
        listed = list(chain.from_iterable(selected))
        if len(selected) > 1:
            listed.sort(key=lambda entity: self._positions[entity.key][1])
        return listed


def _get_rejection(entity: QueuedEntity) -> Rejection | None:
    """Return the rejection of a pod; None for a pod group, whose members may be rejected by different plugins."""
    if not isinstance(entity, QueuedPodInfo):
        return None
    return Rejection(entity.pod_info.spec.scheduler_name, entity.rejector_plugins, entity.gating_plugin)
