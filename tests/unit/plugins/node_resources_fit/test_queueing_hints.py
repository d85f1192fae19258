"""The queueing hints of NodeResourcesFit.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, Fit.EventsToRegister (1.36).
"""

from typing import Any

import pytest

from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.config.releases import RELEASE_1_36
from extender.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from extender.plugins.node_resources_fit.plugin import NodeResourcesFit
from tests.unit.plugins.builders import GPU, build_plugin, make_device_class, make_node, make_pod

PENDING_REQUESTS = {"cpu": "2", "memory": "1000"}
CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/gpu"


def hint(
    resource: EventResource,
    old: Any,
    new: Any,
    requests: dict[str, str] | None = None,
    device_resources: frozenset[str] | None = None,
    **gates: bool,
) -> QueueingHint:
    pod = make_pod(PENDING_REQUESTS if requests is None else requests, "waiting")
    pod_info: PodInfo = Cache().snapshot().make_pod_info(pod)
    for entry in build_plugin(NodeResourcesFit, gates=gates).events_to_register():
        if entry.resource is resource:
            event = ClusterEvent(resource, ActionType.UPDATE, old, new, device_resources=device_resources)
            return entry.hint(pod_info, event)
    raise AssertionError(f"nothing registered for {resource}")


def make_assigned_pod(requests: dict[str, str], name: str = "other") -> Any:
    return make_pod(requests, name, nodeName="n")


PODS: dict[str, tuple[Any, Any, QueueingHint]] = {
    "an assigned pod is deleted": (make_assigned_pod({}), None, QueueingHint.QUEUE),
    "a pending pod is deleted": (make_pod({"cpu": "9"}, "other"), None, QueueingHint.SKIP),
    "a nominated pod is deleted": (
        make_pod(None, "other", status={"nominatedNodeName": "n"}),
        None,
        QueueingHint.QUEUE,
    ),
    "a pod requests less of a requested resource": (
        make_assigned_pod({"cpu": "2"}),
        make_assigned_pod({"cpu": "1"}),
        QueueingHint.QUEUE,
    ),
    "a pod requests less memory": (
        make_assigned_pod({"memory": "2"}),
        make_assigned_pod({"memory": "1"}),
        QueueingHint.QUEUE,
    ),
    "a pod requests less of another resource": (
        make_assigned_pod({GPU: "2"}),
        make_assigned_pod({GPU: "1"}),
        QueueingHint.SKIP,
    ),
    "a pod requests more": (make_assigned_pod({"cpu": "1"}), make_assigned_pod({"cpu": "2"}), QueueingHint.SKIP),
    "a pending pod requests less": (
        make_pod({"cpu": "2"}, "other"),
        make_pod({"cpu": "1"}, "other"),
        QueueingHint.SKIP,
    ),
    "the pod itself requests less": (
        make_pod({"cpu": "3"}, "waiting"),
        make_pod(PENDING_REQUESTS, "waiting"),
        QueueingHint.QUEUE,
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), PODS.values(), ids=PODS)
def test_pods(old: Any, new: Any, expected: QueueingHint) -> None:
    assert hint(EventResource.POD, old, new) is expected


def test_a_resource_requested_with_zero_does_not_matter() -> None:
    old, new = make_assigned_pod({"cpu": "2"}), make_assigned_pod({"cpu": "1"})
    assert hint(EventResource.POD, old, new, {"cpu": "0", "memory": "1"}) is QueueingHint.SKIP


def test_without_in_place_resize_only_deleted_pods_matter() -> None:
    old, new = make_assigned_pod({"cpu": "2"}), make_assigned_pod({"cpu": "1"})
    assert hint(EventResource.POD, old, new, InPlacePodVerticalScaling=False) is QueueingHint.SKIP


NODES: dict[str, tuple[Any, Any, QueueingHint]] = {
    "a new node that is large enough": (None, make_node("n", cpu="2", memory="1000"), QueueingHint.QUEUE),
    "a new node that is too small": (None, make_node("n", cpu="1", memory="1000"), QueueingHint.SKIP),
    "a new node that allows no pods": (None, make_node("n", cpu="2", memory="1000", pods="0"), QueueingHint.SKIP),
    "a node has more of a requested resource": (
        make_node("n", cpu="1", memory="1000"),
        make_node("n", cpu="2", memory="1000"),
        QueueingHint.QUEUE,
    ),
    "a node has more, but not enough": (
        make_node("n", cpu="1", memory="1"),
        make_node("n", cpu="2", memory="1"),
        QueueingHint.SKIP,
    ),
    "a node has more of another resource": (
        make_node("n", cpu="2", memory="1000"),
        make_node("n", cpu="2", memory="1000", gpu="1"),
        QueueingHint.SKIP,
    ),
    "a node has less": (
        make_node("n", cpu="9", memory="1000"),
        make_node("n", cpu="2", memory="1000"),
        QueueingHint.SKIP,
    ),
    "a node allows more pods": (
        make_node("n", cpu="2", memory="1000", pods="1"),
        make_node("n", cpu="2", memory="1000", pods="2"),
        QueueingHint.QUEUE,
    ),
    "a node is deleted": (make_node("n", cpu="2", memory="1000"), None, QueueingHint.SKIP),
}


@pytest.mark.parametrize(("old", "new", "expected"), NODES.values(), ids=NODES)
def test_nodes(old: Any, new: Any, expected: QueueingHint) -> None:
    assert hint(EventResource.NODE, old, new) is expected


