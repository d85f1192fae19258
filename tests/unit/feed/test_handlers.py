"""What is written and what is told when an API object appears, changes or goes."""

from typing import Any

import pytest

from extender.cluster.state import ClusterState
from extender.feed.differences import node_changes, pod_changes
from extender.feed.handlers import Deaf, Feed
from extender.framework.changes import Change
from extender.objects.pod import Pod
from tests.build import a_node, a_pod, an_object


class Diary(Deaf):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def pod_waits(self, pod: Pod) -> None:
        self.heard.append(f"waits {pod.key}")

    def pod_changed(self, old: Pod, new: Pod, changes: list[Change]) -> None:
        self.heard.append(f"changed {new.key}: {' '.join(change.label for change in changes)}")

    def pod_left(self, pod: Pod) -> None:
        self.heard.append(f"left {pod.key}")

    def assumed_pod_left(self, pod: Pod) -> None:
        self.heard.append(f"assumed left {pod.key}")

    def happened(self, change: Change, *, priority: int | None = None) -> None:
        self.heard.append(change.label if priority is None else f"{change.label} up to {priority}")


@pytest.fixture(name="world")
def a_world() -> tuple[ClusterState, Feed, Diary]:
    state, diary = ClusterState(), Diary()
    return state, Feed(state, diary, ["default-scheduler"]), diary


World = tuple[ClusterState, Feed, Diary]


def test_a_waiting_pod_of_ours_is_told(world: World) -> None:
    state, feed, diary = world

    feed.added(a_pod("web"))

    assert diary.heard == ["waits default/web"]
    assert list(state.waiting) == ["uid-default-web"]


def test_a_waiting_pod_of_another_scheduler_is_known_but_not_told(world: World) -> None:
    """Source: A007."""
    state, feed, diary = world

    feed.added(a_pod("web", spec={"schedulerName": "other"}))

    assert diary.heard == []
    assert list(state.waiting) == ["uid-default-web"]


def test_a_pod_that_gets_its_node_leaves_the_queue(world: World) -> None:
    """Source: A128."""
    state, feed, diary = world
    feed.added(a_pod("web"))

    feed.changed(a_pod("web"), a_pod("web", node="n1"))

    assert diary.heard[1:] == ["AssignedPodAdd", "left default/web"]
    assert list(state.placed) == ["uid-default-web"]


def test_a_deleted_pod_frees_its_node(world: World) -> None:
    state, feed, diary = world
    feed.added(a_pod("web", node="n1"))

    feed.removed(a_pod("web", node="n1"))

    assert diary.heard == ["AssignedPodAdd", "AssignedPodDelete"]
    assert dict(state.placed) == {}


def test_a_pod_made_again_under_its_name_is_another_pod(world: World) -> None:
    state, feed, diary = world
    first, second = a_pod("web"), a_pod("web", metadata={"uid": "second"})
    feed.added(first)

    feed.changed(first, second)

    assert diary.heard == ["waits default/web", "left default/web", "waits default/web"]
    assert list(state.waiting) == ["second"]


def test_an_assumed_pod_that_is_being_deleted_is_told(world: World) -> None:
    """Source: A124."""
    state, feed, diary = world
    pod = a_pod("web")
    feed.added(pod)
    state.assume(pod, "n1")
    dying = a_pod("web", metadata={"deletionTimestamp": "2026-03-01T00:00:00Z"})

    feed.changed(pod, dying)

    assert diary.heard == ["waits default/web", "assumed left default/web"]


def test_other_changes_of_an_assumed_pod_are_ignored(world: World) -> None:
    """Source: A123."""
    state, feed, diary = world
    pod = a_pod("web")
    feed.added(pod)
    state.assume(pod, "n1")

    feed.changed(pod, a_pod("web", labels={"a": "b"}))

    assert diary.heard == ["waits default/web"]
    assert state.is_assumed("uid-default-web")


