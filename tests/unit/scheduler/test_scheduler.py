"""Pods from the queue to their node, and the handling of failures."""

import asyncio
from itertools import chain, repeat
from typing import Any, cast

import pytest

from extender.api.kinds.pod import Pod
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.client.errors import ApiError, ConflictError, ServerError, UnreachableError
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.binding_points import ALLOW, PermitResult
from extender.framework.extension_points import PreFilterResult
from extender.framework.status import Code, Status, error_status
from extender.plugins.default_binder import DefaultBinder
from extender.scheduler.status_patches import make_pod_scheduled_patch
from extender.scheduler.status_writer import write_status
from tests.build import make_node, make_pod
from tests.unit.cycle.fakes import FakePreFilter, RejectingFilter, make_profile
from tests.unit.scheduler.builders import SchedulerHarness

WAIT = Status(Code.WAIT, ("for the others",))


def small(name: str, **given: Any) -> Pod:
    return make_pod(name, requests={"cpu": "1"}, **given)


def test_a_pod_is_bound_to_the_node_that_fits() -> None:
    harness = SchedulerHarness(make_node("n1", allocatable={"cpu": "100m", "pods": "1"}), make_node("n2"))
    pod = small("web")
    harness.create(pod)

    harness.run()

    assert harness.node_of(pod) == "n2"
    (binding,) = harness.api.calls_to("binding")
    assert binding.body["metadata"]["uid"] == pod.metadata.uid
    assert harness.events.recorded == [("default/web", "Scheduled", "Successfully assigned default/web to n2")]
    assert not harness.cache.is_assumed(pod.metadata.uid)
    assert len(harness.queue.in_flight_events) == 0


def test_pods_are_bound_by_priority() -> None:
    harness = SchedulerHarness(make_node("n1", allocatable={"cpu": "1", "pods": "10"}))
    low, high = small("low"), small("high", priority=5, spec={"preemptionPolicy": "Never"})
    harness.create(low, high)

    harness.run()

    assert (harness.node_of(high), harness.node_of(low)) == ("n1", "")


