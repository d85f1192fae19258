"""Plugins reject waiting pods and activate queued pods by their results, in the scheduling loop."""

import asyncio
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.pod_info import PodInfo
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.framework.api_plan import ApiCall
from extender.framework.binding_points import ALLOW, PermitResult, PostBindResult, UnreserveResult
from extender.framework.events import ActionType, ClusterEventWithHint, EventResource
from extender.framework.extension_points import PostFilterResult
from extender.framework.status import Code, Reason, Rejection, Status, unschedulable_status
from extender.plugins.default_binder import DefaultBinder
from tests.build import make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.cycle.fakes import make_profile
from tests.unit.scheduler.builders import SchedulerHarness

NO = unschedulable_status("no")
WAIT = PermitResult(Status(Code.WAIT, ("for the others",)), timeout=60.0)
UNDO_CALL = ApiCall("patch", "Pod", "default", "second", {"metadata": {"annotations": {"a": None}}})
FIRST, SECOND = "uid-default-first", "uid-default-second"


class Scripted:
    """Lets the pod `first` wait on Permit; returns the given results for all other pods, and records Unreserve."""

    def __init__(self, name: str = "Gangs", **results: Any) -> None:
        self.name, self.results = name, results
        self.unreserved: list[str] = []

    def _get_result(self, point: str, default: Any) -> Any:
        result = self.results.get(point, default)
        if isinstance(result, Exception):
            raise result
        return result

    def filter(self, pod: PodInfo, nodes: Any, _state: Any) -> tuple[Rejection, ...]:
        rejects = "post_filter" in self.results and pod.uid != FIRST
        return (Rejection(nodes.pod_count >= 0, Reason("taken")),) if rejects else ()

    def post_filter(self, *_: Any) -> PostFilterResult:
        result: PostFilterResult = self._get_result("post_filter", PostFilterResult(NO))
        return result

    def reserve(self, pod: PodInfo, *_: Any) -> Status | None:
        status: Status | None = self._get_result("reserve", None) if pod.uid != FIRST else None
        return status

    def unreserve(self, pod: PodInfo, *_: Any) -> Any:
        self.unreserved.append(pod.pod.metadata.name)
        return self._get_result("unreserve", None) if pod.uid != FIRST else self._get_result("unreserve_first", None)

    def permit(self, pod: PodInfo, *_: Any) -> PermitResult:
        result: PermitResult = WAIT if pod.uid == FIRST else self._get_result("permit", ALLOW)
        return result

    def post_bind(self, *_: Any) -> PostBindResult | None:
        result: PostBindResult | None = self._get_result("post_bind", None)
        return result

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (ClusterEventWithHint(EventResource.NODE, ActionType.DELETE),)


def make_harness(*plugins: Any) -> tuple[SchedulerHarness, Pod, Pod]:
    """Return a scheduler with two pods: `first` is tried first, and waits on Permit."""
    # Without nominations, no write precedes the waits.
    gates = FeatureGates({"NominatedNodeNameForExpectation": False})
    profile = make_profile(*plugins, DefaultBinder())
    harness = SchedulerHarness(make_node("n1"), profile=profile, gates=gates)
    first, second = make_pod("first"), make_pod("second")
    harness.create(first, second)
    return harness, first, second


def attempt_both(harness: SchedulerHarness) -> None:
    """Attempt both pods, and run all tasks that have an end."""

    async def test() -> None:
        for _ in range(2):
            assert await harness.scheduler.schedule_one()
            await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
        for task in harness.context.tasks:
            task.cancel()

    asyncio.run(test())


REJECTS_FIRST = {FIRST: "the gang gave up"}


