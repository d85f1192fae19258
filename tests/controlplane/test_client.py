"""Our client against a real API server: lists, watches that survive it, bindings, the lease, events."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from extender.basics.clock import SystemClock
from extender.client.credentials import Credentials
from extender.client.elector import Elector
from extender.client.endpoints import ENDPOINTS
from extender.client.errors import ApiError, ConflictError, ForbiddenError, NotFoundError, UnauthorizedError
from extender.client.events import Event, Series, reference
from extender.client.kubeconfig import Place
from extender.client.lease import Election
from extender.client.listwatch import PAGE, Source, list_all
from extender.client.recorder import Recorder
from extender.client.reflector import ObjectChange, Reflector
from extender.client.transport import Request, Transport
from extender.client.writes import Bound, Writer
from extender.config.model import ClientConnection, LeaderElection
from extender.objects.codec import decode
from extender.objects.meta import KubernetesObject
from extender.objects.node import Node
from extender.objects.pod import Pod
from tests.controlplane.plane import ADMIN, SCHEDULER, ControlPlane

PODS = Source(Pod, ENDPOINTS["Pod"], "default")
CLOCK = SystemClock()
PATIENCE = 60.0


@asynccontextmanager
async def talking(plane: ControlPlane, user: str = ADMIN) -> AsyncIterator[Transport]:
    """A transport with the kubeconfig of *user*."""
    credentials = Credentials(Place(str(plane.kubeconfig(user))), CLOCK)
    transport = Transport(credentials, ClientConnection(qps=-1), "extender/test", CLOCK)
    try:
        yield transport
    finally:
        await transport.close()


@pytest.fixture(autouse=True)
def _tidy(control_plane: ControlPlane) -> Iterator[None]:
    """Takes away what a test made; there is no kubelet to say that a pod has ended."""
    yield

    async def main() -> None:
        now = json.dumps({"gracePeriodSeconds": 0}).encode()
        async with talking(control_plane) as transport:
            for path in ("/api/v1/namespaces/default/pods", "/api/v1/nodes"):
                await transport.call(Request("DELETE", path, body=now))
            with suppress(NotFoundError):
                await Writer(transport).delete("Lease", "kube-system", "kube-scheduler")

    asyncio.run(main())


def pod(name: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "none"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}


def node(name: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


async def until(holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for what other processes do."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def beside(*jobs: Coroutine[Any, Any, Any]) -> AsyncIterator[None]:
    """Jobs that run until the block ends."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


class Mirror:
    """What a reflector told, put together."""

    def __init__(self) -> None:
        self.objects: dict[str, KubernetesObject] = {}
        self.inferred = 0

    def __call__(self, changes: Sequence[ObjectChange[Any]]) -> None:
        for change in changes:
            self.inferred += change.inferred
            if change.new is None:
                assert change.old is not None
                del self.objects[change.old.metadata.name]
            else:
                known = self.objects.get(change.new.metadata.name)
                assert known is change.old
                self.objects[change.new.metadata.name] = change.new


