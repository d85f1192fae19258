"""Composite pod groups from the queue to the nodes of their pods, or back to the queue."""

from typing import Any

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from tests.build import make_node, make_pod
from tests.pod_group_builders import make_chain, make_child_group, make_composite_group, make_group_member
from tests.unit.scheduler.builders import SchedulerHarness

GATE_NAMES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
GATES = FeatureGates(dict.fromkeys(GATE_NAMES, True), RELEASE_1_37)
PROFILE = wiring.build_setup(gates=GATES).first_profile
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"


def make_harness(cpu: str, *groups: Any) -> SchedulerHarness:
    node = make_node("n1", allocatable={"cpu": cpu, "memory": "4Gi", "pods": "9"})
    return SchedulerHarness(node, *groups, profile=PROFILE, gates=GATES)


def members(group: str, names: str, **more: Any) -> list[Pod]:
    return [make_group_member(name, group=group, requests={"cpu": "1"}, **more) for name in names]


def messages(harness: SchedulerHarness) -> dict[str, tuple[str, str]]:
    """Return status and message of the last condition of each group."""
    calls = [api_call for api_call in harness.api.calls_to("status") if api_call.kind == "PodGroup"]
    conditions = {api_call.name: api_call.body["status"]["conditions"][0] for api_call in calls}
    return {name: (condition["status"], condition["message"]) for name, condition in conditions.items()}


def test_the_pod_groups_of_a_tree_that_fits_are_bound_together() -> None:
    harness = make_harness("3", make_composite_group(min_group_count=2), make_child_group("x"), make_child_group("y"))
    pods = [*members("x", "ab"), *members("y", "c")]
    harness.create(*pods)
    harness.run()
    assert [harness.node_of(pod) for pod in pods] == ["n1", "n1", "n1"]
    assert messages(harness) == {"x": ("True", ""), "y": ("True", "")}


def test_no_pod_of_a_tree_is_bound_if_too_few_child_groups_fit() -> None:
    """The child group that fits has the message of the root, to which the message of preemption is added twice.

    Source: pkg/scheduler/schedule_one_podgroup.go, completeCompositePodGroupAlgorithmResultMap,
    applyPodGroupPostFilterResult (1.37).
    """
    harness = make_harness(
        "2",
        make_composite_group(min_group_count=2),
        make_child_group("x", min_count=2),
        make_child_group("y", min_count=1),
    )
    pods = [*members("x", "ab"), *members("y", "c")]
    harness.create(*pods)
    harness.attempt()
    assert [harness.node_of(pod) for pod in pods] == ["", "", ""]
    placements = "0/1 placements are available, first placement status:"
    assert messages(harness) == {
        "x": (
            "False",
            f"pod group is unschedulable, {placements} minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, "
            f"{NO_VICTIMS}, {NO_VICTIMS}",
        ),
        "y": (
            "False",
            f"pod group is unschedulable, {placements} minCount (1) cannot be satisfied: 0 scheduled, 0 remaining, "
            f"{NO_VICTIMS}",
        ),
    }


def test_a_child_group_that_does_not_fit_is_left_out_if_the_others_suffice() -> None:
    harness = make_harness(
        "2",
        make_composite_group(min_group_count=1),
        make_child_group("x", min_count=2),
        make_child_group("y", min_count=1),
    )
    pods = [*members("x", "ab"), *members("y", "c")]
    harness.create(*pods)
    harness.attempt()
    harness.run()
    assert [harness.node_of(pod) for pod in pods] == ["n1", "n1", ""]
    assert [status for status, _ in messages(harness).values()] == ["True", "False"]


def test_the_pods_wait_until_all_groups_above_them_exist() -> None:
    harness = make_harness("3", make_child_group("x", parent="middle"))
    (pod,) = members("x", "a")
    harness.create(pod)
    assert harness.context.queue.count_pending_pods()["incomplete"] == 1
    for group in (make_composite_group("middle", parent="root"), make_composite_group("root")):
        harness.dispatcher.on_add(group)
    harness.run()
    assert harness.node_of(pod) == "n1"


def test_pods_of_another_priority_than_the_root_are_an_error_of_all_pod_groups() -> None:
    harness = make_harness("3", make_composite_group(priority=5), make_child_group("x"), make_child_group("y"))
    harness.create(*members("x", "a"))
    harness.attempt()
    message = "all pods in a single pod group should have the same priority as the pod group's priority, got 0 and 5"
    assert messages(harness) == {"x": ("False", message), "y": ("False", message)}


def test_the_pods_of_a_tree_of_hundreds_of_levels_fail_and_other_pods_are_bound() -> None:
    harness = make_harness("3", make_composite_group(), make_child_group("x"), *make_chain(500))
    (pod,) = members("x", "a")
    other_pod = make_pod("other")
    harness.create(pod, other_pod)
    harness.attempt()
    harness.attempt()
    assert (harness.node_of(pod), harness.node_of(other_pod)) == ("", "n1")
    message = "exceeded maximum hierarchy depth at compositepodgroup/default/c99"
    assert messages(harness) == {"x": ("False", message), "leaf": ("False", message)}


def test_a_tree_of_100_levels_is_scheduled_and_preempts() -> None:
    groups = [make_composite_group(priority=5), make_child_group("x", priority=5), *make_chain(98)]
    harness = make_harness("1", *groups)
    victim = make_pod("victim", requests={"cpu": "1"})
    harness.create(victim)
    harness.run()
    assert harness.node_of(victim) == "n1"
    (pod,) = members("x", "a", priority=5)
    harness.create(pod)
    harness.attempt()
    nominations = {call.name: call.body["status"].get("nominatedNodeName") for call in harness.api.calls_to("status")}
    assert nominations["a"] == "n1"
    assert [call.name for call in harness.api.calls_to("delete")] == ["victim"]
