"""Queueing hints, which select the rejected pods to requeue after a cluster event.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.movePodsToActiveOrBackoffQueue;
pkg/scheduler/framework/types.go, MatchClusterEvents (1.36).
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Final

from extender.cache.pod_info import PodInfo
from extender.cache.pod_signature import PodSignature
from extender.config.feature_gates import FeatureGates
from extender.framework.binding_points import Permit, Reserve
from extender.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    QueueingHintFunction,
)
from extender.framework.extension_points import EnqueueExtensions, Filter, PreEnqueue, PreFilter
from extender.framework.plugin_errors import describe_value, format_exception, plugin_exceptions
from extender.framework.profiles import Profile
from extender.queueing.queued_entities import QueuedPodInfo
from extender.queueing.unschedulable_entities import PodRejection

log = logging.getLogger("extender.queueing")

_RESOURCES_OF_DEFAULT_EVENTS: Final = (
    EventResource.POD,
    EventResource.NODE,
    EventResource.PERSISTENT_VOLUME,
    EventResource.PERSISTENT_VOLUME_CLAIM,
    EventResource.CSI_NODE,
    EventResource.CSI_DRIVER,
    EventResource.CSI_STORAGE_CAPACITY,
    EventResource.STORAGE_CLASS,
    EventResource.RESOURCE_CLAIM,
    EventResource.DEVICE_CLASS,
)

_TAINT_UPDATE = ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)

EXTENDER_NAME = "Extender"
"""The plugin name under which rejections by outbound extenders are recorded.

Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36).
"""

QueueingHintObserver = Callable[[str, str, str, float], None]
"""Called after every queueing hint with plugin, event label, outcome (Queue, QueueSkip or Error) and seconds taken."""

PreQueueingHintObserver = Callable[[str, str], None]
"""Called after every pre-queueing hint with plugin and result (all_pods or narrowed)."""


class QueueingStrategy(IntEnum):
    """Where to requeue a pod. If several strategies apply, the maximum is used."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


def is_wildcard_event(event: ClusterEvent) -> bool:
    """Return whether *event* matches all registrations.

    A wildcard event concerns only the pod `event.new`, or all pods if `event.new` is None.
    """
    return event.resource is EventResource.ANY and event.action == ActionType.ALL


def build_queueing_hint_map(
    profile: Profile, default_events: tuple[ClusterEventWithHint, ...] = ()
) -> dict[str, tuple[ClusterEventWithHint, ...]]:
    """Return the registered events of each plugin of *profile*, by plugin name.

    *default_events* are the events of plugins without `events_to_register`, and of outbound extenders.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.fillEnqueueExtensions (1.36).
    """
    plugins_by_point = (
        profile.pre_enqueue_plugins,
        profile.pre_filter_plugins,
        profile.filter_plugins,
        profile.reserve_plugins,
        profile.permit_plugins,
    )
    plugins: dict[str, PreEnqueue | PreFilter | Filter | Reserve | Permit] = {
        plugin.name: plugin for point_plugins in plugins_by_point for plugin in point_plugins
    }
    hint_map = {
        name: tuple(plugin.events_to_register()) if isinstance(plugin, EnqueueExtensions) else default_events
        for name, plugin in plugins.items()
    }
    return {**hint_map, EXTENDER_NAME: default_events}


def make_default_events(gates: FeatureGates) -> tuple[ClusterEventWithHint, ...]:
    """Return the events that requeue the pods that plugins without `events_to_register` and extenders rejected.

    Events of ResourceSlices, VolumeAttachments and composite pod groups are not among them.

    Source: pkg/scheduler/framework/types.go, UnrollWildCardResource (1.36).
    """
    pod_groups = (EventResource.POD_GROUP,) if "GenericWorkload" in gates else ()
    resources = (*_RESOURCES_OF_DEFAULT_EVENTS, *pod_groups)
    return tuple(ClusterEventWithHint(resource, ActionType.ALL) for resource in resources)


def _build_requeueing_map(profile: Profile) -> dict[str, tuple[ClusterEventWithHint, ...]]:
    """Return the events that requeue the pods that each plugin of *profile* rejected, by plugin name.

    Source: pkg/scheduler/scheduler.go, buildQueueingHintMap (1.36).
    """
    hint_map = build_queueing_hint_map(profile, make_default_events(profile.gates))
    if not profile.release.requeues_after_taint_updates:
        return hint_map
    return {
        name: (*events, _TAINT_UPDATE) if _misses_taint_updates(events) else events for name, events in hint_map.items()
    }


def _misses_taint_updates(events: Iterable[ClusterEventWithHint]) -> bool:
    actions = [event.action for event in events if event.resource is EventResource.NODE]
    return any(ActionType.ADD in action for action in actions) and not any(
        ActionType.UPDATE_NODE_TAINT in action for action in actions
    )


