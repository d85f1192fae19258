"""What a failed request of the verb bind leaves behind: calls of Unreserve, and the pod as the watch shows it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from extender.client.errors import ApiError, PodOnOtherNodeError
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.status import SUCCESS, Code, Status
from tests.build import make_pod
from tests.unit.client.virtual_time import current_loop, run
from tests.unit.extender_api.test_bind import (
    ARGS,
    WEB,
    FakeApiServer,
    PreBindPlugin,
    bind_all,
    make_bind_verb,
    profile_with,
)

UID = WEB.metadata.uid


class ReleasingPlugin(PreBindPlugin):
    """A plugin whose Unreserve makes an API call."""

    def unreserve(self, pod: Any, node_name: str, cache: Any) -> tuple[ApiCall, ...]:  # type: ignore[override]
        super().unreserve(pod, node_name, cache)
        return (ApiCall("patch", "ResourceClaim", "default", "gpu", {}),)


class RejectingApiServer(FakeApiServer):
    """Rejects bindings, after `on_bind` was called."""

    def __init__(self, *pods: Pod, on_bind: Callable[[], object] = lambda: None) -> None:
        super().__init__(*pods)
        self.on_bind = on_bind
        self.binding_error = ApiError("409 Conflict")

    async def call(self, api_call: ApiCall, *more: Any) -> None:
        if api_call.verb == "bind":
            await asyncio.sleep(0)
            self.on_bind()
            await asyncio.sleep(0)
            raise self.binding_error
        await super().call(api_call, *more)


def test_the_calls_of_unreserve_are_made_after_a_rejected_binding() -> None:
    server, plugin = RejectingApiServer(WEB), ReleasingPlugin(ApiPlan())
    bind_verb, _ = make_bind_verb(server, WEB, profile=profile_with(plugin))
    assert "409 Conflict" in bind_all(bind_verb, ARGS)[0]
    assert server.written == [("patch", "ResourceClaim", "gpu")]
    assert plugin.reserved_nodes == []
    assert list(bind_verb.cache.pending_pods) == [UID]


@pytest.mark.parametrize(
    ("error", "node"),
    [(PodOnOtherNodeError("409 Conflict"), ""), (ApiError("409 Conflict"), "n2"), (ApiError("409 Conflict"), "n1")],
)
def test_no_calls_of_unreserve_are_made_for_a_pod_that_another_scheduler_bound(error: ApiError, node: str) -> None:
    """The claims may be reserved for the pod by that scheduler. *node* is what the watch shows meanwhile."""
    server, plugin = RejectingApiServer(WEB), ReleasingPlugin(ApiPlan())
    server.binding_error = error
    bind_verb, metrics = make_bind_verb(server, WEB, profile=profile_with(plugin))
    server.on_bind = lambda: node and bind_verb.cache.add_or_update_pod(make_pod("web", node=node))
    assert "409 Conflict" in bind_all(bind_verb, ARGS)[0]
    assert (server.written, plugin.reserved_nodes, metrics.outcomes) == ([], [], ["failed"])


def test_a_cancelled_request_undoes_nothing_because_the_pod_may_be_bound() -> None:
    """The process ends while the API server does not answer the binding."""

    async def main() -> None:
        request = asyncio.create_task(bind_verb.bind(ARGS))
        server.on_bind = request.cancel
        with pytest.raises(asyncio.CancelledError):
            await request

    server, plugin = RejectingApiServer(WEB), ReleasingPlugin(ApiPlan())
    bind_verb, _ = make_bind_verb(server, WEB, profile=profile_with(plugin))
    asyncio.run(main())
    assert (server.written, plugin.reserved_nodes) == ([], ["n1"])


@pytest.mark.parametrize(
    ("change", "nodes"),
    [
        pytest.param(
            lambda cache: cache.add_or_update_pod(make_pod("web", node="n2")), {UID: "n2"}, id="bound to another node"
        ),
        pytest.param(lambda cache: cache.remove_pod(UID), {}, id="deleted"),
    ],
)
def test_a_pod_that_changed_during_a_rejected_binding_stays_as_the_watch_shows_it(
    change: Callable[[Any], object], nodes: dict[str, str]
) -> None:
    server = RejectingApiServer(WEB)
    bind_verb, metrics = make_bind_verb(server, WEB)
    server.on_bind = lambda: change(bind_verb.cache)
    assert "409 Conflict" in bind_all(bind_verb, ARGS)[0]
    assert {uid: pod.node_name for uid, pod in bind_verb.cache.assigned_pods.items()} == nodes
    assert dict(bind_verb.cache.pending_pods) == {}
    assert metrics.outcomes == ["failed"]


def test_a_pod_that_was_deleted_while_bind_read_it_does_not_stay() -> None:
    """The watch shows its deletion before bind assumes it, so nothing would ever remove it. Its queue gets no pod."""
    forgotten: list[Pod] = []
    server = RejectingApiServer(WEB)
    bind_verb, metrics = make_bind_verb(server, WEB, on_forget=forgotten.append)
    bind_verb.cache.remove_pod(UID)
    assert "409 Conflict" in bind_all(bind_verb, ARGS)[0]
    assert dict(bind_verb.cache.assigned_pods) == {}
    assert dict(bind_verb.cache.pending_pods) == {}
    assert (forgotten, metrics.outcomes) == ([], ["failed"])


def test_a_pod_that_the_watch_shows_only_during_a_failed_bind_is_pending() -> None:
    forgotten: list[Pod] = []
    server = RejectingApiServer(WEB)
    bind_verb, _ = make_bind_verb(server, on_forget=forgotten.append)
    server.on_bind = lambda: bind_verb.cache.add_or_update_pod(WEB)
    assert "409 Conflict" in bind_all(bind_verb, ARGS)[0]
    assert list(bind_verb.cache.pending_pods) == [UID]
    assert forgotten == [WEB]


def test_repeated_requests_for_a_pod_that_waits_for_a_volume_do_not_pile_up() -> None:
    """kube-scheduler gives up after five seconds and repeats the request."""

    async def main() -> None:
        requests = []
        for _ in range(10):
            requests.append(asyncio.create_task(bind_verb.bind(ARGS)))
            await asyncio.sleep(15)
        assert [request.done() for request in requests] == [False, *[True] * 9]
        assert {request.result().error for request in requests[1:]} == {
            "another request to bind pod default/web is still running"
        }
        is_bound.append(True)
        assert (await requests[0]).error == ""

    is_bound: list[bool] = []
    server = FakeApiServer(WEB)
    plan = ApiPlan((), lambda _: SUCCESS if is_bound else None, timeout=600.0)
    bind_verb, metrics = make_bind_verb(server, WEB, profile=profile_with(PreBindPlugin(plan)))
    run(main())
    assert metrics.outcomes == [*["refused"] * 9, "bound"]


def test_a_wait_for_a_volume_ends_when_the_process_stops() -> None:
    async def main() -> None:
        request = asyncio.create_task(bind_verb.bind(ARGS))
        await asyncio.sleep(15)
        is_stopping.append(True)
        start_time = current_loop().time()
        assert (await request).error == 'running PreBind plugin "Prepares": the extender is stopping'
        assert current_loop().time() - start_time <= 1.0

    is_stopping: list[bool] = []
    plugin = PreBindPlugin(ApiPlan((), lambda _: None, timeout=600.0))
    profile = profile_with(plugin)
    bind_verb, metrics = make_bind_verb(FakeApiServer(WEB), WEB, profile=profile, is_stopping=lambda: bool(is_stopping))
    run(main())
    assert (metrics.outcomes, plugin.reserved_nodes) == (["failed"], [])


class WaitingPlugin(PreBindPlugin):
    """A Permit plugin that always waits."""

    def __init__(self, name: str) -> None:
        super().__init__(ApiPlan(), Status(Code.WAIT, ("waiting for the gang",)))
        self.name = name


def test_members_of_a_gang_are_bound_one_after_another() -> None:
    """kube-scheduler has run GangScheduling before it calls bind. Each member would wait for the others."""
    server = FakeApiServer(WEB)
    bind_verb, metrics = make_bind_verb(server, WEB, profile=profile_with(WaitingPlugin("GangScheduling")))
    assert bind_all(bind_verb, ARGS) == [""]
    assert (len(server.bound), metrics.outcomes) == (1, ["bound"])


def test_a_pod_that_another_plugin_lets_wait_is_not_bound() -> None:
    server = FakeApiServer(WEB)
    plugins: Any = (WaitingPlugin("GangScheduling"), WaitingPlugin("Quota"))
    profile = replace(profile_with(WaitingPlugin("GangScheduling")), permit_plugins=plugins)
    bind_verb, metrics = make_bind_verb(server, WEB, profile=profile)
    message = "waiting for the gang, one or more plugins asked to wait and no plugin rejected pod"
    assert bind_all(bind_verb, ARGS) == [message]
    assert (server.bound, metrics.outcomes) == ([], ["failed"])
