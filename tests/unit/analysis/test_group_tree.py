"""Why a composite pod group waits: the groups of its tree, with what each needs and how its attempt ended."""

from typing import Any

from extender.analysis.pod_group_outcome import PodGroupOutcome, PodGroupSimulator
from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.cycle.plugin_runtime import PluginRuntime
from tests.build import make_cluster, make_node
from tests.pod_group_builders import make_chain, make_child_group, make_composite_group, make_group_member

GATE_NAMES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
GATES = FeatureGates(dict.fromkeys(GATE_NAMES, True), RELEASE_1_37)
FIRST_STATUS = "0/1 placements are available, first placement status:"
TOO_FEW = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"


def explain(cpu: str, **groups: Any) -> PodGroupOutcome:
    """Return the outcome of pod c in a gang of the groups x, with pods a and b, and y, with pod c."""
    node = make_node("n1", allocatable={"cpu": cpu, "memory": "4Gi", "pods": "9"})
    pods = [
        make_group_member(name, group=group, requests={"cpu": "1"})
        for name, group in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))
    ]
    root = make_composite_group(min_group_count=2, **groups)
    children = make_child_group("x", min_count=1), make_child_group("y", min_count=2)
    cache = make_cluster(node, root, *children, *pods, gates=GATES)
    simulator = PodGroupSimulator(cache, dict(wiring.build_setup(gates=GATES).profiles), PluginRuntime())
    outcome = simulator.explain_outcome(pods[2])
    assert outcome is not None
    return outcome


def test_a_tree_that_waits_shows_the_state_of_each_group() -> None:
    lines = explain("3").format_lines()
    assert lines[1] == (
        "  As a member of pod group default/y of composite pod group default/root, scheduled together with 3 other pods"
    )
    start = lines.index("    the groups of the tree:")
    no_victims = "pod group preemption: No preemption victims found for incoming preemptor"
    assert lines[start + 1 :] == [
        f"      composite pod group default/root needs 2 of 2 child groups: pod group is unschedulable, {FIRST_STATUS} "
        f"minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, {no_victims}, {no_victims}",
        "        pod group default/x needs 1 of 2 pods: fits",
        f"        pod group default/y needs 2 of 2 pods: pod group is unschedulable, {FIRST_STATUS} {TOO_FEW}",
    ]


def test_the_groups_of_a_tree_that_fits_are_values_too() -> None:
    values = explain("4").to_values()
    assert (values["scheduled"], values["shortfall"]) == (True, None)
    group = {"parent": "default/root", "composite": False, "scheduled": 0, "fits": True, "message": None, "members": 2}
    assert values["tree"] == [
        {
            "name": "default/root",
            "parent": None,
            "composite": True,
            "minCount": 2,
            "members": 2,
            "scheduled": 2,
            "fits": True,
            "message": None,
        },
        {"name": "default/x", "minCount": 1, **group},
        {"name": "default/y", "minCount": 2, **group},
    ]


def test_a_tree_of_thousands_of_levels_is_described() -> None:
    node, pod = make_node("n1"), make_group_member("a", group="x")
    cache = make_cluster(node, make_composite_group(), make_child_group("x"), *make_chain(3000), pod, gates=GATES)
    simulator = PodGroupSimulator(cache, dict(wiring.build_setup(gates=GATES).profiles), PluginRuntime())
    outcome = simulator.explain_outcome(pod)
    assert outcome is not None
    message = "exceeded maximum hierarchy depth at compositepodgroup/default/c99"
    assert outcome.decision.status.message == message
    assert len(outcome.tree) == 3003
    assert [group.name for group in outcome.tree[:3]] == ["default/root", "default/x", "default/c0"]
    assert [group.message for group in outcome.tree[:3]] == [message, "not tried", "not tried"]