@pytest.mark.parametrize(
    "results",
    [
        {"post_filter": PostFilterResult(NO, uids_to_reject=REJECTS_FIRST)},
        {"permit": PermitResult(uids_to_reject=REJECTS_FIRST)},
        {"permit": PermitResult(NO, uids_to_reject=REJECTS_FIRST)},
        {"permit": PermitResult(uids_to_allow=(FIRST,), uids_to_reject=REJECTS_FIRST)},
        {"reserve": NO, "unreserve": UnreserveResult(uids_to_reject=REJECTS_FIRST)},
        {"permit": PermitResult(NO), "unreserve": UnreserveResult(uids_to_reject=REJECTS_FIRST)},
    ],
    ids=[
        "PostFilter",
        "Permit that allows its pod",
        "Permit that rejects its pod",
        "Permit that also allows the waiting pod",
        "Unreserve after Reserve",
        "Unreserve after Permit",
    ],
)
def test_a_rejected_pod_leaves_its_node_and_waits_for_the_events_of_the_plugin(results: dict[str, Any]) -> None:
    """Source: pkg/scheduler/framework/runtime/waiting_pods_map.go, waitingPod.Reject;
    pkg/scheduler/schedule_one.go, Scheduler.handleBindingCycleError (1.36).
    """
    plugin = Scripted(**results)
    harness, first, _ = make_harness(plugin)

    attempt_both(harness)

    message = "0/1 nodes are available: 1 the gang gave up."
    queued_pod = harness.queue.get_pod("default/first")
    assert queued_pod is not None
    assert queued_pod.unschedulable_plugins == {"Gangs"}
    assert harness.queue_of("first") == "unschedulable"
    assert ("default/first", "FailedScheduling", message) in harness.events.recorded
    (condition,) = next(
        api_call.body["status"]["conditions"]
        for api_call in harness.api.calls_to("status")
        if api_call.name == "first" and "conditions" in api_call.body["status"]
    )
    assert (condition["reason"], condition["message"]) == ("Unschedulable", message)
    assert plugin.unreserved.count("first") == 1
    assert not harness.cache.is_assumed(first.metadata.uid)
    assert len(harness.context.waiting_pods) == 0
    assert harness.context.permit_decided_events == {}


def test_a_plugin_that_allows_a_pod_before_another_rejects_it_decides() -> None:
    """The first signal is final.

    Source: pkg/scheduler/framework/runtime/waiting_pods_map.go, waitingPod.Allow (1.36).
    """

    class Rejecting:
        name = "Rejecting"

        def permit(self, pod: PodInfo, *_: Any) -> PermitResult:
            return ALLOW if pod.uid == FIRST else PermitResult(uids_to_reject=REJECTS_FIRST)

    harness, first, second = make_harness(Scripted(permit=PermitResult(uids_to_allow=(FIRST,))), Rejecting())
    attempt_both(harness)
    assert (harness.node_of(first), harness.node_of(second)) == ("n1", "n1")

    harness, first, second = make_harness(Rejecting(), Scripted(permit=PermitResult(uids_to_allow=(FIRST,))))
    attempt_both(harness)
    assert (harness.node_of(first), harness.node_of(second)) == ("", "n1")
    queued_pod = harness.queue.get_pod("default/first")
    assert queued_pod is not None
    assert queued_pod.unschedulable_plugins == {"Rejecting"}


@pytest.mark.parametrize(
    "results",
    [
        {"permit": PermitResult(uids_to_reject={SECOND: "itself", "unknown": "nobody"})},
        {"permit": PermitResult(uids_to_reject={})},
        {"unreserve": UnreserveResult(uids_to_reject=REJECTS_FIRST), "permit": PermitResult()},
    ],
    ids=["itself and an unknown pod", "no pod", "Unreserve that does not run"],
)
def test_a_rejection_of_a_pod_that_does_not_wait_has_no_effect(results: dict[str, Any]) -> None:
    harness, _, second = make_harness(Scripted(**results))
    attempt_both(harness)
    assert harness.node_of(second) == "n1"
    assert harness.context.waiting_pods.get(FIRST) is not None


def test_the_rejections_of_one_plugin_take_effect_though_another_raises_in_unreserve() -> None:
    raising = Scripted("Raising", unreserve=ValueError("a bug"), unreserve_first=ValueError("a bug"), permit=ALLOW)
    plugin = Scripted(reserve=NO, unreserve=UnreserveResult(uids_to_reject=REJECTS_FIRST))
    harness, _, _ = make_harness(raising, plugin)

    attempt_both(harness)

    assert plugin.unreserved == raising.unreserved == ["second", "first"]
    assert harness.queue_of("first") == "unschedulable"
    assert dict(harness.cache.assigned_pods) == {}


def test_waiting_pods_that_reject_each_other_are_each_rejected_once() -> None:
    rejects_both = UnreserveResult(uids_to_reject={FIRST: "one left", SECOND: "one left"})
    plugin = Scripted(permit=WAIT, unreserve=rejects_both, unreserve_first=rejects_both)
    harness, _, second = make_harness(plugin)

    async def test() -> None:
        await harness.scheduler.schedule_one()
        await harness.scheduler.schedule_one()
        await asyncio.sleep(0)
        harness.dispatcher.on_delete(second)
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(test())

    assert plugin.unreserved == ["second", "first"]
    assert ("default/first", "FailedScheduling", "0/1 nodes are available: 1 one left.") in harness.events.recorded
    assert len(harness.queue.in_flight_events) == 0


