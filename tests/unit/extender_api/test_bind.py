"""The verb bind: its checks, repeated requests, and failures, which change nothing."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import msgspec
import pytest
from starlette.testclient import TestClient

from extender.api.extender_v1 import BindingArgs
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.client.errors import ApiError, UnreachableError
from extender.extender_api.bind import BindVerb, PodReadError
from extender.extender_api.routes import ExtenderService, new_app
from extender.extender_api.verbs import Verbs
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.binding_points import PermitResult
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status, error_status
from extender.scheduler.api_writer import do_nothing
from extender.serving.health import Health
from tests.build import make_cluster, make_node, make_pod

SCHEDULING = wiring.build_setup()
WEB = make_pod("web", requests={"cpu": "1"})
ARGS = BindingArgs("web", "default", "uid-default-web", "n1")


class FakeApiServer:
    """A fake API server with its pods, the bindings, and the error of the next call."""

    def __init__(self, *pods: Pod) -> None:
        self.pods = {pod.key: pod for pod in pods}
        self.bound: list[tuple[str, str, str, str]] = []
        self.written: list[tuple[str, str, str]] = []
        self.error = ""
        self.unreadable = ""

    async def pod(self, namespace: str, name: str) -> Pod | None:
        await asyncio.sleep(0)
        if self.unreadable:
            raise PodReadError(self.unreadable)
        return self.pods.get(f"{namespace}/{name}")

    async def call(self, api_call: ApiCall, ask: Callable[[], None] = do_nothing, _: Any = None, /) -> None:
        await asyncio.sleep(0)
        ask()
        if self.error:
            raise ApiError(self.error)
        if api_call.verb != "bind":
            self.written.append((api_call.verb, api_call.kind, api_call.name))
            return
        node = api_call.body["target"]["name"]
        self.bound.append((api_call.namespace, api_call.name, api_call.body["metadata"]["uid"], node))
        pod = self.pods[f"{api_call.namespace}/{api_call.name}"]
        self.pods[pod.key] = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


class RecordedBindMetrics:
    """Records the results of requests."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def count_bind_result(self, outcome: str) -> None:
        self.outcomes.append(outcome)


def make_bind_verb(
    server: FakeApiServer, *objects: Any, profile: Profile = SCHEDULING.first_profile, **more: Any
) -> tuple[BindVerb, RecordedBindMetrics]:
    metrics = RecordedBindMetrics()
    cache = make_cluster(make_node("n1"), make_node("n2", allocatable={"cpu": "500m", "pods": "9"}), *objects)
    profiles = {profile.scheduler_name: profile}
    return BindVerb(
        cache, profiles, profile, wiring.make_runtime(), cast("Any", server), cast("Any", metrics), **more
    ), metrics


def bind_all(bind_verb: BindVerb, *requests: BindingArgs) -> list[str]:
    """Send the requests concurrently; return their errors."""

    async def main() -> list[str]:
        return [result.error for result in await asyncio.gather(*map(bind_verb.bind, requests))]

    return asyncio.run(main())


def has_no_assigned_pods(cache: Cache) -> bool:
    return dict(cache.assigned_pods) == {} and cache.snapshot().view().pod_count.tolist() == [0, 0]


def test_a_pod_is_bound_with_its_uid_and_assumed_until_the_watch_confirms_it() -> None:
    server = FakeApiServer(WEB)
    bind_verb, metrics = make_bind_verb(server, WEB)
    assert bind_all(bind_verb, ARGS) == [""]
    assert server.bound == [("default", "web", "uid-default-web", "n1")]
    assert bind_verb.cache.is_assumed("uid-default-web")
    bind_verb.cache.add_or_update_pod(server.pods["default/web"])
    assert not bind_verb.cache.is_assumed("uid-default-web")
    assert metrics.outcomes == ["bound"]


def test_a_repeated_request_is_safe() -> None:
    server = FakeApiServer(WEB)
    bind_verb, metrics = make_bind_verb(server, WEB)
    assert bind_all(bind_verb, ARGS) == [""]
    assert bind_all(bind_verb, ARGS) == [""]
    assert len(server.bound) == 1
    assert metrics.outcomes == ["bound", "already"]


def test_concurrent_requests_bind_once() -> None:
    server = FakeApiServer(WEB)
    bind_verb, metrics = make_bind_verb(server, WEB)
    assert bind_all(bind_verb, *[ARGS] * 5) == [""] * 5
    assert len(server.bound) == 1
    assert metrics.outcomes == ["bound", *["already"] * 4]


