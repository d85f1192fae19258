"""After random failures while the cluster changes, the reflector's store equals the server's objects."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from random import Random
from typing import Any, NoReturn

import pytest

from extender.api.kinds.pod import Pod
from extender.client.credentials import Credentials
from extender.client.errors import CredentialsError
from extender.client.reflector import Delta, Reflector
from tests.unit.client.builders import (
    POD_LIST_WATCH,
    PODS,
    bookmark,
    error_event,
    list_reply,
    make_pod,
    run_reflector,
    watch_event,
    watched_versions,
)
from tests.unit.client.scripted_server import (
    CUT,
    SILENCE,
    ReceivedRequest,
    Reply,
    ScriptedResponse,
    ScriptedServer,
    Stream,
    failure_reply,
    open_transport,
)
from tests.unit.client.virtual_time import current_loop, run

SEEDS = range(6)
FAULTY_SECONDS = 1200.0
HEALTHY_SECONDS = 180.0
PAGE_SIZE = 4


class Cluster:
    """Pods that are added, changed and deleted, and a server of them, which fails at random while *faulty*."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.version = 100
        self.oldest = 100
        self.pods: dict[str, dict[str, Any]] = {}
        self.history: list[tuple[int, dict[str, Any]]] = []
        self.faulty = True

    def change(self) -> None:
        """Add, change or delete one pod."""
        self.version += self.random.randint(1, 3)
        name = f"p{self.random.randrange(15)}"
        previous = self.pods.get(name)
        if previous is None:
            pod, type_ = make_pod(name, self.version, uid=f"{name}-{self.version}"), "ADDED"
            self.pods[name] = pod
        elif self.random.random() < 0.4:
            pod, type_ = (
                {**previous, "metadata": {**previous["metadata"], "resourceVersion": str(self.version)}},
                "DELETED",
            )
            del self.pods[name]
        else:
            pod, type_ = make_pod(name, self.version, uid=previous["metadata"]["uid"]), "MODIFIED"
            self.pods[name] = pod
        self.history.append((self.version, watch_event(type_, pod)))

    def __call__(self, request: ReceivedRequest) -> ScriptedResponse:
        reply = self._make_faulty_response()
        if reply is not None:
            return reply
        if "watch" not in request.query:
            return self._page(request.query.get("continue", ""))
        since = int(request.query["resourceVersion"])
        if since < self.oldest:
            return failure_reply(410, "Expired")
        return Stream(self._events(since, float(request.query["timeoutSeconds"])))  # type: ignore[arg-type]

    def _make_faulty_response(self) -> ScriptedResponse | None:
        if not self.faulty or self.random.random() < 0.7:
            return None
        retry_after = {"Retry-After": str(self.random.randint(0, 5))}
        replies: list[ScriptedResponse] = [
            CUT,
            SILENCE,
            failure_reply(429),
            failure_reply(429, headers=retry_after),
            failure_reply(500),
            failure_reply(403),
        ]
        replies += [
            failure_reply(503, headers=retry_after),
            failure_reply(410, "Expired"),
            Reply(body=b'{"items": [{"met'),
            Reply(502, b"x"),
        ]
        return self.random.choice(replies)

    def _page(self, token: str) -> ScriptedResponse:
        # A token is the list's version and position; it expires when the cluster changes.
        version, _, start = token.partition("/")
        if token and int(version) != self.version:
            return failure_reply(410, "Expired")
        pods = [self.pods[name] for name in sorted(self.pods)]
        page, rest = pods[int(start or 0) :][:PAGE_SIZE], pods[int(start or 0) + PAGE_SIZE :]
        return list_reply(self.version, *page, more=f"{self.version}/{int(start or 0) + PAGE_SIZE}" if rest else "")

    def _events(self, since: int, seconds: float) -> Iterator[Any]:
        end = current_loop().time() + seconds
        sent: list[Any] = []
        while current_loop().time() < end:
            for version, event in self.history:
                if version > since:
                    since = version
                    sent.append(event)
                    yield event
                    yield from self._make_faulty_steps(sent)
            if self.random.random() < 0.1:
                yield bookmark(since)
            yield 0.5

    def _make_faulty_steps(self, sent: Sequence[Any]) -> Iterator[Any]:
        if not self.faulty or self.random.random() < 0.8:
            return
        bad: list[list[Any]] = [[CUT], [SILENCE], [b'{"type":"MODIF', CUT], [b"{]\n"], [error_event(410, "Expired")]]
        bad += [[error_event(500)], [self.random.choice(sent)], [sent[-1], sent[0]], [b"\n"], [70.0]]
        yield from self.random.choice(bad)


