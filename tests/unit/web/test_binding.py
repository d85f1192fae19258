"""The verb bind: what is checked before a pod is bound, that asking twice is safe, and that failures change nothing."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from extender import wiring
from extender.carrying import nobody
from extender.client.errors import ApiError, UnreachableError
from extender.cluster.state import ClusterState
from extender.framework.points import Permission, Plan, Write
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status, error
from extender.objects.extender_v1 import BindingArgs
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.web.app import Site, new_app
from extender.web.binding import Binder, LiveError
from extender.web.health import Health
from extender.web.verbs import Verbs
from tests.build import a_cluster, a_node, a_pod

SCHEDULING = wiring.scheduling()
WEB = a_pod("web", requests={"cpu": "1"})
ASKED = BindingArgs("web", "default", "uid-default-web", "n1")


class Server:
    """The API server: its pods, what was bound, and the fault of the next call."""

    def __init__(self, *pods: Pod) -> None:
        self.pods = {pod.key: pod for pod in pods}
        self.bound: list[tuple[str, str, str, str]] = []
        self.written: list[tuple[str, str, str]] = []
        self.fault = ""
        self.unreadable = ""

    async def pod(self, namespace: str, name: str) -> Pod | None:
        await asyncio.sleep(0)
        if self.unreadable:
            raise LiveError(self.unreadable)
        return self.pods.get(f"{namespace}/{name}")

    async def carry_out(self, write: Write, ask: Callable[[], None] = nobody, /) -> None:
        await asyncio.sleep(0)
        ask()
        if self.fault:
            raise ApiError(self.fault)
        if write.verb != "bind":
            self.written.append((write.verb, write.kind, write.name))
            return
        node = write.body["target"]["name"]
        self.bound.append((write.namespace, write.name, write.body["metadata"]["uid"], node))
        pod = self.pods[f"{write.namespace}/{write.name}"]
        self.pods[pod.key] = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


class Heard:
    """Remembers how requests ended."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def bound(self, outcome: str) -> None:
        self.outcomes.append(outcome)


def a_binder(server: Server, *things: Any, profile: Profile = SCHEDULING.first, **more: Any) -> tuple[Binder, Heard]:
    heard = Heard()
    state = a_cluster(a_node("n1"), a_node("n2", allocatable={"cpu": "500m", "pods": "9"}), *things)
    profiles = {profile.scheduler_name: profile}
    return Binder(state, profiles, profile, wiring.engine(), server, heard, **more), heard


def asked(binder: Binder, *requests: BindingArgs) -> list[str]:
    """The errors answered to these requests, made together."""

    async def main() -> list[str]:
        return [result.error for result in await asyncio.gather(*map(binder.bind, requests))]

    return asyncio.run(main())


def unchanged(state: ClusterState) -> bool:
    return dict(state.placed) == {} and state.snapshot().view().pod_count.tolist() == [0, 0]


def test_a_pod_is_bound_with_its_uid_and_assumed_until_the_watch_tells() -> None:
    server = Server(WEB)
    binder, heard = a_binder(server, WEB)
    assert asked(binder, ASKED) == [""]
    assert server.bound == [("default", "web", "uid-default-web", "n1")]
    assert binder.state.is_assumed("uid-default-web")
    binder.state.put_pod(server.pods["default/web"])
    assert not binder.state.is_assumed("uid-default-web")
    assert heard.outcomes == ["bound"]


def test_asking_twice_is_safe() -> None:
    server = Server(WEB)
    binder, heard = a_binder(server, WEB)
    assert asked(binder, ASKED) == [""]
    assert asked(binder, ASKED) == [""]
    assert len(server.bound) == 1
    assert heard.outcomes == ["bound", "already"]


def test_asking_many_times_at_once_binds_once() -> None:
    server = Server(WEB)
    binder, heard = a_binder(server, WEB)
    assert asked(binder, *[ASKED] * 5) == [""] * 5
    assert len(server.bound) == 1
    assert heard.outcomes == ["bound", *["already"] * 4]


def test_of_two_requests_for_the_last_room_one_is_refused() -> None:
    """Room is taken when it is given out, not when the watch tells."""
    pods = [a_pod(name, requests={"cpu": "3"}) for name in ("a", "b")]
    server = Server(*pods)
    binder, _ = a_binder(server, *pods)
    requests = [BindingArgs(name, "default", f"uid-default-{name}", "n1") for name in ("a", "b")]
    assert asked(binder, *requests) == ["", "node n1 does not take pod default/b: Insufficient cpu"]
    assert len(server.bound) == 1