def test_after_the_lease_is_lost_a_rejected_pod_leaves_its_node_without_api_calls() -> None:
    plugin = Scripted(
        permit=PermitResult(NO, uids_to_reject=REJECTS_FIRST), unreserve_first=UnreserveResult((UNDO_CALL,))
    )
    harness, _, _ = make_harness(plugin)

    async def test() -> None:
        await harness.scheduler.schedule_one()
        await asyncio.sleep(0)
        harness.leader.leads = False
        await harness.scheduler.schedule_one()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(test())

    assert plugin.unreserved == ["second", "first"]
    assert dict(harness.cache.assigned_pods) == {}
    assert UNDO_CALL not in harness.api.calls


@pytest.mark.parametrize(
    ("results", "queue"),
    [
        ({"post_bind": PostBindResult((make_pod("parked"),))}, "active"),
        ({"post_bind": None}, "unschedulable"),
        ({"reserve": NO, "unreserve": UnreserveResult(pods_to_activate=(make_pod("parked"),))}, "active"),
        ({"reserve": NO, "unreserve": ()}, "unschedulable"),
    ],
    ids=["PostBind", "PostBind without a result", "Unreserve", "Unreserve without API calls"],
)
def test_post_bind_and_unreserve_activate_queued_pods(results: dict[str, Any], queue: str) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.bindingCycle (1.36)."""
    plugin = Scripted(**results)
    harness, _, _ = make_harness(plugin)
    harness.create(make_pod("parked"))
    entity = harness.queue.pop_specific_pod(harness.cache.make_pod_info(make_pod("parked")), 1000.0)
    assert entity is not None
    entity.unschedulable_plugins = frozenset({"Gangs"})
    harness.queue.add_unschedulable_if_not_present(entity, 1000.0)
    wakes: list[int] = []
    harness.context.wake = lambda: wakes.append(1)

    attempt_both(harness)

    assert harness.queue_of("parked") == queue
    assert wakes


def test_the_api_calls_of_an_unreserve_result_are_made_before_the_pod_is_requeued() -> None:
    plugin = Scripted(permit=PermitResult(NO), unreserve=UnreserveResult((UNDO_CALL,), REJECTS_FIRST))
    harness, _, _ = make_harness(plugin)

    attempt_both(harness)

    assert UNDO_CALL in harness.api.calls
    assert (harness.queue_of("first"), harness.queue_of("second")) == ("unschedulable", "unschedulable")


def test_an_invalid_result_of_post_bind_leaves_the_pod_bound() -> None:
    harness, _, second = make_harness(Scripted(post_bind=(make_pod("parked"),)))
    attempt_both(harness)
    assert harness.node_of(second) == "n1"


class RejectingUnreserve:
    """Rejects the pod `waiting` in Unreserve."""

    name: ClassVar[str] = "RejectingUnreserve"

    def reserve(self, *_: Any) -> None:
        """Return success."""

    def unreserve(self, *_: Any) -> UnreserveResult:
        return UnreserveResult(uids_to_reject={"waiting": "a member left"})


@pytest.mark.parametrize(
    ("min_count", "message"), [(2, None), (3, "a member left")], ids=["the group fits", "it does not"]
)
def test_only_members_that_are_not_bound_reject_waiting_pods_in_unreserve(min_count: int, message: str | None) -> None:
    """Reserve and Unreserve also run for members in the hypothesis of the group's cycle.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36).
    """
    gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True}, RELEASE_1_36)
    plain = wiring.build_setup(gates=gates).first_profile
    profile = replace(plain, reserve_plugins=(*plain.reserve_plugins, RejectingUnreserve()))
    node = make_node("n1", allocatable={"cpu": "2", "memory": "4Gi", "pods": "9"})
    harness = SchedulerHarness(node, make_pod_group(min_count=min_count), profile=profile)
    waiting = harness.cache.make_pod_info(make_pod("other", metadata={"uid": "waiting"}))
    waiting_pod = harness.context.waiting_pods.add(waiting, "n1", {"Gate": 60.0}, 1000.0)
    harness.create(*(make_group_member(name, requests={"cpu": "1"}) for name in "abc"[:min_count]))
    harness.attempt()
    assert (waiting_pod.status and waiting_pod.status.message) == message
