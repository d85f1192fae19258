"""The victims of a pod group in the whole cluster since 1.37."""

from random import Random
from typing import Any

import msgspec
import pytest

from extender.api.kinds.meta import Condition
from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group_cycle import schedule_pod_group
from extender.cycle.pod_group_members import GroupDecision
from extender.framework.observer import ObservedEvent
from extender.framework.profiles import Profile
from extender.framework.status import Code
from extender.preemption.plan import GroupPreemptionPlan
from tests.build import make_cluster
from tests.event_recorder import EventRecorder
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.preemption.builders import HOST, make_budget, make_small_node, make_victim

PREFIX = "pod group preemption: "
WEB = {"app": "web"}


def profile(*gates: str) -> Profile:
    names = dict.fromkeys(("GenericWorkload", *gates), True)
    return wiring.build_setup(gates=FeatureGates(names, RELEASE_1_37)).first_profile


def member(name: str, node: str, group: str, **more: Any) -> Any:
    """Make a pod of *group* that fills *node*."""
    return make_victim(name, node, cpu="2", spec={"schedulingGroup": {"podGroupName": group}}, **more)


def single(name: str, node: str, **more: Any) -> Any:
    return make_victim(name, node, cpu="2", **more)


def whole(name: str, priority: int = 1) -> Any:
    return make_pod_group(name, disruptionMode={"all": {}}, priority=priority)


def apart(name: str, priority: int = 1) -> Any:
    return make_pod_group(name, disruptionMode={"single": {}}, priority=priority)


def decided(
    *running: Any,
    members: int = 1,
    nodes: int = 0,
    by: Profile | None = None,
    runtime: PluginRuntime | None = None,
    **pod: Any,
) -> GroupDecision:
    """Schedule a gang of priority 10 whose *members* need a node of two CPUs each.

    The nodes are those of *running*, except the node `deleted`, and *nodes* more, which are empty.
    """
    names = {item.spec.node_name for item in running if hasattr(item.spec, "node_name")} - {"deleted"}
    names |= {f"empty-{number}" for number in range(nodes)}
    status = pod.pop("status", {})
    pods = [
        make_group_member(f"new-{number}", requests={"cpu": "2"}, priority=10, spec=pod, status=status)
        for number in range(members)
    ]
    ring = make_pod_group(min_count=members, priority=10)
    snapshot = make_cluster(*map(make_small_node, sorted(names)), ring, *running, *pods).snapshot()
    pod_infos = [snapshot.make_pod_info(each) for each in pods]
    return schedule_pod_group(
        pod_infos, snapshot, by or profile(), runtime or PluginRuntime(), Random(0), NodeSampler()
    )


def victims(decision: GroupDecision) -> list[str]:
    assert isinstance(decision.preemption_plan, GroupPreemptionPlan)
    assert decision.waits_for_preemption
    return [pod.pod.metadata.name for pod in decision.preemption_plan.victims]


def post_filter_text(decision: GroupDecision) -> str:
    return decision.status.message.partition(", pod group preemption: ")[2]


@pytest.mark.parametrize(
    ("running", "gone"),
    [
        pytest.param([single("a", "n1", priority=9)], ["a"], id="a pod"),
        pytest.param(
            [whole("some"), member("m1", "n1", "some"), member("m2", "n2", "some")], ["m1", "m2"], id="a whole group"
        ),
        pytest.param(
            [apart("some"), member("m1", "n1", "some")], ["m1"], id="a member of a group that is disrupted one by one"
        ),
        pytest.param(
            [apart("low", 1), member("m1", "n1", "low", priority=99)], ["m1"], id="a pod has the priority of its group"
        ),
    ],
)
def test_the_only_victim_is_preempted(running: list[Any], gone: list[str]) -> None:
    """Source: pkg/scheduler/framework/preemption/types.go, newDomainForWorkloadPreemption, NewPodVictim (1.37)."""
    decision = decided(*running)
    assert victims(decision) == gone
    text = f"found a placement for podgroup, preempting {len(gone)} victims"
    assert decision.status.message == (f"minCount (1) cannot be satisfied: 0 scheduled, 0 remaining, {PREFIX}{text}")


@pytest.mark.parametrize("priority", [1, 20], ids=["a lower priority", "a higher priority"])
def test_a_whole_group_with_a_member_on_a_deleted_node_ends_preemption(priority: int) -> None:
    """Source: pkg/scheduler/framework/preemption/types.go, newDomainVictim (1.37)."""
    group = [whole("some", priority), member("m1", "n1", "some"), member("m2", "deleted", "some")]
    decision = decided(*group, single("a", "n2"), preemptionPolicy="Never")
    assert decision.preemption_plan is None
    assert decision.status.code is Code.ERROR
    assert decision.status.message == (
        f'error in "DefaultPreemption" PodGroupPostFilter plugins: {PREFIX}failed to create domain: failed to get node '
        'info for node "deleted" from snapshot: nodeinfo not found for node name "deleted"'
    )


