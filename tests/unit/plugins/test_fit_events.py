"""Which events wake a pod that NodeResourcesFit refused. Source: B044."""

from typing import Any

import pytest

from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.framework.changes import Action, Change, Hint, Resource
from extender.plugins.node_resources_fit.plugin import NodeResourcesFit
from tests.unit.plugins.resource_worlds import GPU, a_class, a_node, a_pod, built

WAITING = {"cpu": "2", "memory": "1000"}
CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/gpu"


def hint(resource: Resource, old: Any, new: Any, requests: dict[str, str] | None = None, **gates: bool) -> Hint:
    pod = a_pod(WAITING if requests is None else requests, "waiting")
    query: PodQuery = ClusterState().snapshot().query(pod)
    for registration in built(NodeResourcesFit, gates=gates).events():
        if registration.resource is resource:
            return registration.hint(query, Change(resource, Action.UPDATE, old, new))
    raise AssertionError(f"nothing registered for {resource}")


def placed(requests: dict[str, str], name: str = "other") -> Any:
    return a_pod(requests, name, nodeName="n")


PODS: dict[str, tuple[Any, Any, Hint]] = {
    "a pod on a node is gone": (placed({}), None, Hint.QUEUE),
    "a waiting pod is gone": (a_pod({"cpu": "9"}, "other"), None, Hint.SKIP),
    "a nominated pod is gone": (a_pod(None, "other", status={"nominatedNodeName": "n"}), None, Hint.QUEUE),
    "a pod takes less of what is asked for": (placed({"cpu": "2"}), placed({"cpu": "1"}), Hint.QUEUE),
    "a pod takes less memory": (placed({"memory": "2"}), placed({"memory": "1"}), Hint.QUEUE),
    "a pod takes less of something else": (placed({GPU: "2"}), placed({GPU: "1"}), Hint.SKIP),
    "a pod takes more": (placed({"cpu": "1"}), placed({"cpu": "2"}), Hint.SKIP),
    "a waiting pod asks for less": (a_pod({"cpu": "2"}, "other"), a_pod({"cpu": "1"}, "other"), Hint.SKIP),
    "the pod itself asks for less": (a_pod({"cpu": "3"}, "waiting"), a_pod(WAITING, "waiting"), Hint.QUEUE),
}


@pytest.mark.parametrize(("old", "new", "expected"), PODS.values(), ids=PODS)
def test_pods(old: Any, new: Any, expected: Hint) -> None:
    assert hint(Resource.POD, old, new) is expected


def test_a_resource_asked_for_with_zero_does_not_matter() -> None:
    old, new = placed({"cpu": "2"}), placed({"cpu": "1"})
    assert hint(Resource.POD, old, new, {"cpu": "0", "memory": "1"}) is Hint.SKIP


def test_without_in_place_resize_only_deleted_pods_matter() -> None:
    old, new = placed({"cpu": "2"}), placed({"cpu": "1"})
    assert hint(Resource.POD, old, new, InPlacePodVerticalScaling=False) is Hint.SKIP


NODES: dict[str, tuple[Any, Any, Hint]] = {
    "a node came that is large enough": (None, a_node("n", cpu="2", memory="1000"), Hint.QUEUE),
    "a node came that is too small": (None, a_node("n", cpu="1", memory="1000"), Hint.SKIP),
    "a node came that takes no pods": (None, a_node("n", cpu="2", memory="1000", pods="0"), Hint.SKIP),
    "a node offers more of what is asked for": (
        a_node("n", cpu="1", memory="1000"),
        a_node("n", cpu="2", memory="1000"),
        Hint.QUEUE,
    ),
    "a node offers more, still not enough": (
        a_node("n", cpu="1", memory="1"),
        a_node("n", cpu="2", memory="1"),
        Hint.SKIP,
    ),
    "a node offers more of something else": (
        a_node("n", cpu="2", memory="1000"),
        a_node("n", cpu="2", memory="1000", gpu="1"),
        Hint.SKIP,
    ),
    "a node offers less": (a_node("n", cpu="9", memory="1000"), a_node("n", cpu="2", memory="1000"), Hint.SKIP),
    "a node takes more pods": (
        a_node("n", cpu="2", memory="1000", pods="1"),
        a_node("n", cpu="2", memory="1000", pods="2"),
        Hint.QUEUE,
    ),
    "a node is gone": (a_node("n", cpu="2", memory="1000"), None, Hint.SKIP),
}


