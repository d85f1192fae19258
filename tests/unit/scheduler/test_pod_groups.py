"""Pod groups from the queue to their nodes, or back to the queue."""

import asyncio
from dataclasses import replace
from typing import Any, ClassVar, cast

import msgspec
import pytest

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.pod_info import PodInfo
from extender.client.errors import ServerError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.framework.api_plan import ApiCall
from extender.framework.profiles import Profile
from extender.metrics.scheduler_metrics import SchedulerMetrics
from tests.build import make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.client.scripted_server import Reply, Stream
from tests.unit.scheduler.builders import RecordingGroupMetrics, SchedulerHarness
from tests.unit.scheduler.extender_harness import FILTER, ExtenderHarness, filter_response, run_with_extenders

CPU = {"cpu": "1"}
ALLOCATABLE = {"cpu": "2", "memory": "4Gi", "pods": "9"}
GANG_GATES = ("GenericWorkload", "GangScheduling")
PREEMPTION_GATES = (*GANG_GATES, "WorkloadAwarePreemption")
NOT_ENOUGH = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def make_profile(*gates: str) -> Profile:
    return wiring.build_setup(gates=FeatureGates(dict.fromkeys(gates, True), RELEASE_1_36)).first_profile


def members(names: str, **more: Any) -> list[Pod]:
    return [make_group_member(name, requests=CPU, **more) for name in names]


def nodes_of(harness: SchedulerHarness, pods: list[Pod]) -> list[str]:
    return [harness.node_of(pod) for pod in pods]


def condition(harness: SchedulerHarness) -> dict[str, Any]:
    """Return the last condition written to the group's status, without its time."""
    status_calls = [api_call for api_call in harness.api.calls_to("status") if api_call.kind == "PodGroup"]
    (only,) = status_calls[-1].body["status"]["conditions"]
    return {name: value for name, value in only.items() if name != "lastTransitionTime"}


def test_a_gang_that_fits_is_bound_together() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.submitPodGroupAlgorithmResult,
    Scheduler.updatePodGroupCondition (1.36).
    """
    nodes = [make_node(name, allocatable=ALLOCATABLE) for name in ("n1", "n2")]
    harness = SchedulerHarness(*nodes, make_pod_group(min_count=3), profile=make_profile(*GANG_GATES))
    pods = members("abc")
    harness.create(*pods)

    harness.run()

    assert sorted(filter(None, nodes_of(harness, pods))) in (["n1", "n1", "n2"], ["n1", "n2", "n2"])
    assert len(harness.queue.in_flight_events) == 0
    assert condition(harness) == {
        "type": "PodGroupScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "observedGeneration": 0,
    }


def test_a_gang_waits_for_its_members_before_the_queue() -> None:
    """The pod that completes the gang lets the others enter activeQ.

    Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.PreEnqueue,
    GangScheduling.EventsToRegister (1.36).
    """
    harness = SchedulerHarness(make_node("n1"), make_pod_group(min_count=2), profile=make_profile(*GANG_GATES))
    first, second = members("ab")
    harness.create(first)
    harness.run()
    assert harness.queue.count_pending_pods()["gated"] == 1

    harness.create(second)
    harness.run()

    assert nodes_of(harness, [first, second]) == ["n1", "n1"]


def test_a_gang_that_does_not_fit_is_requeued_as_a_whole() -> None:
    """Nothing is assumed or bound, and all members are retried after their backoff.

    Source: pkg/scheduler/schedule_one_podgroup.go, errPodGroupUnschedulable, Scheduler.submitPodGroupAlgorithmResult
    (1.36).
    """
    harness = SchedulerHarness(
        make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=3), profile=make_profile(*GANG_GATES)
    )
    pods = members("abc")
    harness.create(*pods)

    harness.attempt()

    assert dict(harness.cache.assigned_pods) == {}
    notes = {key: note for key, reason, note in harness.events.recorded if reason == "FailedScheduling"}
    assert notes["default/a"] == notes["default/b"] == NOT_ENOUGH
    assert notes["default/c"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert condition(harness)["message"] == "pod group is unschedulable"
    assert (condition(harness)["status"], condition(harness)["reason"]) == ("False", "Unschedulable")
    assert harness.queue.count_pending_pods() == {"active": 0, "backoff": 3, "unschedulable": 0, "gated": 0}

    harness.dispatcher.on_add(make_node("n2", allocatable=ALLOCATABLE))
    harness.run(turns=3)
    assert all(nodes_of(harness, pods))


def test_without_the_gates_members_are_scheduled_as_single_pods() -> None:
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=3))
    pods = members("abc")
    harness.create(*pods)

    harness.run()

    assert nodes_of(harness, pods) == ["n1", "n1", ""]
    assert [api_call for api_call in harness.api.calls if api_call.kind == "PodGroup"] == []


def test_a_scheduled_group_stays_scheduled_when_later_members_fail() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.updatePodGroupCondition (1.36)."""
    status = {"conditions": [{"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled"}]}
    harness = SchedulerHarness(
        make_node("n1", allocatable=ALLOCATABLE),
        make_pod_group(min_count=1, status=status),
        profile=make_profile(*GANG_GATES),
    )
    big = make_group_member("big", requests={"cpu": "9"})
    harness.create(big)

    harness.attempt()

    assert harness.node_of(big) == ""
    assert [api_call for api_call in harness.api.calls if api_call.kind == "PodGroup"] == []


