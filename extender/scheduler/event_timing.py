"""Measure the handling time of each event.

Source: pkg/scheduler/metrics/metrics.go, EventHandlingLatency (1.36).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from extender.api.kinds.pod import Pod
from extender.cache.pod_info import AssignedPodInfo
from extender.config.releases import Release
from extender.framework.events import ActionType, ClusterEvent, EventResource, make_pod_event
from extender.scheduler.event_handlers import EventHandler

ObserveDuration = Callable[[str, float], None]
"""A function that is called with the label of an event and the duration of its handling in seconds."""


class TimedEventHandler(EventHandler):
    """Forwards events to another event handler and measures the duration of each call."""

    def __init__(self, handler: EventHandler, observe: ObserveDuration, release: Release) -> None:
        self._handler, self._observe, self._release = handler, observe, release

    def _get_label(self, action: ActionType) -> str:
        """Return the label of *action* on a pod without a node. Its own updates have the labels of other pods' updates.

        Source: pkg/scheduler/eventhandlers.go, Scheduler.updatePodInSchedulingQueue (1.37).
        """
        return make_pod_event(self._release, EventResource.UNSCHEDULED_POD, action).label

    @contextmanager
    def _measure(self, label: str) -> Iterator[None]:
        start_time = time.perf_counter()
        yield
        self._observe(label, time.perf_counter() - start_time)

    def on_pending_pod_add(self, pod: Pod) -> None:
        """Forward the event and measure its handling."""
        with self._measure(self._get_label(ActionType.ADD)):
            self._handler.on_pending_pod_add(pod)

    def on_pending_pod_update(self, old: Pod, new: Pod, events: list[ClusterEvent]) -> None:
        """Forward the update and record the handling time once for each event label."""
        start_time = time.perf_counter()
        self._handler.on_pending_pod_update(old, new, events)
        for label in {self._get_label(action) for action in (ActionType.UPDATE, *(event.action for event in events))}:
            self._observe(label, time.perf_counter() - start_time)

    def on_pending_pod_delete(self, pod: Pod) -> None:
        """Forward the event and measure its handling."""
        with self._measure(self._get_label(ActionType.DELETE)):
            self._handler.on_pending_pod_delete(pod)

    def on_assumed_pod_delete(self, assumed_pod: AssignedPodInfo) -> None:
        """Forward the event and measure its handling."""
        with self._measure("AssignedPodDelete"):
            self._handler.on_assumed_pod_delete(assumed_pod)

    def on_cluster_event(self, event: ClusterEvent, *, max_priority: int | None = None) -> None:
        """Forward the event and measure its handling."""
        with self._measure(event.label):
            self._handler.on_cluster_event(event, max_priority=max_priority)
