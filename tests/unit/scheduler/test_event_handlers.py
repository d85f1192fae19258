"""Cache updates and notifications for added, changed and deleted API objects."""

from typing import Any, cast

import pytest

from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import StorageClass
from extender.cache.cache import Cache
from extender.cache.pod_info import AssignedPodInfo
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.framework.events import ClusterEvent
from extender.scheduler.event_handlers import ClusterEventDispatcher, EventHandler, find_node_events, find_pod_events
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
    new: Any = make_object({**kind, "metadata": {"name": "fast", "labels": {"a": "b"}}})

    dispatcher.on_add(old)
    dispatcher.on_update(old, new)
    assert cache.snapshot().get_object(type(new), "fast") is new

    dispatcher.on_delete(cast("StorageClass", new))
    assert cache.snapshot().get_object(StorageClass, "fast") is None
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


GATES_1_36, GATES_1_37 = FeatureGates(release=RELEASE_1_36), FeatureGates(release=RELEASE_1_37)


@pytest.mark.parametrize(
    ("after", "labels"),
    [
        ({}, []),
        ({"labels": {"zone": "a"}}, ["NodeUpdateNodeLabel"]),
        ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, ["NodeUpdateNodeTaint"]),
        ({"allocatable": {"cpu": "8"}}, ["NodeUpdateNodeAllocatable"]),
        ({"allocatable": {}}, ["NodeUpdateNodeAllocatable"]),
        ({"features": ["X"]}, ["NodeUpdateNodeDeclaredFeature"]),
        ({"metadata": {"annotations": {"a": "b"}}}, ["NodeUpdateNodeAnnotation"]),
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, ["NodeUpdateNodeCondition"]),
        ({"unschedulable": True}, []),
        (
            {"labels": {"zone": "a"}, "allocatable": {"cpu": "8"}},
            ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"],
        ),
    ],
    ids=[
        "nothing", "labels", "taints", "allocatable", "no allocatable", "features", "annotations", "conditions",
        "a cordon helps nobody", "several, in order",
    ],
)  # fmt: skip
def test_a_changed_node_causes_one_event_per_property(after: dict[str, Any], labels: list[str]) -> None:
    """Source: pkg/scheduler/framework/events.go, NodeSchedulingPropertiesChange (1.36)."""
    assert [change.label for change in find_node_events(make_node("n"), make_node("n", **after), GATES_1_36)] == labels


def test_the_same_amounts_in_other_notations_cause_no_event() -> None:
    old = make_node("n", allocatable={"cpu": "2", "memory": "1Gi", "pods": "110"})
    new = make_node("n", allocatable={"cpu": "2000m", "memory": "1048576Ki", "pods": "11e1"})

    assert find_node_events(old, new, GATES_1_36) == []


def test_an_uncordoned_node_causes_a_taint_event() -> None:
    changes = find_node_events(make_node("n", unschedulable=True), make_node("n"), GATES_1_36)

    assert [change.label for change in changes] == ["NodeUpdateNodeTaint"]


def test_a_heartbeat_causes_no_event() -> None:
    def beat(when: str) -> Any:
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": when}]
        return make_node("n", status={"conditions": conditions}, metadata={"resourceVersion": when})

    assert find_node_events(beat("2026-03-01T00:00:00Z"), beat("2026-03-01T00:00:10Z"), GATES_1_36) == []


def list_pod_event_labels(before: dict[str, Any], after: dict[str, Any], gates: FeatureGates) -> list[str]:
    """Return the labels of the events of a pod with the fields *before* that gets the fields *after*."""
    return [event.label for event in find_pod_events(make_pod("p", **before), make_pod("p", **after), gates)]


@pytest.mark.parametrize(
    ("before", "after", "labels"),
    [
        ({}, {"labels": {"a": "b"}}, ["UnschedulablePodUpdatePodLabel"]),
        ({"requests": {"cpu": "2"}}, {"requests": {"cpu": "1"}}, ["UnschedulablePodUpdatePodScaleDown"]),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, ["UnschedulablePodUpdate"]),
        (
            {"spec": {"schedulingGates": [{"name": "g"}]}},
            {},
            ["UnschedulablePodUpdatePodSchedulingGatesEliminated"],
        ),
        ({}, {"spec": {"tolerations": [{"operator": "Exists"}]}}, ["UnschedulablePodUpdatePodToleration"]),
        ({"node": "n"}, {"node": "n", "labels": {"a": "b"}}, ["AssignedPodUpdatePodLabel"]),
        ({}, {"priority": 3}, ["UnschedulablePodUpdate"]),
    ],
)
def test_a_changed_pod_causes_one_event_per_property(
    before: dict[str, Any], after: dict[str, Any], labels: list[str]
) -> None:
    """Source: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange (1.36)."""
    assert list_pod_event_labels(before, after, GATES_1_36) == labels


