"""A pod group decided in one cycle, as a whole and placement by placement."""

from random import Random
from typing import Any

import pytest

from extender import wiring
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.decide.engine import Engine
from extender.decide.groupcycle import decide_group, turn_key
from extender.decide.podgroup import WAITS, Fate, GroupDecision, mixed_schedulers
from extender.decide.sampling import Search
from extender.framework.points import Permission
from extender.framework.profiles import Profile
from extender.framework.verdict import SUCCESS, Code, Status, error, unschedulable
from extender.plugins.gang_scheduling import GangScheduling
from tests.build import a_cluster, a_node, a_pod, a_query
from tests.groups import a_group, a_member
from tests.unit.decide.stand_ins import Broken, Helping, Refusing, a_profile

GATES = FeatureGates({"GenericWorkload": True, "GangScheduling": True, "TopologyAwareWorkloadScheduling": True})
GANGS = wiring.scheduling(gates=GATES).first
ANYWHERE = wiring.scheduling(gates=FeatureGates({"GenericWorkload": True, "GangScheduling": True})).first
TIGHT = {"cpu": "1", "memory": "4Gi", "pods": "9"}
NO_ROOM = Refusing("Full", "n1")
FIT = GANGS.plugins["NodeResourcesFit"]


def members(cluster: Snapshot, *names: str, **more: Any) -> list[PodQuery]:
    return [cluster.query(a_member(name, requests={"cpu": "1"}, **more)) for name in names]


def ring(*nodes: str, min_count: int = 2, rack: str = "") -> ClusterState:
    """Nodes that take one member each, a gang, and its members a, b and c that wait; nodes `x1` are in rack `x`."""
    made = [a_node(name, labels={"rack": name[0]}, allocatable=TIGHT) for name in nodes]
    waiting = [a_member(name, requests={"cpu": "1"}) for name in "abc"]
    return a_cluster(*made, a_group(min_count=min_count, topology=rack), *waiting)


def decided(state: ClusterState, *names: str, profile: Profile = GANGS, seed: int = 0) -> GroupDecision:
    cluster = state.snapshot()
    return decide_group(members(cluster, *names), cluster, profile, Engine(), Random(seed), Search())


def test_members_stand_where_those_before_them_left_room() -> None:
    """A147."""
    found = decided(ring("n1", "n2", "n3", min_count=3), "a", "b", "c")
    assert found.status == SUCCESS
    assert sorted(member.node for member in found.members) == ["n1", "n2", "n3"]
    assert [member.permitted.code for member in found.members] == [Code.WAIT, Code.WAIT, Code.SUCCESS]
    assert [found.fate(turn) for turn in range(3)] == [None] * 3


def test_a_gang_needs_no_more_members_than_it_says() -> None:
    """A148: a member that is refused is tolerated."""
    found = decided(ring("n1", "n2", min_count=2), "a", "b", "c")
    assert found.status == SUCCESS
    assert [bool(member.node) for member in found.members] == [True, True, False]
    fate = found.fate(2)
    assert fate is not None
    assert fate.status.code is Code.UNSCHEDULABLE
    assert fate.status.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert fate.rejectors == {"NodeResourcesFit"}


def test_a_gang_with_too_few_nodes_goes_nowhere() -> None:
    """A149, A150: those that had a node are told what Permit said."""
    found = decided(ring("n1", min_count=2), "a", "b", profile=ANYWHERE)
    assert found.status == unschedulable("pod group is unschedulable")
    wait = "waiting for minCount pods from a gang to be scheduled"
    told = f"{wait}, one or more plugins asked to wait and no plugin rejected pod"
    assert found.fate(0) == Fate(unschedulable("pod group is unschedulable", told), nominated="")
    fate = found.fate(1)
    assert fate is not None
    assert fate.rejectors == {"NodeResourcesFit"}


def test_the_cluster_is_left_as_it_was() -> None:
    state = ring("n1", "n2", min_count=2)
    before = state.snapshot()
    decided(state, "a", "b")
    assert [dict(before.pods_on(name)) for name in ("n1", "n2")] == [{}, {}]
    assert len(before.group("default/ring").waiting) == 3


def test_reservations_are_given_back_last_first() -> None:
    """A147."""
    diary: list[str] = []

    class Reserving:
        name = "Reserving"

        def reserve(self, pod: Any, *_: Any) -> None:
            diary.append(f"reserve {pod.pod.metadata.name}")

        def unreserve(self, pod: Any, *_: Any) -> None:
            diary.append(f"unreserve {pod.pod.metadata.name}")

    decided(ring("n1"), "a", "b", profile=a_profile(Reserving()))
    assert diary == ["reserve a", "reserve b", "unreserve b", "unreserve a"]