def test_of_two_requests_for_the_last_free_cpu_one_is_rejected() -> None:
    """A pod uses resources when it is assumed, not when the watch confirms it."""
    pods = [make_pod(name, requests={"cpu": "3"}) for name in ("a", "b")]
    server = FakeApiServer(*pods)
    bind_verb, _ = make_bind_verb(server, *pods)
    requests = [BindingArgs(name, "default", f"uid-default-{name}", "n1") for name in ("a", "b")]
    assert bind_all(bind_verb, *requests) == ["", "pod default/b does not fit node n1: Insufficient cpu"]
    assert len(server.bound) == 1


INVALID_REQUESTS: dict[str, tuple[dict[str, str], Pod | None, str]] = {
    "a pod nobody knows": ({}, None, "pod default/web not found"),
    "a pod that was deleted and recreated": (
        {"pod_uid": "old"},
        WEB,
        "pod default/web has the uid uid-default-web, not old: it was deleted and recreated",
    ),
    "a pod of another scheduler": (
        {},
        make_pod("web", spec={"schedulerName": "other"}),
        'pod default/web is for the scheduler "other", which is not served here',
    ),
    "a pod that is bound elsewhere": ({}, make_pod("web", node="n2"), "pod default/web is on node n2 already"),
    "a pod that is being deleted": (
        {},
        make_pod("web", metadata={"deletionTimestamp": "2026-03-01T00:00:00Z"}),
        "pod default/web is being deleted",
    ),
    "a pod that has finished": ({}, make_pod("web", status={"phase": "Failed"}), "pod default/web has finished"),
    "a pod that is held back": (
        {},
        make_pod("web", spec={"schedulingGates": [{"name": "wait"}]}),
        "pod default/web: waiting for scheduling gates: [wait]",
    ),
    "a node nobody knows": ({"node": "n9"}, WEB, "node n9 is not known to the extender (yet)"),
    "a node that is too small": ({"node": "n2"}, WEB, "pod default/web does not fit node n2: Insufficient cpu"),
    "a node that the pod does not want": (
        {},
        make_pod("web", spec={"nodeSelector": {"disk": "ssd"}}),
        "pod default/web does not fit node n1: node(s) didn't match Pod's node affinity/selector",
    ),
}


@pytest.mark.parametrize(("request_", "current_pod", "message"), INVALID_REQUESTS.values(), ids=INVALID_REQUESTS)
def test_an_invalid_request_changes_nothing(request_: dict[str, str], current_pod: Pod | None, message: str) -> None:
    server = FakeApiServer(*([current_pod] if current_pod else []))
    bind_verb, metrics = make_bind_verb(server, WEB)
    assert bind_all(bind_verb, msgspec.structs.replace(ARGS, **request_)) == [message]
    assert server.bound == []
    assert has_no_assigned_pods(bind_verb.cache)
    assert metrics.outcomes == ["refused"]


def test_the_node_is_filtered_on_the_newest_snapshot() -> None:
    server = FakeApiServer(WEB)
    bind_verb, _ = make_bind_verb(server, WEB)
    bind_verb.cache.add_or_update_node(make_node("n1", unschedulable=True))
    assert bind_all(bind_verb, ARGS) == ["pod default/web does not fit node n1: node(s) were unschedulable"]


def test_a_failed_binding_forgets_the_pod() -> None:
    nominated_pod = make_pod("web", requests={"cpu": "1"}, status={"nominatedNodeName": "n1"})
    server = FakeApiServer(nominated_pod)
    server.error = "etcd is down"
    bind_verb, metrics = make_bind_verb(server, nominated_pod)
    bind_verb.cache.nominate(nominated_pod, "n1")
    forgotten_pods: list[str] = []
    bind_verb.on_forget = lambda pod: forgotten_pods.append(pod.key)
    assert bind_all(bind_verb, ARGS) == ['running Bind plugin "DefaultBinder": etcd is down']
    assert has_no_assigned_pods(bind_verb.cache)
    assert forgotten_pods == ["default/web"]
    assert [pod_info.uid for pod_info in bind_verb.cache.snapshot().nominated_pods("n1")] == ["uid-default-web"]
    assert metrics.outcomes == ["failed"]
    server.error = ""
    assert bind_all(bind_verb, ARGS) == [""]


def fail_after_change(server: FakeApiServer, cache: Cache, changed_pod: Pod) -> None:
    """Let the watch show *changed_pod* during each call of the server, which then fails."""

    async def fail(_call: ApiCall, *_: Any) -> None:
        await asyncio.sleep(0)
        cache.add_or_update_pod(changed_pod)
        raise ApiError("etcd is down")

    cast("Any", server).call = fail


