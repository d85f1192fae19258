"""Writes of a preemption that fail: the other victims, and the nominations of pods of lower priority."""

import asyncio
from typing import Any

import pytest

from extender.client.errors import ApiError, ServerError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.queueing.queued_entities import QueuedPodGroupInfo, QueuedPodInfo
from extender.scheduler.status_patches import make_nomination_patch
from extender.scheduler.status_writer import write_pod_status
from tests.build import make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.test_evictions import add_waiting_pod, make_harness


@pytest.mark.parametrize("in_background", [True, False])
def test_no_victim_is_evicted_after_a_failure(monkeypatch: pytest.MonkeyPatch, in_background: bool) -> None:
    """The condition of `slow` is written when the deletion of `fast` has failed.

    The preemptor may get other victims in its next attempt.

    Source: pkg/scheduler/framework/parallelize/result_channel.go, ResultChannel.SendWithCancel (1.37).
    """
    victims = [make_pod(name, node="n1", requests={"cpu": "1"}, priority=0) for name in ("fast", "slow", "last")]
    harness, _ = make_harness(*victims, in_background=in_background)
    harness.api.errors["delete"] = [ServerError("etcd is down", 500)]
    call = harness.api.call

    async def call_slowly(api_call: Any, *arguments: Any) -> None:
        if api_call.name != "fast":
            await asyncio.sleep(0.01)
        await call(api_call, *arguments)

    monkeypatch.setattr(harness.api, "call", call_slowly)
    harness.attempt()

    assert [api_call.name for api_call in harness.api.calls_to("delete")] == ["fast"]


@pytest.mark.parametrize(("is_rejected", "preempted"), [(True, []), (False, ["default/low", "default/waiting"])])
def test_a_last_victim_that_waits_on_permit_is_preempted_after_the_other_deletions(
    *, is_rejected: bool, preempted: list[str]
) -> None:
    """If a deletion fails, the last victim still waits.

    Source: pkg/scheduler/framework/preemption/executor.go, Executor.prepareCandidateAsync (1.36, 1.37).
    """
    harness, _ = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=1))
    add_waiting_pod(harness, "waiting", "1", 0)
    if is_rejected:
        harness.api.errors["delete"] = [ApiError("forbidden")]

    harness.attempt()

    assert [key for key, reason, _ in harness.events.recorded if reason == "Preempted"] == preempted
    (waiting_pod,) = harness.context.waiting_pods
    assert (waiting_pod.status is None) is is_rejected


def test_a_preemptor_backs_off_while_the_api_server_rejects_its_evictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """An admission webhook may protect a victim for a long time. The backoff is 1, 2 and 4 seconds.

    Source: pkg/scheduler/backend/queue/backoff_queue.go, backoffQueue.calculateBackoffDuration (1.37).
    """
    harness, _ = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    harness.api.errors["delete"] = [ApiError("admission webhook denied the request")] * 4
    times: list[float] = []
    call = harness.api.call

    async def record_time(api_call: Any, *arguments: Any) -> None:
        if api_call.verb == "delete":
            times.append(harness.clock.seconds)
        await call(api_call, *arguments)

    monkeypatch.setattr(harness.api, "call", record_time)
    for _ in range(4):
        harness.attempt()

    assert times == [1000, 1001, 1003, 1007]
    assert harness.queue_of("high") == "active"


def test_a_preemptor_that_was_attempted_again_is_activated_after_its_last_backoff_only() -> None:
    """Each attempt ends with one activation. Otherwise attempts after events would add up."""
    harness, preemptor = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    harness.api.errors["delete"] = [ApiError("admission webhook denied the request")] * 2
    delays: list[float] = []

    async def attempt_during_first_delay(seconds: float) -> None:
        delays.append(seconds)
        if len(delays) > 1:
            await asyncio.Event().wait()
        harness.queue.activate([preemptor], harness.clock.seconds)
        await harness.scheduler.schedule_one()

    async def test() -> None:
        harness.context.sleep = attempt_during_first_delay
        await harness.scheduler.schedule_one()
        for _ in range(50):
            await asyncio.sleep(0)

    asyncio.run(test())

    assert delays == [1, 2]
    assert harness.queue_of("high") == "unschedulable"