def test_a_fault_ends_the_cycle_of_the_group() -> None:
    """A148."""
    found = decided(ring("n1"), "a", "b", profile=a_profile(Broken()))
    fault = 'running PreFilter plugin "Broken": ValueError: out of order'
    assert found.status == error(f"failed to schedule other pod from a pod group: {fault}")
    assert len(found.members) == 1
    assert found.fate(0) == Fate(Status(Code.ERROR, (fault,), "Broken"), nominated="")
    assert found.fate(1) == Fate(found.status, nominated="")


def test_a_member_that_preempts_makes_the_group_wait() -> None:
    """A147, A149, A150."""

    class Full:
        name = "Full"

        def filter(self, pod: Any, nodes: Any, _notes: Any) -> Any:
            return NO_ROOM.filter(pod, nodes, _notes) if pod.pod.metadata.name == "b" else ()

    helping = Helping("Helping", Code.SUCCESS, nominated="n1")
    found = decided(ring("n1"), "a", "b", profile=a_profile(Full(), helping, GangScheduling()))
    assert (found.status, found.waits_for_preemption) == (WAITS, True)
    waits = "pod group is unschedulable, pod group is waiting for preemption to complete"
    assert found.status.message == waits
    assert [(member.node, member.preempts) for member in found.members] == [("n1", False), ("n1", True)]
    assert found.fate(0) == Fate(WAITS, nominated="n1")
    fate = found.fate(1)
    assert fate is not None
    assert fate.nominated == "n1"


def test_a_member_that_permit_rejects_gives_its_room_back() -> None:
    class Gatekeeper:
        name = "Gatekeeper"

        def permit(self, pod: Any, *_: Any) -> Any:
            return Permission(unschedulable("not this one") if pod.pod.metadata.name == "a" else None)

    found = decided(ring("n1"), "a", "b", profile=a_profile(FIT, Gatekeeper()))
    assert [member.node for member in found.members] == ["", "n1"]
    assert found.members[0].status.message == "0/1 nodes are available: 1 not this one."


def test_members_have_their_turns_by_priority_and_then_by_age() -> None:
    """A145."""

    came = [(a_pod("young"), 9.0), (a_pod("old"), 1.0), (a_pod("high", priority=5), 10.0)]
    order = sorted(came, key=lambda each: turn_key(*each))
    assert [pod.metadata.name for pod, _ in order] == ["high", "old", "young"]


def test_members_of_several_schedulers_cannot_be_decided_together() -> None:
    """A146."""
    pods = [a_query(a_pod(name, spec={"schedulerName": name})) for name in ("x", "x", "y")]
    said = "all pods in a single pod group should have the same .spec.schedulerName set"
    assert mixed_schedulers(pods) == error(f'{said}, got: "y" and "x"')
    assert mixed_schedulers(pods[:2]) is None


# -- placements


def test_a_group_stands_in_the_one_rack_that_can_take_it() -> None:
    """A152."""
    found = decided(ring("a1", "b1", "b2", rack="rack"), "a", "b")
    assert found.status == SUCCESS
    assert found.placement.name == "b"
    assert sorted(member.node for member in found.members) == ["b1", "b2"]


@pytest.mark.parametrize("seed", range(5))
def test_of_several_racks_that_with_most_members_is_best(seed: int) -> None:
    """B134."""
    found = decided(ring("a1", "a2", "b1", "b2", "b3", rack="rack"), "a", "b", "c", seed=seed)
    assert found.placement.name == "b"
    assert len([member for member in found.members if member.node]) == 3


def test_ties_between_racks_are_broken_by_chance() -> None:
    state = ring("a1", "a2", "b1", "b2", rack="rack")
    assert {decided(state, "a", "b", seed=seed).placement.name for seed in range(20)} == {"a", "b"}


def test_no_rack_is_enough() -> None:
    found = decided(ring("a1", "b1", rack="rack"), "a", "b")
    first = "0/2 placements are available, first placement status: pod group is unschedulable"
    assert found.status == unschedulable(first)
    fate = found.fate(1)
    assert fate is not None
    assert "0/1 nodes are available: 1 Insufficient cpu." in fate.status.message


def test_a_label_that_no_node_has_leaves_no_placement() -> None:
    found = decided(ring("a1", rack="row"), "a")
    assert found.status == Status(Code.UNSCHEDULABLE, ("no feasible placements found",), "TopologyPlacementGenerator")


def test_without_the_gates_none_of_the_plugins_is_there() -> None:
    """G065 to G067."""
    names = {"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"}
    assert not names & wiring.scheduling().first.plugins.keys()
    assert names <= GANGS.plugins.keys()
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "GangScheduling"}]}}}],
    }
    without = wiring.from_builtins(document, "f", GATES).first.plugins.keys()
    assert names - without == {"GangScheduling"}
