"""Extenders that bind instead of the Bind plugins, unless an ignorable one fails."""

import asyncio
from typing import Any, cast

import pytest

from extender.client.errors import ConflictError, NotFoundError
from extender.framework.api_plan import ApiCall
from extender.scheduler.binder import make_unreserve_calls
from tests.build import make_pod
from tests.unit.client.scripted_server import SILENCE, Reply
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