def test_a_pod_that_changes_during_a_failed_binding_is_requeued_as_it_is_now() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.handleSchedulingFailure (1.36)."""
    server = FakeApiServer(WEB)
    bind_verb, _ = make_bind_verb(server, WEB)
    changed_pod = make_pod("web", requests={"cpu": "1"}, labels={"a": "b"}, status={"nominatedNodeName": "n1"})
    bind_verb.cache.nominate(WEB, "n1")
    forgotten_pods: list[Pod] = []
    bind_verb.on_forget = forgotten_pods.append

    fail_after_change(server, bind_verb.cache, changed_pod)
    assert bind_all(bind_verb, ARGS) == ['running Bind plugin "DefaultBinder": etcd is down']
    assert forgotten_pods == [changed_pod]
    assert [pod_info.pod for pod_info in bind_verb.cache.snapshot().nominated_pods("n1")] == [changed_pod]


def test_a_nomination_that_is_removed_during_a_failed_binding_stays_removed() -> None:
    nominated_pod = make_pod("web", requests={"cpu": "1"}, status={"nominatedNodeName": "n1"})
    server = FakeApiServer(nominated_pod)
    bind_verb, _ = make_bind_verb(server, nominated_pod)
    bind_verb.cache.nominate(nominated_pod, "n1")

    fail_after_change(server, bind_verb.cache, WEB)
    assert bind_all(bind_verb, ARGS) == ['running Bind plugin "DefaultBinder": etcd is down']
    assert not bind_verb.cache.snapshot().nominated_pods("n1")


def test_a_pod_that_cannot_be_read_is_not_bound() -> None:
    server = FakeApiServer(WEB)
    server.unreadable = "the API server does not answer"
    bind_verb, _ = make_bind_verb(server, WEB)
    assert bind_all(bind_verb, ARGS) == ["the API server does not answer"]
    assert server.bound == []


def test_a_binding_without_a_response_counts_if_the_watch_confirms_it() -> None:
    server = FakeApiServer(WEB)
    bind_verb, metrics = make_bind_verb(server, WEB)

    async def call(api_call: ApiCall, ask: Callable[[], None], _: Any) -> None:
        ask()
        bind_verb.cache.add_or_update_pod(make_pod("web", node="n1", requests={"cpu": "1"}))
        raise UnreachableError("timed out", maybe_sent=True)

    cast("Any", server).call = call
    assert bind_all(bind_verb, ARGS) == [""]
    assert bind_verb.cache.assigned_pods["uid-default-web"].node_name == "n1"
    assert metrics.outcomes == ["bound"]


class PreBindPlugin:
    """A plugin of Reserve, Permit and PreBind that records reserved nodes."""

    name = "Prepares"

    def __init__(self, pre_bind_result: ApiPlan | Status, permit_status: Status | None = None) -> None:
        self.answer, self.permission = pre_bind_result, permit_status
        self.reserved_nodes: list[str] = []

    def reserve(self, pod: Any, node_name: str, snapshot: Any, cache: Any) -> None:
        self.reserved_nodes.append(node_name)

    def unreserve(self, pod: Any, node_name: str, cache: Any) -> None:
        self.reserved_nodes.remove(node_name)

    def permit(self, pod: Any, node_name: str, snapshot: Any, cache: Any) -> PermitResult:
        return PermitResult(self.permission)

    def pre_bind(self, pod: Any, node_name: str, snapshot: Any, cache: Any) -> ApiPlan | Status:
        return self.answer


def profile_with(plugin: Any) -> Profile:
    return replace(
        SCHEDULING.first_profile, reserve_plugins=(plugin,), permit_plugins=(plugin,), pre_bind_plugins=(plugin,)
    )


CLAIM = ApiPlan((ApiCall("patch", "PersistentVolumeClaim", "default", "data", {}),))


def test_pre_bind_plans_are_written_before_the_binding() -> None:
    plugin = PreBindPlugin(CLAIM)
    server = FakeApiServer(WEB)
    bind_verb, _ = make_bind_verb(server, WEB, profile=profile_with(plugin))
    assert bind_all(bind_verb, ARGS) == [""]
    assert server.written == [("patch", "PersistentVolumeClaim", "data")]
    assert len(server.bound) == 1
    assert plugin.reserved_nodes == ["n1"]


@pytest.mark.parametrize(
    ("changed_node", "reason"),
    [
        (None, "was deleted before the pod was bound to it"),
        (
            make_node("n1", unschedulable=True),
            "changed before the pod was bound to it: node(s) were unschedulable",
        ),
    ],
    ids=["gone", "cordoned"],
)
def test_a_node_that_changes_during_pre_bind_gets_no_pod(changed_node: Node | None, reason: str) -> None:
    server = FakeApiServer(WEB)
    bind_verb, metrics = make_bind_verb(server, WEB, profile=profile_with(PreBindPlugin(CLAIM)))
    call = server.call

    async def changed_meanwhile(api_call: ApiCall, *ask: Any) -> None:
        await call(api_call, *ask)
        if api_call.kind != "PersistentVolumeClaim":
            return
        if changed_node is None:
            bind_verb.cache.remove_node("n1")
        else:
            bind_verb.cache.add_or_update_node(changed_node)

    cast("Any", server).call = changed_meanwhile
    assert bind_all(bind_verb, ARGS) == [f'node "n1" {reason}']
    assert server.bound == []
    assert dict(bind_verb.cache.assigned_pods) == {}
    assert metrics.outcomes == ["failed"]


@pytest.mark.parametrize(
    ("plugin", "message", "outcome"),
    [
        (PreBindPlugin(Status(Code.UNSCHEDULABLE, ("no volume left",))), "no volume left", "refused"),
        (PreBindPlugin(ApiPlan(), Status(Code.UNSCHEDULABLE, ("not yet",))), "not yet", "refused"),
        (PreBindPlugin(error_status("broken")), 'running PreBind plugin "Prepares": broken', "failed"),
    ],
    ids=["PreBind refuses", "Permit refuses", "PreBind fails"],
)
def test_a_pod_rejected_by_permit_or_pre_bind_is_not_bound(plugin: PreBindPlugin, message: str, outcome: str) -> None:
    server = FakeApiServer(WEB)
    bind_verb, metrics = make_bind_verb(server, WEB, profile=profile_with(plugin))
    assert bind_all(bind_verb, ARGS) == [message]
    assert (server.bound, plugin.reserved_nodes, metrics.outcomes) == ([], [], [outcome])
    assert has_no_assigned_pods(bind_verb.cache)


def test_pods_of_extra_schedulers_are_bound_by_the_default_profile() -> None:
    pod = make_pod("web", spec={"schedulerName": "other"})
    server = FakeApiServer(pod)
    bind_verb, _ = make_bind_verb(server, pod, extra_scheduler_names=("other",))
    assert bind_all(bind_verb, msgspec.structs.replace(ARGS, node="n2")) == [""]
    assert len(server.bound) == 1


def test_nothing_is_bound_while_the_cache_is_not_synced() -> None:
    server = FakeApiServer(WEB)
    bind_verb, metrics = make_bind_verb(server, WEB, get_not_ready_reason=lambda: "Pod not listed yet")
    assert bind_all(bind_verb, ARGS) == ["Pod not listed yet"]
    assert (server.bound, metrics.outcomes) == ([], ["refused"])


def test_bind_is_served_if_there_is_a_bind_verb() -> None:
    server = FakeApiServer(WEB)
    bind_verb, _ = make_bind_verb(server, WEB)
    verbs = Verbs(
        bind_verb.cache,
        SCHEDULING.profiles,
        SCHEDULING.first_profile,
        wiring.make_runtime(),
        wiring.make_runtime(cache_results=False),
    )

    class Quiet:
        def __getattr__(self, _: str) -> Any:
            return lambda *_: None

    client = TestClient(new_app(ExtenderService(verbs, Health(), cast("Any", Quiet()), lambda: [b""], bind_verb)))
    body = {"PodName": "web", "PodNamespace": "default", "PodUID": "uid-default-web", "Node": "n1"}
    assert client.post("/bind", json=body).json() == {"Error": ""}
    assert client.post("/bind", json={**body, "PodUID": "x"}).status_code == 200
    json_type = {"content-type": "application/json; charset=utf-8"}
    assert client.post("/bind", content=b"[", headers=json_type).status_code == 400
    for headers, code in (
        ({"content-type": "text/plain"}, 415),
        ({}, 415),
        ({**json_type, "origin": "https://example.com"}, 403),
        ({**json_type, "origin": "null"}, 403),
    ):
        assert client.post("/bind", content=b"{}", headers=headers).status_code == code
    document = client.get("/openapi.json").json()
    assert list(document["paths"]["/bind"]) == ["post"]
    schemas = document["components"]["schemas"]
    assert schemas["BindingArgs"]["required"] == list(body)