def test_an_unschedulable_pod_gets_the_reason_and_is_retried_when_space_is_freed() -> None:
    other = make_pod("other", node="n1", requests={"cpu": "4"})
    harness = SchedulerHarness(make_node("n1"), other)
    pod = small("web")
    harness.create(pod)

    harness.run()

    message = (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    assert harness.events.recorded == [("default/web", "FailedScheduling", message)]
    (patch,) = harness.api.calls_to("status")
    assert patch.body["status"]["conditions"][0]["message"] == message
    assert harness.queue.count_pending_pods()["unschedulable"] == 1

    harness.dispatcher.on_delete(other)
    harness.run(turns=2)
    assert harness.node_of(pod) == "n1"


def test_a_failed_binding_is_undone_and_retried() -> None:
    harness = SchedulerHarness(make_node("n1"))
    pod = small("web")
    harness.api.errors["binding"] = [ServerError("etcd is down", 500)]
    harness.create(pod)

    harness.run()

    assert harness.node_of(pod) == ""
    assert dict(harness.cache.assigned_pods) == {}
    assert harness.events.recorded == [
        ("default/web", "FailedScheduling", 'running Bind plugin "DefaultBinder": etcd is down')
    ]
    assert harness.queue.count_pending_pods()["backoff"] == 1

    harness.run(turns=2)
    assert harness.node_of(pod) == "n1"


def test_a_binding_that_timed_out_but_succeeded_is_not_retried() -> None:
    """The watch delivers the bound pod, so it does not return to the queue.

    Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure (1.36).
    """
    harness = SchedulerHarness(make_node("n1"), make_node("n2"))
    pod = small("web")
    harness.create(pod)
    harness.api.errors["binding"] = [UnreachableError("timed out", maybe_sent=True)]
    bound = make_pod("web", node="n2", requests={"cpu": "1"})

    call = harness.api.call

    async def bind_and_time_out(api_call: ApiCall, check_before_send: Any = None, /, *_: Any) -> None:
        check_before_send()
        if api_call.subresource == "binding":
            harness.dispatcher.on_update(pod, bound)
        await call(api_call)

    harness.api.call = bind_and_time_out
    harness.run(turns=3)

    assert len(harness.api.calls_to("binding")) == 1
    assert harness.cache.assigned_pods[pod.metadata.uid].node_name == "n2"
    assert sum(harness.queue.count_pending_pods().values()) == 0


def test_a_binding_with_a_lost_response_is_awaited() -> None:
    """The pod stays assumed meanwhile and is not retried."""
    harness = SchedulerHarness(make_node("n1"))
    pod = small("web")
    harness.create(pod)
    harness.api.errors["binding"] = [UnreachableError("timed out", maybe_sent=True)]
    seconds = 0.0

    async def seen_after_a_while(waited: float, sleep: Any = harness.context.sleep) -> None:
        nonlocal seconds
        seconds += waited
        assert harness.cache.is_assumed(pod.metadata.uid)
        if seconds == 5:
            harness.dispatcher.on_update(pod, make_pod("web", node="n1", requests={"cpu": "1"}))
        await sleep(waited)

    harness.context.sleep = seen_after_a_while
    harness.run()

    assert seconds == 5
    assert [reason for _, reason, _ in harness.events.recorded] == ["Scheduled"]
    assert len(harness.api.calls_to("binding")) == 1


def test_a_pod_deleted_during_its_binding_frees_its_node() -> None:
    harness = SchedulerHarness(make_node("n1"))
    pod = small("web")
    harness.create(pod)

    call = harness.api.call

    async def delete_first(api_call: Any, *_: Any) -> None:
        if api_call.subresource == "binding":
            harness.api.pods.clear()
            harness.dispatcher.on_delete(pod)
        await call(api_call)

    harness.api.call = delete_first
    harness.run()

    assert dict(harness.cache.assigned_pods) == {}
    assert harness.cache.snapshot().view().pod_count.tolist() == [0]
    assert sum(harness.queue.count_pending_pods().values()) == 0
    assert len(harness.queue.in_flight_events) == 0


def test_nothing_is_bound_after_the_lease_is_lost() -> None:
    """Leadership is checked just before each binding."""
    harness = SchedulerHarness(make_node("n1"))
    pod = small("web")
    harness.create(pod)
    assert harness.context.may_act()
    # It leads during the decision, and no longer when the binding is written.
    harness.context.may_act = chain([True], repeat(False)).__next__
    harness.run()

    assert harness.api.calls_to("binding") == []
    assert dict(harness.cache.assigned_pods) == {}


def test_a_deleting_pod_is_skipped() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.skipPodSchedule (1.36)."""
    harness = SchedulerHarness(make_node("n1"))
    harness.create(small("web", metadata={"deletionTimestamp": "2026-03-01T00:00:00Z"}))

    harness.run()

    assert harness.api.calls == []
    assert harness.events.recorded == [("default/web", "FailedScheduling", "skip schedule deleting pod: default/web")]


def test_a_status_write_is_retried_after_a_conflict() -> None:
    """Source: pkg/scheduler/schedule_one.go, updatePod (1.36)."""
    harness = SchedulerHarness(make_node("n1", allocatable={"cpu": "100m", "pods": "1"}))
    harness.api.errors["status"] = [ConflictError("changed"), ServerError("busy", 503)]
    harness.create(small("web"))

    harness.run()

    assert len(harness.api.calls_to("status")) == 3


@pytest.mark.parametrize("fault", [ApiError("forbidden", 403), ServerError("busy", 503)])
def test_a_failed_status_write_stops_nothing(fault: ApiError) -> None:
    """Source: pkg/scheduler/schedule_one.go, updatePod (1.36)."""
    harness = SchedulerHarness(make_node("n1"))
    harness.api.errors["status"] = [fault] * 9
    big, pod = make_pod("big", requests={"cpu": "99"}), small("web")
    harness.create(big, pod)

    harness.run()

    assert harness.node_of(pod) == "n1"


# -- preemption


def make_full_node() -> SchedulerHarness:
    """Make a full node with a pod of priority 0."""
    return SchedulerHarness(make_node("n1"), make_pod("low", node="n1", requests={"cpu": "4"}, priority=0))


def test_a_pod_of_lower_priority_is_preempted() -> None:
    harness = make_full_node()
    pod = small("high", priority=10)
    harness.create(pod)

    harness.run(turns=3)

    assert "default/low" not in harness.api.pods
    assert harness.node_of(pod) == "n1"
    reasons = [(key, reason) for key, reason, _ in harness.events.recorded]
    assert reasons == [
        ("default/high", "FailedScheduling"),
        ("default/low", "Preempted"),
        ("default/high", "Scheduled"),
    ]
    deletion = harness.api.calls_to("delete")[0]
    assert deletion.body == {"preconditions": {"uid": "uid-default-low"}}
    nominated = [api_call.body["status"].get("nominatedNodeName") for api_call in harness.api.calls_to("status")]
    assert "n1" in nominated


def test_a_failed_preemption_is_retried() -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.36)."""
    harness = make_full_node()
    harness.api.errors["delete"] = [ServerError("busy", 503)]
    pod = small("high", priority=10)
    harness.create(pod)

    harness.run(turns=6)

    assert harness.node_of(pod) == "n1"


# -- Permit


class Gatekeeper:
    """A Permit plugin that lets pods wait until a test decides."""

    name = "Gatekeeper"

    def __init__(self, answer: PermitResult) -> None:
        self.answer = answer

    def permit(self, *_: Any) -> PermitResult:
        return self.answer


def make_waiting_harness(answer: PermitResult) -> tuple[SchedulerHarness, Pod]:
    harness = SchedulerHarness(make_node("n1"), profile=make_profile(Gatekeeper(answer), DefaultBinder()))
    pod = small("web")
    harness.create(pod)
    return harness, pod


def test_an_allowed_pod_is_bound() -> None:
    harness, pod = make_waiting_harness(ALLOW)
    harness.run()
    assert harness.node_of(pod) == "n1"


def test_a_result_that_cannot_be_used_frees_the_node_of_the_pod() -> None:
    harness, pod = make_waiting_harness(PermitResult(WAIT, timeout=cast("Any", "5s")))
    harness.run()
    assert not harness.cache.is_assumed(pod.metadata.uid)
    message = "TypeError: '<' not supported between instances of 'float' and 'str'"
    assert harness.events.recorded == [("default/web", "FailedScheduling", message)]


class WaitingPreBind:
    """A PreBind plugin that waits until its pod is gone; the second pod need not wait."""

    name = "Attaches"

    def pre_bind(self, pod: PodInfo, node_name: str, *_: Any) -> ApiPlan:
        def wait_for(snapshot: Snapshot) -> Status | None:
            return None if pod.uid in snapshot.pods_on(node_name) else error_status("the pod does not exist any more")

        return ApiPlan() if pod.uid == "second" else ApiPlan((), wait_for, 10, error_status("timed out"))


@pytest.mark.parametrize(
    ("made_again", "message", "tries"),
    [
        (
            False,
            [("default/web", "FailedScheduling", 'running PreBind plugin "Attaches": the pod does not exist any more')],
            1,
        ),
        (True, [("default/web", "Scheduled", "Successfully assigned default/web to n1")], 2),
    ],
    ids=["deleted", "recreated"],
)
def test_a_pod_deleted_during_pre_bind_gets_an_event_unless_it_was_recreated(
    made_again: bool, message: list[tuple[str, str, str]], tries: int
) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure, truncateMessage (1.36)."""
    harness = SchedulerHarness(make_node("n1"), profile=make_profile(WaitingPreBind(), DefaultBinder()))
    pod = small("web")
    again = small("web", metadata={"uid": "second"})
    harness.create(pod)

    async def deleted(seconds: float) -> None:
        harness.clock.seconds += seconds
        if harness.api.pods[pod.key].metadata.uid == pod.metadata.uid:
            harness.dispatcher.on_delete(harness.api.pods.pop(pod.key))
            if made_again:
                harness.create(again)

    harness.context.sleep = deleted
    harness.run()

    assert harness.events.recorded == message
    assert [list(api_call.body["status"]) for api_call in harness.api.calls_to("status")] == [
        ["nominatedNodeName"]
    ] * tries
    assert len(harness.queue.in_flight_events) == 0


def test_a_rejected_pod_is_undone() -> None:
    harness, pod = make_waiting_harness(PermitResult(Status(Code.UNSCHEDULABLE, ("not now",))))

    harness.run()

    assert harness.node_of(pod) == ""
    assert harness.events.recorded == [("default/web", "FailedScheduling", "0/1 nodes are available: 1 not now.")]
    assert dict(harness.cache.assigned_pods) == {}


@pytest.mark.parametrize(("is_current", "calls"), [(True, 2), (False, 1)])
def test_the_write_of_an_older_status_is_not_repeated(is_current: bool, calls: int) -> None:
    harness = SchedulerHarness()
    pod = make_pod("web")
    harness.create(pod)
    api_call = make_pod_scheduled_patch(pod, "Unschedulable", "no room", None, 0.0)
    assert api_call is not None
    harness.api.errors["status"] = [ServerError("etcd is down", 500)]
    assert asyncio.run(write_status(harness.context, api_call, lambda: is_current)) is is_current
    assert len(harness.api.calls_to("status")) == calls


@pytest.mark.parametrize("point", ["filter", "pre_filter", "permit"])
def test_an_event_of_a_plugin_that_waits_requeues_the_pod_without_backoff(point: str) -> None:
    """The plugin rejects with the code PENDING.

    Source: pkg/scheduler/framework/types.go, Diagnosis.AddPluginStatus;
    pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.isPodWorthRequeuing (1.36).
    """
    pending = Status(Code.PENDING, ("not ready",))
    plugins = {
        "filter": RejectingFilter("Waits", "n1", code=Code.PENDING),
        "pre_filter": FakePreFilter("Waits", PreFilterResult(pending)),
        "permit": Gatekeeper(PermitResult(pending)),
    }
    harness = SchedulerHarness(make_node("n1"), profile=make_profile(plugins[point], DefaultBinder()))
    harness.create(small("web"))
    harness.attempt()
    assert harness.queue_of("web") == "unschedulable"

    harness.dispatcher.on_add(make_node("n2"))

    assert harness.queue_of("web") == "active"
