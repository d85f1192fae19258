"""The scheduling cycle of a pod group, without and with placements."""

from random import Random
from typing import Any

from extender.app import wiring
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.cycle.decision import AttemptFailure
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group_cycle import schedule_pod_group
from extender.cycle.pod_group_members import WAITING_FOR_PREEMPTION, GroupDecision, check_scheduler_names
from extender.framework.binding_points import PermitResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.profiles import Profile
from extender.framework.status import SUCCESS, Code, Status, error_status, unschedulable_status
from extender.plugins.gang_scheduling import GangScheduling
from tests.build import make_cluster, make_node, make_pod, make_pod_info
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.cycle.fakes import FakePostFilter, RaisingPlugin, RejectingFilter, make_profile

GATE_NAMES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")
GATES = FeatureGates(dict.fromkeys(GATE_NAMES, True), RELEASE_1_36)
GANGS = wiring.build_setup(gates=GATES).first_profile
ANYWHERE = wiring.build_setup(gates=FeatureGates(dict.fromkeys(GATE_NAMES[:2], True), RELEASE_1_36)).first_profile
TIGHT = {"cpu": "1", "memory": "4Gi", "pods": "9"}
NO_ROOM = RejectingFilter("Full", "n1")
FIT = GANGS.plugins["NodeResourcesFit"]


def members(snapshot: Snapshot, *names: str, **more: Any) -> list[PodInfo]:
    return [snapshot.make_pod_info(make_group_member(name, requests={"cpu": "1"}, **more)) for name in names]


def make_gang_cluster(*nodes: str, min_count: int = 2, rack: str = "") -> Cache:
    """Make nodes for one member each and a gang with pending members a, b and c; node `x1` is in rack `x`."""
    made = [make_node(name, labels={"rack": name[0]}, allocatable=TIGHT) for name in nodes]
    waiting = [make_group_member(name, requests={"cpu": "1"}) for name in "abc"]
    return make_cluster(*made, make_pod_group(min_count=min_count, topology=rack), *waiting)


def schedule(
    state: Cache, *names: str, profile: Profile = GANGS, seed: int = 0, runtime: PluginRuntime | None = None
) -> GroupDecision:
    snapshot = state.snapshot()
    return schedule_pod_group(
        members(snapshot, *names), snapshot, profile, runtime or PluginRuntime(), Random(seed), NodeSampler()
    )


def test_members_are_scheduled_on_the_space_that_earlier_members_leave() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36)."""
    decision = schedule(make_gang_cluster("n1", "n2", "n3", min_count=3), "a", "b", "c")
    assert decision.status == SUCCESS
    assert sorted(member.node_name for member in decision.members) == ["n1", "n2", "n3"]
    assert [member.permit_status.code for member in decision.members] == [Code.WAIT, Code.WAIT, Code.SUCCESS]
    assert [decision.get_member_failure(turn) for turn in range(3)] == [None] * 3


def test_a_gang_needs_only_min_count_members() -> None:
    """A rejected member is tolerated.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36).
    """
    decision = schedule(make_gang_cluster("n1", "n2", min_count=2), "a", "b", "c")
    assert decision.status == SUCCESS
    assert [bool(member.node_name) for member in decision.members] == [True, True, False]
    failure = decision.get_member_failure(2)
    assert failure is not None
    assert failure.status.code is Code.UNSCHEDULABLE
    assert failure.status.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert failure.rejectors == {"NodeResourcesFit"}


def test_a_gang_with_too_few_nodes_is_unschedulable() -> None:
    """Members that had a node get the message of Permit.

    Source: pkg/scheduler/schedule_one_podgroup.go, errPodGroupUnschedulable, Scheduler.submitPodGroupAlgorithmResult
    (1.36).
    """
    decision = schedule(make_gang_cluster("n1", min_count=2), "a", "b", profile=ANYWHERE)
    assert decision.status == unschedulable_status("pod group is unschedulable")
    wait = "waiting for minCount pods from a gang to be scheduled"
    message = f"{wait}, one or more plugins asked to wait and no plugin rejected pod"
    assert decision.get_member_failure(0) == AttemptFailure(
        unschedulable_status("pod group is unschedulable", message), nominated_node=""
    )
    failure = decision.get_member_failure(1)
    assert failure is not None
    assert failure.rejectors == {"NodeResourcesFit"}


def test_the_cluster_is_left_as_it_was() -> None:
    state = make_gang_cluster("n1", "n2", min_count=2)
    snapshot_before = state.snapshot()
    schedule(state, "a", "b")
    assert [dict(snapshot_before.pods_on(name)) for name in ("n1", "n2")] == [{}, {}]
    assert len(snapshot_before.pod_group("default/ring").pending) == 3


def test_reservations_are_undone_in_reverse_order() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36)."""
    calls: list[str] = []

    class Reserving:
        name = "Reserving"

        def reserve(self, pod: Any, *_: Any) -> None:
            calls.append(f"reserve {pod.pod.metadata.name}")

        def unreserve(self, pod: Any, *_: Any) -> None:
            calls.append(f"unreserve {pod.pod.metadata.name}")

    schedule(make_gang_cluster("n1"), "a", "b", profile=make_profile(Reserving()))
    assert calls == ["reserve a", "reserve b", "unreserve b", "unreserve a"]


