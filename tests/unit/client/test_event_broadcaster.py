"""Events: their writes and series, and that recording never waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import UUID

import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.meta import ObjectReference
from extender.api.kinds.pod import Pod
from extender.client import event_broadcaster
from extender.client.event_broadcaster import EventBroadcaster
from extender.client.events import Event, EventSeriesCache, make_object_reference, truncate_note
from extender.client.writer import Writer
from tests.unit.client.builders import make_pod
from tests.unit.client.scripted_server import (
    CUT,
    ReceivedRequest,
    Reply,
    ScriptedResponse,
    ScriptedServer,
    Stream,
    failure_reply,
    no_jitter,
    open_transport,
)
from tests.unit.client.virtual_time import current_loop, run

EVENTS = "POST /apis/events.k8s.io/v1/namespaces/ns/events"
UNIQUE = UUID("12345678-1234-5678-1234-567812345678")


def reply_with_body(request: ReceivedRequest) -> ScriptedResponse:
    return Reply(201 if request.method == "POST" else 200)


def make_event(name: str = "a", *, reason: str = "FailedScheduling", version: int = 1, note: str = "no room") -> Event:
    pod = from_builtins(make_pod(name, version), Pod)
    return Event(make_object_reference(pod, "v1", "Pod"), "Warning", reason, "Scheduling", note)


@asynccontextmanager
async def run_broadcaster(
    server: ScriptedServer, *, capacity: int = 100, qps: float = -1.0
) -> AsyncIterator[EventBroadcaster]:
    async with open_transport(server, qps=qps, burst=1) as transport:
        recorder = EventBroadcaster(
            Writer(transport),
            EventSeriesCache("my-scheduler", "my-scheduler-host"),
            current_loop(),
            no_jitter,
            capacity,
            lambda: UNIQUE,
        )
        task = asyncio.create_task(recorder.run())
        try:
            yield recorder
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def count_failures(caplog: pytest.LogCaptureFixture) -> int:
    return [record.message for record in caplog.records].count("An event could not be written")


def test_an_event_is_written_as_kube_scheduler_writes_it() -> None:
    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server) as recorder:
            recorder.record(make_event())
            await asyncio.sleep(1)
            (request,) = server.requests_to(EVENTS)
            assert request.body == {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": "a.18d75c6cf8981000", "namespace": "ns"},
                "eventTime": "2026-09-21T14:30:00.000000Z",
                "reportingController": "my-scheduler",
                "reportingInstance": "my-scheduler-host",
                "action": "Scheduling",
                "reason": "FailedScheduling",
                "regarding": {
                    "kind": "Pod",
                    "namespace": "ns",
                    "name": "a",
                    "uid": "uid-a",
                    "apiVersion": "v1",
                    "resourceVersion": "1",
                },
                "note": "no room",
                "type": "Warning",
            }

    run(main())


def test_after_the_clock_was_set_back_an_event_has_the_new_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server) as recorder:
            times = iter((1_800_000_000.0, 1_800_000_000.0, 1_799_996_400.0, 1_799_996_400.0))
            monkeypatch.setattr(current_loop(), "now", lambda: next(times), raising=False)
            for name in ("a", "b", "c", "d"):
                recorder.record(make_event(name))
            await asyncio.sleep(1)
            event_times = {
                each.body["regarding"]["name"]: each.body["eventTime"] for each in server.requests_to(EVENTS)
            }
            assert event_times == {
                "a": "2027-01-15T08:00:00.000000Z",
                "b": "2027-01-15T08:00:00.000000Z",
                "c": "2027-01-15T07:00:00.000000Z",
                "d": "2027-01-15T07:00:00.000000Z",
            }
            names = {each.body["metadata"]["name"].partition(".")[2] for each in server.requests_to(EVENTS)}
            assert len(names) == 4

    run(main())


def test_the_first_repetition_makes_a_series_and_further_ones_only_count() -> None:
    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server) as recorder:
            for note in ("no room", "still no room", "never"):
                recorder.record(make_event(note=note))
                await asyncio.sleep(10)
            assert [request.method for request in server.requests] == ["POST", "PATCH"]
            patch = server.requests[1]
            assert patch.headers["content-type"] == "application/strategic-merge-patch+json"
            assert patch.body == {"series": {"count": 2, "lastObservedTime": "2026-09-21T14:30:10.000000Z"}}

    run(main())


@pytest.mark.parametrize(
    "other",
    [make_event("b"), make_event(reason="Other"), make_event(version=2)],
    ids=["another pod", "another reason", "the pod has changed"],
)
def test_an_event_that_differs_in_more_than_its_note_is_no_repetition(other: Event) -> None:
    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server) as recorder:
            recorder.record(make_event())
            recorder.record(other)
            await asyncio.sleep(1)
            assert [request.method for request in server.requests] == ["POST", "POST"]

    run(main())


def test_a_series_without_events_for_six_minutes_is_finished_and_removed() -> None:
    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server) as recorder:
            for _ in range(5):
                recorder.record(make_event())
            recorder.record(make_event("single"))
            await asyncio.sleep(300)
            assert len(recorder.series_cache) == 2
            await asyncio.sleep(430)
            assert len(recorder.series_cache) == 0
            assert server.requests[-1].body["series"]["count"] == 5
            recorder.record(make_event())
            await asyncio.sleep(1)
            assert server.requests[-1].method == "POST"

    run(main())


def test_a_continuing_series_is_refreshed_every_half_hour() -> None:
    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server) as recorder:
            await asyncio.sleep(1)  # so that no event happens at the very moment of refreshing
            for _ in range(20):
                recorder.record(make_event())
                await asyncio.sleep(100)
            patches = [request for request in server.requests if request.method == "PATCH"]
            assert [request.body["series"]["count"] for request in patches] == [2, 18]

    run(main())


def test_a_series_with_an_expired_event_is_created_again() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, run_broadcaster(server) as recorder:
            server.respond(EVENTS, Reply(201), Reply(201))
            server.respond(
                "PATCH /apis/events.k8s.io/v1/namespaces/ns/events/a.18d75c6cf8981000", failure_reply(404, "NotFound")
            )
            recorder.record(make_event())
            recorder.record(make_event())
            await asyncio.sleep(1)
            assert server.requests[-1].body["series"]["count"] == 2
            assert server.requests[-1].body["note"] == "no room"

    run(main())


def test_recording_never_waits_and_events_beyond_the_capacity_are_dropped() -> None:
    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server, capacity=10, qps=1.0) as recorder:
            start_time = current_loop().time()
            for number in range(50):
                recorder.record(make_event(f"p{number}"))
            assert current_loop().time() == start_time
            assert recorder.pending_count == 10
            assert await recorder.drain(60)
            assert len(server.requests) == 10

    run(main())


def test_refreshed_series_beyond_the_capacity_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_broadcaster, "REFRESH_SECONDS", 100.0)

    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server, capacity=10) as recorder:
            for number in range(30):
                recorder.record(make_event(f"p{number}"))
                recorder.record(make_event(f"p{number}"))
                await asyncio.sleep(1)
            assert len(server.requests) == 60
            await asyncio.sleep(100)
            assert len(server.requests) == 70

    run(main())


def test_an_unreachable_server_is_retried_and_a_failure_status_is_not() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, run_broadcaster(server) as recorder:
            await server.stop()
            recorder.record(make_event())
            await asyncio.sleep(5)
            await server.start()
            server.respond(EVENTS, Reply(201))
            await asyncio.sleep(10)
            assert len(server.requests) == 1
            server.respond(EVENTS, failure_reply(403, "Forbidden"))
            recorder.record(make_event("b"))
            await asyncio.sleep(60)
            assert len(server.requests) == 2

    run(main())


def test_an_event_that_exists_although_the_response_was_lost_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with ScriptedServer() as server, run_broadcaster(server) as recorder:
            server.respond(EVENTS, CUT, failure_reply(409, "AlreadyExists"))
            recorder.record(make_event())
            await asyncio.sleep(30)
            assert (len(server.requests), count_failures(caplog)) == (2, 0)
            server.respond(EVENTS, failure_reply(409, "AlreadyExists"))
            recorder.record(make_event("b"))
            await asyncio.sleep(30)
            assert (len(server.requests), count_failures(caplog)) == (3, 1)

    run(main())


def test_fault_29_an_event_is_given_up_after_twelve_attempts(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with ScriptedServer() as server, run_broadcaster(server) as recorder:
            await server.stop()
            recorder.record(make_event())
            await asyncio.sleep(109)
            assert count_failures(caplog) == 0
            await asyncio.sleep(5)
            assert (count_failures(caplog), recorder.pending_count) == (1, 0)
            await server.start()

    run(main())


def test_an_event_gets_a_uuid_if_its_object_s_name_is_invalid_for_events() -> None:
    series = EventSeriesCache("c", "i")
    odd = Event(ObjectReference(kind="Thing", name="Not:A:Subdomain"), "Normal", "R", "A", "n")
    write = series.observe(odd, 0.0, 1, UNIQUE)
    assert write is not None
    assert (write.namespace, write.name) == ("default", "12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("note", "truncated"),
    [("x" * 1024, "x" * 1024), ("x" * 1025, "x" * 1020 + " ..."), ("\u00e4" * 600, "\u00e4" * 510 + " ...")],
    ids=["it fits", "one too many", "letters of two bytes are not cut in half"],
)
def test_a_note_has_at_most_1024_bytes(note: str, truncated: str) -> None:
    assert truncate_note(note) == truncated


def test_events_of_bindings_are_deferred_for_five_seconds_at_most() -> None:
    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server) as recorder:
            urgent = True
            recorder.has_bindings_in_flight = lambda: urgent
            recorder.record(make_event(reason="Scheduled"))
            await asyncio.sleep(4.9)
            assert server.requests_to(EVENTS) == []
            await asyncio.sleep(0.2)
            assert len(server.requests_to(EVENTS)) == 1
            recorder.record(make_event("b", reason="Scheduled"))
            await asyncio.sleep(1)
            assert len(server.requests_to(EVENTS)) == 1
            urgent = False
            await asyncio.sleep(0.1)
            assert len(server.requests_to(EVENTS)) == 2

    run(main())


def test_other_events_overtake_deferred_ones() -> None:
    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server) as recorder:
            recorder.has_bindings_in_flight = lambda: True
            for number in range(50):  # some for each sender
                recorder.record(make_event(f"p{number}", reason="Scheduled"))
            await asyncio.sleep(1)
            recorder.record(make_event("victim", reason="Preempted"))
            await asyncio.sleep(0.1)
            assert [request.body["reason"] for request in server.requests_to(EVENTS)] == ["Preempted"]

    run(main())


def test_pending_events_do_not_accumulate_while_a_slow_server_keeps_up_with_the_bindings() -> None:
    """The server takes 0.4 s per event, and forty pods per second are bound: sixteen requests at a time are needed."""

    async def main() -> None:
        def respond_slowly(_: ReceivedRequest) -> ScriptedResponse:
            return Stream([0.4, {}])

        async with ScriptedServer(respond_slowly) as server, run_broadcaster(server, capacity=5000) as recorder:
            recorder.has_bindings_in_flight = lambda: True
            for number in range(40 * 20):
                recorder.record(make_event(f"p{number}", reason="Scheduled"))
                await asyncio.sleep(0.025)
            assert recorder.pending_count < 240  # those of 5 s are deferred, and sixteen are in flight

    run(main())


def test_deferred_events_are_sent_at_once_while_draining() -> None:
    async def main() -> None:
        async with ScriptedServer(reply_with_body) as server, run_broadcaster(server) as recorder:
            recorder.has_bindings_in_flight = lambda: True
            recorder.record(make_event(reason="Scheduled"))
            await asyncio.sleep(1)
            assert await recorder.drain(1)
            assert len(server.requests_to(EVENTS)) == 1

    run(main())
