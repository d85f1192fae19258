"""What follows a failure after a node was selected: Unreserve, events, queues, and other pods that wait."""

import asyncio
import gc
import sys
from typing import Any

import msgspec
import pytest

from extender.api.kinds.pod import Pod
from extender.cache.pod_info import PodInfo
from extender.client.errors import ServerError
from extender.config.feature_gates import FeatureGates
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.binding_points import PermitResult, PreBindPreFlightResult
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource
from extender.framework.status import SUCCESS, Code, Reason, Rejection, Status
from extender.plugins.default_binder import DefaultBinder
from extender.scheduler.binding_task import BindingTask
from extender.scheduler.plugin_effects import resume_decided_pods
from tests.build import make_node, make_pod
from tests.unit.cycle.fakes import make_profile
from tests.unit.scheduler.builders import SchedulerHarness

NOT_NOW = Status(Code.UNSCHEDULABLE, ("not now",))
WAIT = PermitResult(Status(Code.WAIT), timeout=60.0)


class OnlyOne:
    """Rejects each node for the pod `other` until a pod is deleted; records the calls of Unreserve."""

    name = "OnlyOne"

    def __init__(self, **answers: Any) -> None:
        self.answers, self.unreserved = answers, 0

    def filter(self, pod: PodInfo, nodes: Any, _state: Any) -> tuple[Rejection, ...]:
        is_other = pod.pod.metadata.name == "other"
        return (Rejection(nodes.pod_count >= 0, Reason("taken")),) if is_other else ()

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE),)

    def reserve(self, *_: Any) -> Status | None:
        return self.answers.get("reserve")

    def unreserve(self, *_: Any) -> None:
        self.unreserved += 1

    def permit(self, *_: Any) -> PermitResult:
        return self.answers.get("permit", PermitResult())

    def pre_bind(self, *_: Any) -> ApiPlan | Status:
        return self.answers.get("pre_bind", ApiPlan())


def make_harness(plugin: OnlyOne) -> tuple[SchedulerHarness, Pod]:
    """Return a scheduler with an unschedulable pod and a new pod, which was attempted once."""
    harness = SchedulerHarness(make_node("n1"), profile=make_profile(plugin, DefaultBinder()))
    harness.create(make_pod("other"))
    harness.attempt()
    harness.events.recorded.clear()
    pod = make_pod("web")
    harness.create(pod)
    return harness, pod


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"reserve": NOT_NOW}, "0/1 nodes are available: 1 not now."),
        ({"permit": PermitResult(NOT_NOW)}, "0/1 nodes are available: 1 not now."),
        (
            {"permit": PermitResult(Status(Code.UNSCHEDULABLE, ("one", "another")))},
            "0/1 nodes are available: 1 another, 1 one.",
        ),
        ({"reserve": Status(Code.ERROR, ("lost",))}, 'running Reserve plugin "OnlyOne": lost'),
    ],
    ids=["Reserve rejects", "Permit rejects", "Permit rejects for two reasons", "Reserve fails"],
)
def test_a_failure_in_the_scheduling_cycle_moves_no_other_pod(answers: dict[str, Any], message: str) -> None:
    """No other pod has seen the pod on its node. Unreserve runs once.

    Source: pkg/scheduler/schedule_one.go, Scheduler.assumeAndReserve, Scheduler.prepareForBindingCycle (1.36).
    """
    plugin = OnlyOne(**answers)
    harness, _ = make_harness(plugin)

    harness.attempt()

    assert plugin.unreserved == 1
    assert harness.events.recorded == [("default/web", "FailedScheduling", message)]
    assert harness.queue_of("other") == "unschedulable"
    assert len(harness.queue.in_flight_events) == 0


def test_a_failure_of_pre_bind_leaves_no_garbage_with_the_state_of_the_attempt() -> None:
    """The state has arrays with an entry for each node, and full garbage collections are rare."""
    harness, _ = make_harness(OnlyOne(pre_bind=Status(Code.ERROR, ("no",))))
    gc.collect()
    gc.disable()
    try:
        harness.attempt()
        assert [item for item in gc.get_objects() if isinstance(item, BindingTask)] == []
    finally:
        gc.enable()
    assert harness.queue_of("web") == "backoff"