def test_the_hints_of_one_plugin_differ_by_event_and_by_requests() -> None:
    snapshot = Cache().snapshot()
    pods = [snapshot.make_pod_info(make_pod({"cpu": cpu}, f"waiting-{cpu}")) for cpu in ("1", "2", "3")]
    (entry,) = (
        entry for entry in build_plugin(NodeResourcesFit).events_to_register() if entry.resource is EventResource.NODE
    )
    events = [
        ClusterEvent(EventResource.NODE, ActionType.ADD, None, make_node("n", cpu=cpu)) for cpu in ("2", "1", "3")
    ]
    hints = [[entry.hint(pod, event) is QueueingHint.QUEUE for pod in (*pods, *pods)] for event in events]
    assert hints == [[True, True, False] * 2, [True, False, False] * 2, [True, True, True] * 2]


def test_a_pod_without_requests_is_queued_by_nodes_that_allow_more_pods() -> None:
    assert hint(EventResource.NODE, make_node("n", cpu="1"), make_node("n", cpu="2"), {}) is QueueingHint.SKIP
    assert hint(EventResource.NODE, make_node("n", pods="1"), make_node("n", pods="2"), {}) is QueueingHint.QUEUE


def test_devices_may_back_a_resource_that_the_node_does_not_have() -> None:
    nodes = (make_node("n", cpu="1"), make_node("n", cpu="2"))
    assert hint(EventResource.NODE, *nodes, {GPU: "1"}) is QueueingHint.QUEUE
    assert hint(EventResource.NODE, *nodes, {GPU: "1"}, DRAExtendedResource=False) is QueueingHint.SKIP
    assert hint(EventResource.NODE, make_node("n", gpu="1"), make_node("n", gpu="2"), {GPU: "3"}) is QueueingHint.SKIP


@pytest.mark.parametrize(
    ("device_resources", "expected"),
    [({GPU}, QueueingHint.QUEUE), ({"example.com/nic"}, QueueingHint.SKIP), ((), QueueingHint.SKIP)],
    ids=["its class exists", "another class exists", "no class exists"],
)
@pytest.mark.parametrize("old", [None, make_node("n", cpu="1")], ids=["new node", "more of another resource"])
def test_devices_back_a_resource_if_its_class_exists(old: Any, device_resources: Any, expected: QueueingHint) -> None:
    """Source: pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA (1.36)."""
    node = make_node("n", cpu="2")
    assert hint(EventResource.NODE, old, node, {GPU: "1"}, frozenset(device_resources)) is expected


DEVICE_CLASSES: dict[str, tuple[Any, Any, dict[str, str], QueueingHint]] = {
    "a new class that backs the resource": (None, make_device_class("gpu", GPU), {GPU: "1"}, QueueingHint.QUEUE),
    "a new class that backs another": (
        None,
        make_device_class("gpu", "example.com/nic"),
        {GPU: "1"},
        QueueingHint.SKIP,
    ),
    "a new class that names no resource": (None, make_device_class("gpu"), {GPU: "1"}, QueueingHint.SKIP),
    "a new class whose own resource is requested": (
        None,
        make_device_class("gpu"),
        {CLASS_RESOURCE: "1"},
        QueueingHint.QUEUE,
    ),
    "a class now backs the resource": (
        make_device_class("gpu"),
        make_device_class("gpu", GPU),
        {GPU: "1"},
        QueueingHint.QUEUE,
    ),
    "a class backs the resource as before": (
        make_device_class("gpu", GPU),
        make_device_class("gpu", GPU),
        {GPU: "1"},
        QueueingHint.SKIP,
    ),
    "a class no longer backs the resource": (
        make_device_class("gpu", GPU),
        make_device_class("gpu"),
        {GPU: "1"},
        QueueingHint.SKIP,
    ),
    "a change does not affect a class's own resource": (
        make_device_class("gpu"),
        make_device_class("gpu", GPU),
        {CLASS_RESOURCE: "1"},
        QueueingHint.SKIP,
    ),
}


@pytest.mark.parametrize(("old", "new", "requests", "expected"), DEVICE_CLASSES.values(), ids=DEVICE_CLASSES)
def test_device_classes(old: Any, new: Any, requests: dict[str, str], expected: QueueingHint) -> None:
    assert hint(EventResource.DEVICE_CLASS, old, new, requests) is expected


NODE = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
POD = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
DEVICE_CLASS = (EventResource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
EVENTS: dict[str, tuple[dict[str, bool], list[tuple[EventResource, ActionType]]]] = {
    "with the default gates": ({}, [(EventResource.POD, POD), (EventResource.NODE, NODE), DEVICE_CLASS]),
    "without in-place resize": (
        {"InPlacePodVerticalScaling": False},
        [(EventResource.POD, ActionType.DELETE), (EventResource.NODE, NODE), DEVICE_CLASS],
    ),
    "without devices for extended resources": (
        {"DRAExtendedResource": False},
        [(EventResource.POD, POD), (EventResource.NODE, NODE)],
    ),
    "without hints": (
        {"SchedulerQueueingHints": False},
        [
            (EventResource.POD, POD),
            (EventResource.NODE, NODE | ActionType.UPDATE_NODE_TAINT | ActionType.UPDATE_NODE_LABEL),
            DEVICE_CLASS,
        ],
    ),
}


@pytest.mark.parametrize(("gates", "expected"), EVENTS.values(), ids=EVENTS)
def test_events(gates: dict[str, bool], expected: list[tuple[EventResource, ActionType]]) -> None:
    plugin = build_plugin(NodeResourcesFit, gates=gates, release=RELEASE_1_36)
    assert [(entry.resource, entry.action) for entry in plugin.events_to_register()] == expected