class QueueingHints:
    """The registered events of all plugins, by scheduler name."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        on_hint: QueueingHintObserver | None = None,
        on_pre_hint: PreQueueingHintObserver | None = None,
    ) -> None:
        self._hint_maps = {name: _build_requeueing_map(profile) for name, profile in profiles.items()}
        self._pre_hints = [
            (plugin, registered_event, registered_event.pre_hint)
            for name, hint_map in self._hint_maps.items()
            if "SchedulerPreQueueingHints" in profiles[name].gates
            for plugin, registered_events in hint_map.items()
            for registered_event in registered_events
            if registered_event.pre_hint is not None
        ]
        self._on_hint, self._on_pre_hint = on_hint, on_pre_hint
        self._failed_plugins: set[str] = set()
        self._last_event: ClusterEvent | None = None
        self._matches_of_last_event: dict[tuple[str, str], tuple[ClusterEventWithHint, ...]] = {}
        self._hints_of_last_event: dict[tuple[int, PodSignature], QueueingHint] = {}
        self._interest_by_event_type: dict[tuple[EventResource, ActionType], bool] = {}

    def get_registered_events(self, scheduler_name: str, plugin: str) -> tuple[ClusterEventWithHint, ...]:
        """Return the events for which *plugin* registered."""
        return self._hint_maps.get(scheduler_name, {}).get(plugin, ())

    def is_event_of_interest(self, event: ClusterEvent) -> bool:
        """Return whether any plugin registered for *event*.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.moveAllToActiveOrBackoffQueue (1.36).
        """
        event_type = event.resource, event.action
        is_of_interest = self._interest_by_event_type.get(event_type)
        if is_of_interest is None:  # cached, because this runs for every assigned pod
            is_of_interest = self._interest_by_event_type[event_type] = is_wildcard_event(event) or any(
                registered_event.matches(event)
                for hint_map in self._hint_maps.values()
                for registered_events in hint_map.values()
                for registered_event in registered_events
            )
        return is_of_interest

    def may_concern(self, event: ClusterEvent, rejection: PodRejection) -> bool:
        """Return whether *event* may requeue pods with *rejection*; if not, no hint needs to be called for them."""
        scheduler_name, rejector_plugins, gating_plugin = rejection
        if is_wildcard_event(event) or not rejector_plugins or scheduler_name not in self._hint_maps:
            return True
        if gating_plugin and not self._find_matching_events(event, scheduler_name, gating_plugin):
            return False
        return any(self._find_matching_events(event, scheduler_name, plugin) for plugin in rejector_plugins)

    def may_concern_equal_pods(
        self, event: ClusterEvent, pod: QueuedPodInfo, concerns: Callable[[PodInfo], bool] | None
    ) -> bool:
        """Return whether *event* may requeue pods with the rejection and the signature of *pod*.

        The hints, and *concerns* of `find_concerned`, are called for *pod* only if they depend on nothing else;
        otherwise the result is true.
        """
        scheduler_name = pod.pod_info.spec.scheduler_name
        if not all(
            _is_hint_per_signature(registered_event, event)
            for plugin in pod.rejector_plugins
            for registered_event in self._find_matching_events(event, scheduler_name, plugin)
        ):
            return True
        if concerns is not None and not concerns(pod.pod_info):
            return False
        return self.is_pod_worth_requeuing(pod, event) is not QueueingStrategy.SKIP

    def find_concerned(self, event: ClusterEvent, rejection: PodRejection) -> Callable[[PodInfo], bool] | None:
        """Return a function that selects the pods with *rejection* that *event* may requeue; None if all pods may be.

        The hints for the other pods would be SKIP. *rejection* is one that `may_concern` accepts.
        """
        if is_wildcard_event(event) or not rejection.rejector_plugins:
            return None
        filters: list[Callable[[PodInfo], bool]] = []
        for plugin in rejection.rejector_plugins:
            for registered_event in self._find_matching_events(event, rejection.scheduler_name, plugin):
                if registered_event.find_concerned is None:
                    return None
                try:
                    concerns = registered_event.find_concerned(event)
                except plugin_exceptions() as error:
                    self._log_first_failure(plugin, registered_event.find_concerned, error)
                    return None
                if concerns is None:
                    return None
                filters.append(concerns)
        if len(filters) <= 1:  # as in most cases; this runs for thousands of waiting pods
            return filters[0] if filters else None
        return lambda pod: any(concerns(pod) for concerns in filters)

    def find_filters(self, event: ClusterEvent) -> list[Callable[[PodInfo], bool]]:
        """Return functions of which one accepts each pod that *event* may concern; empty if it may concern all pods.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.runPreQueueingHintPlugins (1.37).
        """
        filters: list[Callable[[PodInfo], bool]] = []
        for plugin, registered_event, pre_hint in self._pre_hints:
            if is_wildcard_event(event) or not registered_event.matches(event):
                continue
            try:
                concerns = pre_hint(event)
            except plugin_exceptions() as error:  # as in kube-scheduler, all pods are considered then
                self._log_first_failure(plugin, pre_hint, error)
                return []
            if self._on_pre_hint:
                self._on_pre_hint(plugin, "all_pods" if concerns is None else "narrowed")
            if concerns is None:
                return []
            filters.append(concerns)
        return filters

    def is_pod_worth_requeuing(self, pod: QueuedPodInfo, event: ClusterEvent) -> QueueingStrategy:
        """Return how to requeue *pod* after *event*, according to the hints of the plugins that rejected the pod.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isPodWorthRequeuing (1.36).
        """
        rejector_plugins = pod.rejector_plugins
        if not rejector_plugins:
            return QueueingStrategy.AFTER_BACKOFF
        if is_wildcard_event(event):
            return (
                QueueingStrategy.SKIP
                if event.new is not None and not _has_same_uid(event, pod)
                else QueueingStrategy.AFTER_BACKOFF
            )
        scheduler_name = pod.pod_info.spec.scheduler_name
        if scheduler_name not in self._hint_maps:
            return QueueingStrategy.AFTER_BACKOFF
        strategy = QueueingStrategy.SKIP
        for plugin in rejector_plugins:
            for registered_event in self._find_matching_events(event, scheduler_name, plugin):
                if self._call_hint(plugin, registered_event, pod, event) is QueueingHint.SKIP:
                    continue
                if plugin in pod.pending_plugins:
                    return QueueingStrategy.IMMEDIATELY
                if not pod.pending_plugins:
                    return QueueingStrategy.AFTER_BACKOFF
                strategy = QueueingStrategy.AFTER_BACKOFF
        return strategy

    def _find_matching_events(
        self, event: ClusterEvent, scheduler_name: str, plugin: str
    ) -> tuple[ClusterEventWithHint, ...]:
        """Return the registered events of *plugin* that match *event*, cached for the next pods."""
        if self._last_event is not event:
            self._last_event, self._matches_of_last_event, self._hints_of_last_event = event, {}, {}
        matching_events = self._matches_of_last_event.get((scheduler_name, plugin))
        if matching_events is None:
            registered_events = self.get_registered_events(scheduler_name, plugin)
            matching_events = tuple(
                registered_event for registered_event in registered_events if registered_event.matches(event)
            )
            self._matches_of_last_event[scheduler_name, plugin] = matching_events
        return matching_events

    def get_strategy_for_events(self, pod: QueuedPodInfo, events: Iterable[ClusterEvent]) -> QueueingStrategy:
        """Return the maximum of the strategies for *events*.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.determineSchedulingHintForInFlightPod
        (1.36).
        """
        strategy = QueueingStrategy.SKIP
        for event in events:
            strategy = max(strategy, self.is_pod_worth_requeuing(pod, event))
            if strategy is QueueingStrategy.IMMEDIATELY or (
                strategy is QueueingStrategy.AFTER_BACKOFF and not pod.pending_plugins
            ):
                return strategy
        return strategy

    def _call_hint(
        self, plugin: str, registered_event: ClusterEventWithHint, pod: QueuedPodInfo, event: ClusterEvent
    ) -> QueueingHint:
        """Return the hint. An event that is registered without a function requeues the pod; it is observed too.

        Source: pkg/scheduler/scheduler.go, defaultQueueingHintFn (1.36).
        """
        hint = QueueingHint.QUEUE
        outcome = hint.value
        start_time = time.perf_counter() if self._on_hint else 0.0
        if registered_event.hint is not None:
            try:
                hint = self._get_or_compute_hint(registered_event, registered_event.hint, pod.pod_info, event)
                if type(hint) is not QueueingHint:
                    raise ValueError(f"returned {describe_value(hint)}, want QueueingHint.QUEUE or QueueingHint.SKIP")
                outcome = hint.value
            except plugin_exceptions() as error:  # as in kube-scheduler, a failed hint requeues the pod
                self._log_first_failure(plugin, registered_event.hint, error)
                outcome = "Error"
        if self._on_hint:
            self._on_hint(plugin, event.label, outcome, time.perf_counter() - start_time)
        return hint

    def _get_or_compute_hint(
        self, registered_event: ClusterEventWithHint, function: QueueingHintFunction, pod: PodInfo, event: ClusterEvent
    ) -> QueueingHint:
        if pod.spec.node_name or not _is_hint_per_signature(registered_event, event):
            return function(pod, event)
        key = id(registered_event), pod.signature
        hint = self._hints_of_last_event.get(key)
        if hint is None:  # cached, because thousands of waiting pods may be equal
            hint = self._hints_of_last_event[key] = function(pod, event)
        return hint

    def _log_first_failure(self, plugin: str, function: Callable[..., object], error: BaseException) -> None:
        """Log the first failure of each plugin only, because hints run for every event and every rejected pod."""
        if plugin not in self._failed_plugins:
            self._failed_plugins.add(plugin)
            text = format_exception(error, function.__module__)
            log.error('running a queueing hint of plugin "%s": %s; a hint that fails requeues the pod', plugin, text)


def _is_hint_per_signature(registered_event: ClusterEventWithHint, event: ClusterEvent) -> bool:
    """Return whether the hint for *event* is the same for all waiting pods with equal signatures."""
    return registered_event.per_signature and event.resource in (EventResource.NODE, EventResource.ASSIGNED_POD)


def _has_same_uid(event: ClusterEvent, pod: QueuedPodInfo) -> bool:
    metadata = getattr(event.new, "metadata", None)
    return metadata is not None and metadata.uid == pod.pod_info.pod.metadata.uid