def test_a_cleared_nomination_does_not_overwrite_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server rejects the first write. The pod is nominated again before the write is repeated."""
    harness, _ = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    nominated_pod = make_pod("mid", priority=5, status={"nominatedNodeName": "n1"})
    harness.create(nominated_pod)
    queued_pod = harness.queue.get_pod("default/mid")
    assert queued_pod is not None
    call, written = harness.api.call, []

    async def fail_to_clear(api_call: Any, *arguments: Any) -> None:
        if api_call.name != "mid":
            await call(api_call, *arguments)
            return
        written.append(api_call.body["status"]["nominatedNodeName"])
        if len(written) == 1:
            patch = make_nomination_patch(nominated_pod, "n2", queued_pod.sent_status)
            assert patch is not None
            write_pod_status(harness.context, queued_pod, patch)
            raise ServerError("etcd is down", 500)

    monkeypatch.setattr(harness.api, "call", fail_to_clear)
    harness.attempt()

    assert written == [None, "n2"]


def test_a_nomination_that_the_watch_has_not_shown_is_cleared() -> None:
    harness, _ = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    nominated_pod = make_pod("mid", priority=5)
    harness.create(nominated_pod)
    queued_pod = harness.queue.get_pod("default/mid")
    assert queued_pod is not None
    queued_pod.sent_status = {"nominatedNodeName": "n1"}
    harness.cache.nominate(nominated_pod, "n1")

    harness.attempt()

    assert [call.body["status"] for call in harness.api.calls_to("status") if call.name == "mid"] == [
        {"nominatedNodeName": None}
    ]


@pytest.mark.parametrize("how", ["an attempt finds no victims", "the pod is deleted"])
def test_the_end_of_a_nomination_that_no_status_has_requeues_pods_of_no_higher_priority(how: str) -> None:
    """The nomination could not be written, so no event of the API server shows its end.

    Without a requeue, `small` waited for five minutes, although it fitted. `urgent` does not count the nominated pod.
    """
    harness = SchedulerHarness(make_node("n1"), make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    preemptor = make_pod("high", requests={"cpu": "4"}, priority=10)
    harness.cache.nominate(preemptor, "n1")
    harness.create(
        make_pod("urgent", requests={"cpu": "4"}, priority=11, spec={"preemptionPolicy": "Never"}),
        make_pod("small", requests={"cpu": "2"}, priority=10),
    )
    harness.attempt()
    harness.attempt()
    harness.create(preemptor)
    assert [harness.queue_of(name) for name in ("small", "urgent")] == ["unschedulable"] * 2

    if how == "the pod is deleted":
        harness.dispatcher.on_delete(preemptor)
    else:
        harness.dispatcher.on_add(make_pod("important", node="n1", requests={"cpu": "1"}, priority=20))
        harness.attempt()

    assert harness.cache.find_nominated_node(preemptor.metadata.uid) == ""
    assert [harness.queue_of(name) for name in ("small", "urgent")] == ["backoff", "unschedulable"]


def test_a_gang_backs_off_while_its_evictions_fail_and_its_members_are_not_searched_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search for each of 1,000 members would stop the process for 0.2 s."""
    gates = FeatureGates({"GenericWorkload": True}, RELEASE_1_37)
    node = make_node("n1", allocatable={"cpu": "9", "pods": "20"})
    low = make_pod("low", node="n1", requests={"cpu": "1"}, priority=0)
    harness = SchedulerHarness(node, low, make_pod_group(min_count=9, priority=10), gates=gates)
    harness.api.errors["delete"] = [ApiError("admission webhook denied the request")]
    harness.create(*(make_group_member(name, requests={"cpu": "1"}, priority=10) for name in "abcdefghi"))
    reads: list[float] = []

    def read_members(group: QueuedPodGroupInfo) -> list[QueuedPodInfo]:
        reads.append(harness.clock.seconds)
        return group.members

    async def sleep(seconds: float) -> None:
        reads.clear()
        harness.clock.seconds += seconds

    harness.context.sleep = sleep
    monkeypatch.setattr(QueuedPodGroupInfo, "pods", property(read_members))
    harness.attempt()

    assert harness.queue.count_pending_pods()["active"] == 9
    assert harness.clock.seconds > 1000
    assert len(reads) < 9
