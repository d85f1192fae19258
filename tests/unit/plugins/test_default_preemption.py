"""DefaultPreemption: its PostFilter results, its PreEnqueue rejections and its options."""

from random import Random
from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.cycle.decision import ScheduleFailure
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.post_filter import FailedAttempt
from extender.cycle.scheduling_cycle import schedule_pod
from extender.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from extender.framework.extension_points import PostFilterResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code
from extender.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from extender.preemption.plan import PreemptionPlan
from tests.build import make_cluster, make_node, make_object, make_pod_info
from tests.unit.cycle.fakes import make_profile
from tests.unit.preemption.builders import (
    FailingFilter,
    make_failed_attempt,
    make_preemptor,
    make_small_node,
    make_victim,
)

IN_GANG = {"schedulingGroup": {"podGroupName": "gang"}}
TAINTED: dict[str, Any] = {
    "taints": [{"key": "only", "effect": "NoSchedule"}],
    "allocatable": {"cpu": "2", "pods": "9"},
}


PLACED = "found a potential placement for pod on node n, preempting 1 victims"


def _plugin(
    options: DefaultPreemptionArgs | None = None, release: Release = RELEASE_1_36, **gates: bool
) -> DefaultPreemption:
    return DefaultPreemption(PluginArgs(options or DefaultPreemptionArgs(), FeatureGates(gates, release)))


def _post_filter(cache: Cache, pod: Pod, plugin: DefaultPreemption | None = None, **more: Any) -> PostFilterResult:
    pod_info, snapshot, attempt = make_failed_attempt(cache, pod, **more)
    return (plugin or _plugin()).post_filter(pod_info, snapshot, attempt)


def _make_pod_group(**spec: Any) -> Any:
    return make_object(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "gang", "namespace": "default", "uid": "uid-gang"},
            "spec": spec,
        }
    )


def _make_full_node() -> Cache:
    return make_cluster(make_small_node("n"), make_victim("low", "n", cpu="2"))


# -- PostFilter


@pytest.mark.parametrize(("release", "reasons"), [(RELEASE_1_36, ()), (RELEASE_1_37, (f"preemption: {PLACED}",))])
def test_success_names_the_node_since_1_37_and_returns_the_plan(release: Release, reasons: tuple[str, ...]) -> None:
    """Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.Preempt (1.37)."""
    result = _post_filter(_make_full_node(), make_preemptor(), _plugin(None, release))

    assert (result.status.code, result.status.reasons, result.nominated_node_name) == (Code.SUCCESS, reasons, "n")
    assert isinstance(result.plan, PreemptionPlan)
    assert [victim.key for victim in result.plan.best_candidate.victims] == ["default/low"]
    assert result.plan.tied_nodes == ("n",)


def test_without_a_candidate_all_nodes_are_reported_and_the_nomination_is_cleared() -> None:
    cache = make_cluster(make_small_node("a"), make_node("b", **TAINTED), make_node("c", **TAINTED))
    cache.add_or_update_pod(make_victim("equal", "a", cpu="2", priority=100))

    result = _post_filter(cache, make_preemptor())

    assert result.status.code is Code.UNSCHEDULABLE
    assert result.status.reasons == (
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling.",
    )
    assert (result.nominated_node_name, result.plan) == ("", None)


def test_the_reasons_that_remain_without_the_victims_are_reported() -> None:
    cache = make_cluster(make_small_node("a"), make_victim("low", "a"), make_victim("equal", "a", priority=100))

    (message,) = _post_filter(cache, make_preemptor()).status.reasons

    assert message == "preemption: 0/1 nodes are available: 1 Insufficient cpu."


def test_a_pod_that_never_preempts_keeps_its_nomination() -> None:
    result = _post_filter(_make_full_node(), make_preemptor(spec={"preemptionPolicy": "Never"}))

    assert result.status.reasons == ("preemption: not eligible due to preemptionPolicy=Never.",)
    assert (result.status.code, result.nominated_node_name) == (Code.UNSCHEDULABLE, None)


