"""The evictions of a preemption: what is deleted, what is only cancelled, and when the preemptor is retried."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.pod_info import PodInfo
from extender.client.errors import ApiError, ConflictError, ServerError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.framework.api_plan import ApiPlan
from extender.framework.binding_points import ALLOW, PermitResult
from extender.framework.status import Code, Status
from extender.scheduler.event_handlers import ClusterEventDispatcher
from extender.scheduler.scheduler import Scheduler
from tests.build import make_node, make_pod
from tests.unit.client.virtual_time import current_loop, run
from tests.unit.scheduler.builders import SchedulerHarness, get_metric

TERMINATING = {"deletionTimestamp": "2026-03-01T00:00:00Z"}


def make_harness(
    *pods: Pod, release: Release = RELEASE_1_37, in_background: bool = True
) -> tuple[SchedulerHarness, Pod]:
    """Return a scheduler with a node of 4 CPU, *pods* and a new pod of priority 10 that needs all of them."""
    gates = FeatureGates({"SchedulerAsyncPreemption": in_background}, release)
    harness = SchedulerHarness(make_node("n1"), *pods, gates=gates)
    preemptor = make_pod("high", requests={"cpu": "4"}, priority=10)
    harness.create(preemptor)
    return harness, preemptor


def test_a_preemptor_is_gated_during_the_evictions_whatever_happened_in_its_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node is added during the attempt. Without the gate, the pod would be attempted before its victim is deleted.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.37).
    """
    harness, preemptor = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    queues: list[str] = []
    call = harness.api.call

    async def record_queue(*arguments: Any) -> None:
        queues.append(harness.queue_of("high"))
        await call(*arguments)

    monkeypatch.setattr(harness.api, "call", record_queue)
    monkeypatch.setattr(
        harness.context.metrics, "observe_scheduling_algorithm", lambda _: harness.dispatcher.on_add(make_node("n2"))
    )
    harness.attempt()

    assert [api_call.name for api_call in harness.api.calls_to("delete")] == ["low"]
    assert queues[0] == "gated"
    assert harness.queue_of("high") == "backoff"
    assert preemptor.key in harness.api.pods


@pytest.mark.parametrize(("release", "preemptions"), [(RELEASE_1_36, "0.0"), (RELEASE_1_37, "1.0")])
def test_a_preemption_of_terminating_victims_evicts_nothing(release: Release, preemptions: str) -> None:
    """Pods of lower priority stay nominated for the node.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.36, 1.37).
    """
    victim = make_pod("low", node="n1", requests={"cpu": "1"}, priority=0, metadata=TERMINATING)
    harness, preemptor = make_harness(victim, release=release)
    nominated_pod = make_pod("mid", priority=5)
    harness.cache.nominate(nominated_pod, "n1")

    harness.attempt()

    assert [api_call.name for api_call in harness.api.calls] == ["high"]
    assert harness.cache.find_nominated_node(preemptor.metadata.uid) == "n1"
    assert harness.cache.find_nominated_node(nominated_pod.metadata.uid) == "n1"
    assert harness.queue_of("high") == "unschedulable"
    assert get_metric(harness, "scheduler_preemption_victims_count") == preemptions
    assert get_metric(harness, 'scheduler_preemption_goroutines_execution_total{result="success"}') == ""


def add_waiting_pod(harness: SchedulerHarness, name: str, cpu: str, priority: int) -> None:
    """Assume a pod on the node; it waits on Permit."""
    pod = make_pod(name, requests={"cpu": cpu}, priority=priority)
    harness.cache.assume(pod, "n1")
    harness.context.waiting_pods.add(harness.cache.make_pod_info(pod), "n1", {"Gate": 60.0}, 0.0)


