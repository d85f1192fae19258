"""Apply changes of API objects to the cache, then notify an event handler.

Source: pkg/scheduler/eventhandlers.go, Scheduler.addNodeToCache, Scheduler.updatePodInSchedulingQueue;
pkg/scheduler/framework/events.go, NodeSchedulingPropertiesChange, PodSchedulingPropertiesChange (1.36).
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from extender.api.coscheduling import make_pod_group, set_scheduling_group
from extender.api.kinds.devices import DeviceTaintRule, ResourceSlice
from extender.api.kinds.meta import KubernetesObject, ResourceList
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import CoschedulingPodGroup, PodGroup
from extender.api.quantity import parse
from extender.api.requests import PodResourcesOptions, is_resize_deferred, requests_more
from extender.api.scheme import KINDS
from extender.cache.cache import Cache, PodOrNode
from extender.cache.device_classes import get_class_by_resource
from extender.cache.pod_groups import get_pod_group_key
from extender.cache.pod_info import AssignedPodInfo
from extender.config.feature_gates import FeatureGates
from extender.dra.device_taint_rules import apply_taint_rules
from extender.framework.events import (
    ActionType,
    ClusterEvent,
    EventResource,
    make_lost_nomination_event,
    make_pod_event,
)
from extender.scheduler.api_writer import do_nothing

_RESOURCE_BY_NAME: Final = {resource.value.rpartition("/")[2]: resource for resource in EventResource}

EVENT_RESOURCE_BY_KIND: Final[Mapping[type, EventResource]] = {
    kind: _RESOURCE_BY_NAME[kind.__name__]
    for kind in KINDS.values()
    if kind.__name__ in _RESOURCE_BY_NAME and kind not in (Node, Pod)
}
"""The event resource of each kind with cluster events, except nodes and pods. Other kinds have no event resource."""


class EventHandler:
    """Handles changes of API objects after the cache, but deletions of pending pods before it. Ignores them here."""

    def on_pending_pod_add(self, pod: Pod) -> None:
        """Handle a new pod without a node."""

    def on_pending_pod_update(self, old: Pod, new: Pod, events: list[ClusterEvent]) -> None:
        """Handle a changed pod without a node."""

    def on_pending_pod_delete(self, pod: Pod) -> None:
        """Handle a pending pod that was deleted or got a node."""

    def on_assigned_pod_update(self, events: list[ClusterEvent]) -> None:
        """Handle the *events* of a changed pod on a node."""
        for event in events:
            self.on_cluster_event(event)

    def on_assumed_pod_update(self, pod: Pod, events: list[ClusterEvent]) -> None:
        """Handle the *events* of a changed pod that is assumed."""

    def on_assumed_pod_delete(self, assumed_pod: AssignedPodInfo) -> None:
        """Handle an assumed pod that is terminating or deleted, although the watch has not shown its binding yet.

        *assumed_pod* is the pod as it was assumed. A deleted pod is in the cache no longer.

        Source: pkg/scheduler/eventhandlers.go, Scheduler.handleAssumedPodDeletion (1.36).
        """

    def on_cluster_event(self, event: ClusterEvent, *, max_priority: int | None = None) -> None:
        """Handle an event that may make pods schedulable. Only pods of at most *max_priority* are requeued."""


class ClusterEventDispatcher:
    """Applies changes of API objects to the cache and notifies an event handler.

    The changes of each kind must arrive in the order of the watch.

    Attributes:
        on_pod_change: the function that is called with each new or changed pod, after the cache changed.
        on_pod_delete: the function that is called with each deleted pod, after the cache changed.
    """

    def __init__(
        self, cache: Cache, handler: EventHandler, scheduler_names: Collection[str], gates: FeatureGates | None = None
    ) -> None:
        """Create a dispatcher that updates *cache* and notifies *handler*.

        *handler* is notified after each update of the cache. This process is responsible for *scheduler_names*. The
        release of *gates* has its own events of pods; None means the default gates. With
        InPlacePodVerticalScalingSchedulerPreemption, pods on nodes whose resize is deferred are handled as pending pods
        too.

        Source: pkg/scheduler/eventhandlers.go, responsibleForPod (1.36).
        """
        self._cache, self._handler, self._scheduler_names = cache, handler, frozenset(scheduler_names)
        self._gates = gates = gates or FeatureGates()
        self._coscheduling = gates.coscheduling
        self.on_pod_change: Callable[[Pod], None] = do_nothing
        self.on_pod_delete: Callable[[Pod], None] = do_nothing
        self._resize_preemption = "InPlacePodVerticalScalingSchedulerPreemption" in gates

    def deduplicate(self, obj: PodOrNode) -> tuple[PodOrNode, Hashable]:
        """Return a pod or node equal to *obj* that shares equal parts with earlier objects, and the owner of the parts.

        With the groups of the coscheduling plugin, a pod also gets the group that its label names.
        """
        if self._coscheduling and isinstance(obj, Pod):
            obj = set_scheduling_group(obj)
        return self._cache.deduplicate(obj)

    def set_scheduler_names(self, scheduler_names: Collection[str]) -> None:
        """Replace the scheduler names for which this process is responsible."""
        self._scheduler_names = frozenset(scheduler_names)

    def on_add(self, obj: KubernetesObject) -> None:
        """Handle the new object *obj*."""
        if isinstance(obj, Node):
            self._cache.add_or_update_node(obj)
            self._notify_of_node([ClusterEvent(EventResource.NODE, ActionType.ADD, None, obj)])
        elif isinstance(obj, Pod):
            self._add_pod(obj)
            self.on_pod_change(obj)
        else:
            self._update_object(type(obj), ActionType.ADD, None, obj)

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        """Handle the change from *old* to *new*."""
        if isinstance(old, Node) and isinstance(new, Node):
            self._cache.add_or_update_node(new)
            self._notify_of_node(find_node_events(old, new, self._gates))
        elif isinstance(old, Pod) and isinstance(new, Pod):
            self._update_pod(old, new)
            if old.metadata.uid != new.metadata.uid:  # deleted and recreated under the same name between two events
                self.on_pod_delete(old)
            self.on_pod_change(new)
        else:
            self._update_object(type(new), ActionType.UPDATE, old, new)

    def on_delete(self, obj: KubernetesObject) -> None:
        """Handle the deletion of *obj*."""
        if isinstance(obj, Node):
            self._handler.on_cluster_event(ClusterEvent(EventResource.NODE, ActionType.DELETE, obj, None))
            self._cache.remove_node(obj.metadata.name)
        elif isinstance(obj, Pod):
            self._delete_pod(obj)
            self.on_pod_delete(obj)
        else:
            self._update_object(type(obj), ActionType.DELETE, obj, None)

    def on_list(self, kind: type[KubernetesObject], resource_version: str) -> None:
        """Handle the end of a list of *kind*, after all of its changes."""
        self._cache.set_list_version(kind, resource_version)

    def _notify_of_node(self, events: Sequence[ClusterEvent]) -> None:
        """Notify the handler of an added or updated node."""
        if not events:
            return
        with self._cache.read() as snapshot:
            device_resources = frozenset(get_class_by_resource(snapshot))
        for event in events:
            self._handler.on_cluster_event(replace(event, device_resources=device_resources))

    def _update_object(
        self,
        kind: type[KubernetesObject],
        action: ActionType,
        old: KubernetesObject | None,
        new: KubernetesObject | None,
    ) -> None:
        if isinstance(new or old, CoschedulingPodGroup):
            kind = PodGroup
            old, new = (
                make_watched_pod_group(group, self._cache) if isinstance(group, CoschedulingPodGroup) else None
                for group in (old, new)
            )
        old_slices = self._list_slices_with_taints() if kind is DeviceTaintRule else []
        if new is not None:
            self._cache.add_or_update_object(new)
        elif old is not None:
            self._cache.remove_object(kind, old.metadata.key)
        resource = EVENT_RESOURCE_BY_KIND.get(kind)
        if resource is not None:
            self._handler.on_cluster_event(ClusterEvent(resource, action, old, new))
        for old_slice, new_slice in zip(old_slices, self._list_slices_with_taints() if old_slices else [], strict=True):
            if old_slice != new_slice:
                self._handler.on_cluster_event(
                    ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.UPDATE, old_slice, new_slice)
                )

    def _list_slices_with_taints(self) -> list[ResourceSlice]:
        """Return all ResourceSlices with the taints of all DeviceTaintRules.

        The caller compares the slices before and after a rule changes. Each slice whose taints differ causes an event.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter,
        DynamicResources.EventsToRegister (1.36).
        """
        with self._cache.read() as snapshot:
            rules, slices = snapshot.objects(DeviceTaintRule).values(), snapshot.objects(ResourceSlice).values()
            return [apply_taint_rules(resource_slice, rules) for resource_slice in slices]

    # -- pods

    def _is_responsible_for(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._scheduler_names

    def _add_pod(self, pod: Pod) -> None:
        if self._coscheduling and (group := find_group_with_new_priority(pod, self._cache)) is not None:
            self._update_object(PodGroup, ActionType.UPDATE, group, group)
        self._cache.add_or_update_pod(pod)
        if pod.spec.node_name:
            if self._waits_for_resize(pod):
                self._handler.on_pending_pod_add(pod)
            self._handler.on_cluster_event(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, None, pod))
        elif self._is_responsible_for(pod):
            self._handler.on_pending_pod_add(pod)

    def _update_pod(self, old: Pod, new: Pod) -> None:
        is_moved = not old.spec.node_name and old.spec.scheduling_group != new.spec.scheduling_group
        if old.metadata.uid != new.metadata.uid or (is_moved and not self._cache.is_assumed(new.metadata.uid)):
            # The pod was deleted and recreated between two events, or its label names another group.
            self._delete_pod(old)
            self._add_pod(new)
            return
        if old.spec.node_name:
            self._cache.add_or_update_pod(new)
            events = find_pod_events(old, new, self._gates)
            self._update_waiting_resize(old, new, events)
            self._handler.on_assigned_pod_update(events)
        elif new.spec.node_name:
            self._cache.add_or_update_pod(new)
            self._handler.on_cluster_event(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, None, new))
            if self._is_responsible_for(old):
                self._handler.on_pending_pod_delete(new)
        else:
            self._update_pending_pod(old, new)

    def _waits_for_resize(self, pod: Pod) -> bool:
        """Return whether *pod*, which is on a node, is scheduled again because its resize is deferred."""
        return self._resize_preemption and is_resize_deferred(pod) and self._is_responsible_for(pod)

    def _update_waiting_resize(self, old: Pod, new: Pod, events: list[ClusterEvent]) -> None:
        """Notify the handler if *new*, which is on a node, waits for its resize or does so no longer.

        Source: pkg/scheduler/eventhandlers.go, Scheduler.updatePod (1.37).
        """
        waited, waits = self._waits_for_resize(old), self._waits_for_resize(new)
        if waited and waits:
            self._handler.on_pending_pod_update(old, new, events)
        elif waits:
            self._handler.on_pending_pod_add(new)
        elif waited:
            self._handler.on_pending_pod_delete(new)

    def _update_pending_pod(self, old: Pod, new: Pod) -> None:
        self._cache.add_or_update_pod(new)
        if self._cache.is_assumed(new.metadata.uid):
            if self._is_responsible_for(old):  # the verb bind also assumes pods of other schedulers
                self._handler.on_assumed_pod_update(new, find_pod_events(old, new, self._gates))
            if new.metadata.deletion_timestamp and not old.metadata.deletion_timestamp:
                self._handler.on_assumed_pod_delete(self._cache.assigned_pods[new.metadata.uid])
            return
        if not self._is_responsible_for(old):
            return
        self._handler.on_pending_pod_update(old, new, find_pod_events(old, new, self._gates))
        old_nomination = old.status.nominated_node_name
        if old_nomination and old_nomination != new.status.nominated_node_name:
            self._notify_nomination_removed(old, old_nomination)

    def _delete_pod(self, pod: Pod) -> None:
        """Delete *pod*. Source: pkg/scheduler/eventhandlers.go, Scheduler.deletePodFromSchedulingQueue (1.37)."""
        uid = pod.uid_or_key
        if pod.spec.node_name:
            self._cache.remove_pod(uid)
            self._handler.on_cluster_event(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, pod, None))
            if self._waits_for_resize(pod):
                self._handler.on_pending_pod_delete(pod)
            return
        assumed_pod = self._cache.assigned_pods[uid] if self._cache.is_assumed(uid) else None
        nominated_node = pod.status.nominated_node_name or self._cache.find_nominated_node(uid)
        if self._is_responsible_for(pod):
            # PreEnqueue of the remaining members of its group still counts the pod.
            self._handler.on_pending_pod_delete(pod)
        self._cache.remove_pod(uid)
        if not self._is_responsible_for(pod):
            return
        if assumed_pod is not None:
            self._handler.on_assumed_pod_delete(assumed_pod)
        elif nominated_node:  # the status lacks it if its write failed
            self._notify_nomination_removed(pod, nominated_node)

    def _notify_nomination_removed(self, pod: Pod, node_name: str) -> None:
        event = make_lost_nomination_event(pod, node_name)
        self._handler.on_cluster_event(event, max_priority=pod.spec.priority or 0)


def find_node_events(old: Node, new: Node, gates: FeatureGates) -> list[ClusterEvent]:
    """Return the events of an updated node in kube-scheduler's order; empty if no scheduling property changed.

    A heartbeat changes only the times of conditions, so it causes no event.

    Source: pkg/scheduler/framework/events.go, NodeSchedulingPropertiesChange (1.36).
    """
    actions = (
        (ActionType.UPDATE_NODE_TAINT, old.spec.unschedulable and not new.spec.unschedulable),
        (ActionType.UPDATE_NODE_ALLOCATABLE, not _are_equal_amounts(old.status.allocatable, new.status.allocatable)),
        (ActionType.UPDATE_NODE_LABEL, old.metadata.labels != new.metadata.labels),
        (ActionType.UPDATE_NODE_TAINT, old.spec.taints != new.spec.taints),
        (ActionType.UPDATE_NODE_CONDITION, _get_condition_statuses(old) != _get_condition_statuses(new)),
        (ActionType.UPDATE_NODE_ANNOTATION, old.metadata.annotations != new.metadata.annotations),
        (ActionType.UPDATE_NODE_PREEMPTION_POLICY, old.spec.pod_preemption_policy != new.spec.pod_preemption_policy),
        (
            ActionType.UPDATE_NODE_DECLARED_FEATURE,
            "NodeDeclaredFeatures" in gates and old.status.declared_features != new.status.declared_features,
        ),
    )
    return [ClusterEvent(EventResource.NODE, action, old, new) for action, is_changed in actions if is_changed]


def _are_equal_amounts(amounts: ResourceList, others: ResourceList) -> bool:
    """Return whether both have the same amounts, perhaps in other notations, such as `1Gi` and `1024Mi`.

    Source: apimachinery/pkg/api/equality/semantic.go, Semantic (1.36).
    """
    if amounts == others:
        return True
    pairs = [(parse(text), parse(others[name])) for name, text in amounts.items() if name in others]
    is_changed = any(amount.exceeds(other) or other.exceeds(amount) for amount, other in pairs)
    return amounts.keys() == others.keys() and not is_changed


def _get_condition_statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def find_pod_events(old: Pod, new: Pod, gates: FeatureGates) -> list[ClusterEvent]:
    """Return the events of an updated pod. If no scheduling property changed, return one event with the action UPDATE.

    The resource of a pod without a node is TARGET_POD.

    Source: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange, extractPodScaleDown (1.36, 1.37).
    """
    resource = EventResource.ASSIGNED_POD if new.spec.node_name else EventResource.TARGET_POD
    release = gates.release
    options = PodResourcesOptions(
        in_place_pod_level_resize="InPlacePodLevelResourcesVerticalScaling" in gates,
        maximum_of_sums=release.takes_maximum_of_resize_sums,
    )
    old_status, new_status = old.status, new.status
    old_claims = (old_status.resource_claim_statuses, old_status.extended_resource_claim_status)
    new_claims = (new_status.resource_claim_statuses, new_status.extended_resource_claim_status)
    actions = (
        (ActionType.UPDATE_POD_LABEL, old.metadata.labels != new.metadata.labels),
        (ActionType.UPDATE_POD_SCALE_DOWN, requests_more(old, new, options)),
        (ActionType.UPDATE_POD_SCALE_UP, release.splits_pod_events and requests_more(new, old, options)),
        (
            ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            old.spec.scheduling_gates and not new.spec.scheduling_gates,
        ),
        (ActionType.UPDATE_POD_TOLERATION, len(old.spec.tolerations) != len(new.spec.tolerations)),
        (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, old_claims != new_claims),
    )
    changes = [action for action, is_changed in actions if is_changed] or [ActionType.UPDATE]
    return [make_pod_event(release, resource, action, old, new) for action in changes]


def make_watched_pod_group(group: CoschedulingPodGroup, cache: Cache) -> PodGroup:
    """Return *group* with the priority of its first member in *cache*, and with the status that it has in *cache*.

    The status has the condition of the last attempt, which is not written to the API server.
    """
    key = f"{group.metadata.namespace}/{group.metadata.name}"
    known_group = cache.get_object(PodGroup, key)
    with cache.read() as snapshot:
        members = snapshot.pod_group(key)
        pods = (*members.pending.values(), *(pod.pod for pod in members.assigned.values()))
    pod_group = make_pod_group(group, pods[0].spec.priority if pods else None)
    if known_group is None or known_group.metadata.uid != group.metadata.uid:
        return pod_group
    return structs.replace(pod_group, status=known_group.status)


def find_group_with_new_priority(pod: Pod, cache: Cache) -> PodGroup | None:
    """Return the group of *pod* with the priority of *pod*, which will be its first member; None: no change."""
    key = get_pod_group_key(pod)
    if key is None:
        return None
    group = cache.get_object(PodGroup, key)
    with cache.read() as snapshot:
        has_members = bool(snapshot.pod_group(key).count)
    if group is None or has_members or group.spec.priority == pod.spec.priority:
        return None
    return structs.replace(group, spec=structs.replace(group.spec, priority=pod.spec.priority))