def test_a_scheduled_group_stays_scheduled_when_the_watch_is_late() -> None:
    """A written condition counts at once.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.updatePodGroupCondition (1.36).
    """
    harness = SchedulerHarness(
        make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=2), profile=make_profile(*GANG_GATES)
    )
    harness.create(*members("abc"))
    assert condition_after(harness) == "True"

    harness.create(make_group_member("d", requests=CPU))
    assert condition_after(harness) == "True"
    assert len([api_call for api_call in harness.api.calls if api_call.kind == "PodGroup"]) == 1


def condition_after(harness: SchedulerHarness) -> str:
    """Return the status of the last written condition after one more attempt."""
    harness.attempt()
    return str(condition(harness)["status"])


def test_a_member_is_retried_alone_after_its_binding_failed() -> None:
    harness = SchedulerHarness(
        make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=2), profile=make_profile(*GANG_GATES)
    )
    pods = members("ab")
    harness.api.errors["binding"] = [ServerError("etcd is down", 500)]
    harness.create(*pods)

    harness.run(turns=3)

    assert nodes_of(harness, pods) == ["n1", "n1"]


def test_a_group_preempts_as_a_whole() -> None:
    """One victim suffices for one member, but the gang needs both.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.runWorkloadAwarePreemption;
    pkg/scheduler/framework/preemption/executor.go, Executor.actuatePodGroupPreemption (1.36).
    """
    low = [make_pod(f"low-{at}", node=f"n{at}", requests={"cpu": "2"}) for at in (1, 2)]
    nodes = [make_node(f"n{at}", allocatable=ALLOCATABLE) for at in (1, 2)]
    group = make_pod_group(min_count=2, priority=10)
    harness = SchedulerHarness(*nodes, *low, group, profile=make_profile(*PREEMPTION_GATES))
    pods = [make_group_member(name, requests={"cpu": "2"}, priority=10) for name in "ab"]
    harness.create(*pods)

    harness.attempt()

    assert sorted(api_call.name for api_call in harness.api.calls_to("delete")) == ["low-1", "low-2"]
    conditions = [
        api_call.body["status"]["conditions"][0]
        for api_call in harness.api.calls_to("status")
        if api_call.name == "low-1"
    ]
    assert conditions[0]["message"] == "default-scheduler: preempting to accommodate a higher priority podgroup"
    preempted = {key: note for key, reason, note in harness.events.recorded if reason == "Preempted"}
    assert preempted["default/low-2"] == "Preempted by podgroup uid-ring on node cluster"
    assert condition(harness)["message"] == "pod group is unschedulable"

    harness.run(turns=3)
    assert sorted(nodes_of(harness, pods)) == ["n1", "n2"]
    assert condition(harness)["status"] == "True"


