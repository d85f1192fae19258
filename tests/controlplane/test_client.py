"""Our client against a real API server: lists, watches, bindings, leader election, events."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from extender.api.codec import decode
from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.basics.clock import SystemClock
from extender.client.credentials import Credentials
from extender.client.errors import ApiError, ConflictError, ForbiddenError, NotFoundError, UnauthorizedError
from extender.client.event_broadcaster import EventBroadcaster
from extender.client.events import Event, EventSeriesCache, make_object_reference
from extender.client.kubeconfig import CredentialSource
from extender.client.leader_election import Election
from extender.client.leader_elector import LeaderElector
from extender.client.listwatch import PAGE_SIZE, ListWatch, list_all
from extender.client.reflector import Delta, Reflector
from extender.client.rest_mapping import ENDPOINTS
from extender.client.transport import Request, Transport
from extender.client.writer import BindOutcome, WriteOptions, Writer
from extender.config.model import ClientConnection, LeaderElection
from tests.controlplane.control_plane import ADMIN, SCHEDULER, ControlPlane
from tests.unit.client.builders import make_binding

PODS = ListWatch(Pod, ENDPOINTS["Pod"], "default")
CLOCK = SystemClock()
TIMEOUT = 60.0


@asynccontextmanager
async def open_transport(plane: ControlPlane, user: str = ADMIN) -> AsyncIterator[Transport]:
    """Open a transport with the kubeconfig of *user*."""
    credentials = Credentials(CredentialSource(str(plane.write_kubeconfig(user))), CLOCK)
    transport = Transport(credentials, ClientConnection(qps=-1), "extender/test")
    try:
        yield transport
    finally:
        await transport.close()


@pytest.fixture(autouse=True)
def _delete_created_objects(control_plane: ControlPlane) -> Iterator[None]:
    """Delete the objects of the test. There is no kubelet that would end pods."""
    yield

    async def main() -> None:
        current = json.dumps({"gracePeriodSeconds": 0}).encode()
        async with open_transport(control_plane) as transport:
            for path in ("/api/v1/namespaces/default/pods", "/api/v1/nodes"):
                await transport.call(Request("DELETE", path, body=current))
            with suppress(NotFoundError):
                await Writer(transport).delete("Lease", "kube-system", "kube-scheduler")

    asyncio.run(main())


def make_pod(name: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "none"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}


def make_node(name: str) -> dict[str, Any]:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"capacity": capacity, "allocatable": capacity}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


async def wait_until(is_met: Callable[[], bool], seconds: float = TIMEOUT) -> None:
    """Wait until a condition on other processes holds."""
    async with asyncio.timeout(seconds):
        while not is_met():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def run_in_background(*coroutines: Coroutine[Any, Any, Any]) -> AsyncIterator[None]:
    """Run coroutines until the block ends."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


class ObjectMirror:
    """The objects according to the deltas of a reflector."""

    def __init__(self) -> None:
        self.objects: dict[str, KubernetesObject] = {}
        self.inferred = 0

    def __call__(self, deltas: Sequence[Delta[Any]]) -> None:
        for delta in deltas:
            self.inferred += delta.inferred
            if delta.new is None:
                assert delta.old is not None
                del self.objects[delta.old.metadata.name]
            else:
                previous = self.objects.get(delta.new.metadata.name)
                assert previous is delta.old
                self.objects[delta.new.metadata.name] = delta.new