@pytest.mark.parametrize(("old", "new", "expected"), NODES.values(), ids=NODES)
def test_nodes(old: Any, new: Any, expected: Hint) -> None:
    assert hint(Resource.NODE, old, new) is expected


def test_a_pod_that_asks_for_nothing_waits_for_nodes_that_take_more_pods() -> None:
    assert hint(Resource.NODE, a_node("n", cpu="1"), a_node("n", cpu="2"), {}) is Hint.SKIP
    assert hint(Resource.NODE, a_node("n", pods="1"), a_node("n", pods="2"), {}) is Hint.QUEUE


def test_devices_may_serve_what_a_node_does_not_offer() -> None:
    nodes = (a_node("n", cpu="1"), a_node("n", cpu="2"))
    assert hint(Resource.NODE, *nodes, {GPU: "1"}) is Hint.QUEUE
    assert hint(Resource.NODE, *nodes, {GPU: "1"}, DRAExtendedResource=False) is Hint.SKIP
    assert hint(Resource.NODE, a_node("n", gpu="1"), a_node("n", gpu="2"), {GPU: "3"}) is Hint.SKIP


CLASSES: dict[str, tuple[Any, Any, dict[str, str], Hint]] = {
    "a class came that serves the resource": (None, a_class("gpu", GPU), {GPU: "1"}, Hint.QUEUE),
    "a class came that serves another": (None, a_class("gpu", "example.com/nic"), {GPU: "1"}, Hint.SKIP),
    "a class came that serves none by name": (None, a_class("gpu"), {GPU: "1"}, Hint.SKIP),
    "a class came whose own resource is asked for": (None, a_class("gpu"), {CLASS_RESOURCE: "1"}, Hint.QUEUE),
    "a class now serves the resource": (a_class("gpu"), a_class("gpu", GPU), {GPU: "1"}, Hint.QUEUE),
    "a class serves the resource as before": (a_class("gpu", GPU), a_class("gpu", GPU), {GPU: "1"}, Hint.SKIP),
    "a class no longer serves the resource": (a_class("gpu", GPU), a_class("gpu"), {GPU: "1"}, Hint.SKIP),
    "a change leaves a class's own resource alone": (
        a_class("gpu"),
        a_class("gpu", GPU),
        {CLASS_RESOURCE: "1"},
        Hint.SKIP,
    ),
}


@pytest.mark.parametrize(("old", "new", "requests", "expected"), CLASSES.values(), ids=CLASSES)
def test_device_classes(old: Any, new: Any, requests: dict[str, str], expected: Hint) -> None:
    assert hint(Resource.DEVICE_CLASS, old, new, requests) is expected


NODE = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
POD = Action.DELETE | Action.UPDATE_POD_SCALE_DOWN
DEVICE_CLASS = (Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE)
REGISTERED: dict[str, tuple[dict[str, bool], list[tuple[Resource, Action]]]] = {
    "with the default gates": ({}, [(Resource.POD, POD), (Resource.NODE, NODE), DEVICE_CLASS]),
    "without in-place resize": (
        {"InPlacePodVerticalScaling": False},
        [(Resource.POD, Action.DELETE), (Resource.NODE, NODE), DEVICE_CLASS],
    ),
    "without devices for extended resources": (
        {"DRAExtendedResource": False},
        [(Resource.POD, POD), (Resource.NODE, NODE)],
    ),
    "without hints": (
        {"SchedulerQueueingHints": False},
        [
            (Resource.POD, POD),
            (Resource.NODE, NODE | Action.UPDATE_NODE_TAINT | Action.UPDATE_NODE_LABEL),
            DEVICE_CLASS,
        ],
    ),
}


@pytest.mark.parametrize(("gates", "expected"), REGISTERED.values(), ids=REGISTERED)
def test_events(gates: dict[str, bool], expected: list[tuple[Resource, Action]]) -> None:
    assert [(each.resource, each.action) for each in built(NodeResourcesFit, gates=gates).events()] == expected
