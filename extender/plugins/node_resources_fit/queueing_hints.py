"""Queueing hints of NodeResourcesFit: the events that may make a rejected pod fit.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, Fit.EventsToRegister (1.36).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from extender.api.kinds.devices import DeviceClass
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.quantity import to_base_units
from extender.api.requests import (
    PodResourcesOptions,
    is_dra_extended_resource,
    is_resize_deferred,
    is_scalar_resource,
    pod_requests,
)
from extender.cache.device_classes import IMPLICIT_RESOURCE_PREFIX
from extender.cache.pod_info import PodInfo
from extender.config.feature_gates import FeatureGates
from extender.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    register_pod_events,
)

_NATIVE_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


class FitQueueingHints:
    """The queueing hints of NodeResourcesFit. They ignore the plugin's options, as upstream."""

    def __init__(self, gates: FeatureGates) -> None:
        self._pod_level_resources = "PodLevelResources" in gates
        self._in_place_resize = "InPlacePodVerticalScaling" in gates
        self._pod_level_resize = "InPlacePodLevelResourcesVerticalScaling" in gates
        self._dra_extended_resource = "DRAExtendedResource" in gates
        self._maximum_of_sums = gates.release.takes_maximum_of_resize_sums
        self._resize_preemption = "InPlacePodVerticalScalingSchedulerPreemption" in gates
        self._release = gates.release
        self._queueing_hints_enabled = "SchedulerQueueingHints" in gates

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events with their hints."""
        scale_down = ActionType.UPDATE_POD_SCALE_DOWN if self._in_place_resize else ActionType(0)
        node_actions = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        if not self._queueing_hints_enabled:
            node_actions |= ActionType.UPDATE_NODE_TAINT | ActionType.UPDATE_NODE_LABEL
        events = [
            *register_pod_events(
                self._release,
                self.is_schedulable_after_pod_event,
                assigned=ActionType.DELETE | scale_down,
                target=scale_down,
            ),
            ClusterEventWithHint(
                EventResource.NODE, node_actions, self.is_schedulable_after_node_change, per_signature=True
            ),
        ]
        if self._resize_preemption:
            events += register_pod_events(
                self._release,
                self.is_schedulable_after_scale_up,
                assigned=ActionType.UPDATE_POD_SCALE_UP,
                target=ActionType.UPDATE_POD_SCALE_UP,
            )
        if self._dra_extended_resource:
            events.append(
                ClusterEventWithHint(
                    EventResource.DEVICE_CLASS,
                    ActionType.ADD | ActionType.UPDATE,
                    self.is_schedulable_after_device_class_event,
                )
            )
        return events

    # -- pods

    def is_schedulable_after_pod_event(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        """Queue *pod* if an assigned or nominated pod was deleted, or a pod was scaled down.

        The scaled-down pod must be *pod* itself, or free a resource that *pod* requests.
        """
        old_pod, new_pod = event.old, event.new
        if self._is_event_of_other_node(pod, (old_pod if new_pod is None else new_pod).spec.node_name):
            return QueueingHint.SKIP
        if new_pod is None:
            node_name = old_pod.spec.node_name or old_pod.status.nominated_node_name
            return QueueingHint.queue_if(node_name)
        if not self._in_place_resize:
            return QueueingHint.SKIP
        return QueueingHint.queue_if(self._is_schedulable_after_pod_scale_down(pod, old_pod, new_pod))

    def is_schedulable_after_scale_up(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        """Queue *pod*, whose resize is deferred, if it or another pod of its node requests more.

        The pod may have fitted until now. Only then must it preempt others.
        """
        is_concerned = is_resize_deferred(pod.pod) and event.new.spec.node_name == pod.spec.node_name
        return QueueingHint.queue_if(is_concerned)

    def _is_event_of_other_node(self, pod: PodInfo, node_name: str) -> bool:
        """Return whether the resize of *pod* is deferred and *node_name* is not its node."""
        return self._resize_preemption and is_resize_deferred(pod.pod) and node_name != pod.spec.node_name

    def _is_schedulable_after_pod_scale_down(self, pod: PodInfo, old_pod: Pod, new_pod: Pod) -> bool:
        if not new_pod.spec.node_name:
            return new_pod.metadata.uid == pod.pod.metadata.uid
        old_requests, new_requests = self._compute_actual_requests(old_pod), self._compute_actual_requests(new_pod)
        requests = self._compute_actual_requests(pod.pod)
        return any(
            amount and old_requests.get(name, 0) > new_requests.get(name, 0) for name, amount in requests.items()
        )

    def _compute_actual_requests(self, pod: Pod) -> dict[str, int]:
        return pod_requests(
            pod,
            PodResourcesOptions(
                use_status_resources=self._in_place_resize,
                in_place_pod_level_resize=self._pod_level_resize,
                maximum_of_sums=self._maximum_of_sums,
            ),
        )

    # -- nodes

    def is_schedulable_after_node_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        """Queue *pod* if it would fit the empty node, and the node is new or has more of a requested resource."""
        if event.new is None or self._is_event_of_other_node(pod, event.new.metadata.name):
            return QueueingHint.SKIP
        options = PodResourcesOptions(use_status_resources=False, pod_level_resources=self._pod_level_resources)
        requests = {name: amount for name, amount in pod_requests(pod.pod, options).items() if amount}
        allocatable = _get_allocatable(event.new)
        delegated_resources = self._find_delegated_resources(requests, allocatable, event.device_resources)
        if allocatable.get("pods", 0) < 1 or any(
            amount > allocatable.get(name, 0) and name not in delegated_resources for name, amount in requests.items()
        ):
            return QueueingHint.SKIP
        if event.old is None or delegated_resources:
            return QueueingHint.QUEUE
        old_allocatable = _get_allocatable(event.old)
        return QueueingHint.queue_if(
            any(allocatable.get(name, 0) > old_allocatable.get(name, 0) for name in ("pods", *requests))
        )

    def _find_delegated_resources(
        self, requests: Mapping[str, int], allocatable: Mapping[str, int], device_resources: Collection[str] | None
    ) -> Collection[str]:
        """Return the requested resources that devices may back on a node.

        If *device_resources*, those with a device class, are unknown, every extended resource may have one.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA (1.36).
        """
        if not self._dra_extended_resource:
            return ()
        return [
            name
            for name in requests
            if allocatable.get(name, 0) <= 0
            and (is_dra_extended_resource(name) if device_resources is None else name in device_resources)
        ]

    # -- device classes

    def is_schedulable_after_device_class_event(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        """Queue *pod* if the device class now backs a resource that *pod* requests."""
        old_class: DeviceClass | None = event.old
        new_class: DeviceClass = event.new
        requests = pod_requests(pod.pod, PodResourcesOptions(use_status_resources=False))
        resource_name = new_class.spec.extended_resource_name
        if old_class is not None:
            if (old_class.spec.extended_resource_name or "") == (resource_name or ""):
                return QueueingHint.SKIP
        elif IMPLICIT_RESOURCE_PREFIX + new_class.metadata.name in requests:
            return QueueingHint.QUEUE
        return QueueingHint.queue_if(resource_name is not None and resource_name in requests)


def _get_allocatable(node: Node) -> dict[str, int]:
    """Return the allocatable amounts of *node*, including `pods`, in base units."""
    return {
        name: to_base_units(name, amount)
        for name, amount in node.status.allocatable.items()
        if name == "pods" or name in _NATIVE_RESOURCES or is_scalar_resource(name)
    }