@pytest.mark.parametrize(
    ("priority", "policy", "message"),
    [
        pytest.param(0, None, "No preemption victims found for incoming preemptor", id="no pod has a lower priority"),
        pytest.param(10, "Never", "not eligible due to preemptionPolicy=Never.", id="preemption is disabled by policy"),
    ],
)
def test_a_group_that_cannot_preempt_has_the_reason(priority: int, policy: str | None, message: str) -> None:
    """Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, PodGroupEvaluator.selectVictimsOnDomain
    (1.36).
    """
    spec = {} if policy is None else {"preemptionPolicy": policy}
    low = make_pod("low", node="n1", requests={"cpu": "2"})
    harness = SchedulerHarness(
        make_node("n1", allocatable=ALLOCATABLE),
        low,
        make_pod_group(min_count=1, priority=priority),
        profile=make_profile(*PREEMPTION_GATES),
    )
    harness.create(make_group_member("a", requests={"cpu": "2"}, priority=priority, spec=spec))

    harness.attempt()

    assert condition(harness)["message"] == f"pod group is unschedulable, {message}"
    assert harness.api.calls_to("delete") == []


def test_extenders_are_called_for_every_member() -> None:
    """Earlier members are on their nodes during each call; the extender passes each node once.

    Source: pkg/scheduler/schedule_one.go, findNodesThatPassExtenders (1.36).
    """
    nodes = [make_node(name, allocatable={"cpu": "1", "memory": "4Gi", "pods": "9"}) for name in ("n1", "n2", "n3")]
    harness = SchedulerHarness(*nodes, make_pod_group(min_count=2), profile=make_profile(*GANG_GATES))
    pods = members("ab")
    harness.create(*pods)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond(
            "POST /a/filter", Reply(body=filter_response("n3")), Reply(body=filter_response("n1"))
        )
        await extender_harness.run_until_idle()
        offered = [body["NodeNames"] for body in extender_harness.request_bodies("a/filter")]
        assert offered == [["n1", "n2", "n3"], ["n1", "n2"]]

    run_with_extenders(harness, [FILTER], test)
    assert sorted(nodes_of(harness, pods)) == ["n1", "n3"]


def test_an_extender_that_rejects_a_member_makes_the_gang_unschedulable() -> None:
    harness = SchedulerHarness(make_node("n1"), make_pod_group(min_count=2), profile=make_profile(*GANG_GATES))
    pods = members("ab")
    harness.create(*pods)

    async def test(extender_harness: ExtenderHarness) -> None:
        rejection = filter_response(failed={"n1": "not here"})
        extender_harness.server.respond("POST /a/filter", Reply(body=filter_response("n1")), Reply(body=rejection))
        await extender_harness.harness.scheduler.schedule_one()
        notes = {key: note for key, reason, note in harness.events.recorded if reason == "FailedScheduling"}
        assert notes["default/a"] == NOT_ENOUGH
        assert notes["default/b"].startswith("0/1 nodes are available: 1 not here.")

    run_with_extenders(harness, [FILTER], test)
    assert nodes_of(harness, pods) == ["", ""]


@pytest.mark.parametrize("deleted", ["the first member", "its node"])
def test_objects_deleted_while_other_members_are_scheduled_are_not_bound(deleted: str) -> None:
    nodes = [make_node("n1", allocatable=ALLOCATABLE), make_node("n2", allocatable=ALLOCATABLE)]
    harness = SchedulerHarness(*nodes, make_pod_group(min_count=1), profile=make_profile(*GANG_GATES))
    first, second = members("ab")
    harness.create(first, second)

    async def test(extender_harness: ExtenderHarness) -> None:
        late = Stream([1.0, msgspec.json.encode(filter_response("n2"))])
        extender_harness.server.respond("POST /a/filter", Reply(body=filter_response("n1")), late)
        turn = asyncio.create_task(harness.scheduler.schedule_one())
        while len(extender_harness.request_bodies("a/filter")) < 2:
            await asyncio.sleep(0.1)
        harness.dispatcher.on_delete(first if deleted == "the first member" else nodes[0])
        await turn
        while harness.context.tasks:
            await asyncio.sleep(0.1)

    run_with_extenders(harness, [FILTER], test)
    assert nodes_of(harness, [first, second]) == ["", "n2"]
    assert [placed.key for placed in harness.cache.assigned_pods.values()] == ["default/b"]
    assert len(harness.queue.in_flight_events) == 0


