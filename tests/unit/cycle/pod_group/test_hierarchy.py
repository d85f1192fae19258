"""The checks of pod group members before the scheduling cycle."""

import gc
from typing import Any

import pytest

from extender.app import wiring
from extender.cache.group_hierarchy import make_group_key
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.cycle.pod_group.hierarchy import has_preemption_policy_never, make_pod_group_info, validate_pod_group
from extender.framework.status import Status, error_status
from tests.build import make_cluster, make_node
from tests.pod_group_builders import make_group_member, make_pod_group

PREFIX = "all pods in a single pod group should have the same"


def validated(
    *pods: Any, release: Release = RELEASE_1_37, gates: tuple[str, ...] = ("GenericWorkload",), **group: Any
) -> Status | None:
    """Validate the pending ones of *pods*. The group has priority 10."""
    snapshot = make_cluster(make_node("n1"), make_pod_group(priority=10, **group), *pods).snapshot()
    profile = wiring.build_setup(gates=FeatureGates(dict.fromkeys(gates, True), release)).first_profile
    pending = [snapshot.make_pod_info(pod) for pod in pods if not pod.spec.node_name]
    return validate_pod_group(pending, snapshot, profile)


def member(name: str, priority: int = 10, **spec: Any) -> Any:
    node = spec.pop("node", "")
    return make_group_member(name, node=node, priority=priority, spec=spec)


def test_equal_members_are_accepted() -> None:
    assert validated(member("a"), member("b", preemptionPolicy="PreemptLowerPriority")) is None


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        pytest.param(
            [member("a"), member("b", schedulerName="y")],
            f'{PREFIX} .spec.schedulerName set, got: "y" and "default-scheduler"',
            id="another scheduler name",
        ),
        pytest.param(
            [member("a"), member("b", 7)],
            f"{PREFIX} priority as the pod group's priority, got 7 and 10",
            id="another priority",
        ),
        pytest.param(
            [member("a"), member("b", 7, node="n1")],
            f"{PREFIX} priority as the pod group's priority, got 7 and 10",
            id="another priority of a scheduled member",
        ),
        pytest.param(
            [member("a"), member("b", preemptionPolicy="Never")],
            f"{PREFIX} preemption policy, got Never and PreemptLowerPriority",
            id="another preemption policy",
        ),
    ],
)
def test_a_member_that_differs_is_an_error_since_1_37(pods: list[Any], message: str) -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.validatePodGroup (1.37)."""
    assert validated(*pods) == error_status(message)


def test_in_1_36_only_the_scheduler_names_are_compared() -> None:
    pods = [member("a"), member("b", 7, preemptionPolicy="Never")]
    assert validated(*pods, release=RELEASE_1_36) is None
    assert validated(member("a"), member("b", schedulerName="y"), release=RELEASE_1_36) == error_status(
        f'{PREFIX} .spec.schedulerName set, got: "y" and "default-scheduler"'
    )


def test_with_the_gate_the_preemption_policy_of_the_group_counts() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.validatePodGroup (1.37)."""
    gates = ("GenericWorkload", "PodGroupPreemptionPolicy")
    never = member("a", preemptionPolicy="Never")
    assert validated(never, gates=gates, preemptionPolicy="Never") is None
    assert validated(never, gates=gates) == error_status(
        f"{PREFIX} preemption policy as the pod group's preemption policy, got Never and PreemptLowerPriority"
    )


def test_a_missing_pod_group_is_an_error() -> None:
    snapshot = make_cluster(make_node("n1")).snapshot()
    profile = wiring.build_setup(gates=FeatureGates({"GenericWorkload": True}, RELEASE_1_37)).first_profile
    pods = [snapshot.make_pod_info(member("a"))]
    assert validate_pod_group(pods, snapshot, profile) == error_status('podgroup.scheduling.k8s.io "ring" not found')


@pytest.mark.parametrize(("of_group", "expected"), [(False, True), (True, False)])
def test_the_policy_never_comes_from_a_member_or_from_the_group(of_group: bool, expected: bool) -> None:
    """Source: pkg/scheduler/framework/preemption/types.go, resolvePreemptionPolicy (1.37)."""
    snapshot = make_cluster(make_node("n1")).snapshot()
    pods = [snapshot.make_pod_info(member("a", preemptionPolicy="Never"))]
    gates = FeatureGates({"GenericWorkload": True, "PodGroupPreemptionPolicy": of_group})
    assert has_preemption_policy_never(make_pod_group(), pods, gates) is expected
    assert has_preemption_policy_never(make_pod_group(preemptionPolicy="Never"), [], gates) is of_group


def test_a_tree_leaves_no_garbage_that_keeps_the_snapshot() -> None:
    """The tables of a snapshot of a large cluster take megabytes, and full collections are rare."""
    snapshot = make_cluster(make_node("n1"), make_pod_group()).snapshot()
    gc.collect()
    gc.disable()
    try:
        make_pod_group_info(make_group_key("default/ring"), snapshot)
        assert gc.collect() == 0
    finally:
        gc.enable()
