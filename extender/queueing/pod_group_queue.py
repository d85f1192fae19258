"""The scheduling queue since 1.37 with the gate GenericWorkload: a pod group is queued and popped as one entity.

With composite pod groups, the entity is the root of a tree of groups, with the members of all its pod groups.

A member is in one of four places: incomplete while its PodGroup or a group above does not exist; in its queued root;
in flight; pending if it arrives, or fails, while its root is in flight. When the attempt has ended, the pending members
are queued again as their root.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.addPodGroupMember,
PriorityQueue.AddAttemptedPodGroupIfNeeded, PriorityQueue.deletePodGroupMember, PriorityQueue.AddPodGroup;
pkg/scheduler/backend/queue/pod_group_member_pods.go, podGroupMemberPods (1.37).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CompositePodGroup, PodGroup
from extender.cache.group_hierarchy import (
    Group,
    GroupKey,
    find_root,
    get_group_key,
    get_parent_key,
    list_pod_group_keys,
    make_group_key,
)
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import PodInfo
from extender.framework.events import ActionType, ClusterEvent, EventResource, make_pod_event
from extender.framework.profiles import Profile
from extender.framework.status import Status
from extender.queueing.entity_queues import (
    SCHEDULE_ATTEMPT_FAILURE,
    EntityQueues,
    MoveObserver,
    PreEnqueueRunner,
    QueueSettings,
)
from extender.queueing.queued_entities import (
    QueuedEntity,
    QueuedPodGroupInfo,
    QueuedPodInfo,
    get_queued_group_key,
    make_queue_key,
)
from extender.queueing.queueing_hints import (
    PreQueueingHintObserver,
    QueueingHintObserver,
    QueueingHints,
    QueueingStrategy,
)
from extender.queueing.scheduling_queue import SchedulingQueue


class WorkloadForest:
    """Pod groups and composite pod groups, with the children of each composite pod group.

    Without composite pod groups every pod group is a root, whatever parent it names.
    """

    def __init__(self, *, composite_groups: bool) -> None:
        """Create an empty forest; *composite_groups* is the gate CompositePodGroup."""
        self.composite_groups = composite_groups
        self._groups: dict[GroupKey, Group] = {}
        self._children: dict[GroupKey, dict[GroupKey, None]] = {}

    def get_group(self, key: GroupKey) -> Group | None:
        """Return the group *key*; None if it does not exist."""
        return self._groups.get(key)

    def child_groups(self, key: GroupKey) -> Collection[GroupKey]:
        """Return the keys of the groups that name *key* as their parent."""
        return self._children.get(key, ())

    def put(self, group: Group) -> None:
        """Add or replace a group."""
        key = get_group_key(group)
        self.remove(key)
        self._groups[key] = group
        parent_key = self._find_parent_key(group)
        if parent_key is not None:
            self._children.setdefault(parent_key, {})[key] = None

    def remove(self, key: GroupKey) -> None:
        """Remove the group *key* if it exists. Its children stay, for a new group with the same key."""
        group = self._groups.pop(key, None)
        parent_key = None if group is None else self._find_parent_key(group)
        if parent_key is not None:
            children = self._children[parent_key]
            del children[key]
            if not children:
                del self._children[parent_key]

    def find_root(self, key: GroupKey) -> GroupKey | None:
        """Return the root above *key*; None if a group on the way does not exist.

        Source: pkg/scheduler/backend/queue/workload_forest.go, workloadForest.getRootLookupInfoForPodGroup (1.37).
        """
        if self.composite_groups:
            return find_root(self, key)
        return key if key in self._groups else None

    def find_hierarchy(self, event: ClusterEvent) -> frozenset[str]:
        """Return the keys of the pod groups with the root of the object of *event*."""
        obj, group_key = event.old if event.new is None else event.new, None
        if isinstance(obj, Pod) and (pod_group_key := get_pod_group_key(obj)) is not None:
            group_key = make_group_key(pod_group_key)
        elif isinstance(obj, PodGroup | CompositePodGroup):
            group_key = get_group_key(obj)
        root_key = None if group_key is None else self.find_root(group_key)
        keys = [] if root_key is None else list_pod_group_keys(self, root_key)
        return frozenset(key.object_key for key in keys)

    def _find_parent_key(self, group: Group) -> GroupKey | None:
        return get_parent_key(group) if self.composite_groups else None


_Members = dict[str, dict[str, QueuedPodInfo]]
"""Members by group and by key of the pod."""


class PodGroupQueue(SchedulingQueue):
    """A scheduling queue whose entities are pods without a group, and pod groups."""

    def __init__(self, queues: EntityQueues) -> None:
        """Create a queue from empty *queues*."""
        super().__init__(queues)
        self._forest = WorkloadForest(composite_groups="CompositePodGroup" in queues.gates)
        self._incomplete: _Members = {}
        self._pending: _Members = {}
        self._group_keys: dict[str, str] = {}  # by key of a member that is in a group, incomplete or pending
        self._last_popped_key = ""
        self._events_of_attempt: tuple[ClusterEvent, ...] | None = None  # since the last pop, for a group that failed

    # -- read

    def count_pending_pods(self) -> dict[str, int]:
        """Return the number of pods in each queue, with the queue names of the metric pending_pods."""
        counts = super().count_pending_pods()
        for name, members in (("incomplete", self._incomplete), ("pending", self._pending)):
            counts[name] = sum(map(len, members.values()))
        return counts

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from super().__iter__()
        for members in (*self._incomplete.values(), *self._pending.values()):
            yield from list(members.values())

    def get_pod(self, key: str) -> QueuedPodInfo | None:
        """Return the queued pod with *key* (`namespace/name`); None if the pod is in flight or not in the queue."""
        group_key = self._group_keys.get(key, "")
        waiting = self._incomplete.get(group_key, {}).get(key) or self._pending.get(group_key, {}).get(key)
        return waiting or super().get_pod(key)

    def find_entity(self, key: str) -> QueuedEntity | None:
        """Return the queued entity that has the pod *key*; None if the pod is in flight or not in the queue."""
        group_key = self._group_keys.get(key)
        if group_key is None:
            return self._queues.get(key)
        root_key = self._find_root(group_key)
        return None if root_key is None else self._queues.get(make_queue_key(root_key))

    def _find_root(self, group_key: str) -> GroupKey | None:
        """Return the root above the pod group *group_key* (`namespace/name`); None if it does not exist."""
        return self._forest.find_root(make_group_key(group_key))

    # -- members

    def _add_pod(self, pod: QueuedPodInfo, event_label: str, now: float) -> None:
        group_key = get_queued_group_key(pod.pod_info.pod)
        if group_key is None:
            super()._add_pod(pod, event_label, now)
            return
        self._group_keys[pod.key] = group_key
        root_key = self._find_root(group_key)
        if root_key is None:
            self._incomplete.setdefault(group_key, {})[pod.key] = pod
            return
        entity, strategy = self._queues.remove(make_queue_key(root_key))
        if isinstance(entity, QueuedPodGroupInfo):
            entity.add(pod)
            self._queues.requeue_with_strategy(entity, strategy, event_label, now)
        elif self._last_popped_key == make_queue_key(root_key):
            self._pending.setdefault(group_key, {})[pod.key] = pod
        else:
            entity = self._make_entity(root_key, pod.timestamp)
            entity.initial_attempt_timestamp = pod.initial_attempt_timestamp
            entity.add(pod)
            self._queues.move_to_active_q(entity, event_label, now)

    def update(self, pod_info: PodInfo, events: Iterable[ClusterEvent], now: float) -> None:
        """Update a pod. A member that is in no queue is not added while its group does not exist.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.Update (1.37).
        """
        group_key = get_queued_group_key(pod_info.pod)
        if group_key is None or self._find_root(group_key) is not None or self.get_pod(pod_info.key) is not None:
            super().update(pod_info, events, now)

    def delete(self, pod: Pod, now: float) -> None:
        """Remove a pod that was deleted or assigned, and its group if it was the last queued member.

        The queued members are queued again, also if the pod was in flight. They then need not wait for the next flush
        if their backoff has ended.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.deletePodGroupMember (1.37).
        """
        key = pod.key
        group_key = self._group_keys.pop(key, None) or get_pod_group_key(pod)
        if group_key is None or self._queues.get(key) is not None:
            super().delete(pod, now)
            return
        for members_by_group in (self._incomplete, self._pending):
            members = members_by_group.get(group_key, {})
            if members.pop(key, None) is not None:
                if not members:
                    del members_by_group[group_key]
                return
        root_key = self._find_root(group_key)
        if root_key is None:
            return
        entity, strategy = self._queues.remove(make_queue_key(root_key))
        if isinstance(entity, QueuedPodGroupInfo):
            entity.remove(key)
            self._requeue_group(entity, strategy, ActionType.ADD, now)

    def _requeue_group(
        self, entity: QueuedPodGroupInfo, strategy: QueueingStrategy, action: ActionType, now: float
    ) -> None:
        """Queue *entity* again after members were removed, unless none remains."""
        if entity.members:
            event = make_pod_event(self.release, EventResource.UNSCHEDULED_POD, action)
            self._queues.requeue_with_strategy(entity, strategy, event.label, now)

    # -- pod groups

    def update_pod_group(self, old: Group | None, new: Group | None, now: float) -> None:
        """Handle a pod group that was added, changed or deleted: *old* is None, neither, or *new* is None.

        The members of a new group are queued. The members of a deleted group wait for a group of the same name.
        """
        group = new or old
        if group is None:
            return
        group_key = get_group_key(group)
        if new is None:
            self._delete_pod_group(group_key, now)
            return
        self._forest.put(new)
        entity = self._queues.get(make_queue_key(group_key))
        if isinstance(entity, QueuedPodGroupInfo):
            entity.priority = new.spec.priority or 0  # takes effect when the group is queued again
        root_key = self._forest.find_root(group_key)
        event = make_pod_event(self.release, EventResource.UNSCHEDULED_POD, ActionType.ADD)
        for key in [] if root_key is None or not self._incomplete else list_pod_group_keys(self._forest, root_key):
            for pod in self._incomplete.pop(key.object_key, {}).values():
                self._add_pod(pod, event.label, now)

    def _delete_pod_group(self, group_key: GroupKey, now: float) -> None:
        """Delete a group. Its members wait; the members of other groups stay queued as long as their root exists.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.DeletePodGroup,
        PriorityQueue.DeleteCompositePodGroup (1.37).
        """
        root_key = self._forest.find_root(group_key)
        keys = [] if root_key is None else list_pod_group_keys(self._forest, root_key)
        self._forest.remove(group_key)
        if root_key is None:
            return
        incomplete_keys = {key.object_key for key in keys if self._forest.find_root(key) is None}
        entity, strategy = self._queues.remove(make_queue_key(root_key))
        if not isinstance(entity, QueuedPodGroupInfo):
            for key in incomplete_keys & self._pending.keys():
                self._incomplete.setdefault(key, {}).update(self._pending.pop(key))
            return
        for pod in list(entity.members):
            key = get_queued_group_key(pod.pod_info.pod) or ""
            if key in incomplete_keys:
                entity.members.remove(pod)
                self._incomplete.setdefault(key, {})[pod.key] = pod
        self._requeue_group(entity, strategy, ActionType.UPDATE, now)

    # -- attempts

    def pop(self) -> QueuedEntity | None:
        """Pop the next entity, whose pods are then in flight; return None if none can be popped."""
        entity = super().pop()
        if entity is not None:
            self._last_popped_key, self._events_of_attempt = entity.key, None
            for pod in entity.pods:
                self._group_keys.pop(pod.key, None)
        return entity

    def add_unschedulable_if_not_present(self, pod: QueuedPodInfo, now: float) -> None:
        """Requeue a popped pod that could not be scheduled; a member of a group is queued with its group."""
        if get_queued_group_key(pod.pod_info.pod) is None:
            super().add_unschedulable_if_not_present(pod, now)
            return
        if self._events_of_attempt is None:  # all members were popped at the same time
            self._events_of_attempt = tuple(self.in_flight_events.get_events_since_pop(pod.uid) or ())
        self.in_flight_events.done(pod.uid)
        if self.get_pod(pod.key) is None:
            pod.count_failure(is_rejected=bool(pod.rejector_plugins))
            pod.timestamp, pod.was_flushed_from_unschedulable, pod.flush_timestamp = now, False, 0.0
            self._add_pod(pod, SCHEDULE_ATTEMPT_FAILURE, now)

    def add_attempted_pod_group(self, attempted: QueuedPodGroupInfo, status: Status, now: float) -> None:
        """End the attempt of a popped group, and queue its pending members again as the group.

        After a failure the group backs off. After a success the remaining members are queued at once, at their old
        position if one of them failed in this attempt.
        """
        self._last_popped_key = ""
        pods: dict[str, QueuedPodInfo] = {}
        for key in list_pod_group_keys(self._forest, attempted.group_key) if self._pending else ():
            pods |= self._pending.pop(key.object_key, {})
        if not pods:
            return
        entity = self._make_entity(attempted.group_key, attempted.timestamp)
        for pod in pods.values():
            entity.add(pod)
        entity.attempts, entity.initial_attempt_timestamp = attempted.attempts, attempted.initial_attempt_timestamp
        attempted_uids = {pod.uid for pod in attempted.members}
        if not status.is_success or attempted_uids.isdisjoint(pod.uid for pod in pods.values()):
            entity.timestamp = now
        if not status.is_success:
            entity.unschedulable_count = attempted.unschedulable_count
            entity.consecutive_error_count = attempted.consecutive_error_count
            entity.count_failure(is_rejected=status.is_rejected)
            entity.backoff_size = len(entity.members)
            if self._queues.backoff_q.is_pod_backing_off(entity, now):
                self._queues.move_to_backoff_q(entity, SCHEDULE_ATTEMPT_FAILURE)
                events = self._events_of_attempt or ()
                if entity.gating_plugin and any(self._queues.get_strategy(entity, event) for event in events):
                    entity.event_while_gated = SCHEDULE_ATTEMPT_FAILURE
                return
        self._queues.move_to_active_q(entity, SCHEDULE_ATTEMPT_FAILURE, now)

    def activate(self, pods: Iterable[Pod], now: float) -> None:
        """Move *pods*, or their groups, to the active queue. A group is moved even if the pod is in flight.

        Pods in flight whose group is not moved are moved when they are requeued.
        """
        pods_by_group: dict[str | None, list[Pod]] = {}
        for pod in pods:
            pods_by_group.setdefault(get_queued_group_key(pod), []).append(pod)
        for group_key, members in pods_by_group.items():
            if group_key is None or not self._activate_group(group_key, now):
                super().activate(members, now)

    def _activate_group(self, group_key: str, now: float) -> bool:
        root_key = self._find_root(group_key)
        return root_key is not None and self._activate(make_queue_key(root_key), now)

    def _activate_pod(self, pod: Pod, now: float) -> None:
        if get_queued_group_key(pod) is None:
            super()._activate_pod(pod, now)

    def _make_entity(self, root_key: GroupKey, timestamp: float) -> QueuedPodGroupInfo:
        """Return an entity without members for the root *root_key*, which must exist."""
        group = self._forest.get_group(root_key)
        return QueuedPodGroupInfo(root_key, 0 if group is None else group.spec.priority or 0, timestamp=timestamp)

    # -- moves

    def move_all_to_active_or_backoff_queue(
        self, event: ClusterEvent, now: float, pre_check: Callable[[QueuedPodInfo], bool] | None = None
    ) -> None:
        """Requeue the entities that *event* may make schedulable; see `SchedulingQueue`."""
        if self._forest.composite_groups:
            event = replace(event, hierarchy=self._forest.find_hierarchy(event))
        super().move_all_to_active_or_backoff_queue(event, now, pre_check)


def make_scheduling_queue(
    profiles: Mapping[str, Profile],
    run_pre_enqueue: PreEnqueueRunner,
    settings: QueueSettings,
    *,
    on_hint: QueueingHintObserver | None = None,
    on_pre_hint: PreQueueingHintObserver | None = None,
    on_move: MoveObserver | None = None,
) -> SchedulingQueue:
    """Return an empty queue of the release of *profiles*.

    All *profiles*, by scheduler name, have the same QueueSort plugin. *on_hint* and *on_pre_hint* are called after
    every hint, and *on_move* for every entity that is added to a queue.
    """
    hints = QueueingHints(profiles, on_hint, on_pre_hint)
    queues = EntityQueues(profiles, run_pre_enqueue, settings, hints, on_move)
    queues_pod_groups = queues.gates.release.queues_pod_groups and "GenericWorkload" in queues.gates
    return PodGroupQueue(queues) if queues_pod_groups else SchedulingQueue(queues)