@pytest.mark.parametrize("how", ["deleted", "nominated elsewhere"])
def test_a_given_up_nomination_helps_pods_of_no_higher_priority(world: World, how: str) -> None:
    """Source: A125, A126."""
    _, feed, diary = world
    pod = a_pod("web", priority=7, status={"nominatedNodeName": "n1"})
    feed.added(pod)

    if how == "deleted":
        feed.removed(pod)
    else:
        feed.changed(pod, a_pod("web", priority=7, status={"nominatedNodeName": "n2"}))

    assert diary.heard[-1] == "AssignedPodDelete up to 7"


@pytest.mark.parametrize(
    ("after", "labels"),
    [
        ({}, []),
        ({"labels": {"zone": "a"}}, ["NodeUpdateNodeLabel"]),
        ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, ["NodeUpdateNodeTaint"]),
        ({"allocatable": {"cpu": "8"}}, ["NodeUpdateNodeAllocatable"]),
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
        "nothing", "labels", "taints", "allocatable", "features", "annotations", "conditions",
        "a cordon helps nobody", "several, in order",
    ],
)  # fmt: skip
def test_what_changed_on_a_node(after: dict[str, Any], labels: list[str]) -> None:
    """Source: A121."""
    assert [change.label for change in node_changes(a_node("n"), a_node("n", **after))] == labels


def test_an_uncordoned_node_is_told_as_a_taint_that_went() -> None:
    changes = node_changes(a_node("n", unschedulable=True), a_node("n"))

    assert [change.label for change in changes] == ["NodeUpdateNodeTaint"]


def test_a_heartbeat_tells_nothing() -> None:
    def beat(when: str) -> Any:
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": when}]
        return a_node("n", status={"conditions": conditions}, metadata={"resourceVersion": when})

    assert node_changes(beat("2026-03-01T00:00:00Z"), beat("2026-03-01T00:00:10Z")) == []


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
def test_what_changed_on_a_pod(before: dict[str, Any], after: dict[str, Any], labels: list[str]) -> None:
    """Source: A129."""
    assert [change.label for change in pod_changes(a_pod("p", **before), a_pod("p", **after))] == labels


def test_other_kinds_are_written_and_told(world: World) -> None:
    state, feed, diary = world
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p"}
    old = an_object({**kind, "metadata": {"name": "fast"}})
    new = an_object({**kind, "metadata": {"name": "fast", "labels": {"a": "b"}}})

    feed.added(old)
    feed.changed(old, new)
    assert state.snapshot().find(type(new), "fast") is new

    feed.removed(new)
    assert state.snapshot().find(type(new), "fast") is None
    assert diary.heard == [f"storage.k8s.io/StorageClass{what}" for what in ("Add", "Update", "Delete")]


def test_a_namespace_is_written_and_not_told(world: World) -> None:
    state, feed, diary = world

    feed.added(an_object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"x": "y"}}}))

    assert state.snapshot().namespace_labels("a") == {"x": "y"}
    assert diary.heard == []


def test_a_taint_rule_is_told_as_a_change_of_the_slices_it_concerns(world: World) -> None:
    """Source: B112, B125."""
    state, feed, diary = world
    for driver in ("one", "other"):
        spec = {"driver": driver, "pool": {"name": "pool"}, "devices": [{"name": "d"}]}
        raw = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": driver}, "spec": spec}
        state.put_object(an_object(raw))

    def rule(effect: str, driver: str = "one") -> Any:
        spec = {"deviceSelector": {"driver": driver}, "taint": {"key": "broken", "effect": effect}}
        head = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "rule"}}
        return an_object({**head, "spec": spec})

    told = "resource.k8s.io/ResourceSliceUpdate"
    feed.added(rule("NoSchedule"))
    assert diary.heard == [told]
    feed.changed(rule("NoSchedule"), rule("NoSchedule"))
    assert diary.heard == [told]
    feed.changed(rule("NoSchedule"), rule("NoExecute"))
    assert diary.heard == [told, told]
    feed.changed(rule("NoExecute"), rule("NoExecute", "other"))
    assert diary.heard == [told] * 4
    feed.removed(rule("NoExecute", "other"))
    assert diary.heard == [told] * 5