def test_a_list_of_more_than_a_page_is_whole_and_in_one_state(control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with talking(control_plane) as transport:
            writer = Writer(transport)
            count = PAGE + 30
            await asyncio.gather(*(writer.create("Pod", "default", pod(f"p{number}")) for number in range(count)))
            listed = await list_all(transport, PODS)
            assert len(listed.items) == count
            assert listed.unreadable == 0
            found = listed.items["default/p7"]
            assert found.metadata.uid
            assert found.spec.containers[0].name == "c"

    asyncio.run(main())


def test_a_reflector_follows_the_server_through_a_restart(control_plane: ControlPlane) -> None:
    async def main() -> None:
        mirror = Mirror()
        async with talking(control_plane) as transport:
            writer = Writer(transport)
            await writer.create("Pod", "default", pod("before"))
            reflector = Reflector(transport, PODS, mirror, CLOCK)
            async with beside(reflector.run()):
                await asyncio.wait_for(reflector.synced.wait(), PATIENCE)
                assert set(mirror.objects) == {"before"}
                await writer.create("Pod", "default", pod("while"))
                await writer.patch("Pod", "default", "before", {"metadata": {"labels": {"a": "b"}}})
                await until(lambda: set(mirror.objects) == {"before", "while"})
                await until(lambda: mirror.objects["before"].metadata.labels == {"a": "b"})
                control_plane.stop_api_server()
                await until(lambda: bool(reflector.trouble))
                # In this thread: the server ends with the thread that started it.
                control_plane.start_api_server()
                await writer.delete("Pod", "default", "before", grace_seconds=0)
                await writer.create("Pod", "default", pod("after"))
                await until(lambda: set(mirror.objects) == {"while", "after"})
                await until(lambda: not reflector.trouble)

    asyncio.run(main())


def test_a_watch_of_a_version_compacted_away_lists_again_and_misses_nothing(control_plane: ControlPlane) -> None:
    async def main() -> None:
        mirror = Mirror()
        async with talking(control_plane) as transport:
            writer = Writer(transport)
            await writer.create("Pod", "default", pod("gone"))
            await writer.create("Pod", "default", pod("stays"))
            reflector = Reflector(transport, PODS, mirror, CLOCK)
            async with beside(reflector.run()):
                await asyncio.wait_for(reflector.synced.wait(), PATIENCE)
            reflector._version = "1"
            await writer.delete("Pod", "default", "gone", grace_seconds=0)
            await writer.create("Pod", "default", pod("new"))
            async with beside(reflector.run()):
                await until(lambda: set(mirror.objects) == {"stays", "new"})
            assert (reflector.counts.gone, mirror.inferred) == (1, 1)

    asyncio.run(main())


def test_a_watch_asked_to_end_ends_and_goes_on_without_a_list(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extender.client.listwatch.WATCH_SECONDS", (2.0, 2.0))

    async def main() -> None:
        mirror = Mirror()
        async with talking(control_plane) as transport:
            reflector = Reflector(transport, Source(Node, ENDPOINTS["Node"]), mirror, CLOCK)
            async with beside(reflector.run()):
                await until(lambda: reflector.counts.watches >= 3)
                await Writer(transport).create("Node", "", node("n"))
                await until(lambda: set(mirror.objects) == {"n"})
            assert (reflector.counts.lists, reflector.counts.failures) == (1, 0)

    asyncio.run(main())


def test_a_pod_is_bound_once_and_only_the_one_with_that_uid(control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with talking(control_plane) as admin, talking(control_plane, SCHEDULER) as transport:
            made = decode(await Writer(admin).create("Pod", "default", pod("a")), Pod)
            writer = Writer(transport)
            uid = made.metadata.uid
            assert await writer.bind("default", "a", "other-uid", "n1") is Bound.REPLACED
            assert await writer.bind("default", "a", uid, "n1") is Bound.HERE
            assert await writer.bind("default", "a", uid, "n1") is Bound.HERE
            assert await writer.bind("default", "a", uid, "n2") is Bound.ELSEWHERE
            assert await writer.bind("default", "missing", uid, "n1") is Bound.GONE
            gated = pod("gated")
            gated["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
            waits = decode(await Writer(admin).create("Pod", "default", gated), Pod)
            with pytest.raises(ConflictError):
                await writer.bind("default", "gated", waits.metadata.uid, "n1")

    asyncio.run(main())


def test_a_status_patch_and_a_deletion_hit_only_the_pod_they_mean(control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with talking(control_plane) as transport:
            writer = Writer(transport)
            made = decode(await writer.create("Pod", "default", pod("a")), Pod)
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
            right = {"metadata": {"uid": made.metadata.uid}, "status": {"conditions": [condition]}}
            await writer.patch("Pod", "default", "a", right, subresource="status")
            now = decode(await writer.get("Pod", "default", "a"), Pod)
            assert [(entry.type, entry.message) for entry in now.status.conditions] == [("PodScheduled", "no room")]
            with pytest.raises(ApiError, match="field is immutable"):
                await writer.patch("Pod", "default", "a", {**right, "metadata": {"uid": "x"}}, subresource="status")
            with pytest.raises(ConflictError):
                await writer.delete("Pod", "default", "a", uid="x")
            await writer.delete("Pod", "default", "a", uid=made.metadata.uid)

    asyncio.run(main())


def test_what_the_scheduler_may_not_do_and_who_is_unknown(control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with talking(control_plane, SCHEDULER) as transport:
            with pytest.raises(ForbiddenError, match='User "system:kube-scheduler" cannot create resource "pods"'):
                await Writer(transport).create("Pod", "default", pod("a"))
        file = control_plane.kubeconfig(SCHEDULER)
        file.write_text(file.read_text().replace(control_plane.token(SCHEDULER), "unknown"))
        credentials = Credentials(Place(str(file)), CLOCK)
        transport = Transport(credentials, ClientConnection(), "extender/test", CLOCK)
        with pytest.raises(UnauthorizedError):
            await transport.call(Request("GET", "/api/v1/pods"))
        await transport.close()

    asyncio.run(main())


def test_two_candidates_share_a_lease_with_the_scheduler_s_own_rights(control_plane: ControlPlane) -> None:
    async def main() -> None:
        settings = LeaderElection(lease_duration=3.0, renew_deadline=2.0, retry_period=0.5)
        async with talking(control_plane, SCHEDULER) as transport, talking(control_plane, SCHEDULER) as other:
            electors = [
                Elector(Election(settings, name), Writer(way), CLOCK, random.Random(name).random)
                for name, way in (("one", transport), ("two", other))
            ]
            one, two = electors
            await asyncio.wait_for(one.acquire(), PATIENCE)
            async with beside(two.acquire()):
                async with beside(one.hold()):
                    for _ in range(40):
                        assert (one.may_act(), two.may_act()) == (True, False)
                        await asyncio.sleep(0.1)
                await until(two.may_act)
                assert not one.may_act()
            assert await two.release()
            lease = json.loads(await Writer(transport).get("Lease", "kube-system", "kube-scheduler"))
            assert lease["spec"].get("holderIdentity", "") == ""
            assert lease["spec"]["leaseTransitions"] == 1
            await asyncio.wait_for(one.acquire(), PATIENCE)
            assert await one.release()

    asyncio.run(main())


def test_an_event_and_its_repetitions_are_one_object(control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with talking(control_plane) as admin, talking(control_plane, SCHEDULER) as transport:
            made = decode(await Writer(admin).create("Pod", "default", pod("a")), Pod)
            recorder = Recorder(Writer(transport), Series("default-scheduler", "host"), CLOCK, random.Random(1).random)
            event = Event(reference(made, "v1", "Pod"), "Warning", "FailedScheduling", "Scheduling", "no room")
            async with beside(recorder.run()):
                for _ in range(3):
                    recorder.record(event)
                assert await recorder.drain(PATIENCE)
            assert (recorder.written, recorder.failed) == (2, 0)
            body = await admin.call(Request("GET", "/apis/events.k8s.io/v1/namespaces/default/events"))
            (found,) = [item for item in json.loads(body)["items"] if item["regarding"].get("uid") == made.metadata.uid]
            assert (found["reason"], found["series"]["count"]) == ("FailedScheduling", 2)

    asyncio.run(main())