class DeltaChecker:
    """Applies deltas to a store, and asserts that each follows from the previous state."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.delta_count = 0

    def __call__(self, changes: Sequence[Delta[Pod]]) -> None:
        for change in changes:
            self.delta_count += 1
            name = (change.new or change.old or Pod()).metadata.name
            previous = self.pods.get(name)
            if change.new is None:
                assert previous is not None
                assert change.old is not None
                assert change.old.metadata.uid == previous.metadata.uid
                del self.pods[name]
                continue
            assert change.old is previous
            if previous is not None:
                assert previous.metadata.uid == change.new.metadata.uid
                assert int(previous.metadata.resource_version) < int(change.new.metadata.resource_version)
            self.pods[name] = change.new


def versions(pods: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {name: (pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]) for name, pod in pods.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_after_random_failures_the_store_equals_the_server_s_objects(seed: int) -> None:
    async def main() -> None:
        random = Random(seed)
        cluster, checker = Cluster(random), DeltaChecker()
        async with ScriptedServer(cluster) as server, open_transport(server, jitter=random.random) as transport:
            reflector = Reflector(transport, POD_LIST_WATCH, checker, current_loop(), jitter=random.random)
            task = asyncio.create_task(reflector.run())
            end = current_loop().time() + FAULTY_SECONDS
            while current_loop().time() < end:
                await asyncio.sleep(random.random() * 4)
                cluster.change()
                if random.random() < 0.05:
                    cluster.oldest = cluster.version
            cluster.faulty = False
            await asyncio.sleep(HEALTHY_SECONDS)
            assert not task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            previous = {name: (pod.metadata.uid, pod.metadata.resource_version) for name, pod in checker.pods.items()}
            assert previous == versions(cluster.pods)
            assert (reflector.synced.is_set(), reflector.last_error) == (True, "")
            assert reflector.counts.failures > 5
            assert checker.delta_count > 100
            # Failures cause no flood of requests.
            assert len(server.requests) < 800

    run(main())


def test_a_list_follows_after_an_error_that_says_nothing_about_the_resource_version() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5), failure_reply(400, "BadRequest"), list_reply(9), Stream([SILENCE]))
            async with run_reflector(server) as (reflector, _):
                await asyncio.sleep(10)
                assert (watched_versions(server), reflector.counts.lists) == (["5", "9"], 2)

    run(main())


def test_after_a_list_it_takes_three_more_server_errors_until_the_next() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            error = failure_reply(500)
            server.respond(PODS, list_reply(5), *[error] * 3, list_reply(9), error, error, Stream([SILENCE]))
            async with run_reflector(server) as (reflector, _):
                await asyncio.sleep(60)
                assert watched_versions(server) == ["5", "5", "5", "9", "9", "9"]
                assert (reflector.counts.lists, reflector.last_error) == (2, "")

    run(main())


def test_an_object_of_a_list_that_cannot_be_decoded_is_left_out_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        bad = make_pod("b", 2)
        bad["spec"]["priority"] = "high"
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(5, make_pod("a", 1), bad), CUT, Stream([SILENCE]))
            async with run_reflector(server) as (reflector, recorded):
                await asyncio.sleep(10)
                assert recorded.deltas == ["+a@1"]
                assert reflector.counts.lists == 1

    run(main())
    assert [record.message for record in caplog.records].count("Objects cannot be read and are left out") == 1


def test_a_list_is_a_contact_that_ends_the_last_error() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, failure_reply(500), list_reply(5), Stream([SILENCE]))
            async with run_reflector(server) as (reflector, _):
                await reflector.synced.wait()
                assert (reflector.last_error, reflector.last_contact) == ("", current_loop().time())
                assert reflector.recovered_at == reflector.last_contact

    run(main())


def test_after_a_failure_the_list_is_read_again_if_the_resource_version_went_back() -> None:
    """etcd was restored from a backup: the pod b was created after it, and c changed at its old resource version."""

    async def main() -> None:
        async with ScriptedServer() as server:
            pods = make_pod("a", 1), make_pod("b", 18), make_pod("c", 9)
            server.respond(PODS, list_reply(20, *pods), Stream([1.5, CUT]))
            server.resource_version = "9"
            server.respond(PODS, list_reply(9, make_pod("a", 1), make_pod("c", 9, node="n1")), Stream([SILENCE]))
            async with run_reflector(server) as (reflector, recorded):
                await asyncio.sleep(5)
                assert recorded.deltas == ["+a@1", "+b@18", "+c@9", "-b@18?", "c@9>9"]
                assert watched_versions(server) == ["20", "9"]
                assert (reflector.last_error, reflector.counts.failures) == ("", 2)

    run(main())


@pytest.mark.parametrize(
    ("server_version", "warnings"),
    [
        pytest.param("", [], id="expired"),
        pytest.param(
            "9",
            ["the resource version went back from 20 to 9: etcd was restored from a backup"],
            id="restored from a backup",
        ),
    ],
)
def test_an_expired_resource_version_is_no_warning_but_one_that_went_back_is(
    caplog: pytest.LogCaptureFixture, server_version: str, warnings: list[str]
) -> None:
    """After a restart, the API server rejects the resource versions of most kinds."""

    async def main() -> None:
        async with ScriptedServer() as server:
            ending = Stream([1.5, CUT]) if server_version else failure_reply(410, "Expired")
            server.resource_version = server_version or server.resource_version
            server.respond(PODS, list_reply(20), ending, list_reply(21), Stream([SILENCE]))
            async with run_reflector(server):
                await asyncio.sleep(5)

    caplog.set_level(logging.WARNING)
    run(main())
    failures = [record.__dict__["err"] for record in caplog.records if record.message.startswith("Watching failed")]
    assert [failure for failure in failures if "ended early" not in failure] == warnings


def test_after_failing_credentials_the_watch_is_retried_as_soon_as_another_request_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An exec plugin failed for a minute. The back-off would go on for up to half a minute."""

    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(20), Stream([1.5]), Stream([SILENCE]))
            async with run_reflector(server) as (reflector, _):
                await reflector.synced.wait()
                with monkeypatch.context() as patch:
                    patch.setattr(Credentials, "get_current_config", fail)
                    await asyncio.sleep(60)
                    assert (reflector.last_error, watched_versions(server)) == ("pods: the plugin failed", ["20"])
                reflector.transport.recovery.record_success()
                await asyncio.sleep(0.1)
                assert (reflector.last_error, watched_versions(server)) == ("", ["20", "20"])

    async def fail(_: Credentials) -> NoReturn:
        raise CredentialsError("the plugin failed")

    run(main())


