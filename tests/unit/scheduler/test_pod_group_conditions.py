"""The condition of a pod group is written in the background, in the order of its attempts."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from extender.api.kinds.pod_group import PodGroup
from extender.app import wiring
from extender.client.errors import ApiError, ServerError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.framework.api_plan import ApiCall
from extender.framework.status import SUCCESS, Status, error_status, unschedulable_status
from extender.scheduler.pod_groups import PodGroupConditionWriter
from tests.pod_group_builders import make_pod_group
from tests.unit.scheduler.builders import SchedulerHarness

PROFILE = wiring.build_setup(gates=FeatureGates({"GenericWorkload": True}, RELEASE_1_37)).first_profile
GROUP = make_pod_group(min_count=1)
NO_ROOM, ERROR = unschedulable_status("no room"), error_status("a plugin failed")


class Writes:
    """A writer on a fake API server. The server answers when *release* is called, if *is_held* is set."""

    def __init__(self, harness: SchedulerHarness) -> None:
        self.harness, self.writer, self.is_held = harness, PodGroupConditionWriter(harness.context), False
        self.release: Callable[[], None] = lambda: None

    def write(self, *statuses: Status, is_held: bool = False) -> list[tuple[str, str]]:
        """Write *statuses* in turn; return status and reason of each condition that was sent."""

        async def run() -> None:
            answer = asyncio.Event()
            call = self.harness.api.call

            async def call_later(*args: Any) -> None:
                await answer.wait()
                await call(*args)

            if is_held:
                self.harness.api.call = call_later
            for status in statuses:
                self.writer.write(GROUP, status)
                await asyncio.sleep(0)
            answer.set()
            while self.harness.context.tasks or self.harness.context.status_retries:
                await asyncio.sleep(0)

        asyncio.run(run())
        return [get_condition(api_call) for api_call in self.harness.api.calls if api_call.kind == "PodGroup"]


def get_condition(api_call: ApiCall) -> tuple[str, str]:
    (condition,) = api_call.body["status"]["conditions"]
    return condition["status"], condition["reason"]


def make_writes(*errors: ApiError) -> Writes:
    harness = SchedulerHarness(GROUP, profile=PROFILE)
    harness.api.errors["status"] = list(errors)
    return Writes(harness)


def test_the_next_attempt_does_not_wait_for_the_write() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.updatePodGroupCondition (1.37)."""
    writes = make_writes()
    assert writes.write(NO_ROOM, SUCCESS, is_held=True) == [("False", "Unschedulable"), ("True", "Scheduled")]


def test_a_newer_failure_replaces_one_that_is_not_sent_yet() -> None:
    sent = make_writes().write(NO_ROOM, unschedulable_status("no room any more"), ERROR, is_held=True)
    assert sent == [("False", "Unschedulable"), ("False", "SchedulerError")]


def test_a_failure_does_not_replace_a_success_that_is_not_sent_yet() -> None:
    sent = make_writes().write(NO_ROOM, SUCCESS, ERROR, is_held=True)
    assert sent == [("False", "Unschedulable"), ("True", "Scheduled")]


def test_a_failed_write_is_repeated_with_the_next_attempt() -> None:
    writes = make_writes(*[ServerError("etcd is down", 500)] * 4)
    assert len(writes.write(NO_ROOM)) == 4
    assert len(writes.write(NO_ROOM)) == 5
    assert len(writes.write(NO_ROOM)) == 5  # the condition is written and unchanged


def test_a_success_that_could_not_be_written_is_written_later() -> None:
    """A scheduled group has no next attempt, so its condition would stay wrong."""
    writes = make_writes(*(ServerError("etcd is down", 503) for _ in range(9)))
    assert writes.write(SUCCESS) == [("True", "Scheduled")] * 10
    assert 1060.0 < writes.harness.clock.seconds < 1062.0


def test_a_success_is_not_written_later_if_its_group_is_deleted() -> None:
    writes = make_writes(*(ServerError("etcd is down", 503) for _ in range(9)))
    call = writes.harness.api.call

    async def delete_group(*args: Any) -> None:
        writes.harness.cache.remove_object(PodGroup, f"{GROUP.metadata.namespace}/{GROUP.metadata.name}")
        await call(*args)

    writes.harness.api.call = delete_group
    assert writes.write(SUCCESS) == [("True", "Scheduled")] * 4


def test_the_result_of_a_deleted_group_is_not_written_to_a_new_group_of_its_name() -> None:
    writes = make_writes()
    metadata = msgspec.structs.replace(GROUP.metadata, uid="another")
    writes.harness.cache.add_or_update_object(msgspec.structs.replace(GROUP, metadata=metadata))
    assert writes.write(NO_ROOM) == []
