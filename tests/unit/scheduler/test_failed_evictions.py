"""Writes of a preemption that fail: the other victims, and the nominations of pods of lower priority."""

import asyncio
from typing import Any

import pytest

from extender.client.errors import ServerError
from tests.build import make_pod
from tests.unit.scheduler.test_evictions import make_harness


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


@pytest.mark.parametrize(("later_node", "patches"), [("n2", [None]), ("n1", [None, None]), ("", [None, None])])
def test_a_nomination_is_not_cleared_again_after_the_pod_was_nominated_for_another_node(
    monkeypatch: pytest.MonkeyPatch, later_node: str, patches: list[str | None]
) -> None:
    """The API server rejects the first write. The pod is nominated again before the write is repeated."""
    harness, _ = make_harness(make_pod("low", node="n1", requests={"cpu": "1"}, priority=0))
    nominated_pod = make_pod("mid", priority=5, status={"nominatedNodeName": "n1"})
    harness.create(nominated_pod)
    call, written = harness.api.call, []

    async def fail_to_clear(api_call: Any, *arguments: Any) -> None:
        if api_call.name != "mid":
            await call(api_call, *arguments)
            return
        written.append(api_call.body["status"]["nominatedNodeName"])
        if len(written) == 1:
            harness.cache.nominate(nominated_pod, later_node)
            raise ServerError("etcd is down", 500)

    monkeypatch.setattr(harness.api, "call", fail_to_clear)
    harness.attempt()

    assert written == patches