def test_preemption_does_not_help_a_pod_rejected_in_pre_filter() -> None:
    pod = make_preemptor(spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]})

    (message,) = _post_filter(_make_full_node(), pod).status.reasons

    assert message == "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def test_an_error_is_returned_if_there_is_no_candidate() -> None:
    cache = make_cluster(make_small_node("m"), make_small_node("n"), make_victim("x", "m"), make_victim("y", "n"))

    only_errors = _post_filter(cache, make_preemptor(), profile=make_profile(FailingFilter("m", "n")))
    one_candidate = _post_filter(cache, make_preemptor(), profile=make_profile(FailingFilter("m")))

    assert only_errors.status.code is Code.ERROR
    assert only_errors.status.reasons == ('preemption: running "FailsOn" filter plugin: no idea',)
    assert (one_candidate.status.code, one_candidate.nominated_node_name) == (Code.SUCCESS, "n")


# -- within a scheduling cycle


def _schedule(cache: Cache, pod: Pod) -> ScheduleFailure:
    snapshot = cache.snapshot()
    decision = schedule_pod(
        snapshot.make_pod_info(pod),
        snapshot,
        wiring.build_setup(gates=FeatureGates(release=RELEASE_1_36)).first_profile,
        PluginRuntime(),
        Random(1),
        NodeSampler(),
    )
    assert isinstance(decision, ScheduleFailure)
    return decision


def test_a_schedule_failure_has_the_nomination_and_the_plan() -> None:
    decision = _schedule(_make_full_node(), make_preemptor())

    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert decision.nominated_node == "n"
    assert decision.post_filter_plans["DefaultPreemption"].best_candidate.node_name == "n"


def test_its_message_follows_those_of_other_plugins() -> None:
    cache = make_cluster(make_small_node("n"), make_victim("equal", "n", cpu="2", priority=100))

    assert _schedule(cache, make_preemptor()).message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_the_options_limit_the_number_of_candidates() -> None:
    cache = make_cluster()
    for index in range(10):
        cache.add_or_update_node(make_small_node(f"n{index}"))
        cache.add_or_update_pod(make_victim(f"p{index}", f"n{index}", cpu="2"))
    limited_plugin = _plugin(DefaultPreemptionArgs(min_candidate_nodes_percentage=20, min_candidate_nodes_absolute=0))

    limited, unlimited = (
        _post_filter(cache, make_preemptor(), limited_plugin, all_nodes=all_nodes).plan for all_nodes in (False, True)
    )

    assert isinstance(limited, PreemptionPlan)
    assert isinstance(unlimited, PreemptionPlan)
    assert (len(limited.candidates), len(unlimited.candidates)) == (2, 10)


# -- members of pod groups


@pytest.mark.parametrize(
    ("gates", "pod_groups", "message"),
    [
        pytest.param({}, [], None, id="groups do not matter by default"),
        pytest.param(
            {"TopologyAwareWorkloadScheduling": True},
            [],
            "preemption: pod group for pod not found",
            id="a group that is missing",
        ),
        pytest.param(
            {"TopologyAwareWorkloadScheduling": True},
            [_make_pod_group(schedulingConstraints={"topology": [{"key": "zone"}]})],
            "preemption: not eligible due to placement-based pod group scheduling limitation",
            id="a group with a topology constraint",
        ),
        pytest.param({"TopologyAwareWorkloadScheduling": True}, [_make_pod_group()], None, id="a group without one"),
        pytest.param(
            {"WorkloadAwarePreemption": True},
            [_make_pod_group()],
            "preemption: not eligible due to workload aware preemption enabled",
            id="groups that preempt as a whole",
        ),
    ],
)
def test_a_member_of_a_group_may_not_preempt_by_itself(
    gates: dict[str, bool], pod_groups: list[Any], message: str | None
) -> None:
    cache = make_cluster(make_small_node("n"), make_victim("low", "n", cpu="2"), *pod_groups)

    status = _post_filter(cache, make_preemptor(spec=IN_GANG), _plugin(None, RELEASE_1_36, **gates)).status

    assert (status.code, status.reasons) == ((Code.UNSCHEDULABLE, (message,)) if message else (Code.SUCCESS, ()))


