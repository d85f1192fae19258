"""Cache updates and notifications for added, changed and deleted API objects."""

from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.pod_info import AssignedPodInfo
from extender.framework.events import ClusterEvent
from extender.scheduler.event_handlers import ClusterEventDispatcher, EventHandler
from tests.build import make_node, make_object, make_pod
from tests.unit.plugins.builders import make_device_class


class RecordingHandler(EventHandler):
    """Records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.events: list[ClusterEvent] = []

    def on_pending_pod_add(self, pod: Pod) -> None:
        self.calls.append(f"waits {pod.key}")

    def on_pending_pod_update(self, old: Pod, new: Pod, events: list[ClusterEvent]) -> None:
        self.calls.append(f"changed {new.key}: {' '.join(event.label for event in events)}")

    def on_pending_pod_delete(self, pod: Pod) -> None:
        self.calls.append(f"left {pod.key}")

    def on_assumed_pod_delete(self, assumed_pod: AssignedPodInfo) -> None:
        self.calls.append(f"assumed left {assumed_pod.key} on {assumed_pod.node_name}")

    def on_cluster_event(self, event: ClusterEvent, *, max_priority: int | None = None) -> None:
        self.events.append(event)
        self.calls.append(event.label if max_priority is None else f"{event.label} up to {max_priority}")


@pytest.fixture(name="handling")
def make_handling() -> tuple[Cache, ClusterEventDispatcher, RecordingHandler]:
    cache, handler = Cache(), RecordingHandler()
    return cache, ClusterEventDispatcher(cache, handler, ["default-scheduler"]), handler


Handling = tuple[Cache, ClusterEventDispatcher, RecordingHandler]


def test_a_pending_pod_of_our_scheduler_is_handled(handling: Handling) -> None:
    cache, dispatcher, handler = handling

    dispatcher.on_add(make_pod("web"))

    assert handler.calls == ["waits default/web"]
    assert list(cache.pending_pods) == ["uid-default-web"]


def test_a_pending_pod_of_another_scheduler_is_cached_but_not_handled(handling: Handling) -> None:
    """Source: pkg/scheduler/eventhandlers.go, responsibleForPod (1.36)."""
    cache, dispatcher, handler = handling

    dispatcher.on_add(make_pod("web", spec={"schedulerName": "other"}))

    assert handler.calls == []
    assert list(cache.pending_pods) == ["uid-default-web"]


def test_a_pod_that_gets_its_node_leaves_the_queue(handling: Handling) -> None:
    """Source: pkg/scheduler/eventhandlers.go, Scheduler.updatePod (1.36)."""
    cache, dispatcher, handler = handling
    dispatcher.on_add(make_pod("web"))

    dispatcher.on_update(make_pod("web"), make_pod("web", node="n1"))

    assert handler.calls[1:] == ["AssignedPodAdd", "left default/web"]
    assert list(cache.assigned_pods) == ["uid-default-web"]


def test_a_deleted_pod_frees_its_node(handling: Handling) -> None:
    cache, dispatcher, handler = handling
    dispatcher.on_add(make_pod("web", node="n1"))

    dispatcher.on_delete(make_pod("web", node="n1"))

    assert handler.calls == ["AssignedPodAdd", "AssignedPodDelete"]
    assert dict(cache.assigned_pods) == {}


def test_a_recreated_pod_is_another_pod(handling: Handling) -> None:
    cache, dispatcher, handler = handling
    first, second = make_pod("web"), make_pod("web", metadata={"uid": "second"})
    dispatcher.on_add(first)

    dispatcher.on_update(first, second)

    assert handler.calls == ["waits default/web", "left default/web", "waits default/web"]
    assert list(cache.pending_pods) == ["second"]


def test_a_terminating_assumed_pod_is_handled(handling: Handling) -> None:
    """Source: pkg/scheduler/eventhandlers.go, Scheduler.handleAssumedPodDeletion (1.36)."""
    cache, dispatcher, handler = handling
    pod = make_pod("web")
    dispatcher.on_add(pod)
    cache.assume(pod, "n1")
    dying = make_pod("web", metadata={"deletionTimestamp": "2026-03-01T00:00:00Z"})

    dispatcher.on_update(pod, dying)

    assert handler.calls == ["waits default/web", "assumed left default/web on n1"]


def test_other_changes_of_an_assumed_pod_are_ignored(handling: Handling) -> None:
    """Source: pkg/scheduler/eventhandlers.go, Scheduler.updatePodInSchedulingQueue (1.36)."""
    cache, dispatcher, handler = handling
    pod = make_pod("web")
    dispatcher.on_add(pod)
    cache.assume(pod, "n1")

    dispatcher.on_update(pod, make_pod("web", labels={"a": "b"}))

    assert handler.calls == ["waits default/web"]
    assert cache.is_assumed("uid-default-web")


@pytest.mark.parametrize("how", ["deleted", "nominated elsewhere"])
def test_a_removed_nomination_helps_pods_of_no_higher_priority(handling: Handling, how: str) -> None:
    """Source: pkg/scheduler/eventhandlers.go, Scheduler.deletePodFromSchedulingQueue, hasNominatedNodeNameChanged
    (1.36).
    """
    _, dispatcher, handler = handling
    pod = make_pod("web", priority=7, status={"nominatedNodeName": "n1"})
    dispatcher.on_add(pod)

    if how == "deleted":
        dispatcher.on_delete(pod)
    else:
        dispatcher.on_update(pod, make_pod("web", priority=7, status={"nominatedNodeName": "n2"}))

    assert handler.calls[-1] == "AssignedPodDelete up to 7"


def test_other_kinds_update_the_cache_and_cause_an_event(handling: Handling) -> None:
    cache, dispatcher, handler = handling
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p"}
    old = make_object({**kind, "metadata": {"name": "fast"}})
    new = make_object({**kind, "metadata": {"name": "fast", "labels": {"a": "b"}}})

    dispatcher.on_add(old)
    dispatcher.on_update(old, new)
    assert cache.snapshot().get_object(type(new), "fast") is new

    dispatcher.on_delete(new)
    assert cache.snapshot().get_object(type(new), "fast") is None
    assert handler.calls == [f"storage.k8s.io/StorageClass{what}" for what in ("Add", "Update", "Delete")]


def test_a_namespace_updates_the_cache_without_an_event(handling: Handling) -> None:
    cache, dispatcher, handler = handling

    dispatcher.on_add(
        make_object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"x": "y"}}})
    )

    assert cache.snapshot().namespace_labels("a") == {"x": "y"}
    assert handler.calls == []


def test_a_taint_rule_causes_events_of_the_slices_that_it_taints(handling: Handling) -> None:
    """Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreFilter,
    DynamicResources.EventsToRegister (1.36).
    """
    cache, dispatcher, handler = handling
    for driver in ("one", "other"):
        spec = {"driver": driver, "pool": {"name": "pool"}, "devices": [{"name": "d"}]}
        raw = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": driver}, "spec": spec}
        cache.add_or_update_object(make_object(raw))

    def rule(effect: str, driver: str = "one") -> Any:
        spec = {"deviceSelector": {"driver": driver}, "taint": {"key": "broken", "effect": effect}}
        head = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "rule"}}
        return make_object({**head, "spec": spec})

    message = "resource.k8s.io/ResourceSliceUpdate"
    dispatcher.on_add(rule("NoSchedule"))
    assert handler.calls == [message]
    dispatcher.on_update(rule("NoSchedule"), rule("NoSchedule"))
    assert handler.calls == [message]
    dispatcher.on_update(rule("NoSchedule"), rule("NoExecute"))
    assert handler.calls == [message, message]
    dispatcher.on_update(rule("NoExecute"), rule("NoExecute", "other"))
    assert handler.calls == [message] * 4
    dispatcher.on_delete(rule("NoExecute", "other"))
    assert handler.calls == [message] * 5


def test_events_of_nodes_name_the_resources_of_device_classes(handling: Handling) -> None:
    """Source: pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA (1.36)."""
    _, dispatcher, handler = handling
    dispatcher.on_add(make_device_class("gpu", "example.com/gpu"))
    handler.events.clear()

    dispatcher.on_add(make_node("n1", allocatable={"cpu": "1"}))
    dispatcher.on_update(make_node("n1", allocatable={"cpu": "1"}), make_node("n1", allocatable={"cpu": "2"}))

    assert [(event.label, event.device_resources) for event in handler.events] == [
        (label, frozenset({"example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"}))
        for label in ("NodeAdd", "NodeUpdateNodeAllocatable")
    ]