FORGED: dict[str, tuple[dict[str, str], Pod | None, str]] = {
    "a pod nobody knows": ({}, None, "pod default/web not found"),
    "a pod that was deleted and made again": (
        {"pod_uid": "old"},
        WEB,
        "pod default/web has the uid uid-default-web, not old: it was deleted and made again",
    ),
    "a pod of another scheduler": (
        {},
        a_pod("web", spec={"schedulerName": "other"}),
        'pod default/web is for the scheduler "other", which is not served here',
    ),
    "a pod that is bound elsewhere": ({}, a_pod("web", node="n2"), "pod default/web is on node n2 already"),
    "a pod that is being deleted": (
        {},
        a_pod("web", metadata={"deletionTimestamp": "2026-03-01T00:00:00Z"}),
        "pod default/web is being deleted",
    ),
    "a pod that has finished": ({}, a_pod("web", status={"phase": "Failed"}), "pod default/web has finished"),
    "a pod that is held back": (
        {},
        a_pod("web", spec={"schedulingGates": [{"name": "wait"}]}),
        "pod default/web: waiting for scheduling gates: [wait]",
    ),
    "a node nobody knows": ({"node": "n9"}, WEB, "node n9 is not known to the extender (yet)"),
    "a node that is too small": ({"node": "n2"}, WEB, "node n2 does not take pod default/web: Insufficient cpu"),
    "a node that the pod does not want": (
        {},
        a_pod("web", spec={"nodeSelector": {"disk": "ssd"}}),
        "node n1 does not take pod default/web: node(s) didn't match Pod's node affinity/selector",
    ),
    "no name": ({"pod_name": ""}, WEB, "PodName: is missing"),
    "no namespace": ({"pod_namespace": ""}, WEB, "PodNamespace: is missing"),
    "no uid": ({"pod_uid": ""}, WEB, "PodUID: is missing"),
    "no node": ({"node": ""}, WEB, "Node: is missing"),
}


@pytest.mark.parametrize(("request_", "live", "says"), FORGED.values(), ids=FORGED)
def test_a_request_that_does_not_hold_changes_nothing(request_: dict[str, str], live: Pod | None, says: str) -> None:
    server = Server(*([live] if live else []))
    binder, heard = a_binder(server, WEB)
    assert asked(binder, msgspec.structs.replace(ASKED, **request_)) == [says]
    assert server.bound == []
    assert unchanged(binder.state)
    assert heard.outcomes == ["refused"]


def test_the_node_is_judged_by_the_newest_state() -> None:
    server = Server(WEB)
    binder, _ = a_binder(server, WEB)
    binder.state.put_node(a_node("n1", unschedulable=True))
    assert asked(binder, ASKED) == ["node n1 does not take pod default/web: node(s) were unschedulable"]


def test_a_binding_that_fails_is_taken_back() -> None:
    nominated = a_pod("web", requests={"cpu": "1"}, status={"nominatedNodeName": "n1"})
    server = Server(nominated)
    server.fault = "etcd is down"
    binder, heard = a_binder(server, nominated)
    binder.state.nominate(nominated, "n1")
    given_back: list[str] = []
    binder.given_back = lambda pod: given_back.append(pod.key)
    assert asked(binder, ASKED) == ['running Bind plugin "DefaultBinder": etcd is down']
    assert unchanged(binder.state)
    assert given_back == ["default/web"]
    assert [query.uid for query in binder.state.snapshot().nominated("n1")] == ["uid-default-web"]
    assert heard.outcomes == ["failed"]
    server.fault = ""
    assert asked(binder, ASKED) == [""]


def test_a_pod_that_cannot_be_read_is_not_bound() -> None:
    server = Server(WEB)
    server.unreadable = "the API server does not answer"
    binder, _ = a_binder(server, WEB)
    assert asked(binder, ASKED) == ["the API server does not answer"]
    assert server.bound == []


def test_a_binding_whose_answer_is_lost_stands_if_the_watch_tells_of_it() -> None:
    server = Server(WEB)
    binder, heard = a_binder(server, WEB)

    async def carry_out(write: Write, ask: Callable[[], None]) -> None:
        ask()
        binder.state.put_pod(a_pod("web", node="n1", requests={"cpu": "1"}))
        raise UnreachableError("timed out", sent=True)

    server.carry_out = carry_out  # type: ignore[method-assign]
    assert asked(binder, ASKED) == [""]
    assert binder.state.placed["uid-default-web"].node_name == "n1"
    assert heard.outcomes == ["bound"]


class Prepares:
    """Wants something written before the pod is bound, and remembers what it set aside."""

    name = "Prepares"

    def __init__(self, answer: Plan | Status, permission: Status | None = None) -> None:
        self.answer, self.permission = answer, permission
        self.set_aside: list[str] = []

    def reserve(self, pod: Any, node: str, cluster: Any, notes: Any) -> None:
        self.set_aside.append(node)

    def unreserve(self, pod: Any, node: str, notes: Any) -> None:
        self.set_aside.remove(node)

    def permit(self, pod: Any, node: str, cluster: Any, notes: Any) -> Permission:
        return Permission(self.permission)

    def pre_bind(self, pod: Any, node: str, cluster: Any, notes: Any) -> Plan | Status:
        return self.answer