def test_a_failure_in_the_binding_cycle_requeues_other_pods() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.handleBindingCycleError (1.36)."""
    plugin = OnlyOne()
    harness, _ = make_harness(plugin)
    # The end of a nomination would requeue other pods too.
    harness.context.gates = FeatureGates({"NominatedNodeNameForExpectation": False})
    harness.api.errors["binding"] = [ServerError("etcd is down", 500)] * 4

    harness.attempt()

    assert plugin.unreserved == 1
    assert (harness.queue_of("web"), harness.queue_of("other")) == ("backoff", "backoff")


def test_a_waiting_pod_that_is_rejected_requeues_other_pods_but_not_itself() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.handleBindingCycleError (1.36)."""
    harness, pod = make_harness(OnlyOne(permit=WAIT))
    harness.context.gates = FeatureGates({"NominatedNodeNameForExpectation": False})

    async def test() -> None:
        await harness.scheduler.schedule_one()
        await asyncio.sleep(0)
        waiting_pod = harness.context.waiting_pods.get(pod.metadata.uid)
        assert waiting_pod is not None
        waiting_pod.reject("OnlyOne", "no quorum")
        resume_decided_pods(harness.context)
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(test())

    assert harness.events.recorded == [("default/web", "FailedScheduling", "0/1 nodes are available: 1 no quorum.")]
    assert (harness.queue_of("web"), harness.queue_of("other")) == ("unschedulable", "backoff")


def test_a_rejection_by_pre_bind_is_retried_like_an_error() -> None:
    """Plugins whose events may help reject a pod in Permit at the latest.

    Source: pkg/scheduler/schedule_one.go, Scheduler.bindingCycle, Scheduler.handleSchedulingFailure (1.36).
    """
    harness, _ = make_harness(OnlyOne(pre_bind=NOT_NOW))

    harness.attempt()

    queued_pod = harness.queue.get_pod("default/web")
    assert harness.events.recorded == [("default/web", "FailedScheduling", "not now")]
    assert queued_pod is not None
    assert (queued_pod.rejector_plugins, queued_pod.consecutive_error_count) == (frozenset(), 1)
    assert harness.queue_of("web") == "backoff"


