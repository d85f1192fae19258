"""Simulations with gangs: all of a gang is placed, or none of it."""

from dataclasses import replace
from typing import Any

from extender import wiring
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.decide.engine import Engine
from extender.framework.points import Permission
from extender.framework.verdict import unschedulable
from extender.offline.simulate import Placement, Simulation, simulate
from tests.build import a_cluster, a_node, a_pod
from tests.groups import a_group, a_member
from tests.unit.decide.stand_ins import a_profile

GATES = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
GANGS = wiring.scheduling(gates=GATES).profiles
ROOM = {"cpu": "2", "memory": "4Gi", "pods": "9"}
CPU = {"cpu": "1"}


def simulated(state: ClusterState, profiles: Any = GANGS) -> Simulation:
    return simulate(state, profiles, Engine())


def where(found: Simulation) -> dict[str, str]:
    return {each.pod: each.node for each in found.placements}


def test_a_gang_that_fits_is_placed() -> None:
    members = [a_member(name, requests=CPU) for name in "ab"]
    found = simulated(a_cluster(a_node("n", allocatable=ROOM), a_group(min_count=2), *members))
    assert where(found) == {"default/a": "n", "default/b": "n"}


def test_a_gang_that_does_not_fit_goes_nowhere() -> None:
    """A147 to A150: it is decided as a whole, so none of its pods takes a turn for nothing."""
    members = [a_member(name, requests=CPU) for name in "abc"]
    state = a_cluster(a_node("n", allocatable=ROOM), a_group(min_count=3), *members, a_pod("last", requests=CPU))
    found = simulated(state)
    assert where(found) == {"default/a": "", "default/b": "", "default/c": "", "default/last": "n"}
    waits = "waiting for minCount pods from a gang to be scheduled"
    told = f"pod group is unschedulable, {waits}, one or more plugins asked to wait and no plugin rejected pod"
    assert [each.message for each in found.placements[:2]] == [told, told]
    assert found.placements[2].reason == "Insufficient cpu"


def test_members_of_two_schedulers_cannot_be_decided_together() -> None:
    """A146."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "x"}, {"schedulerName": "y"}],
    }
    members = [a_member(name, spec={"schedulerName": name}) for name in "xy"]
    profiles = wiring.from_builtins(document, "f", GATES).profiles
    found = simulated(a_cluster(a_node("n", allocatable=ROOM), a_group(), *members), profiles)
    said = "all pods in a single pod group should have the same .spec.schedulerName set"
    assert [each.message for each in found.placements] == [f'{said}, got: "y" and "x"'] * 2


def test_without_the_group_cycle_a_gang_that_does_not_fit_gives_its_room_back() -> None:
    """B131: its pods wait until their time runs out."""
    members = [a_member(name, requests=CPU) for name in "abc"]
    state = a_cluster(a_node("n", allocatable=ROOM), a_group(min_count=3), *members)
    found = simulated(state, {name: replace(profile, groups=None) for name, profile in GANGS.items()})
    assert where(found) == {"default/a": "", "default/b": "", "default/c": ""}
    reason = "waiting for minCount pods from a gang to be scheduled"
    late = "rejected due to timeout after waiting 5m0s at plugin GangScheduling"
    assert found.placements[0] == Placement("default/a", reason=reason, message=f"0/1 nodes are available: 1 {late}.")
    assert found.placements[2].reason == "Insufficient cpu"
    assert not state.snapshot().pods_on("n")


def test_a_gang_that_is_not_complete_is_held_back() -> None:
    found = simulated(a_cluster(a_node("n", allocatable=ROOM), a_group(min_count=2), a_member("a"), a_pod("alone")))
    assert where(found) == {"default/a": "", "default/alone": "n"}
    assert found.placements[0].reason.startswith("held back by GangScheduling: waiting for minCount pods")


def test_a_pod_that_permit_rejects_gives_its_room_back() -> None:
    class Gatekeeper:
        name = "Gatekeeper"

        def permit(self, pod: Any, *_: Any) -> Permission:
            return Permission(unschedulable("not this one") if pod.pod.metadata.name == "a" else None)

    state = a_cluster(a_node("n", allocatable=ROOM), a_pod("a"), a_pod("b"))
    found = simulated(state, {"default-scheduler": a_profile(Gatekeeper())})
    assert found.placements == (
        Placement("default/a", reason="not this one", message="0/1 nodes are available: 1 not this one."),
        Placement("default/b", "n"),
    )
    assert len(state.snapshot().pods_on("n")) == 1