# -- the queue


def test_a_pod_is_rejected_in_pre_enqueue_while_its_victims_are_evicted() -> None:
    plugin, cache = _plugin(), make_cluster()
    pod = make_pod_info(make_preemptor())
    plugin.last_victims["uid-default-high"] = None

    status_while_preempting = plugin.pre_enqueue(pod, cache.snapshot())
    plugin.last_victims.clear()

    assert status_while_preempting is not None
    assert (status_while_preempting.code, status_while_preempting.message) == (
        Code.UNRESOLVABLE,
        "waiting for the preemption for this pod to be finished",
    )
    assert plugin.pre_enqueue(pod, cache.snapshot()) is None


@pytest.mark.parametrize(
    ("current_victim", "is_rejected"),
    [
        (make_victim("last", "n"), True),
        (make_victim("last", "n", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), False),
        (make_victim("other", "n"), False),
    ],
    ids=["it is running", "it is terminating", "it is deleted"],
)
def test_a_pod_is_rejected_in_pre_enqueue_until_the_last_victim_is_terminating(
    current_victim: Pod, is_rejected: bool
) -> None:
    plugin = _plugin()
    (last_victim,) = make_cluster(make_small_node("n"), make_victim("last", "n")).snapshot().assigned_pods()
    plugin.last_victims["uid-default-high"] = last_victim
    snapshot = make_cluster(make_small_node("n"), current_victim).snapshot()
    assert (plugin.pre_enqueue(make_pod_info(make_preemptor()), snapshot) is not None) is is_rejected


def test_a_member_is_rejected_while_the_victims_of_its_group_are_evicted() -> None:
    plugin = _plugin(None, RELEASE_1_36, WorkloadAwarePreemption=True)
    plugin.last_victims_of_groups["uid-gang"] = None
    pod = make_pod_info(make_preemptor(spec=IN_GANG))

    status_while_preempting = plugin.pre_enqueue(pod, make_cluster(_make_pod_group()).snapshot())

    assert status_while_preempting is not None
    assert status_while_preempting.message == "waiting for the preemption for this pod group to be finished"
    assert plugin.pre_enqueue(pod, make_cluster().snapshot()) is None


def test_without_async_preemption_no_pod_is_rejected_and_no_event_is_registered() -> None:
    plugin = _plugin(None, SchedulerAsyncPreemption=False)
    plugin.last_victims["uid-default-high"] = None

    assert plugin.pre_enqueue(make_pod_info(make_preemptor()), make_cluster().snapshot()) is None
    assert plugin.events_to_register() == ()


def test_a_deleted_pod_never_queues_the_pod() -> None:
    (entry,) = _plugin().events_to_register()

    assert (entry.resource, entry.action) == (EventResource.ASSIGNED_POD, ActionType.DELETE)
    assert entry.hint is not None
    event = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=make_victim("low", "n"))
    assert entry.hint(make_pod_info(make_preemptor()), event) is QueueingHint.SKIP


# -- options


def test_the_defaults_are_10_percent_and_100() -> None:
    options = wiring.build_setup().profile_set.options["default-scheduler"]["DefaultPreemption"]

    assert options == {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}


@pytest.mark.parametrize(
    ("percentage", "absolute", "errors"),
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
def test_options_out_of_range_are_errors(percentage: int, absolute: int, errors: list[str]) -> None:
    options = DefaultPreemptionArgs(min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute)

    assert [str(error) for error in options.validate("args", FeatureGates())] == errors


def test_without_rng_the_first_of_tied_nodes_is_selected() -> None:
    """Recordings are then explained the same each time."""
    cache = make_cluster(
        *(make_small_node(name) for name in "ba"), make_victim("x", "a", cpu="2"), make_victim("y", "b", cpu="2")
    )
    pod_info, snapshot, attempt = make_failed_attempt(cache, make_preemptor())

    result = _plugin().post_filter(
        pod_info, snapshot, FailedAttempt(attempt.diagnosis, attempt.profile, attempt.runtime)
    )

    assert result.nominated_node_name == "a"
    assert result.plan.tied_nodes == ("a", "b")