@pytest.mark.parametrize(
    ("before", "after", "labels"),
    [
        ({}, {"labels": {"a": "b"}}, ["TargetPodUpdatePodLabel"]),
        ({"requests": {"cpu": "2"}}, {"requests": {"cpu": "1"}}, ["TargetPodUpdatePodScaleDown"]),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, ["TargetPodUpdatePodScaleUp"]),
        ({}, {"requests": {"cpu": "2"}}, ["TargetPodUpdatePodScaleUp"]),
        (
            {"requests": {"ephemeral-storage": "500m"}},
            {"requests": {"ephemeral-storage": "1"}},
            ["TargetPodUpdatePodScaleUp"],
        ),
        (
            {"requests": {"cpu": "1", "memory": "2Gi"}},
            {"requests": {"cpu": "2", "memory": "1Gi"}},
            ["TargetPodUpdatePodScaleDown", "TargetPodUpdatePodScaleUp"],
        ),
        (
            {"node": "n", "requests": {"cpu": "1"}},
            {"node": "n", "requests": {"cpu": "2"}},
            ["AssignedPodUpdatePodScaleUp"],
        ),
        ({}, {"priority": 3}, ["TargetPodUpdate"]),
    ],
)
def test_since_1_37_a_pod_has_events_of_its_own_and_of_higher_requests(
    before: dict[str, Any], after: dict[str, Any], labels: list[str]
) -> None:
    """Source: pkg/scheduler/framework/events.go, PodSchedulingPropertiesChange, extractPodScaleUp (1.37)."""
    assert list_pod_event_labels(before, after, GATES_1_37) == labels


@pytest.mark.parametrize(
    ("release", "label"),
    [(RELEASE_1_36, "AssignedPodUpdate"), (RELEASE_1_37, "AssignedPodUpdatePodScaleDown")],
)
def test_a_smaller_allocation_without_actuated_requests_scales_a_pod_down_since_1_37(
    release: Release, label: str
) -> None:
    """Source: component-helpers/resource/helpers.go, AggregateContainerRequests (1.36, 1.37)."""

    def make_resized_pod(allocated: str) -> Pod:
        statuses = [{"name": "app", "allocatedResources": {"cpu": allocated}}]
        return make_pod("p", node="n", requests={"cpu": "1"}, status={"containerStatuses": statuses})

    events = find_pod_events(make_resized_pod("3"), make_resized_pod("2"), FeatureGates(release=release))
    assert [event.label for event in events] == [label]


def test_declared_features_cause_no_event_without_their_gate() -> None:
    """Source: pkg/scheduler/framework/events.go, NodeSchedulingPropertiesChange (1.36)."""
    gates = FeatureGates({"NodeDeclaredFeatures": False}, RELEASE_1_36)
    assert find_node_events(make_node("n"), make_node("n", features=["X"]), gates) == []


@pytest.mark.parametrize(("enabled", "label"), [(True, "AssignedPodUpdatePodScaleDown"), (False, "AssignedPodUpdate")])
def test_pod_level_resources_in_the_status_count_with_their_gate(enabled: bool, label: str) -> None:
    """The kubelet has less allocated to the pod than before; the spec is the same.

    Source: pkg/scheduler/framework/events.go, extractPodScaleDown; component-helpers/resource/helpers.go,
    determineEffectiveRequests (1.37).
    """

    def make_resized_pod(allocated: str) -> Pod:
        resources = {"requests": {"cpu": "1"}}
        status = {"resources": {"requests": {"cpu": allocated}}, "allocatedResources": {"cpu": allocated}}
        return make_pod("p", node="n", spec={"resources": resources}, status=status)

    gates = FeatureGates({"InPlacePodLevelResourcesVerticalScaling": enabled}, RELEASE_1_37)
    events = find_pod_events(make_resized_pod("3"), make_resized_pod("2"), gates)
    assert [event.label for event in events] == [label]
