"""Pod groups of the coscheduling plugin from the watch to the nodes."""

from typing import Any

import pytest
from msgspec.structs import replace

from extender.api.coscheduling import POD_GROUP_LABEL
from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.app.wiring import SchedulerSetup, build_setup_from_document
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from tests.build import make_node, make_object, make_pod
from tests.unit.scheduler.builders import SchedulerHarness

DOCUMENT = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}}],
}
ALLOCATABLE = {"cpu": "2", "memory": "4Gi", "pods": "9"}
RELEASES = [RELEASE_1_36, RELEASE_1_37]


def make_harness(release: Release = RELEASE_1_37) -> SchedulerHarness:
    setup: SchedulerSetup = build_setup_from_document(DOCUMENT, "scheduler.yaml", FeatureGates(release=release))
    node = make_node("n1", allocatable=ALLOCATABLE)
    return SchedulerHarness(node, profile=setup.first_profile, gates=setup.gates)


def make_group(min_member: int, uid: str = "g1", phase: str = "") -> Any:
    return make_object(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "train", "namespace": "default", "uid": uid},
            "spec": {"minMember": min_member},
            "status": {"phase": phase},
        }
    )


def create_members(harness: SchedulerHarness, names: str, priority: int = 5, group: str = "train") -> list[Pod]:
    """Create pods as the watch delivers them."""
    labels, spec = {POD_GROUP_LABEL: group}, {"priority": priority}
    watched_pods = [
        harness.dispatcher.deduplicate(make_pod(name, labels=labels, spec=spec, requests={"cpu": "1"}))[0]
        for name in names
    ]
    pods = [pod for pod in watched_pods if isinstance(pod, Pod)]
    harness.create(*pods)
    return pods


def get_group(harness: SchedulerHarness) -> PodGroup | None:
    return harness.cache.snapshot().get_object(PodGroup, "default/train")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("group_is_first", [True, False])
def test_a_group_that_fits_is_bound_and_its_status_is_not_written(release: Release, group_is_first: bool) -> None:
    harness = make_harness(release)
    if group_is_first:
        harness.dispatcher.on_add(make_group(2))
    pods = create_members(harness, "ab")
    if not group_is_first:
        harness.run()
        assert [harness.node_of(pod) for pod in pods] == ["", ""]
        harness.dispatcher.on_add(make_group(2))
    harness.run(turns=2)

    assert [harness.node_of(pod) for pod in pods] == ["n1", "n1"]
    assert [api_call.kind for api_call in harness.api.calls_to("status") if api_call.kind != "Pod"] == []


@pytest.mark.parametrize("release", RELEASES)
def test_a_group_waits_for_its_last_member(release: Release) -> None:
    harness = make_harness(release)
    harness.dispatcher.on_add(make_group(2))
    pods = create_members(harness, "a")
    harness.run(turns=2)
    assert harness.node_of(pods[0]) == ""
    pods += create_members(harness, "b")
    harness.run(turns=8)
    assert [harness.node_of(pod) for pod in pods] == ["n1", "n1"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_group_waits_until_its_min_member_is_lower_than_the_pods_that_fit(release: Release) -> None:
    harness = make_harness(release)
    group = make_group(3)
    harness.dispatcher.on_add(group)
    pods = create_members(harness, "abc")
    harness.run(turns=2)
    assert [harness.node_of(pod) for pod in pods] == ["", "", ""]
    if release is RELEASE_1_36:  # it does not requeue gangs whose minCount changes
        return
    harness.dispatcher.on_update(group, make_group(2))
    harness.run(turns=8)
    assert sorted(harness.node_of(pod) for pod in pods) == ["", "n1", "n1"]


def test_the_priority_of_a_group_is_that_of_its_first_pod() -> None:
    harness = make_harness()
    harness.dispatcher.on_add(make_group(3))
    pods = create_members(harness, "ab", priority=5)
    create_members(harness, "c", priority=7)
    group = get_group(harness)
    assert group is not None
    assert group.spec.priority == 5
    harness.attempt()
    notes = {note for _, reason, note in harness.events.recorded if reason == "FailedScheduling"}
    assert notes == {
        "all pods in a single pod group should have the same priority as the pod group's priority, got 7 and 5"
    }
    for pod in (*pods, harness.api.pods["default/c"]):
        harness.dispatcher.on_delete(pod)
    create_members(harness, "d", priority=9)
    group = get_group(harness)
    assert group is not None
    assert group.spec.priority == 9


def test_the_condition_of_the_last_attempt_stays_when_a_controller_writes_the_phase() -> None:
    harness = make_harness()
    harness.dispatcher.on_add(make_group(3))
    create_members(harness, "abc")
    harness.attempt()
    harness.dispatcher.on_update(make_group(3), make_group(3, phase="Scheduling"))
    group = get_group(harness)
    assert group is not None
    assert [condition.status for condition in group.status.conditions] == ["False"]
    harness.dispatcher.on_update(make_group(3), make_group(3, uid="g2"))
    group = get_group(harness)
    assert group is not None
    assert group.status.conditions == ()


def test_a_pod_with_another_label_leaves_its_group() -> None:
    harness = make_harness()
    harness.dispatcher.on_add(make_group(2))
    pod, other_pod = create_members(harness, "ab")
    labels = {POD_GROUP_LABEL: "other"}
    moved_pod, _ = harness.dispatcher.deduplicate(replace(pod, metadata=replace(pod.metadata, labels=labels)))
    assert isinstance(moved_pod, Pod)
    harness.api.pods[pod.key] = moved_pod
    harness.dispatcher.on_update(pod, moved_pod)
    harness.run(turns=2)
    snapshot = harness.cache.snapshot()
    assert list(snapshot.pod_group("default/train").pending) == [other_pod.metadata.uid]
    assert [harness.node_of(pod), harness.node_of(other_pod)] == ["", ""]


def test_a_deleted_group_holds_its_pods() -> None:
    harness = make_harness()
    harness.dispatcher.on_add(make_group(2))
    harness.dispatcher.on_delete(make_group(2))
    pods = create_members(harness, "ab")
    harness.run(turns=2)
    assert [harness.node_of(pod) for pod in pods] == ["", ""]
