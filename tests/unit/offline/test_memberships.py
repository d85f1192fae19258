"""What becomes of pods as members of their pod groups."""

from typing import Any

from extender import wiring
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.decide.engine import Engine
from extender.framework.profiles import Profile
from extender.offline.memberships import Membership, Memberships
from tests.build import a_cluster, a_node, a_pod
from tests.groups import a_group, a_member

GANGS = ("GenericWorkload", "GangScheduling")
CPU = {"cpu": "1"}


def of(state: ClusterState, *gates: str) -> list[Membership | None]:
    """Those of the pods that wait, by name."""
    profiles: dict[str, Profile] = dict(wiring.scheduling(gates=FeatureGates(dict.fromkeys(gates, True))).profiles)
    groups = Memberships(state, profiles, Engine())
    return [groups.of(pod) for pod in sorted(state.waiting.values(), key=lambda pod: pod.key)]


def a_ring(cpu: str, min_count: int, *more: Any, **spec: Any) -> ClusterState:
    """One node, a gang, and its members a and b that want one CPU each."""
    node = a_node("n1", allocatable={"cpu": cpu, "memory": "4Gi", "pods": "9"})
    members = [a_member(name, requests=CPU, priority=spec.get("priority", 0)) for name in "ab"]
    return a_cluster(node, a_group(min_count=min_count, **spec), *members, *more)


def test_members_of_a_gang_that_fits_go_to_their_nodes() -> None:
    a, _ = of(a_ring("2", 2), *GANGS)
    assert a is not None
    assert a.lines() == [
        "",
        "  As a member of pod group default/ring, decided together with 1 other pod",
        "    it goes to n1",
    ]
    assert a.values() == {
        "name": "default/ring",
        "members": 2,
        "scheduled": True,
        "waitsForPreemption": False,
        "placement": None,
        "message": "",
        "node": "n1",
        "podMessage": None,
        "victims": [],
    }


def test_a_member_that_would_fit_alone_goes_nowhere_with_its_gang() -> None:
    a, b = of(a_ring("1", 2), *GANGS)
    assert a is not None
    assert b is not None
    waits = "waiting for minCount pods from a gang to be scheduled"
    assert a.lines()[2:] == [
        "    it goes nowhere",
        "    the group: pod group is unschedulable",
        f"    the pod is told: pod group is unschedulable, {waits}, "
        "one or more plugins asked to wait and no plugin rejected pod",
    ]
    assert (b.node, b.told.partition(".")[0]) == ("", "0/1 nodes are available: 1 Insufficient cpu")


def test_a_member_too_many_is_left_over_when_the_gang_is_scheduled() -> None:
    _, b = of(a_ring("1", 1), *GANGS)
    assert b is not None
    assert b.lines()[2:4] == ["    it goes nowhere", "    the group: is scheduled without it"]


def test_pods_that_are_evicted_for_the_group_are_named() -> None:
    low = a_pod("low", node="n1", requests=CPU)
    a, b = of(a_ring("2", 2, low, priority=5), *GANGS, "WorkloadAwarePreemption")
    assert a is not None
    assert b is not None
    assert a.lines()[2:4] == ["    it goes to n1 once others are evicted", "    evicted for the group: default/low"]
    assert b.lines()[2] == "    it is tried again once others are evicted"


def test_without_the_gate_or_without_a_group_there_is_nothing_to_say() -> None:
    assert of(a_ring("2", 2)) == [None, None]
    assert of(a_cluster(a_node("n1"), a_pod("alone")), *GANGS) == [None]
