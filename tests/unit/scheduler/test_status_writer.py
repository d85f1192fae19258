"""Conditions and nominations: compared with what was sent before, written in order, and again after a failure."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from extender.client.errors import ApiError, ServerError
from extender.cycle.decision import AttemptFailure
from extender.framework.api_plan import ApiCall
from extender.framework.status import Code, Status, error_status
from extender.queueing.queued_entities import QueuedPodInfo
from extender.scheduler.failure_handler import handle_scheduling_failure
from extender.scheduler.status_patches import make_nomination_patch
from extender.scheduler.status_writer import write_nomination
from tests.build import make_node, make_pod
from tests.unit.scheduler.builders import SchedulerHarness

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}


class FailingPod:
    """A pod in flight, and an API server whose watch delivers nothing."""

    def __init__(self, **status: Any) -> None:
        self.harness = SchedulerHarness(make_node("n1"))
        self.harness.api.notifies = False
        self.pod = make_pod("web", status=status)
        self.harness.create(self.pod)
        popped = self.harness.queue.pop()
        assert isinstance(popped, QueuedPodInfo)
        self.queued_pod_info = popped

    def fail(self, message: str, *, error: bool = False, node: str | None = None) -> None:
        """End an attempt; its status is written in the background."""
        status = error_status(message) if error else Status(Code.UNSCHEDULABLE, (message,))
        failure = AttemptFailure(status, nominated_node=node)
        handle_scheduling_failure(self.harness.context, self.queued_pod_info, failure, self.harness.clock.monotonic())

    def written(self) -> list[dict[str, Any]]:
        """Return the reason and the message of each condition that the API server accepted, and each nomination."""
        return [summarize(call) for call in self.harness.api.calls_to("status")]


def summarize(call: ApiCall) -> dict[str, Any]:
    status = call.body["status"]
    (condition,) = status.get("conditions", [None])
    nomination = {"nominatedNodeName": status["nominatedNodeName"]} if "nominatedNodeName" in status else {}
    return {"message": condition["message"], **nomination} if condition else nomination


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def run_and_wait() -> None:
        await test()
        await settle()

    asyncio.run(run_and_wait())


async def wait_for_ever(_: float) -> None:
    await asyncio.Event().wait()


async def settle() -> None:
    """Wait until no other task can continue."""
    for _ in range(100):
        await asyncio.sleep(0)


def test_a_condition_of_the_cached_pod_is_written_again_if_another_was_sent_since() -> None:
    """The watch has not delivered the error yet. kube-scheduler does not write, so that the error stays for ever."""
    web = FailingPod(conditions=[UNSCHEDULABLE])

    async def test() -> None:
        web.fail("the node is gone", error=True)
        await settle()
        web.fail("no room")

    run(test)

    assert web.written() == [{"message": "the node is gone"}, {"message": "no room"}]


def test_a_nomination_is_cleared_if_the_cached_pod_does_not_have_it_yet() -> None:
    """kube-scheduler does not clear it, so that the pod reserves the node until its next attempt."""
    web = FailingPod(conditions=[UNSCHEDULABLE])

    async def test() -> None:
        web.fail("no room", node="n1")
        await settle()
        web.fail("no room", node="")

    run(test)

    assert web.written() == [{"nominatedNodeName": "n1"}, {"nominatedNodeName": None}]


def test_a_nomination_before_the_binding_is_cleared_if_the_cached_pod_does_not_have_it_yet() -> None:
    web = FailingPod()
    context, queued_pod_info = web.harness.context, web.queued_pod_info

    async def test() -> None:
        patch = make_nomination_patch(web.pod, "n1", queued_pod_info.sent_status)
        assert patch is not None
        await write_nomination(context, queued_pod_info, patch)
        web.fail("no room", node="")

    run(test)

    assert web.written() == [{"nominatedNodeName": "n1"}, {"message": "no room", "nominatedNodeName": None}]


def test_nothing_is_written_if_the_pod_and_the_last_write_agree() -> None:
    web = FailingPod(conditions=[UNSCHEDULABLE])

    async def test() -> None:
        web.fail("busy", error=True)
        await settle()
        for _ in range(2):
            web.fail("no room")
            await settle()

    run(test)

    assert web.written() == [{"message": "busy"}, {"message": "no room"}]


class SlowStatuses:
    """Delays each status write until it is released, and records the messages in the order of their arrival."""

    def __init__(self, web: FailingPod) -> None:
        self._call, self.arrived, self.released = web.harness.api.call, list[str](), asyncio.Semaphore(0)
        web.harness.api.call = self.call

    async def call(self, api_call: ApiCall, *_: Any) -> None:
        self.arrived.append(api_call.body["status"]["conditions"][0]["message"])
        await self.released.acquire()
        await self._call(api_call)


def test_a_newer_condition_waits_for_the_write_of_an_older_one() -> None:
    """Otherwise the older one may be executed last. A condition between them is not written."""
    web = FailingPod()

    async def test() -> None:
        api = SlowStatuses(web)
        for message in ("first", "second", "third"):
            web.fail(message)
            await settle()
        assert api.arrived == ["first"]
        api.released.release()
        await settle()
        assert api.arrived == ["first", "third"]
        api.released.release()

    run(test)

    assert web.written() == [{"message": "first"}, {"message": "third"}]
    assert web.harness.context.status_writes == {}


def test_a_newer_condition_brings_the_nomination_that_was_not_written() -> None:
    web = FailingPod(nominatedNodeName="n1")
    web.harness.api.errors["status"] = [ApiError("forbidden", 403)]
    web.harness.context.sleep = wait_for_ever

    async def test() -> None:
        web.fail("first", node="")
        await settle()
        web.fail("second")

    run(test)

    written = [{"message": "first", "nominatedNodeName": None}, {"message": "second", "nominatedNodeName": None}]
    assert web.written() == written


def test_a_condition_that_cannot_be_written_is_retried_after_the_next_attempt_with_the_same_result() -> None:
    web = FailingPod(conditions=[UNSCHEDULABLE])
    waits = asyncio.Semaphore(0)

    async def wait(_: float) -> None:
        await waits.acquire()

    web.harness.context.sleep = wait

    async def test() -> None:
        web.harness.api.errors["status"] = [ApiError("forbidden", 403)]
        web.fail("busy", error=True)
        await settle()
        web.queued_pod_info.attempts += 1
        waits.release()

    run(test)

    assert web.written() == [{"message": "busy"}, {"message": "busy"}]
    assert web.harness.context.status_writes == {}


def test_the_end_of_the_wait_for_an_older_condition_does_not_end_the_retries_of_a_newer_one() -> None:
    web = FailingPod()
    web.harness.api.errors["status"] = [ApiError("forbidden", 403)] * 2
    waits: list[asyncio.Event] = []

    async def wait(_: float) -> None:
        waits.append(asyncio.Event())
        await waits[-1].wait()

    web.harness.context.sleep = wait

    async def test() -> None:
        for message in ("first", "second"):
            web.fail(message)
            await settle()
        for event in waits:
            event.set()
            await settle()

    run(test)

    assert web.written() == [{"message": "first"}, {"message": "second"}, {"message": "second"}]
    assert web.harness.context.status_writes == {}


def test_the_condition_of_a_pod_that_was_deleted_or_assumed_is_not_retried() -> None:
    async def test(web: FailingPod, *, is_deleted: bool) -> None:
        web.harness.api.errors["status"] = [ServerError("etcd is down", 500)] * 4
        web.fail("no room")
        await asyncio.sleep(0)
        if is_deleted:
            web.harness.dispatcher.on_delete(web.pod)
        else:
            web.harness.cache.assume(web.pod, "n1")
        await settle()

    for is_deleted in (True, False):
        web = FailingPod()
        asyncio.run(test(web, is_deleted=is_deleted))
        assert len(web.written()) == 1
        assert web.harness.context.status_writes == {}