@pytest.mark.parametrize(("release", "queue"), [(RELEASE_1_36, "unschedulable"), (RELEASE_1_37, "active")])
def test_a_waiting_victim_is_preempted_in_memory(release: Release, queue: str) -> None:
    """Its binding fails, so no deletion requeues the preemptor.

    Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor, Executor.prepareCandidateAsync (1.36, 1.37).
    """
    harness, preemptor = make_harness(release=release)
    add_waiting_pod(harness, "low", "1", 0)

    harness.attempt()

    (waiting_pod,) = harness.context.waiting_pods
    assert waiting_pod.status is not None
    assert waiting_pod.status.message == "waiting on permit for pod: preempted"
    assert harness.api.calls_to("delete") == []
    note = f"Preempted by pod {preemptor.metadata.uid} on node n1 (in kube-scheduler memory)."
    assert ("default/low", "Preempted", note) in harness.events.recorded
    assert harness.queue_of("high") == queue
    assert get_metric(harness, 'scheduler_preemption_goroutines_execution_total{result="success"}') == "1.0"


def test_a_victim_that_was_allowed_just_before_is_deleted() -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.37)."""
    victim = make_pod("low", node="n1", requests={"cpu": "1"}, priority=0)
    harness, _ = make_harness(victim)
    harness.context.waiting_pods.add(harness.cache.make_pod_info(victim), "n1", {"Gate": 60.0}, 0.0).allow("Gate")

    harness.attempt()

    assert [api_call.name for api_call in harness.api.calls_to("delete")] == ["low"]


class LowWaits:
    """Lets the pod `low` wait on Permit or in PreBind."""

    name = "LowWaits"

    def permit(self, pod: PodInfo, *_: Any) -> PermitResult:
        return PermitResult(Status(Code.WAIT), timeout=60.0) if pod.pod.metadata.name == "low" else ALLOW

    def pre_bind(self, pod: PodInfo, *_: Any) -> ApiPlan:
        return ApiPlan((), lambda _: None, timeout=60.0) if pod.pod.metadata.name == "low" else ApiPlan()


@pytest.mark.parametrize("point", ["permit_plugins", "pre_bind_plugins"])
def test_a_preemptor_is_attempted_again_after_the_cancelled_binding_has_ended(point: str) -> None:
    """Each earlier attempt would fail, and delete a victim that does not wait on Permit any more.

    Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor, Executor.prepareCandidateAsync (1.37).
    """
    profile = replace(wiring.build_setup().first_profile, **dict[str, Any]({point: (LowWaits(),)}))
    harness = SchedulerHarness(make_node("n1"), profile=profile)

    async def main() -> None:
        wake_event, stop_event = asyncio.Event(), asyncio.Event()
        harness.context.clock, harness.context.sleep = current_loop(), asyncio.sleep
        harness.context.wake = wake_event.set
        harness.context.has_api_capacity = lambda: len(harness.events.recorded) < 20  # ends a loop that never waits
        scheduler = Scheduler(harness.context)
        harness.dispatcher = ClusterEventDispatcher(harness.cache, scheduler, ["default-scheduler"])
        loop_task = asyncio.create_task(scheduler.run(wake_event, stop_event))
        harness.create(make_pod("low", requests={"cpu": "1"}, priority=0))
        await asyncio.sleep(5)
        harness.create(make_pod("high", requests={"cpu": "4"}, priority=10))
        await asyncio.sleep(5)
        stop_event.set()
        await loop_task

    run(main())
    assert [event[1] for event in harness.events.recorded if event[0] == "default/high"] == [
        "FailedScheduling",
        "Scheduled",
    ]
    assert harness.api.calls_to("delete") == []


def record_queues_after_deletions(harness: SchedulerHarness, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the queue of the pod `high` after each deletion."""
    queues: list[str] = []
    call = harness.api.call

    async def record_queue(api_call: Any, *arguments: Any) -> None:
        await call(api_call, *arguments)
        if api_call.verb == "delete":
            queues.append(harness.queue_of("high"))

    monkeypatch.setattr(harness.api, "call", record_queue)
    return queues