@pytest.mark.parametrize(
    ("wait_condition", "message"),
    [
        (lambda snapshot: 1 // snapshot.row("none"), "TypeError: "),
        (lambda snapshot: sys.exit(f"{len(snapshot)} node"), "SystemExit: 1 node"),
        (lambda snapshot: "ok", "the wait condition returned str 'ok', want a Status or None"),
    ],
    ids=["raises", "exits", "returns no status"],
)
def test_a_wait_condition_of_pre_bind_that_fails_ends_the_binding(wait_condition: Any, message: str) -> None:
    plugin = OnlyOne(pre_bind=ApiPlan((), wait_condition, 60.0))
    harness, _ = make_harness(plugin)

    harness.attempt()

    ((_, reason, note),) = harness.events.recorded
    assert reason == "FailedScheduling"
    assert note.startswith(f'running PreBind plugin "OnlyOne": {message}')
    assert (plugin.unreserved, harness.queue_of("web")) == (1, "backoff")


@pytest.mark.parametrize(
    ("is_waiting", "note"),
    [(True, 'running PreBind plugin "OnlyOne": preempted'), (False, "preempted")],
    ids=["while PreBind waits", "when PreBind has ended"],
)
def test_a_binding_that_is_cancelled_names_the_pre_bind_plugin_that_was_running(is_waiting: bool, note: str) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreBindPlugins;
    pkg/scheduler/schedule_one.go, Scheduler.bindingCycle (1.36).
    """

    def cancel(_: Any) -> Status | None:
        harness.context.pre_bind_cancel_functions["uid-default-web"]("preempted")
        return None if is_waiting else SUCCESS

    plugin = OnlyOne(pre_bind=ApiPlan((), cancel, 60.0))
    harness, _ = make_harness(plugin)

    harness.attempt()

    assert harness.events.recorded == [("default/web", "FailedScheduling", note)]
    assert (plugin.unreserved, harness.queue_of("web")) == (1, "backoff")


def test_a_wait_for_devices_that_is_cancelled_is_counted_as_an_error() -> None:
    """Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreBind (1.37)."""

    def cancel(_: Any) -> None:
        harness.context.pre_bind_cancel_functions["uid-default-web"]("preempted")

    plan = ApiPlan((), cancel, 60.0, allocated_devices=(("gpu.example.com", True),))
    harness, _ = make_harness(OnlyOne(pre_bind=plan))

    harness.attempt()

    labels = {"driver": "gpu.example.com", "profile": "default-scheduler", "status": "error"}
    name = "scheduler_dra_bindingconditions_allocations_total"
    assert harness.context.metrics.registry.get_sample_value(name, labels) == 1.0


class OwnBinder:
    """Binds a pod with an invalid call."""

    name = "OwnBinder"

    def bind(self, *_: Any) -> ApiPlan:
        return ApiPlan((BIND_CALL,))


BIND_CALL = ApiCall("bind", "Pod", "default", "web", {})


@pytest.mark.parametrize(
    ("plugin", "point"),
    [(OnlyOne(pre_bind=ApiPlan((BIND_CALL,))), "PreBind"), (OwnBinder(), "Bind")],
    ids=["pre_bind", "bind"],
)
def test_an_invalid_call_is_an_error_of_its_plugin(plugin: Any, point: str) -> None:
    harness = SchedulerHarness(make_node("n1"), profile=make_profile(plugin, DefaultBinder()))
    harness.api.errors["bind"] = [ValueError('unknown kind "Foo"')]
    harness.create(make_pod("web"))

    harness.attempt()

    ((_, reason, note),) = harness.events.recorded
    assert (reason, note) == (
        "FailedScheduling",
        f'running {point} plugin "{plugin.name}": ValueError: unknown kind "Foo"',
    )
    assert harness.queue_of("web") == "backoff"


def change(harness: SchedulerHarness, pod: Pod, **metadata: Any) -> None:
    """Change the metadata of *pod* on the server."""
    old = harness.api.pods[pod.key]
    changed = make_pod(pod.metadata.name, metadata=metadata)
    harness.api.pods[pod.key] = msgspec.structs.replace(old, metadata=changed.metadata)
    harness.dispatcher.on_update(old, harness.api.pods[pod.key])


def test_a_terminating_pod_in_pre_bind_leaves_its_node() -> None:
    """Source: pkg/scheduler/eventhandlers.go, Scheduler.handleAssumedPodDeletion (1.36)."""
    harness = SchedulerHarness(make_node("n1"))
    pod = make_pod("web")
    harness.cache.assume(pod, "n1")
    harness.dispatcher.on_update(pod, make_pod("web", metadata={"deletionTimestamp": "2026-03-01T00:00:00Z"}))
    assert not harness.cache.is_assumed(pod.metadata.uid)
    assert dict(harness.cache.assigned_pods) == {}


def test_a_waiting_pod_that_is_terminating_is_unschedulable() -> None:
    """No event of a plugin requeues it.

    Source: pkg/scheduler/eventhandlers.go, Scheduler.handleAssumedPodDeletion;
    pkg/scheduler/schedule_one.go, Scheduler.bindingCycle (1.36).
    """
    harness, pod = make_harness(OnlyOne(permit=WAIT))

    async def test() -> None:
        await harness.scheduler.schedule_one()
        await asyncio.sleep(0)
        change(harness, pod, deletionTimestamp="2026-03-01T00:00:00Z")
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(test())

    assert harness.events.recorded == [("default/web", "FailedScheduling", "0/1 nodes are available: 1 removed.")]
    assert (harness.queue_of("web"), harness.queue_of("other")) == ("unschedulable", "backoff")
    assert harness.cache.pending_pods[pod.metadata.uid].metadata.deletion_timestamp is not None


def test_a_pod_that_is_deleted_during_its_binding_requeues_other_pods_at_once() -> None:
    """Source: pkg/scheduler/eventhandlers.go, Scheduler.handleAssumedPodDeletion (1.36)."""
    harness, pod = make_harness(OnlyOne())

    async def test() -> None:
        await harness.scheduler.schedule_one()
        harness.dispatcher.on_delete(pod)
        assert harness.queue_of("other") == "backoff"
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(test())
    assert harness.api.calls_to("binding") == []


def test_a_failed_binding_clears_the_nomination_and_keeps_changes_of_the_pod() -> None:
    """The pod was nominated for its node before PreBind, and its label changed meanwhile.

    Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure, updatePod (1.36).
    """
    harness, pod = make_harness(OnlyOne())
    harness.api.errors["binding"] = [ServerError("etcd is down", 500)] * 4

    async def test() -> None:
        await harness.scheduler.schedule_one()
        while harness.api.pods[pod.key].status.nominated_node_name != "n1":
            await asyncio.sleep(0)
        change(harness, pod, labels={"a": "b"})
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(test())

    assert harness.api.pods[pod.key].status.nominated_node_name == ""
    queued_pod = harness.queue.get_pod(pod.key)
    assert queued_pod is not None
    assert dict(queued_pod.pod_info.labels) == {"a": "b"}


class Recording:
    """A PreBind plugin that records its calls, and has nothing to do according to PreBindPreFlight."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name, self.calls = name, calls

    def pre_bind_pre_flight(self, *_: Any) -> PreBindPreFlightResult:
        self.calls.append(f"{self.name} pre-flight")
        return PreBindPreFlightResult(skip=True, allow_parallel=True)

    def pre_bind(self, *_: Any) -> ApiPlan:
        self.calls.append(self.name)
        return ApiPlan()


@pytest.mark.parametrize(
    ("enabled", "expected_calls"),
    [(True, ["first pre-flight", "second pre-flight"]), (False, ["first", "second"])],
)
def test_all_pre_bind_plugins_run_if_pods_are_not_nominated_for_their_binding(
    enabled: bool, expected_calls: list[str]
) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.bindingCycle (1.37)."""
    calls: list[str] = []
    profile = make_profile(Recording("first", calls), Recording("second", calls), DefaultBinder())
    gates = FeatureGates({"NominatedNodeNameForExpectation": enabled})
    harness = SchedulerHarness(make_node("n1"), profile=profile, gates=gates)
    harness.create(make_pod("web"))

    harness.attempt()

    assert calls == expected_calls
    assert [api_call.subresource for api_call in harness.api.calls] == ["binding"]


class FailsOnce:
    """Waits on Permit and fails in PreBindPreFlight at its first attempt, and at no other."""

    name = "FailsOnce"

    def __init__(self) -> None:
        self.permits, self.pre_flights = [WAIT], [Status(Code.ERROR, ("the device is busy",))]

    def permit(self, *_: Any) -> PermitResult:
        return self.permits.pop() if self.permits else PermitResult()

    def pre_bind_pre_flight(self, *_: Any) -> PreBindPreFlightResult | Status:
        return self.pre_flights.pop() if self.pre_flights else PreBindPreFlightResult(skip=True)

    def pre_bind(self, *_: Any) -> ApiPlan:
        return ApiPlan()


def test_a_pod_no_longer_waits_on_permit_after_its_pre_flight_failed() -> None:
    harness = SchedulerHarness(make_node("n1"), profile=make_profile(FailsOnce(), DefaultBinder()))
    pod = make_pod("web")
    harness.create(pod)
    harness.run(turns=2)

    assert harness.node_of(pod) == "n1"
    assert len(harness.context.waiting_pods) == 0
