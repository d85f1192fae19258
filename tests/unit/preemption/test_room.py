"""Whom a pod group evicts, anywhere in the cluster, to make room for itself as a whole."""

from dataclasses import replace
from random import Random
from typing import Any, ClassVar

import pytest

from extender import wiring
from extender.config.gates import FeatureGates
from extender.decide.engine import Engine
from extender.decide.groupcycle import decide_group
from extender.decide.podgroup import GroupDecision
from extender.decide.sampling import Search
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, unschedulable
from extender.preemption.budgets import budgets_of, first_violations
from extender.preemption.plan import GroupPreemptionPlan
from tests.build import a_cluster
from tests.groups import a_group, a_member
from tests.unit.preemption.worlds import a_budget, a_small_node, high, low

GATES = ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption")
WEB = {"app": "web"}


def profile() -> Profile:
    return wiring.scheduling(gates=FeatureGates(dict.fromkeys(GATES, True))).first


def member(name: str, node: str, group: str, **more: Any) -> Any:
    """A pod of *group* on *node* that fills it."""
    return low(name, node, cpu="2", spec={"schedulingGroup": {"podGroupName": group}}, **more)


def single(name: str, node: str, **more: Any) -> Any:
    return low(name, node, cpu="2", **more)


def whole(name: str, priority: int = 1) -> Any:
    return a_group(name, disruptionMode="PodGroup", priority=priority)


def decided(*running: Any, members: int = 1, **spec: Any) -> GroupDecision:
    """A gang of priority 10 whose *members* want a node of two CPUs each, all of which are in use."""
    nodes = {pod.spec.node_name for pod in running if hasattr(pod.spec, "node_name")}
    pods = [
        a_member(f"new-{number}", requests={"cpu": "2"}, priority=10, spec=spec.get("pod")) for number in range(members)
    ]
    ring = a_group(min_count=members, priority=10)
    cluster = a_cluster(*map(a_small_node, sorted(nodes)), ring, *running, *pods).snapshot()
    queries = [cluster.query(pod) for pod in pods]
    return decide_group(queries, cluster, spec.get("by") or profile(), Engine(), Random(0), Search())


def victims(found: GroupDecision) -> list[str]:
    assert isinstance(found.detail, GroupPreemptionPlan)
    assert found.waits_for_preemption
    return [pod.pod.metadata.name for pod in found.detail.victims]


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
            [a_group("pair", priority=1), member("a", "n1", "pair"), member("b", "n2", "pair", start="11:00")],
            1,
            ["b"],
            id="a group that does not ask for it goes pod by pod",
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
            [a_budget(0, WEB), single("a", "n1", labels=WEB), single("b", "n2", priority=5)],
            1,
            ["b"],
            id="what a budget protects is spared first, whatever its priority",
        ),
        pytest.param(
            [
                *(a_budget(1, WEB), whole("pair"), single("c", "n3", priority=5)),
                *(member("a", "n1", "pair", labels=WEB), member("b", "n2", "pair", labels=WEB)),
            ],
            1,
            ["c"],
            id="a group whose second pod breaks a budget is spared first",
        ),
    ],
)
def test_the_least_important_go(running: list[Any], members: int, gone: list[str]) -> None:
    """E051 to E053."""
    assert victims(decided(*running, members=members)) == gone


def test_a_group_counts_with_its_own_priority() -> None:
    """E051: its pods' do not matter."""
    found = decided(whole("pair", priority=50), member("a", "n1", "pair"), member("b", "n2", "pair"))
    none = "No preemption victims found for incoming preemptor"
    assert found.status == unschedulable("pod group is unschedulable", none)
    assert (found.waits_for_preemption, found.detail) == (False, None)


def test_one_member_that_must_not_preempt_keeps_all_from_it() -> None:
    """E052."""
    found = decided(single("a", "n1"), pod={"preemptionPolicy": "Never"})
    assert found.status.message == "pod group is unschedulable, not eligible due to preemptionPolicy=Never."


def test_members_with_nodes_wait_there_and_the_others_are_told_why() -> None:
    """A150: n2 is free, and n1 will be."""
    pods = [high("free", node="n2", cpu="0"), single("a", "n1")]
    found = decided(*pods, members=2)
    assert victims(found) == ["a"]
    fates = [found.fate(turn) for turn in range(2)]
    assert [fate.nominated if fate else "" for fate in fates] == ["n2", None]
    assert fates[0] is not None
    assert fates[0].status.message == "pod group is unschedulable"
    assert fates[1] is not None
    assert fates[1].status.message.endswith("preemption: not eligible due to workload aware preemption enabled")
    assert fates[1].rejectors == {"NodeResourcesFit"}


def test_without_the_plugin_no_room_is_made() -> None:
    """A153."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}}],
    }
    without = wiring.from_builtins(document, "f", FeatureGates(dict.fromkeys(GATES, True))).first
    said = "default preemption plugin is not registered, workload aware preemption is disabled"
    assert decided(single("a", "n1"), by=without).status.message == f"pod group is unschedulable, {said}"


def test_a_plugin_that_breaks_makes_it_an_error() -> None:
    class Broken:
        name: ClassVar[str] = "Broken"

        def reserve(self, pod: Any, *_: Any) -> None:
            if pod.pod.metadata.name.startswith("new"):
                raise RuntimeError("out of order")

        def unreserve(self, *_: Any) -> None:
            """Nothing to take back."""

    by = profile()
    found = decided(single("a", "n1"), by=replace(by, reserves=(*by.reserves, Broken())))
    assert found.status.code is Code.ERROR
    assert 'running Reserve plugin "Broken": RuntimeError: out of order' in found.status.message


def test_what_a_unit_breaks_first_ends_its_count() -> None:
    """E052: the second pod of the first unit spends nothing of the budget any more."""
    database = {"app": "db"}
    pods = [low(name, "n1", labels=WEB if name == "a" else database) for name in "abc"]
    budgets = a_budget(0, WEB), a_budget(1, database, name="other")
    cluster = a_cluster(a_small_node("n1", cpu="9"), *pods, *budgets).snapshot()
    a, b, c = sorted(cluster.pods_on("n1").values(), key=lambda pod: pod.key)
    assert first_violations(budgets_of(cluster), [[a, b], [c]]) == [True, False]
    assert first_violations(budgets_of(cluster), [[b], [a, c]]) == [False, True]
