"""The pods that a pod group preempts in the whole cluster."""

from dataclasses import replace
from random import Random
from typing import Any, ClassVar

import pytest

from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group_cycle import schedule_pod_group
from extender.cycle.pod_group_members import GroupDecision
from extender.framework.profiles import Profile
from extender.framework.status import Code, unschedulable_status
from extender.preemption.disruption_budgets import find_violating_units, list_budgets
from extender.preemption.plan import GroupPreemptionPlan
from tests.build import make_cluster
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.preemption.builders import make_budget, make_preemptor, make_small_node, make_victim

GATES = ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption")
WEB = {"app": "web"}


def profile() -> Profile:
    return wiring.build_setup(gates=FeatureGates(dict.fromkeys(GATES, True), RELEASE_1_36)).first_profile


def member(name: str, node: str, group: str, **more: Any) -> Any:
    """Make a pod of *group* that fills *node*."""
    return make_victim(name, node, cpu="2", spec={"schedulingGroup": {"podGroupName": group}}, **more)


def single(name: str, node: str, **more: Any) -> Any:
    return make_victim(name, node, cpu="2", **more)


def whole(name: str, priority: int = 1) -> Any:
    return make_pod_group(name, disruptionMode="PodGroup", priority=priority)


def decided(*running: Any, members: int = 1, **spec: Any) -> GroupDecision:
    """Schedule a gang of priority 10 whose *members* need a node of two CPUs each, all of which are in use."""
    nodes = {pod.spec.node_name for pod in running if hasattr(pod.spec, "node_name")}
    pods = [
        make_group_member(f"new-{number}", requests={"cpu": "2"}, priority=10, spec=spec.get("pod"))
        for number in range(members)
    ]
    ring = make_pod_group(min_count=members, priority=10)
    snapshot = make_cluster(*map(make_small_node, sorted(nodes)), ring, *running, *pods).snapshot()
    pod_infos = [snapshot.make_pod_info(pod) for pod in pods]
    return schedule_pod_group(
        pod_infos, snapshot, spec.get("by") or profile(), PluginRuntime(), Random(0), NodeSampler()
    )


def victims(found: GroupDecision) -> list[str]:
    assert isinstance(found.preemption_plan, GroupPreemptionPlan)
    assert found.waits_for_preemption
    return [pod.pod.metadata.name for pod in found.preemption_plan.victims]


@pytest.mark.parametrize(
    ("running", "members", "gone"),
    [
        pytest.param(
            [single("a", "n1", start="10:00"), single("b", "n2", start="11:00")], 1, ["b"], id="the younger goes"
        ),
        pytest.param([single("a", "n1", priority=5), single("b", "n2", priority=1)], 1, ["b"], id="the lesser goes"),
        pytest.param(
            [single("a", "n1", priority=1), single("b", "n2", priority=5), single("c", "n3", priority=3)],
            2,
            ["c", "a"],
            id="as many go as the gang needs, told from the most to the least important",
        ),
        pytest.param(
            [member("a", "n1", "some", start="12:00"), single("b", "n2", start="10:00")],
            1,
            ["b"],
            id="a member of any group is spared before a pod",
        ),
        pytest.param(
            [whole("pair"), member("a", "n1", "pair"), member("b", "n2", "pair")],
            1,
            ["a", "b"],
            id="a group goes whole",
        ),
        pytest.param(
            [make_pod_group("pair", priority=1), member("a", "n1", "pair"), member("b", "n2", "pair", start="11:00")],
            1,
            ["b"],
            id="a group that does not ask for it goes pod by pod",
        ),
        pytest.param(
            [make_pod_group("pair", priority=20), member("a", "n1", "pair", priority=1), single("b", "n2", priority=2)],
            1,
            ["a"],
            id="a member that goes alone has its own priority",
        ),
        pytest.param(
            [make_pod_group("pair", priority=20), member("a", "n1", "pair", priority=1)],
            1,
            ["a"],
            id="a pod that goes alone may go although the priority of its group is higher",
        ),
        pytest.param(
            [
                *(whole("pair"), member("a", "n1", "pair", start="08:00"), member("b", "n2", "pair", start="08:00")),
                *(whole("trio"), *(member(f"t{at}", f"n{at}", "trio", start="12:00") for at in (3, 4, 5))),
            ],
            1,
            ["a", "b"],
            id="the larger group is spared",
        ),
        pytest.param(
            [
                *(whole("old"), member("a", "n1", "old", start="08:00"), member("b", "n2", "old", start="08:00")),
                *(whole("new"), member("c", "n3", "new", start="12:00"), member("d", "n4", "new", start="12:00")),
            ],
            1,
            ["c", "d"],
            id="of two groups alike the older is spared",
        ),
        pytest.param(
            [make_budget(0, WEB), single("a", "n1", labels=WEB), single("b", "n2", priority=5)],
            1,
            ["b"],
            id="what a budget protects is spared first, whatever its priority",
        ),
        pytest.param(
            [
                *(make_budget(1, WEB), whole("pair"), single("c", "n3", priority=5)),
                *(member("a", "n1", "pair", labels=WEB), member("b", "n2", "pair", labels=WEB)),
            ],
            1,
            ["c"],
            id="a group whose second pod breaks a budget is spared first",
        ),
    ],
)
def test_the_least_important_go(running: list[Any], members: int, gone: list[str]) -> None:
    """Source: pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption;
    pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
    """
    assert victims(decided(*running, members=members)) == gone