def preparing(plugin: Prepares) -> Profile:
    return replace(SCHEDULING.first, reserves=(plugin,), permits=(plugin,), pre_binds=(plugin,))


CLAIM = Plan((Write("patch", "PersistentVolumeClaim", "default", "data", {}),))


def test_what_the_profile_prepares_is_written_before_the_binding() -> None:
    plugin = Prepares(CLAIM)
    server = Server(WEB)
    binder, _ = a_binder(server, WEB, profile=preparing(plugin))
    assert asked(binder, ASKED) == [""]
    assert server.written == [("patch", "PersistentVolumeClaim", "data")]
    assert len(server.bound) == 1
    assert plugin.set_aside == ["n1"]


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (None, "was deleted before the pod was bound to it"),
        (
            a_node("n1", unschedulable=True),
            "changed before the pod was bound to it: node(s) were unschedulable",
        ),
    ],
    ids=["gone", "cordoned"],
)
def test_a_node_that_changes_while_volumes_are_prepared_gets_no_pod(after: Node | None, why: str) -> None:
    server = Server(WEB)
    binder, heard = a_binder(server, WEB, profile=preparing(Prepares(CLAIM)))
    carry_out = server.carry_out

    async def changed_meanwhile(write: Write, *ask: Any) -> None:
        await carry_out(write, *ask)
        if write.kind == "PersistentVolumeClaim" and after is None:
            binder.state.drop_node("n1")
        elif write.kind == "PersistentVolumeClaim":
            binder.state.put_node(after)

    server.carry_out = changed_meanwhile  # type: ignore[method-assign]
    assert asked(binder, ASKED) == [f'node "n1" {why}']
    assert server.bound == []
    assert dict(binder.state.placed) == {}
    assert heard.outcomes == ["failed"]


@pytest.mark.parametrize(
    ("plugin", "says", "outcome"),
    [
        (Prepares(Status(Code.UNSCHEDULABLE, ("no volume left",))), "no volume left", "refused"),
        (Prepares(Plan(), Status(Code.UNSCHEDULABLE, ("not yet",))), "not yet", "refused"),
        (Prepares(error("broken")), 'running PreBind plugin "Prepares": broken', "failed"),
    ],
    ids=["PreBind refuses", "Permit refuses", "PreBind fails"],
)
def test_a_pod_that_cannot_be_prepared_is_not_bound(plugin: Prepares, says: str, outcome: str) -> None:
    server = Server(WEB)
    binder, heard = a_binder(server, WEB, profile=preparing(plugin))
    assert asked(binder, ASKED) == [says]
    assert (server.bound, plugin.set_aside, heard.outcomes) == ([], [], [outcome])
    assert unchanged(binder.state)


def test_pods_of_further_schedulers_are_bound_by_the_first_profile() -> None:
    pod = a_pod("web", spec={"schedulerName": "other"})
    server = Server(pod)
    binder, _ = a_binder(server, pod, others=("other",))
    assert asked(binder, msgspec.structs.replace(ASKED, node="n2")) == [""]
    assert len(server.bound) == 1


def test_nothing_is_bound_while_the_cluster_is_not_known() -> None:
    server = Server(WEB)
    binder, heard = a_binder(server, WEB, wrong=lambda: "Pod not listed yet")
    assert asked(binder, ASKED) == ["Pod not listed yet"]
    assert (server.bound, heard.outcomes) == ([], ["refused"])


def test_the_verb_is_served_where_there_is_a_cluster_to_write_to() -> None:
    server = Server(WEB)
    binder, _ = a_binder(server, WEB)
    verbs = Verbs(binder.state, SCHEDULING.profiles, SCHEDULING.first, wiring.engine(), wiring.engine(keep=False))

    class Quiet:
        def __getattr__(self, _: str) -> Any:
            return lambda *_: None

    caller = TestClient(new_app(Site(verbs, Health(), Quiet(), lambda: b"", binder)))
    body = {"PodName": "web", "PodNamespace": "default", "PodUID": "uid-default-web", "Node": "n1"}
    assert caller.post("/bind", json=body).json() == {"Error": ""}
    assert caller.post("/bind", json={**body, "PodUID": "x"}).status_code == 200
    assert caller.post("/bind", content=b"[").status_code == 400
    described = caller.get("/openapi.json").json()["paths"]["/bind"]["post"]
    assert described["requestBody"]["content"]["application/json"]["schema"]["required"] == list(body)
