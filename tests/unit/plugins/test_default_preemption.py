"""DefaultPreemption: what it says, what it plans, whom it keeps out of the queue."""

from random import Random
from typing import Any

import pytest

from extender import wiring
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.decide.cycle import decide
from extender.decide.decision import Unplaced
from extender.decide.engine import Engine
from extender.decide.rescue import Attempt
from extender.decide.sampling import Search
from extender.framework.changes import Action, Change, Hint, Resource
from extender.framework.points import PostFiltered
from extender.framework.setup import Setup
from extender.framework.verdict import Code
from extender.objects.pod import Pod
from extender.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from extender.preemption.plan import PreemptionPlan
from tests.build import a_cluster, a_node, a_query, an_object
from tests.unit.decide.stand_ins import a_profile
from tests.unit.preemption.worlds import FailsOn, a_small_node, attempted, high, low

GROUPED = {"schedulingGroup": {"podGroupName": "gang"}}
TAINTED = {"taints": [{"key": "only", "effect": "NoSchedule"}], "allocatable": {"cpu": "2", "pods": "9"}}


def _plugin(options: DefaultPreemptionArgs | None = None, **gates: bool) -> DefaultPreemption:
    return DefaultPreemption(Setup(options or DefaultPreemptionArgs(), FeatureGates(gates)))


def _asked(state: ClusterState, pod: Pod, plugin: DefaultPreemption | None = None, **more: Any) -> PostFiltered:
    query, cluster, attempt = attempted(state, pod, **more)
    return (plugin or _plugin()).post_filter(query, cluster, attempt)


def _group(**spec: Any) -> Any:
    return an_object(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "gang", "namespace": "default", "uid": "uid-gang"},
            "spec": spec,
        }
    )


def _one_full_node() -> ClusterState:
    return a_cluster(a_small_node("n"), low("low", "n", cpu="2"))


# -- what it says


def test_success_says_nothing_and_carries_the_plan() -> None:
    answer = _asked(_one_full_node(), high())

    assert (answer.status.code, answer.status.reasons, answer.nominated) == (Code.SUCCESS, (), "n")
    assert isinstance(answer.detail, PreemptionPlan)
    assert [victim.key for victim in answer.detail.chosen.victims] == ["default/low"]
    assert answer.detail.ties == ("n",)


def test_no_candidate_tells_of_all_nodes_and_clears_the_nomination() -> None:
    state = a_cluster(a_small_node("a"), a_node("b", **TAINTED), a_node("c", **TAINTED))
    state.put_pod(low("equal", "a", cpu="2", priority=100))

    answer = _asked(state, high())

    assert answer.status.code is Code.UNSCHEDULABLE
    assert answer.status.reasons == (
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling.",
    )
    assert (answer.nominated, answer.detail) == ("", None)


def test_what_still_refuses_the_pod_without_its_victims_is_told() -> None:
    state = a_cluster(a_small_node("a"), low("low", "a"), low("equal", "a", priority=100))

    (said,) = _asked(state, high()).status.reasons

    assert said == "preemption: 0/1 nodes are available: 1 Insufficient cpu."


def test_a_pod_that_never_evicts_leaves_its_nomination_alone() -> None:
    answer = _asked(_one_full_node(), high(spec={"preemptionPolicy": "Never"}))

    assert answer.status.reasons == ("preemption: not eligible due to preemptionPolicy=Never.",)
    assert (answer.status.code, answer.nominated) == (Code.UNSCHEDULABLE, None)


def test_a_pod_turned_away_for_good_before_any_node_finds_no_help() -> None:
    pod = high(spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]})

    (said,) = _asked(_one_full_node(), pod).status.reasons

    assert said == "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def test_an_error_is_told_if_there_is_no_candidate() -> None:
    state = a_cluster(a_small_node("m"), a_small_node("n"), low("x", "m"), low("y", "n"))

    only_errors = _asked(state, high(), profile=a_profile(FailsOn("m", "n")))
    one_candidate = _asked(state, high(), profile=a_profile(FailsOn("m")))

    assert only_errors.status.code is Code.ERROR
    assert only_errors.status.reasons == ('preemption: running "FailsOn" filter plugin: no idea',)
    assert (one_candidate.status.code, one_candidate.nominated) == (Code.SUCCESS, "n")


# -- within a decision


def _decided(state: ClusterState, pod: Pod) -> Unplaced:
    cluster = state.snapshot()
    decision = decide(cluster.query(pod), cluster, wiring.scheduling().first, Engine(), Random(1), Search())
    assert isinstance(decision, Unplaced)
    return decision


def test_a_decision_carries_the_nomination_and_the_plan() -> None:
    decision = _decided(_one_full_node(), high())

    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert decision.nominated == "n"
    assert decision.details["DefaultPreemption"].chosen.node == "n"


def test_what_it_says_comes_after_what_other_plugins_say() -> None:
    state = a_cluster(a_small_node("n"), low("equal", "n", cpu="2", priority=100))

    assert _decided(state, high()).message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_the_options_say_when_the_search_stops() -> None:
    state = a_cluster()
    for number in range(10):
        state.put_node(a_small_node(f"n{number}"))
        state.put_pod(low(f"p{number}", f"n{number}", cpu="2"))
    few = _plugin(DefaultPreemptionArgs(min_candidate_nodes_percentage=20, min_candidate_nodes_absolute=0))

    stopped, all_of_them = (_asked(state, high(), few, every_node=every).detail for every in (False, True))

    assert isinstance(stopped, PreemptionPlan)
    assert isinstance(all_of_them, PreemptionPlan)
    assert (len(stopped.candidates), len(all_of_them.candidates)) == (2, 10)


