"""The cycle of a pod group in 1.37: PlacementFeasible after each member, and the texts of the members."""

from dataclasses import replace
from random import Random
from typing import Any, ClassVar, cast

import pytest

from extender.api.kinds.pod_group import PodGroup
from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group_cycle import schedule_pod_group
from extender.cycle.pod_group_members import GroupDecision
from extender.framework.pod_group_points import PlacementProgress
from extender.framework.profiles import Profile
from extender.framework.status import SUCCESS, Code, Status, error_status, unresolvable_status
from tests.build import make_cluster, make_node
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.cycle.fakes import RaisingPlugin

TIGHT = {"cpu": "1", "memory": "4Gi", "pods": "9"}
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"
NO_CPU = "0/2 nodes are available: 2 Insufficient cpu."


def profile(*gates: str) -> Profile:
    names = ("GenericWorkload", *gates)
    return wiring.build_setup(gates=FeatureGates(dict.fromkeys(names, True), RELEASE_1_37)).first_profile


def decided(
    *pending: str, min_count: int | None, running: tuple[Any, ...] = (), by: Profile | None = None, topology: str = ""
) -> GroupDecision:
    """Schedule *pending* members on two nodes, n1 and n2, each with space for one member."""
    nodes = [make_node(name, labels={"rack": name}, allocatable=TIGHT) for name in ("n1", "n2")]
    pods = [make_group_member(name, requests={"cpu": "1"}) for name in pending]
    group = make_pod_group(min_count=min_count, topology=topology)
    snapshot = make_cluster(*nodes, group, *running, *pods).snapshot()
    members = [snapshot.make_pod_info(pod) for pod in pods]
    return schedule_pod_group(members, snapshot, by or profile(), PluginRuntime(), Random(0), NodeSampler())


def messages(decision: GroupDecision, count: int) -> list[str]:
    failures = [decision.get_member_failure(index) for index in range(count)]
    return ["" if failure is None else failure.status.message for failure in failures]


def test_a_gang_with_enough_nodes_is_scheduled() -> None:
    decision = decided("a", "b", min_count=2)
    assert decision.status == SUCCESS
    assert sorted(member.node_name for member in decision.members) == ["n1", "n2"]
    assert messages(decision, 2) == ["", ""]


def test_a_member_beyond_min_count_may_fail() -> None:
    decision = decided("a", "b", "c", min_count=2)
    assert decision.status == SUCCESS
    assert messages(decision, 3) == ["", "", NO_CPU]


def test_the_cycle_ends_when_min_count_cannot_be_reached() -> None:
    """Member d is not tried: with one node too few the third failure decides.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.37).
    """
    reason = "minCount (4) cannot be satisfied: 2 scheduled, 1 remaining"
    decision = decided("a", "b", "c", "d", min_count=4)
    assert len(decision.members) == 3
    assert decision.status.code is Code.UNSCHEDULABLE
    assert decision.status.message == f"{reason}, {NO_VICTIMS}"
    taken_back = f"pod group is unschedulable, {reason}, {NO_VICTIMS}"
    assert messages(decision, 4) == [taken_back, taken_back, NO_CPU, reason]


def test_no_member_is_tried_if_there_are_too_few_members() -> None:
    """The claims plugin then has no state, which PreFilter makes. PreEnqueue usually holds such a group before.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
    getPodGroupStateDataFromPodGroupCycleState (1.37).
    """
    reason = 'error in "DynamicResources" PodGroupPostFilter plugins: not found'
    decision = decided("a", "b", min_count=3)
    assert decision.members == ()
    assert decision.status.message == reason
    assert messages(decision, 2) == [reason, reason]


def test_scheduled_members_count_for_min_count() -> None:
    running = make_group_member("old", node="n1", requests={"cpu": "1"})
    assert decided("a", min_count=2, running=(running,)).status == SUCCESS


def test_a_group_needs_at_least_one_new_member() -> None:
    """minCount is reached by scheduled members, but no pending member fits.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.runRootSchedulingAlgorithm (1.37).
    """
    running = tuple(make_group_member(f"old-{node}", node=node, requests={"cpu": "1"}) for node in ("n1", "n2"))
    decision = decided("a", min_count=2, running=running)
    assert decision.status.message == f"pod group is unschedulable, {NO_VICTIMS}"
    assert messages(decision, 1) == [NO_CPU]