def test_a_list_of_several_pages_is_complete(control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with open_transport(control_plane) as transport:
            writer = Writer(transport)
            count = PAGE_SIZE + 30
            await asyncio.gather(*(writer.create("Pod", "default", make_pod(f"p{number}")) for number in range(count)))
            listed = await list_all(transport, PODS)
            assert len(listed.items) == count
            assert listed.unreadable_count == 0
            pod = listed.items["default/p7"]
            assert pod.metadata.uid
            assert pod.spec.containers[0].name == "c"

    asyncio.run(main())


def test_a_reflector_survives_a_server_restart(control_plane: ControlPlane) -> None:
    async def main() -> None:
        mirror = ObjectMirror()
        async with open_transport(control_plane) as transport:
            writer = Writer(transport)
            await writer.create("Pod", "default", make_pod("first"))
            reflector = Reflector(transport, PODS, mirror, CLOCK)
            async with run_in_background(reflector.run()):
                await asyncio.wait_for(reflector.synced.wait(), TIMEOUT)
                assert set(mirror.objects) == {"first"}
                await writer.create("Pod", "default", make_pod("second"))
                await writer.patch("Pod", "default", "first", {"metadata": {"labels": {"a": "b"}}})
                await wait_until(lambda: set(mirror.objects) == {"first", "second"})
                await wait_until(lambda: mirror.objects["first"].metadata.labels == {"a": "b"})
                control_plane.stop_api_server()
                await wait_until(lambda: bool(reflector.last_error))
                # In this thread: the server is killed when the thread that started it ends.
                control_plane.start_api_server()
                await writer.delete("Pod", "default", "first", grace_period_seconds=0)
                await writer.create("Pod", "default", make_pod("third"))
                await wait_until(lambda: set(mirror.objects) == {"second", "third"})
                await wait_until(lambda: not reflector.last_error)

    asyncio.run(main())


def test_a_watch_from_a_compacted_version_lists_again_and_misses_nothing(control_plane: ControlPlane) -> None:
    """The watch cache of a new API server begins with the current version."""
    control_plane.stop_api_server()
    control_plane.start_api_server()

    async def main() -> None:
        mirror = ObjectMirror()
        async with open_transport(control_plane) as transport:
            writer = Writer(transport)
            await writer.create("Pod", "default", make_pod("gone"))
            await writer.create("Pod", "default", make_pod("stays"))
            reflector = Reflector(transport, PODS, mirror, CLOCK)
            async with run_in_background(reflector.run()):
                await asyncio.wait_for(reflector.synced.wait(), TIMEOUT)
            reflector.resource_version = "1"
            await writer.delete("Pod", "default", "gone", grace_period_seconds=0)
            await writer.create("Pod", "default", make_pod("new"))
            async with run_in_background(reflector.run()):
                await wait_until(lambda: set(mirror.objects) == {"stays", "new"})
            assert (reflector.counts.failures, mirror.inferred) == (1, 1)

    asyncio.run(main())


def test_a_watch_that_times_out_is_resumed_without_a_list(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extender.client.watch.WATCH_TIMEOUT_RANGE", (2.0, 2.0))

    async def main() -> None:
        mirror = ObjectMirror()
        async with open_transport(control_plane) as transport:
            reflector = Reflector(transport, ListWatch(Node, ENDPOINTS["Node"]), mirror, CLOCK)
            async with run_in_background(reflector.run()):
                await wait_until(lambda: reflector.counts.watches >= 3)
                await Writer(transport).create("Node", "", make_node("n"))
                await wait_until(lambda: set(mirror.objects) == {"n"})
            assert (reflector.counts.lists, reflector.counts.failures) == (1, 0)

    asyncio.run(main())


def test_a_pod_is_bound_once_and_only_with_its_uid(control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with open_transport(control_plane) as admin, open_transport(control_plane, SCHEDULER) as transport:
            created = decode(await Writer(admin).create("Pod", "default", make_pod("a")), Pod)
            writer = Writer(transport)
            uid = created.metadata.uid
            assert (
                await writer.bind("default", "a", make_binding("default", "a", "other-uid", "n1"))
                is BindOutcome.POD_REPLACED
            )
            assert await writer.bind("default", "a", make_binding("default", "a", uid, "n1")) is BindOutcome.BOUND
            assert await writer.bind("default", "a", make_binding("default", "a", uid, "n1")) is BindOutcome.BOUND
            assert (
                await writer.bind("default", "a", make_binding("default", "a", uid, "n2")) is BindOutcome.ON_OTHER_NODE
            )
            assert (
                await writer.bind("default", "missing", make_binding("default", "missing", uid, "n1"))
                is BindOutcome.POD_GONE
            )
            gated = make_pod("gated")
            gated["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
            gated_pod = decode(await Writer(admin).create("Pod", "default", gated), Pod)
            with pytest.raises(ConflictError):
                await writer.bind("default", "gated", make_binding("default", "gated", gated_pod.metadata.uid, "n1"))

    asyncio.run(main())


def test_a_status_patch_and_a_deletion_change_only_the_pod_with_the_uid(control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with open_transport(control_plane) as transport:
            writer = Writer(transport)
            created = decode(await writer.create("Pod", "default", make_pod("a")), Pod)
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
            patch = {"metadata": {"uid": created.metadata.uid}, "status": {"conditions": [condition]}}
            await writer.patch("Pod", "default", "a", patch, options=WriteOptions(subresource="status"))
            current = decode(await writer.get("Pod", "default", "a"), Pod)
            assert [(entry.type, entry.message) for entry in current.status.conditions] == [("PodScheduled", "no room")]
            with pytest.raises(ApiError, match="field is immutable"):
                await writer.patch(
                    "Pod",
                    "default",
                    "a",
                    {**patch, "metadata": {"uid": "x"}},
                    options=WriteOptions(subresource="status"),
                )
            with pytest.raises(ConflictError):
                await writer.delete("Pod", "default", "a", uid="x")
            await writer.delete("Pod", "default", "a", uid=created.metadata.uid)

    asyncio.run(main())


def test_forbidden_requests_and_unknown_tokens_raise_errors(control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with open_transport(control_plane, SCHEDULER) as transport:
            with pytest.raises(ForbiddenError, match='User "system:kube-scheduler" cannot create resource "pods"'):
                await Writer(transport).create("Pod", "default", make_pod("a"))
        file = control_plane.write_kubeconfig(SCHEDULER)
        file.write_text(file.read_text().replace(control_plane.token(SCHEDULER), "unknown"))
        credentials = Credentials(CredentialSource(str(file)), CLOCK)
        transport = Transport(credentials, ClientConnection(), "extender/test")
        with pytest.raises(UnauthorizedError):
            await transport.call(Request("GET", "/api/v1/pods"))
        await transport.close()

    asyncio.run(main())


def test_two_candidates_elect_a_leader_with_the_scheduler_s_permissions(control_plane: ControlPlane) -> None:
    async def main() -> None:
        settings = LeaderElection(lease_duration=3.0, renew_deadline=2.0, retry_period=0.5)
        async with (
            open_transport(control_plane, SCHEDULER) as transport,
            open_transport(control_plane, SCHEDULER) as other,
        ):
            electors = [
                LeaderElector(Election(settings, name), Writer(transport_), CLOCK, random.Random(name).random)
                for name, transport_ in (("one", transport), ("two", other))
            ]
            one, two = electors
            await asyncio.wait_for(one.acquire(), TIMEOUT)
            async with run_in_background(two.acquire()):
                async with run_in_background(one.renew()):
                    for _ in range(40):
                        assert (one.may_act(), two.may_act()) == (True, False)
                        await asyncio.sleep(0.1)
                await wait_until(two.may_act)
                assert not one.may_act()
            assert await two.release()
            lease = json.loads(await Writer(transport).get("Lease", "kube-system", "kube-scheduler"))
            assert lease["spec"].get("holderIdentity", "") == ""
            assert lease["spec"]["leaseTransitions"] == 1
            await asyncio.wait_for(one.acquire(), TIMEOUT)
            assert await one.release()

    asyncio.run(main())


def test_repeated_events_are_one_series(control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with open_transport(control_plane) as admin, open_transport(control_plane, SCHEDULER) as transport:
            created = decode(await Writer(admin).create("Pod", "default", make_pod("a")), Pod)
            recorder = EventBroadcaster(
                Writer(transport), EventSeriesCache("default-scheduler", "host"), CLOCK, random.Random(1).random
            )
            event = Event(
                make_object_reference(created, "v1", "Pod"), "Warning", "FailedScheduling", "Scheduling", "no room"
            )
            async with run_in_background(recorder.run()):
                for _ in range(3):
                    recorder.record(event)
                assert await recorder.drain(TIMEOUT)
            body = await admin.call(Request("GET", "/apis/events.k8s.io/v1/namespaces/default/events"))
            (pod,) = [
                item for item in json.loads(body)["items"] if item["regarding"].get("uid") == created.metadata.uid
            ]
            assert (pod["reason"], pod["series"]["count"]) == ("FailedScheduling", 2)

    asyncio.run(main())