class RaisingPlugin:
    """A plugin that raises."""

    name: ClassVar[str] = "Faulty"

    def filter(self, *_: Any) -> Any:
        raise RuntimeError("out of order")


def count_attempt(harness: SchedulerHarness, *pods: Pod) -> list[str]:
    """Return the recorded result of the first attempt for the group of *pods*."""
    metrics = RecordingGroupMetrics()
    harness.context.metrics = cast("SchedulerMetrics", metrics)
    harness.create(*pods)
    harness.attempt()
    return metrics.results


@pytest.mark.parametrize(
    ("min_count", "priority", "result"),
    [(2, 0, "scheduled"), (3, 0, "unschedulable"), (3, 9, "waiting_on_preemption")],
)
def test_attempts_are_counted_by_result(min_count: int, priority: int, result: str) -> None:
    """Source: pkg/scheduler/metrics/metrics.go, podGroupScheduleAttempts (1.36)."""
    low = make_pod("low", node="n2", requests={"cpu": "2"})
    nodes = [make_node(name, allocatable=ALLOCATABLE) for name in ("n1", "n2")]
    group = make_pod_group(min_count=min_count, priority=priority)
    harness = SchedulerHarness(*nodes, low, group, profile=make_profile(*PREEMPTION_GATES))
    assert count_attempt(harness, *members("abc", priority=priority)) == [result]


def test_an_exception_of_a_plugin_makes_the_attempt_an_error() -> None:
    """The failing member has its own message, the next member the group's.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.submitPodGroupAlgorithmResult (1.36).
    """
    profile = make_profile(*GANG_GATES)
    broken = replace(profile, filter_plugins=(*profile.filter_plugins, RaisingPlugin()))
    harness = SchedulerHarness(make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=2), profile=broken)
    assert count_attempt(harness, *members("ab")) == ["error"]
    error = 'running "Faulty" filter plugin: RuntimeError: out of order'
    group_error = f"failed to schedule other pod from a pod group: {error}"
    assert {key: note for key, _, note in harness.events.recorded} == {"default/a": error, "default/b": group_error}
    assert (condition(harness)["reason"], condition(harness)["message"]) == ("SchedulerError", group_error)


def test_an_internal_error_requeues_all_members() -> None:
    harness = SchedulerHarness(
        make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=2), profile=make_profile(*GANG_GATES)
    )
    harness.context.metrics = cast("SchedulerMetrics", RecordingGroupMetrics(RuntimeError("out of memory")))
    pods = members("ab")
    harness.create(*pods)

    harness.attempt()

    assert {key: note for key, _, note in harness.events.recorded} == dict.fromkeys(
        ("default/a", "default/b"), "RuntimeError: out of memory"
    )
    assert harness.queue.count_pending_pods()["backoff"] == 2
    assert len(harness.queue.in_flight_events) == 0


class UnreservingPlugin:
    """A plugin whose Unreserve makes an API call."""

    name: ClassVar[str] = "Noting"

    def reserve(self, *_: Any) -> None:
        """Return success."""

    def unreserve(self, pod: PodInfo, *_: Any) -> tuple[ApiCall, ...]:
        return (ApiCall("patch", "ResourceClaim", "default", pod.pod.metadata.name, {}, is_resent=True),)


@pytest.mark.parametrize(("min_count", "names"), [(2, []), (3, ["a", "b"])], ids=["it fits", "it does not"])
def test_only_members_that_are_not_bound_make_unreserve_calls(min_count: int, names: list[str]) -> None:
    """Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.Unreserve
    (1.36).
    """
    plain = make_profile(*GANG_GATES)
    profile = replace(plain, reserve_plugins=(*plain.reserve_plugins, UnreservingPlugin()))
    harness = SchedulerHarness(
        make_node("n1", allocatable=ALLOCATABLE), make_pod_group(min_count=min_count), profile=profile
    )
    harness.create(*members("abc"[:min_count]))
    harness.attempt()
    calls = [api_call for api_call in harness.api.calls if api_call.kind == "ResourceClaim"]
    assert sorted(api_call.name for api_call in calls) == names
    assert not any(api_call.is_resent for api_call in calls)  # the loop would wait until the API server answers
