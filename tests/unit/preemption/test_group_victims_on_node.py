"""Members of pod groups as victims of a single pod, since 1.37."""

from random import Random
from typing import Any

import pytest

from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.cycle.decision import Decision, ScheduleFailure
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.scheduling_cycle import schedule_pod
from extender.preemption.plan import PreemptionPlan
from tests.build import make_cluster
from tests.pod_group_builders import make_pod_group
from tests.unit.preemption.builders import make_budget, make_preemptor, make_small_node, make_victim

WEB = {"app": "web"}


def member(name: str, node: str, group: str = "some", **more: Any) -> Any:
    return make_victim(name, node, spec={"schedulingGroup": {"podGroupName": group}}, **more)


def group(priority: int = 1, mode: str = "all", name: str = "some") -> Any:
    return make_pod_group(name, priority=priority, disruptionMode={mode: {}})


def decided(
    *running: Any, nodes: tuple[str, ...] = ("n1",), cpu: str = "1", release: Release = RELEASE_1_37, on: bool = True
) -> Decision:
    """Schedule a pod of priority 10 on small nodes with two CPUs each."""
    snapshot = make_cluster(*map(make_small_node, nodes), *running).snapshot()
    profile = wiring.build_setup(gates=FeatureGates({"GenericWorkload": on}, release)).first_profile
    pod = snapshot.make_pod_info(make_preemptor(cpu=cpu, priority=10))
    return schedule_pod(pod, snapshot, profile, PluginRuntime(), Random(0), NodeSampler())


def plan(decision: Decision) -> PreemptionPlan:
    assert isinstance(decision, ScheduleFailure)
    result = decision.post_filter_plans["DefaultPreemption"]
    assert isinstance(result, PreemptionPlan)
    return result


def victims(decision: Decision) -> list[str]:
    return [pod.pod.metadata.name for pod in plan(decision).best_candidate.victims]


FULL = [member("m1", "n1"), member("m2", "n1")]


@pytest.mark.parametrize(
    ("running", "gone"),
    [
        pytest.param([group(), *FULL], ["m1", "m2"], id="a whole group"),
        pytest.param([group(mode="single"), *FULL], ["m2"], id="one member of a group that is disrupted one by one"),
        pytest.param(
            [group(), member("m1", "n1"), member("far", "n2", cpu="2"), make_victim("alone", "n1")],
            ["alone"],
            id="a group is more important than a pod",
        ),
        pytest.param(
            [group(), member("m1", "n1"), member("far", "n2", cpu="2"), make_victim("alone", "n1", priority=5)],
            ["m1", "far"],
            id="a group is evicted with its pods on other nodes",
        ),
    ],
)
def test_a_pod_preempts_pods_and_groups(running: list[Any], gone: list[str]) -> None:
    """Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, SelectVictimsOnNode (1.37)."""
    nodes = ("n1", "n2") if any(getattr(pod.spec, "node_name", "") == "n2" for pod in running) else ("n1",)
    decision = decided(*running, nodes=nodes)
    best = {candidate.node_name: candidate for candidate in plan(decision).candidates}["n1"]
    assert [pod.pod.metadata.name for pod in best.victims] == gone
    if nodes == ("n1",):
        assert isinstance(decision, ScheduleFailure)
        assert decision.message.endswith(
            f"preemption: found a potential placement for pod on node n1, preempting {len(gone)} victims"
        )


def test_the_priority_of_the_group_decides_which_pods_may_be_preempted() -> None:
    decision = decided(group(20), *FULL)
    assert isinstance(decision, ScheduleFailure)
    assert decision.post_filter_plans == {}
    assert "No preemption victims found for incoming pod" in decision.message
    high = [member("m1", "n1", priority=50), member("m2", "n1", priority=50)]
    assert victims(decided(group(1), *high)) == ["m1", "m2"]


def test_each_pod_of_a_group_that_violates_a_budget_counts() -> None:
    """Source: pkg/scheduler/framework/preemption/util.go, FilterVictimsWithPDBViolation (1.37)."""
    pods = [member("m1", "n1", labels=WEB), member("m2", "n1", labels=WEB)]
    assert plan(decided(group(), *pods, make_budget(0, WEB))).best_candidate.num_pdb_violations == 2
    assert plan(decided(group(), *pods, make_budget(1, WEB))).best_candidate.num_pdb_violations == 1


def test_a_group_with_a_member_on_a_deleted_node_is_no_victim() -> None:
    """Source: pkg/scheduler/framework/preemption/types.go, newDomainVictim (1.37)."""
    lost = member("lost", "deleted")
    decision = decided(group(), *FULL, lost)
    assert isinstance(decision, ScheduleFailure)
    assert decision.post_filter_plans == {}
    assert decision.message.endswith(
        'preemption: failed to get node info for node "deleted" from snapshot: '
        'nodeinfo not found for node name "deleted"'
    )
    other = decided(group(), *FULL, lost, make_victim("alone", "n2", cpu="2"), nodes=("n1", "n2"))
    assert victims(other) == ["alone"]
    assert victims(decided(group(mode="single"), *FULL, lost)) == ["m2"]


@pytest.mark.parametrize(
    ("release", "on"), [(RELEASE_1_37, False), (RELEASE_1_36, True)], ids=["without the gate", "in 1.36"]
)
def test_members_are_single_victims(release: Release, on: bool) -> None:
    assert victims(decided(group(20), *FULL, release=release, on=on)) == ["m2"]


def test_nodes_with_and_without_members_are_searched_in_order() -> None:
    """The pod on n2 is a better victim than the group on n1, which has two pods."""
    alone = make_victim("alone", "n2", cpu="2")
    decision = decided(group(), *FULL, alone, nodes=("n1", "n2"), cpu="2")
    assert [candidate.node_name for candidate in plan(decision).candidates] in (["n1", "n2"], ["n2", "n1"])
    assert victims(decision) == ["alone"]