# -- members of pod groups


@pytest.mark.parametrize(
    ("gates", "groups", "said"),
    [
        pytest.param({}, [], None, id="groups mean nothing by default"),
        pytest.param(
            {"TopologyAwareWorkloadScheduling": True},
            [],
            "preemption: pod group for pod not found",
            id="a group that is missing",
        ),
        pytest.param(
            {"TopologyAwareWorkloadScheduling": True},
            [_group(schedulingConstraints={"topology": [{"key": "zone"}]})],
            "preemption: not eligible due to placement-based pod group scheduling limitation",
            id="a group that is placed by topology",
        ),
        pytest.param({"TopologyAwareWorkloadScheduling": True}, [_group()], None, id="a group that is not"),
        pytest.param(
            {"WorkloadAwarePreemption": True},
            [_group()],
            "preemption: not eligible due to workload aware preemption enabled",
            id="groups that evict as one",
        ),
    ],
)
def test_a_member_of_a_group_may_have_to_leave_it_to_the_group(
    gates: dict[str, bool], groups: list[Any], said: str | None
) -> None:
    state = a_cluster(a_small_node("n"), low("low", "n", cpu="2"), *groups)

    status = _asked(state, high(spec=GROUPED), _plugin(None, **gates)).status

    assert (status.code, status.reasons) == ((Code.UNSCHEDULABLE, (said,)) if said else (Code.SUCCESS, ()))


# -- the queue


def test_a_pod_is_kept_out_of_the_queue_while_its_victims_are_evicted() -> None:
    plugin, state = _plugin(), a_cluster()
    pod = a_query(high())
    plugin.preempting.add("uid-default-high")

    held = plugin.pre_enqueue(pod, state.snapshot())
    plugin.preempting.clear()

    assert held is not None
    assert (held.code, held.message) == (
        Code.UNRESOLVABLE,
        "waiting for the preemption for this pod to be finished",
    )
    assert plugin.pre_enqueue(pod, state.snapshot()) is None


def test_a_member_waits_for_the_eviction_of_its_group() -> None:
    plugin = _plugin(None, WorkloadAwarePreemption=True)
    plugin.preempting_groups.add("uid-gang")
    pod = a_query(high(spec=GROUPED))

    held = plugin.pre_enqueue(pod, a_cluster(_group()).snapshot())

    assert held is not None
    assert held.message == "waiting for the preemption for this pod group to be finished"
    assert plugin.pre_enqueue(pod, a_cluster().snapshot()) is None


def test_without_asynchronous_eviction_nothing_is_kept_and_no_event_is_known() -> None:
    plugin = _plugin(None, SchedulerAsyncPreemption=False)
    plugin.preempting.add("uid-default-high")

    assert plugin.pre_enqueue(a_query(high()), a_cluster().snapshot()) is None
    assert plugin.events() == ()


def test_a_deleted_pod_never_wakes_the_pod_by_itself() -> None:
    (registration,) = _plugin().events()

    assert (registration.resource, registration.action) == (Resource.POD, Action.DELETE)
    assert registration.hint is not None
    gone = Change(Resource.ASSIGNED_POD, Action.DELETE, old=low("low", "n"))
    assert registration.hint(a_query(high()), gone) is Hint.SKIP


# -- options


def test_the_defaults_are_a_tenth_and_a_hundred() -> None:
    options = wiring.scheduling().registry.options["default-scheduler"]["DefaultPreemption"]

    assert options == {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}


@pytest.mark.parametrize(
    ("percentage", "absolute", "faults"),
    [
        pytest.param(100, 0, [], id="all nodes"),
        pytest.param(0, 1, [], id="one node"),
        pytest.param(
            101,
            100,
            ["args.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
            id="more than all",
        ),
        pytest.param(
            -1,
            -2,
            [
                "args.minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]",
                "args.minCandidateNodesAbsolute: Invalid value: -2: not in valid range [0, inf)",
            ],
            id="less than none",
        ),
        pytest.param(
            0,
            0,
            [
                "args.minCandidateNodesPercentage: Invalid value: 0: "
                "cannot be zero at the same time as minCandidateNodesAbsolute",
                "args.minCandidateNodesAbsolute: Invalid value: 0: "
                "cannot be zero at the same time as minCandidateNodesPercentage",
            ],
            id="none at all",
        ),
    ],
)
def test_options_out_of_range_are_refused(percentage: int, absolute: int, faults: list[str]) -> None:
    options = DefaultPreemptionArgs(min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute)

    assert [str(fault) for fault in options.faults("args", FeatureGates())] == faults


def test_an_attempt_needs_no_chance() -> None:
    """Without chance the first of equals is taken, so that recordings are explained the same each time."""
    state = a_cluster(*(a_small_node(name) for name in "ba"), low("x", "a", cpu="2"), low("y", "b", cpu="2"))
    query, cluster, attempt = attempted(state, high())

    answer = _plugin().post_filter(query, cluster, Attempt(attempt.feasibility, attempt.profile, attempt.engine))

    assert answer.nominated == "a"
    assert answer.detail.ties == ("a", "b")