def test_a_preemptor_is_gated_while_other_victims_than_the_last_one_are_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.37)."""
    harness, _ = make_harness(make_pod("mid", node="n1", requests={"cpu": "1"}, priority=5))
    add_waiting_pod(harness, "low", "1", 0)
    queues = record_queues_after_deletions(harness, monkeypatch)
    harness.attempt()

    assert [api_call.name for api_call in harness.api.calls_to("delete")] == ["mid"]
    assert queues == ["gated"]
    assert harness.queue_of("high") == "active"


@pytest.mark.parametrize(
    ("release", "result", "duration"), [(RELEASE_1_36, "success", "0.0"), (RELEASE_1_37, "error", "2.0")]
)
def test_a_failed_preemption_counts_as_a_success_in_1_36(
    monkeypatch: pytest.MonkeyPatch, release: Release, result: str, duration: str
) -> None:
    """1.36 evaluates the label and the duration when it starts, because it defers the calls without a function.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.36, 1.37).
    """
    harness, _ = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0), release=release)
    call = harness.api.call

    async def call_slowly(api_call: Any, *arguments: Any) -> None:
        if api_call.verb == "delete":
            harness.clock.seconds += 2
        await call(api_call, *arguments)

    monkeypatch.setattr(harness.api, "call", call_slowly)
    harness.api.errors["delete"] = [ServerError("etcd is down", 500)]

    harness.attempt()

    family = "scheduler_preemption_goroutines"
    assert get_metric(harness, f'{family}_execution_total{{result="{result}"}}') == "1.0"
    assert get_metric(harness, f'{family}_duration_seconds_sum{{result="{result}"}}') == duration
    assert harness.queue_of("high") == "active"


def test_without_its_gate_a_preemption_ends_before_the_attempt_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidate (1.37)."""
    low, mid = (
        make_pod(name, node="n1", requests={"cpu": "1"}, priority=priority)
        for name, priority in (("low", 0), ("mid", 5))
    )
    harness, preemptor = make_harness(low, mid, in_background=False)
    nominated_pod = make_pod("nominated", priority=5)
    harness.cache.nominate(nominated_pod, "n1")
    in_flight: list[bool] = []
    call = harness.api.call

    async def record_queue(api_call: Any, *arguments: Any) -> None:
        if api_call.verb == "delete":
            in_flight.append(preemptor.metadata.uid in harness.queue.in_flight_events)
        await call(api_call, *arguments)

    monkeypatch.setattr(harness.api, "call", record_queue)
    harness.attempt()

    assert sorted(api_call.name for api_call in harness.api.calls_to("delete")) == ["low", "mid"]
    assert in_flight == [True, True]
    assert harness.cache.find_nominated_node(preemptor.metadata.uid) == "n1"
    assert harness.cache.find_nominated_node(nominated_pod.metadata.uid) == ""
    assert harness.queue_of("high") == "backoff"
    assert get_metric(harness, "scheduler_preemption_victims_count") == "1.0"
    assert get_metric(harness, 'scheduler_preemption_goroutines_execution_total{result="success"}') == ""


@pytest.mark.parametrize("release", [RELEASE_1_36, RELEASE_1_37])
def test_without_its_gate_a_failed_preemption_is_a_failure_of_post_filter(release: Release) -> None:
    """The pod is not nominated, and its message has the error.

    Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, DefaultPreemption.PostFilter;
    pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidate (1.36).
    """
    low = make_pod("low", node="n1", requests={"cpu": "1"}, priority=0)
    harness, preemptor = make_harness(low, release=release, in_background=False)
    harness.api.errors["delete"] = [ServerError("etcd is down", 500)]

    harness.attempt()

    message = "0/1 nodes are available: 1 Insufficient cpu. preemption: etcd is down"
    assert ("default/high", "FailedScheduling", message) in harness.events.recorded
    assert harness.cache.find_nominated_node(preemptor.metadata.uid) == ""
    assert harness.queue_of("high") == "unschedulable"