def test_other_groups_on_deleted_nodes_do_not_matter() -> None:
    lost = [whole("lost"), member("m3", "deleted", "lost")]
    alone = [apart("alone"), member("m1", "n1", "alone"), member("m2", "deleted", "alone")]
    assert victims(decided(*lost, *alone)) == ["m1"]


def test_a_group_of_higher_priority_is_no_victim_even_if_its_pods_have_a_lower_one() -> None:
    decision = decided(apart("high", 20), member("m1", "n1", "high", priority=1))
    assert post_filter_text(decision) == "No preemption victims found for incoming preemptor"
    assert decision.preemption_plan is None
    assert not decision.waits_for_preemption


def test_the_members_stay_on_the_nodes_that_were_selected_without_victims() -> None:
    """The group is scheduled once. Victims on other nodes are reprieved, and those on its nodes are not.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.37).
    """
    nodes = ("n1", "n2", "n3")
    decision = decided(*(single(f"on-{node}", node) for node in nodes), members=2)
    failures = [decision.get_member_failure(index) for index in range(2)]
    nominated = [failure.nominated_node for failure in failures if failure is not None]
    assert len(set(nominated)) == 2
    assert set(nominated) < set(nodes)
    assert sorted(victims(decision)) == sorted(f"on-{node}" for node in nominated)


def test_small_victims_are_reprieved_in_the_order_of_importance() -> None:
    """The node has two CPUs, and the group needs one of them; the more important pod stays."""
    pods = [make_victim("young", "n1", start="12:00"), make_victim("old", "n1", start="09:00")]
    small = make_group_member("new", requests={"cpu": "1"}, priority=10)
    snapshot = make_cluster(make_small_node("n1"), make_pod_group(min_count=1, priority=10), *pods, small).snapshot()
    decision = schedule_pod_group(
        [snapshot.make_pod_info(small)], snapshot, profile(), PluginRuntime(), Random(0), NodeSampler()
    )
    assert victims(decision) == ["young"]


def test_victims_that_violate_a_budget_are_reprieved_first() -> None:
    """The older pod is more important, but the younger one violates its budget."""
    pods = [make_victim("young", "n1", start="12:00", labels=WEB), make_victim("old", "n1", start="09:00")]
    small = make_group_member("new", requests={"cpu": "1"}, priority=10)
    ring = make_pod_group(min_count=1, priority=10)
    snapshot = make_cluster(make_small_node("n1"), ring, make_budget(0, WEB), *pods, small).snapshot()
    decision = schedule_pod_group(
        [snapshot.make_pod_info(small)], snapshot, profile(), PluginRuntime(), Random(0), NodeSampler()
    )
    assert victims(decision) == ["old"]


def test_a_reprieved_pod_must_not_repel_the_members() -> None:
    """A pod with anti-affinity is evicted although it uses no resources; a pod without stays.

    The anti-affinity of the members is what makes InterPodAffinity run.
    """
    blocks: dict[str, Any] = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": HOST, "labelSelector": {"matchLabels": WEB}}
                ]
            }
        }
    }
    running = [make_victim("web", "n1", cpu="0", labels=WEB), make_victim("other", "n1", cpu="0")]
    assert victims(decided(*running, single("full", "n1", start="11:00"), **blocks)) == ["web", "full"]


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        pytest.param({"preemptionPolicy": "Never"}, "not eligible due to preemptionPolicy=Never.", id="never"),
        pytest.param(
            {"nodeSelector": {"disk": "ssd"}},
            "minCount (1) cannot be satisfied: 0 scheduled, 0 remaining",
            id="no help",
        ),
    ],
)
def test_a_group_that_cannot_preempt_has_the_reason(pod: dict[str, Any], text: str) -> None:
    decision = decided(single("a", "n1"), **pod)
    assert post_filter_text(decision) == text
    assert decision.preemption_plan is None


def test_the_claims_plugin_adds_its_text_when_no_plugin_succeeds() -> None:
    """Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, PodGroupPostFilter (1.37)."""
    decision = decided(single("a", "n1"), preemptionPolicy="Never")
    assert decision.status.message == (
        "minCount (1) cannot be satisfied: 0 scheduled, 0 remaining, "
        "deallocation and deletion of ResourceClaims completed, "
        "pod group preemption: not eligible due to preemptionPolicy=Never."
    )


