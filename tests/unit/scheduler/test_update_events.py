"""The cluster events for changed nodes and pods."""

from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.scheduler.update_events import find_node_events, find_pod_events
from tests.build import make_node, make_pod

GATES_1_36, GATES_1_37 = FeatureGates(release=RELEASE_1_36), FeatureGates(release=RELEASE_1_37)


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
def test_a_changed_node_causes_one_event_per_property(after: dict[str, Any], labels: list[str]) -> None:
    """Source: pkg/scheduler/framework/events.go, NodeSchedulingPropertiesChange (1.36)."""
    assert [change.label for change in find_node_events(make_node("n"), make_node("n", **after), GATES_1_36)] == labels


def test_an_uncordoned_node_causes_a_taint_event() -> None:
    changes = find_node_events(make_node("n", unschedulable=True), make_node("n"), GATES_1_36)

    assert [change.label for change in changes] == ["NodeUpdateNodeTaint"]


def test_a_heartbeat_causes_no_event() -> None:
    def beat(when: str) -> Any:
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": when}]
        return make_node("n", status={"conditions": conditions}, metadata={"resourceVersion": when})

    assert find_node_events(beat("2026-03-01T00:00:00Z"), beat("2026-03-01T00:00:10Z"), GATES_1_36) == []


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
    events = find_pod_events(make_pod("p", **before), make_pod("p", **after), GATES_1_36)
    assert [event.label for event in events] == labels


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
    events = find_pod_events(make_pod("p", **before), make_pod("p", **after), GATES_1_37)
    assert [event.label for event in events] == labels


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
