"""Extenders that bind instead of the Bind plugins, unless an ignorable one fails; the end of waits of PreBind."""

import asyncio
from typing import Any, cast

import pytest

from extender.client.errors import ConflictError, NotFoundError
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.plugins.default_binder import DefaultBinder
from extender.scheduler.binder import make_unreserve_calls
from tests.build import make_node, make_pod
from tests.unit.client.scripted_server import SILENCE, Reply
from tests.unit.cycle.fakes import make_profile
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.extender_harness import (
    ExtenderHarness,
    create_pending_pod,
    failure_messages,
    make_harness,
    run_with_extenders,
)

BINDS = {"bind_verb": "bind"}


def test_an_extender_that_binds_does_so_instead_of_the_plugin() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.extendersBinding (1.36)."""
    harness = make_harness(names=("n1",))
    create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /a/bind", Reply(body={"Error": ""}))
        await extender_harness.run_until_idle()
        (body,) = extender_harness.request_bodies("a/bind")
        assert body == {"PodName": "web", "PodNamespace": "default", "PodUID": "uid-default-web", "Node": "n1"}

    run_with_extenders(harness, [BINDS], test)
    assert harness.api.calls_to("binding") == []
    assert harness.events.recorded == [("default/web", "Scheduled", "Successfully assigned default/web to n1")]


def test_a_binding_that_an_extender_rejects_is_undone() -> None:
    harness = make_harness(names=("n1",))
    create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /a/bind", Reply(body={"Error": "out of licences"}))
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [BINDS], test)
    assert failure_messages(harness) == ["out of licences"]
    assert dict(harness.cache.assigned_pods) == {}
    assert harness.queue.count_pending_pods()["backoff"] == 1


def test_if_an_ignorable_extender_fails_the_plugin_binds() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.extendersBinding (1.36)."""
    harness = make_harness(names=("n1",))
    pod = create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /a/bind", Reply(body={"error": "out of licences"}))
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [{**BINDS, "ignorable": True}], test)
    assert harness.node_of(pod) == "n1"


def test_a_binding_with_a_lost_response_stands_if_the_watch_delivered_it() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure (1.36)."""
    harness = make_harness(names=("n1", "n2"))
    pod = create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        async def bound() -> None:
            while not extender_harness.server.requests:
                await asyncio.sleep(0)
            harness.dispatcher.on_update(
                pod, make_pod("web", node=extender_harness.request_bodies("a/bind")[0]["Node"], requests={"cpu": "1"})
            )

        late = asyncio.create_task(bound())
        extender_harness.server.respond("POST /a/bind", SILENCE)
        await extender_harness.run_until_idle()
        await late

    run_with_extenders(harness, [{**BINDS, "http_timeout": 1.0}], test)
    assert [reason for _, reason, _ in harness.events.recorded] == ["Scheduled"]
    assert len(harness.cache.assigned_pods) == 1


@pytest.mark.parametrize(
    ("verb", "error", "warnings"),
    [
        ("delete", NotFoundError("gone"), 0),
        ("delete", ConflictError("changed"), 1),
        ("patch", NotFoundError("gone"), 1),
        ("get", ValueError("unknown verb 'get' in an API call of a plugin"), 1),
    ],
)
def test_an_object_that_unreserve_deletes_may_be_gone_and_other_errors_are_logged(
    verb: str, error: Exception, warnings: int
) -> None:
    """Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, deleteClaim (1.37)."""

    class FailingApi:
        async def call(self, *_: object) -> None:
            raise error

    logged: list[str] = []
    api_call = ApiCall(verb, "ResourceClaim", "default", "claim", {})
    asyncio.run(make_unreserve_calls(cast("Any", FailingApi()), [api_call], logged.append))
    assert len(logged) == warnings


def test_a_claim_that_keeps_its_finalizer_is_not_deleted_by_unreserve() -> None:
    """It would stay, with its devices, as long as the pod waits. The calls for other claims are made.

    Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, deleteClaim (1.37).
    """
    made: list[tuple[str, str]] = []

    class FailingApi:
        async def call(self, api_call: ApiCall, *_: object) -> None:
            made.append((api_call.verb, api_call.name))
            if made == [("patch", "gpu")]:
                raise ConflictError("changed")

    calls = [
        ApiCall(verb, "ResourceClaim", "default", name, {}) for name in ("gpu", "nic") for verb in ("patch", "delete")
    ]
    logged: list[str] = []
    asyncio.run(make_unreserve_calls(cast("Any", FailingApi()), calls, logged.append))
    assert made == [("patch", "gpu"), ("patch", "nic"), ("delete", "nic")]
    assert logged == ["Unreserve could not update ResourceClaim default/gpu: changed"]


class WaitsForever:
    """Waits in PreBind for something that never happens."""

    name = "WaitsForever"

    def pre_bind(self, *_: Any) -> ApiPlan:
        return ApiPlan((), lambda _: None, 60.0)


def test_a_wait_of_pre_bind_ends_at_once_when_a_preemptor_cancels_the_binding() -> None:
    """The binding does not end at the next check of the wait condition only, so the preemptor is bound earlier.

    Source: pkg/scheduler/framework/runtime/pods_in_prebind_map.go, podInPreBind.CancelPod;
    apimachinery/pkg/util/wait/loop.go, loopConditionUntilContext (1.37).
    """
    harness = SchedulerHarness(make_node("n1"), profile=make_profile(WaitsForever(), DefaultBinder()))

    async def cancel_and_never_return(_: float) -> None:
        harness.context.pre_bind_cancel_functions["uid-default-web"]("preempted by DefaultPreemption")
        await asyncio.Event().wait()

    harness.context.sleep = cancel_and_never_return
    harness.create(make_pod("web"))

    harness.attempt()

    note = 'running PreBind plugin "WaitsForever": preempted by DefaultPreemption'
    assert harness.events.recorded == [("default/web", "FailedScheduling", note)]
    assert harness.queue_of("web") == "backoff"
    assert dict(harness.cache.assigned_pods) == {}