def test_a_group_counts_with_its_own_priority() -> None:
    """The priorities of its pods do not matter.

    Source: pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption (1.36).
    """
    found = decided(whole("pair", priority=50), member("a", "n1", "pair"), member("b", "n2", "pair"))
    none = "No preemption victims found for incoming preemptor"
    assert found.status == unschedulable_status("pod group is unschedulable", none)
    assert (found.waits_for_preemption, found.preemption_plan) == (False, None)


def test_one_member_that_must_not_preempt_prevents_preemption_for_all() -> None:
    """Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain
    (1.36).
    """
    found = decided(single("a", "n1"), pod={"preemptionPolicy": "Never"})
    assert found.status.message == "pod group is unschedulable, not eligible due to preemptionPolicy=Never."


def test_members_with_nodes_are_nominated_and_the_others_get_the_reason() -> None:
    """n2 is free, and n1 will be.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.submitPodGroupAlgorithmResult (1.36).
    """
    pods = [make_preemptor("free", node="n2", cpu="0"), single("a", "n1")]
    found = decided(*pods, members=2)
    assert victims(found) == ["a"]
    fates = [found.get_member_failure(turn) for turn in range(2)]
    assert [failure.nominated_node if failure else "" for failure in fates] == ["n2", None]
    assert fates[0] is not None
    assert fates[0].status.message == "pod group is unschedulable"
    assert fates[1] is not None
    assert fates[1].status.message.endswith("preemption: not eligible due to workload aware preemption enabled")
    assert fates[1].rejectors == {"NodeResourcesFit"}


def test_without_the_plugin_nothing_is_preempted() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.runWorkloadAwarePreemption (1.36)."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}}],
    }
    gates = FeatureGates(dict.fromkeys(GATES, True), RELEASE_1_36)
    without = wiring.build_setup_from_document(document, "f", gates).first_profile
    message = "default preemption plugin is not registered, workload aware preemption is disabled"
    assert decided(single("a", "n1"), by=without).status.message == f"pod group is unschedulable, {message}"


def test_an_exception_of_the_plugin_is_an_error() -> None:
    class Broken:
        name: ClassVar[str] = "Broken"

        def reserve(self, pod: Any, *_: Any) -> None:
            if pod.pod.metadata.name.startswith("new"):
                raise RuntimeError("out of order")

        def unreserve(self, *_: Any) -> None:
            """Nothing to take back."""

    by = profile()
    found = decided(single("a", "n1"), by=replace(by, reserve_plugins=(*by.reserve_plugins, Broken())))
    assert found.status.code is Code.ERROR
    assert 'running Reserve plugin "Broken": RuntimeError: out of order' in found.status.message


def test_the_first_violation_of_a_unit_ends_its_count() -> None:
    """The second pod of the first unit uses no budget.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.36).
    """
    database = {"app": "db"}
    pods = [make_victim(name, "n1", labels=WEB if name == "a" else database) for name in "abc"]
    budgets = make_budget(0, WEB), make_budget(1, database, name="other")
    snapshot = make_cluster(make_small_node("n1", cpu="9"), *pods, *budgets).snapshot()
    a, b, c = sorted(snapshot.pods_on("n1").values(), key=lambda pod: pod.key)
    assert find_violating_units(list_budgets(snapshot, RELEASE_1_36), [[a, b], [c]]) == [True, False]
    assert find_violating_units(list_budgets(snapshot, RELEASE_1_36), [[b], [a, c]]) == [False, True]