def test_without_its_gate_terminating_victims_count_but_are_not_deleted() -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidate (1.36)."""
    victim = make_pod("low", node="n1", requests={"cpu": "1"}, priority=0, metadata=TERMINATING)
    harness, preemptor = make_harness(victim, release=RELEASE_1_36, in_background=False)

    harness.attempt()

    assert harness.api.calls_to("delete") == []
    assert harness.cache.find_nominated_node(preemptor.metadata.uid) == "n1"
    assert get_metric(harness, "scheduler_preemption_victims_count") == "1.0"


def test_the_binding_of_a_victim_in_pre_bind_is_cancelled() -> None:
    """Source: pkg/scheduler/framework/preemption/executor.go, NewExecutor (1.36)."""
    harness, _ = make_harness()
    victim, reasons = make_pod("low", requests={"cpu": "1"}, priority=0), list[str]()
    harness.cache.assume(victim, "n1")
    harness.context.pre_bind_cancel_functions[victim.metadata.uid] = reasons.append

    harness.attempt()

    assert reasons == ["preempted by DefaultPreemption"]
    assert harness.api.calls_to("delete") == []


def test_an_event_that_a_gated_preemptor_missed_requeues_it_after_the_evictions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The victim takes its grace period to end, so no deletion requeues the preemptor before."""
    harness, _ = make_harness(victim := make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    queues: list[str] = []
    call = harness.api.call

    async def add_node_during_eviction(api_call: Any, *arguments: Any) -> None:
        if api_call.verb != "delete":
            await call(api_call, *arguments)
            return
        harness.dispatcher.on_add(make_node("n2"))
        queues.append(harness.queue_of("high"))
        harness.dispatcher.on_update(victim, make_pod("low", node="n1", requests={"cpu": "1"}, metadata=TERMINATING))

    monkeypatch.setattr(harness.api, "call", add_node_during_eviction)
    harness.attempt()

    assert queues == ["gated"]
    assert harness.queue_of("high") == "backoff"


def test_an_unexpected_error_of_an_eviction_does_not_leave_the_preemptor_gated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    harness, _ = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    call = harness.api.call

    async def fail_to_delete(api_call: Any, *arguments: Any) -> None:
        if api_call.verb == "delete":
            raise RuntimeError("a bug")
        await call(api_call, *arguments)

    monkeypatch.setattr(harness.api, "call", fail_to_delete)
    harness.attempt()

    assert harness.queue_of("high") == "active"
    assert get_metric(harness, 'scheduler_preemption_goroutines_execution_total{result="error"}') == "1.0"
    assert "preemption for pod default/high failed" in caplog.text
    assert "RuntimeError: a bug" in caplog.text


@pytest.mark.parametrize("error", [ServerError("etcd is down", 500), ConflictError("it was modified", 409)])
def test_a_failed_write_of_the_condition_of_a_victim_is_repeated(error: ApiError) -> None:
    """Source: pkg/scheduler/util/utils.go, PatchPodStatus (1.37)."""
    harness, _ = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    harness.api.errors["status"] = [error]
    harness.attempt()

    assert [api_call.name for api_call in harness.api.calls_to("status")].count("low") == 2
    assert [api_call.name for api_call in harness.api.calls_to("delete")] == ["low"]
    assert get_metric(harness, 'scheduler_preemption_goroutines_execution_total{result="success"}') == "1.0"


def test_a_preemptor_is_not_gated_any_more_once_its_last_victim_is_terminating(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch delivers the deletion before its response, and nothing else would requeue the preemptor.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.isRunningPreemption (1.37).
    """
    harness, _ = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    queues = record_queues_after_deletions(harness, monkeypatch)
    harness.attempt()

    assert queues == ["backoff"]


@pytest.mark.parametrize(
    ("errors", "queue"),
    [([], "unschedulable"), ([ServerError("etcd is down", 500)], "active")],
    ids=["success", "error"],
)
def test_the_end_of_the_evictions_wakes_the_scheduling_loop(
    monkeypatch: pytest.MonkeyPatch, errors: list[ApiError], queue: str
) -> None:
    """The first call is that of the failed attempt."""
    harness, _ = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    harness.api.errors["delete"] = [*errors]
    states: list[str] = []
    harness.context.wake = lambda: states.append(harness.queue_of("high"))
    monkeypatch.setattr(harness.api, "notify", lambda old, new: None)

    harness.attempt()

    assert states == ["unschedulable", queue]


def test_the_scheduling_loop_is_woken_for_a_preempted_waiting_pod() -> None:
    """Otherwise its binding would end at the next flush of backoffQ. The other call is that of the failed attempt."""
    harness, _ = make_harness(release=RELEASE_1_36)
    add_waiting_pod(harness, "low", "1", 0)
    states: list[tuple[str, bool]] = []

    def record_state() -> None:
        (waiting_pod,) = harness.context.waiting_pods
        states.append((harness.queue_of("high"), waiting_pod.status is not None))

    harness.context.wake = record_state

    harness.attempt()

    assert states[0] == ("", True)