def test_nominations_stay_while_the_victims_of_the_group_are_terminating() -> None:
    """Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, isOngoingPreemption (1.37)."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = make_victim("a", "n1", cpu="2", metadata={"deletionTimestamp": "2026-01-01T10:00:00Z"})
    leaving = _with_condition(leaving, condition)
    decision = decided(leaving, single("b", "n2"), status={"nominatedNodeName": "n1"})
    assert post_filter_text(decision) == "ongoing preemption on nominated nodes"
    assert decision.waits_for_preemption
    assert decision.preemption_plan is None
    failure = decision.get_member_failure(0)
    assert failure is not None
    assert failure.nominated_node == "n1"
    terminating = make_victim("a", "n1", cpu="2", metadata={"deletionTimestamp": "2026-01-01T10:00:00Z"})
    assert victims(decided(terminating, status={"nominatedNodeName": "n1"})) == ["a"]


def _with_condition(pod: Any, condition: dict[str, str]) -> Any:
    status = msgspec.structs.replace(pod.status, conditions=(msgspec.convert(condition, Condition),))
    return msgspec.structs.replace(pod, status=status)


def test_the_policy_of_the_group_counts_with_its_gate() -> None:
    never = profile("PodGroupPreemptionPolicy")
    assert victims(decided(single("a", "n1"), by=never)) == ["a"]


def test_a_spread_member_does_not_count_itself_when_victims_are_reprieved() -> None:
    """The pod without requests stays, because the members fit beside it.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain (1.37).
    """
    constraint = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    }
    running = [make_victim("idle", "n1", cpu="0", start="12:00"), single("full", "n1", start="09:00")]
    pods = [
        make_group_member("first", requests={"cpu": "1"}, priority=10),
        make_group_member("spread", labels=WEB, priority=10, spec={"topologySpreadConstraints": [constraint]}),
    ]
    snapshot = make_cluster(make_small_node("n1"), make_pod_group(min_count=2, priority=10), *running, *pods).snapshot()
    pod_infos = [snapshot.make_pod_info(pod) for pod in pods]
    decision = schedule_pod_group(pod_infos, snapshot, profile(), PluginRuntime(), Random(0), NodeSampler())
    assert victims(decision) == ["full"]


def test_a_cluster_without_nodes_fails_the_group_in_the_claims_plugin() -> None:
    """PreFilter, which makes the state of the claims plugin, runs for no member.

    Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go,
    getPodGroupStateDataFromPodGroupCycleState (1.37).
    """
    decision = decided(members=2)
    message = 'error in "DynamicResources" PodGroupPostFilter plugins: not found'
    assert (decision.status.code, decision.status.message) == (Code.ERROR, message)
    failures = [decision.get_member_failure(index) for index in range(2)]
    assert [failure.status.message for failure in failures if failure is not None] == [message, message]


@pytest.mark.parametrize(
    ("pod", "code", "is_evaluated"),
    [
        pytest.param({}, "Success", True, id="victims"),
        pytest.param({"preemptionPolicy": "Never"}, "Unschedulable", False, id="a policy that forbids it"),
    ],
)
def test_a_preemption_attempt_is_observed(pod: dict[str, Any], code: str, is_evaluated: bool) -> None:
    """Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.evaluate;
    pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, DefaultPreemption.PodGroupPostFilter
    (1.37).
    """
    recorder = EventRecorder()
    decided(single("a", "n1"), runtime=wiring.make_runtime(recorder), **pod)
    evaluation = (ObservedEvent.PREEMPTION_EVALUATION, ("podgroup", code), None)
    attempt = (ObservedEvent.POD_GROUP_PREEMPTION, (code,), 1.0)
    assert recorder.events == ([evaluation, attempt] if is_evaluated else [attempt])


def test_the_plan_counts_disruptions_of_groups_and_violated_budgets() -> None:
    """Each victim that is a member of a group which is not evicted as a whole is a disruption.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain;
    pkg/scheduler/framework/preemption/types.go, NewPodVictim (1.37).
    """
    running = [
        whole("some"), member("m1", "n1", "some", labels=WEB), member("m2", "n2", "some"), single("a", "n3"),
        apart("others"), member("m3", "n4", "others"), member("m4", "n5", "others"), make_budget(0, WEB),
    ]  # fmt: skip
    decision = decided(*running, members=5)
    assert sorted(victims(decision)) == ["a", "m1", "m2", "m3", "m4"]
    assert isinstance(decision.preemption_plan, GroupPreemptionPlan)
    assert decision.preemption_plan.num_group_disruptions == 3
    assert decision.preemption_plan.num_pdb_violations == 1
