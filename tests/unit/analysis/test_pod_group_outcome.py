"""The outcome of a pending pod as a member of its pod group."""

from typing import Any

from extender.analysis.pod_group_outcome import PodGroupOutcome, PodGroupSimulator
from extender.app import wiring
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from tests.build import make_cluster, make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group

GANG_GATES = ("GenericWorkload", "GangScheduling")
CPU = {"cpu": "1"}


def pending_outcomes(cache: Cache, *gates: str) -> list[PodGroupOutcome | None]:
    """Return the outcomes of the pending pods, ordered by name."""
    feature_gates = FeatureGates(dict.fromkeys(gates, True), RELEASE_1_36)
    profiles: dict[str, Profile] = dict(wiring.build_setup(gates=feature_gates).profiles)
    simulator = PodGroupSimulator(cache, profiles, PluginRuntime())
    return [simulator.get_outcome(pod) for pod in sorted(cache.pending_pods.values(), key=lambda pod: pod.key)]


def make_gang_cluster(cpu: str, min_count: int, *objects: Any, **spec: Any) -> Cache:
    """Return a cluster of one node, a gang, and its members a and b that request one CPU each."""
    node = make_node("n1", allocatable={"cpu": cpu, "memory": "4Gi", "pods": "9"})
    members = [make_group_member(name, requests=CPU, priority=spec.get("priority", 0)) for name in "ab"]
    return make_cluster(node, make_pod_group(min_count=min_count, **spec), *members, *objects)


def test_members_of_a_gang_that_fits_go_to_their_nodes() -> None:
    a, _ = pending_outcomes(make_gang_cluster("2", 2), *GANG_GATES)
    assert a is not None
    assert a.format_lines() == [
        "",
        "  As a member of pod group default/ring, scheduled together with 1 other pod",
        "    the pod goes to n1",
    ]
    assert a.to_values() == {
        "name": "default/ring",
        "members": 2,
        "scheduled": True,
        "waitsForPreemption": False,
        "placement": None,
        "message": "",
        "node": "n1",
        "podMessage": None,
        "victims": [],
        "shortfall": None,
        "tree": None,
    }


def test_a_member_is_not_scheduled_if_its_gang_does_not_fit() -> None:
    a, b = pending_outcomes(make_gang_cluster("1", 2), *GANG_GATES)
    assert a is not None
    assert b is not None
    waiting = "waiting for minCount pods from a gang to be scheduled"
    assert a.format_lines()[2:] == [
        "    the pod is not placed",
        "    message of the group: pod group is unschedulable",
        f"    message of the pod: pod group is unschedulable, {waiting}, "
        "one or more plugins asked to wait and no plugin rejected pod",
    ]
    assert (b.node, b.message.partition(".")[0]) == ("", "0/1 nodes are available: 1 Insufficient cpu")


def test_an_extra_member_without_capacity_is_not_scheduled_with_its_gang() -> None:
    _, b = pending_outcomes(make_gang_cluster("1", 1), *GANG_GATES)
    assert b is not None
    assert b.format_lines()[2:4] == ["    the pod is not placed", "    the group is scheduled without this pod"]


def test_pods_that_the_members_preempt_one_by_one_are_named() -> None:
    low = make_pod("low", node="n1", requests=CPU, priority=0)
    a, b = pending_outcomes(make_gang_cluster("2", 2, low, priority=10), *GANG_GATES)
    assert a is not None
    assert b is not None
    assert a.victims == b.victims == ["default/low"]


def test_pods_evicted_for_the_group_are_named() -> None:
    low = make_pod("low", node="n1", requests=CPU)
    a, b = pending_outcomes(make_gang_cluster("2", 2, low, priority=5), *GANG_GATES, "WorkloadAwarePreemption")
    assert a is not None
    assert b is not None
    assert a.format_lines()[2:4] == [
        "    the pod goes to n1 after the evictions",
        "    evicted for the group: default/low",
    ]
    assert b.format_lines()[2] == "    the pod is retried after the evictions"


def test_without_the_gate_or_a_group_there_is_no_outcome() -> None:
    assert pending_outcomes(make_gang_cluster("2", 2)) == [None, None]
    assert pending_outcomes(make_cluster(make_node("n1"), make_pod("alone")), *GANG_GATES) == [None]