def test_an_error_ends_the_cycle_of_the_group() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36)."""
    decision = schedule(make_gang_cluster("n1"), "a", "b", profile=make_profile(RaisingPlugin()))
    message = 'running PreFilter plugin "Broken": ValueError: out of order'
    assert decision.status == error_status(f"failed to schedule other pod from a pod group: {message}")
    assert len(decision.members) == 1
    assert decision.get_member_failure(0) == AttemptFailure(Status(Code.ERROR, (message,), "Broken"), nominated_node="")
    assert decision.get_member_failure(1) == AttemptFailure(decision.status, nominated_node="")


def test_a_member_that_preempts_makes_the_group_wait() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm,
    errPodGroupUnschedulable, Scheduler.submitPodGroupAlgorithmResult (1.36).
    """

    class Full:
        name = "Full"

        def filter(self, pod: Any, nodes: Any, _notes: Any) -> Any:
            return NO_ROOM.filter(pod, nodes, _notes) if pod.pod.metadata.name == "b" else ()

    helping = FakePostFilter("Helping", Code.SUCCESS, nominated="n1")
    decision = schedule(
        make_gang_cluster("n1"),
        "a",
        "b",
        profile=make_profile(Full(), helping, GangScheduling(PluginArgs(None, GATES))),
    )
    assert (decision.status, decision.waits_for_preemption) == (WAITING_FOR_PREEMPTION, True)
    reason = "pod group is unschedulable, pod group is waiting for preemption to complete"
    assert decision.status.message == reason
    assert [(member.node_name, member.waits_for_victims) for member in decision.members] == [
        ("n1", False),
        ("n1", True),
    ]
    assert decision.get_member_failure(0) == AttemptFailure(WAITING_FOR_PREEMPTION, nominated_node="n1")
    failure = decision.get_member_failure(1)
    assert failure is not None
    assert failure.nominated_node == "n1"


def test_a_member_that_permit_rejects_frees_its_node() -> None:
    class Gatekeeper:
        name = "Gatekeeper"

        def permit(self, pod: Any, *_: Any) -> Any:
            return PermitResult(unschedulable_status("not this one") if pod.pod.metadata.name == "a" else None)

    decision = schedule(make_gang_cluster("n1"), "a", "b", profile=make_profile(FIT, Gatekeeper()))
    assert [member.node_name for member in decision.members] == ["", "n1"]
    assert decision.members[0].status.message == "0/1 nodes are available: 1 not this one."


def test_members_of_several_schedulers_cannot_be_scheduled_together() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.frameworkForPodGroup (1.36)."""
    pods = [make_pod_info(make_pod(name, spec={"schedulerName": name})) for name in ("x", "x", "y")]
    message = "all pods in a single pod group should have the same .spec.schedulerName set"
    assert check_scheduler_names(pods) == error_status(f'{message}, got: "y" and "x"')
    assert check_scheduler_names(pods[:2]) is None