@pytest.mark.parametrize(
    ("code", "message", "headers"),
    [(429, "storage is (re)initializing", {"Retry-After": "1"}), (403, "roles not read yet", {})],
)
def test_after_an_outage_of_a_minute_the_rejections_of_a_starting_server_delay_the_watch_by_two_seconds_at_most(
    code: int, message: str, headers: dict[str, str]
) -> None:
    """The back-off alone would be half a minute. Another request succeeds two seconds after the server has started."""

    async def main() -> None:
        async with ScriptedServer() as server:
            start_time = current_loop().time()
            outage = [failure_reply(503)] * 7  # at 0, 0.8, 2.4, 5.6, 12, 24.8 and 50.4 seconds
            rejection = failure_reply(code, message=message, headers=headers)
            server.respond(PODS, *outage, list_reply(20), rejection, Stream([SILENCE]))
            async with run_reflector(server) as (reflector, _):
                await reflector.synced.wait()
                listed_at = current_loop().time() - start_time
                assert listed_at == pytest.approx(80.4)
                await asyncio.sleep(0.5)
                assert reflector.last_error == f"pods: {message}"
                await asyncio.sleep(1.5)
                reflector.transport.recovery.record_success()
                await asyncio.sleep(0.1)
                assert (reflector.last_error, watched_versions(server)) == ("", ["20", "20"])

    run(main())


def test_a_permission_that_is_missing_for_minutes_is_not_requested_again_early() -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            server.respond(PODS, list_reply(20), *[failure_reply(503)] * 2, *[failure_reply(403)] * 30)
            async with run_reflector(server) as (reflector, _):
                await asyncio.sleep(300)
                count = len(server.requests_to(PODS))
                reflector.transport.recovery.record_success()
                await asyncio.sleep(0.1)
                assert len(server.requests_to(PODS)) == count

    run(main())


def test_a_watch_that_is_rejected_again_and_again_backs_off_after_ten_retries() -> None:
    """Source: client-go/rest/with_retry.go, withRetry.IsNextRetry (1.36)."""

    async def main() -> None:
        async with ScriptedServer() as server:
            busy = failure_reply(429, headers={"Retry-After": "1"})
            server.respond(PODS, list_reply(20), *[busy] * 300)
            async with run_reflector(server):
                await asyncio.sleep(300)
            times = [request.at for request in server.requests_to(PODS)[1:]]
            waits = [round(later - earlier, 1) for earlier, later in pairwise(times)]
            back_offs = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
            assert waits[:77] == [wait for back_off in back_offs for wait in [*[1.0] * 10, back_off]]

    run(main())