def test_a_basic_group_needs_one_member() -> None:
    """Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, getMinCount (1.37)."""
    assert messages(decided("a", "b", "c", min_count=None), 3) == ["", "", NO_CPU]
    running = tuple(
        make_group_member(f"x-{node}", node=node, group="x", requests={"cpu": "1"}) for node in ("n1", "n2")
    )
    decision = decided("a", min_count=None, running=running)
    assert decision.status.message == f"minCount (1) cannot be satisfied: 0 scheduled, 0 remaining, {NO_VICTIMS}"


def test_without_the_plugin_any_scheduled_member_suffices() -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, NewFramework (1.37)."""
    without = replace(profile(), placement_feasible_plugins=())
    assert messages(decided("a", "b", "c", min_count=3, by=without), 3) == ["", "", NO_CPU]


def test_an_error_of_a_member_ends_the_group() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.37)."""
    broken = replace(profile(), filter_plugins=(cast("Any", RaisingPlugin()),))
    decision = decided("a", "b", min_count=2, by=broken)
    assert decision.status.code is Code.ERROR
    assert decision.status.message.startswith("failed to schedule other pod from a pod group: ")
    own, other = messages(decision, 2)
    assert other == decision.status.message == f"failed to schedule other pod from a pod group: {own}"


class FixedFeasibility:
    """Answers every call with one status."""

    name: ClassVar[str] = "Fixed"

    def __init__(self, status: Status | Exception) -> None:
        self.status = status
        self.calls: list[PlacementProgress] = []

    def placement_feasible(self, pod_group: PodGroup, progress: PlacementProgress) -> Status | None:
        self.calls.append(progress)
        if isinstance(self.status, Exception):
            raise self.status
        return self.status


def with_plugin(plugin: Any) -> Profile:
    return replace(profile(), placement_feasible_plugins=(plugin,))


def test_a_group_that_still_waits_at_the_end_is_unschedulable() -> None:
    plugin = FixedFeasibility(Status(Code.WAIT, ("not yet",)))
    decision = decided("a", min_count=1, by=with_plugin(plugin))
    assert decision.status.message == f"pod group is unschedulable, not yet, {NO_VICTIMS}"
    assert plugin.calls[:2] == [PlacementProgress(0, 1), PlacementProgress(1, 0)]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (error_status("broken"), "running PlacementFeasible plugin: broken"),
        (RuntimeError("broken"), "running PlacementFeasible plugin: RuntimeError: broken"),
        (unresolvable_status("no"), "unexpected status from PlacementFeasible plugin: UnschedulableAndUnresolvable"),
    ],
    ids=["an error", "an exception", "another code"],
)
def test_a_plugin_that_fails_makes_the_attempt_an_error(status: Status | Exception, message: str) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPlacementFeasiblePlugins (1.37)."""
    decision = decided("a", min_count=1, by=with_plugin(FixedFeasibility(status)))
    assert decision.status.code is Code.ERROR
    assert decision.status.message.startswith(f"failed to evaluate placement feasibility: {message}")


def test_a_group_without_a_feasible_placement_has_the_status_of_the_first() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingPlacementAlgorithm (1.37)."""
    decision = decided("a", "b", min_count=2, by=profile("TopologyAwareWorkloadScheduling"), topology="rack")
    reason = (
        "pod group is unschedulable, 0/2 placements are available, first placement status: "
        "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    )
    assert decision.status.message == f"{reason}, {NO_VICTIMS}"
    assert messages(decision, 2)[0] == f"pod group is unschedulable, {reason}, {NO_VICTIMS}"
    early = decided("a", min_count=2, by=profile("TopologyAwareWorkloadScheduling"), topology="rack")
    assert early.status.message == (
        f"pod group is unschedulable, 0/2 placements are available, first placement status: "
        f"pod group is unschedulable, {NO_VICTIMS}"
    )
