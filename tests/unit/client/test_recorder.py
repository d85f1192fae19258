"""Events: what is written, what counts as a repetition, and that recording never waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import UUID

import pytest

from extender.client.events import Event, Series, cut, reference
from extender.client.recorder import Recorder
from extender.client.writes import Writer
from extender.objects.codec import from_builtins
from extender.objects.meta import ObjectReference
from extender.objects.pod import Pod
from tests.unit.client.scripted import CUT, Answer, Asked, Reply, Server, failure, middle, talking
from tests.unit.client.virtual_time import here, run
from tests.unit.client.worlds import a_pod

EVENTS = "POST /apis/events.k8s.io/v1/namespaces/ns/events"
UNIQUE = UUID("12345678-1234-5678-1234-567812345678")


def made(asked: Asked) -> Answer:
    return Reply(201 if asked.method == "POST" else 200)


def an_event(name: str = "a", *, reason: str = "FailedScheduling", version: int = 1, note: str = "no room") -> Event:
    pod = from_builtins(a_pod(name, version), Pod)
    return Event(reference(pod, "v1", "Pod"), "Warning", reason, "Scheduling", note)


@asynccontextmanager
async def recording(server: Server, *, capacity: int = 100, qps: float = -1.0) -> AsyncIterator[Recorder]:
    async with talking(server, qps=qps, burst=1) as transport:
        recorder = Recorder(
            Writer(transport), Series("my-scheduler", "my-scheduler-host"), here(), middle, capacity, lambda: UNIQUE
        )
        task = asyncio.create_task(recorder.run())
        try:
            yield recorder
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def test_an_event_is_written_as_kube_scheduler_writes_it() -> None:
    async def main() -> None:
        async with Server(made) as server, recording(server) as recorder:
            recorder.record(an_event())
            await asyncio.sleep(1)
            (asked,) = server.of(EVENTS)
            assert asked.body == {
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


def test_the_first_repetition_makes_a_series_and_further_ones_only_count() -> None:
    async def main() -> None:
        async with Server(made) as server, recording(server) as recorder:
            for note in ("no room", "still no room", "never"):
                recorder.record(an_event(note=note))
                await asyncio.sleep(10)
            assert [asked.method for asked in server.asked] == ["POST", "PATCH"]
            patch = server.asked[1]
            assert patch.headers["content-type"] == "application/strategic-merge-patch+json"
            assert patch.body == {"series": {"count": 2, "lastObservedTime": "2026-09-21T14:30:10.000000Z"}}
            assert (recorder.recorded, recorder.written) == (3, 2)

    run(main())


@pytest.mark.parametrize(
    "other",
    [an_event("b"), an_event(reason="Other"), an_event(version=2)],
    ids=["another pod", "another reason", "the pod has changed"],
)
def test_what_differs_in_more_than_its_note_is_no_repetition(other: Event) -> None:
    async def main() -> None:
        async with Server(made) as server, recording(server) as recorder:
            recorder.record(an_event())
            recorder.record(other)
            await asyncio.sleep(1)
            assert [asked.method for asked in server.asked] == ["POST", "POST"]

    run(main())


def test_a_series_not_continued_for_six_minutes_is_told_to_its_end_and_forgotten() -> None:
    async def main() -> None:
        async with Server(made) as server, recording(server) as recorder:
            for _ in range(5):
                recorder.record(an_event())
            recorder.record(an_event("single"))
            await asyncio.sleep(300)
            assert len(recorder.series) == 2
            await asyncio.sleep(430)
            assert len(recorder.series) == 0
            assert server.asked[-1].body["series"]["count"] == 5
            recorder.record(an_event())
            await asyncio.sleep(1)
            assert server.asked[-1].method == "POST"

    run(main())


def test_a_series_that_goes_on_is_refreshed_every_half_hour() -> None:
    async def main() -> None:
        async with Server(made) as server, recording(server) as recorder:
            await asyncio.sleep(1)  # so that no event happens at the very moment of refreshing
            for _ in range(20):
                recorder.record(an_event())
                await asyncio.sleep(100)
            patches = [asked for asked in server.asked if asked.method == "PATCH"]
            assert [asked.body["series"]["count"] for asked in patches] == [2, 18]

    run(main())


def test_a_series_whose_event_the_server_has_dropped_is_made_whole() -> None:
    async def main() -> None:
        async with Server() as server, recording(server) as recorder:
            server.on(EVENTS, Reply(201), Reply(201))
            server.on("PATCH /apis/events.k8s.io/v1/namespaces/ns/events/a.18d75c6cf8981000", failure(404, "NotFound"))
            recorder.record(an_event())
            recorder.record(an_event())
            await asyncio.sleep(1)
            assert server.asked[-1].body["series"]["count"] == 2
            assert server.asked[-1].body["note"] == "no room"

    run(main())


def test_recording_never_waits_and_what_cannot_be_kept_is_dropped_and_counted() -> None:
    async def main() -> None:
        async with Server(made) as server, recording(server, capacity=10, qps=1.0) as recorder:
            began = here().time()
            for number in range(50):
                recorder.record(an_event(f"p{number}"))
            assert here().time() == began
            assert (recorder.waiting, recorder.dropped) == (10, 40)
            assert await recorder.drain(60)
            assert recorder.written == 10

    run(main())


def test_a_server_that_is_away_is_tried_again_and_a_refusal_is_not() -> None:
    async def main() -> None:
        async with Server() as server, recording(server) as recorder:
            await server.stop()
            recorder.record(an_event())
            await asyncio.sleep(5)
            await server.start()
            server.on(EVENTS, Reply(201))
            await asyncio.sleep(10)
            assert recorder.written == 1
            server.on(EVENTS, failure(403, "Forbidden"))
            recorder.record(an_event("b"))
            await asyncio.sleep(60)
            assert (recorder.written, recorder.failed, len(server.asked)) == (1, 1, 2)

    run(main())


def test_an_event_that_is_there_although_the_answer_was_lost_is_written() -> None:
    async def main() -> None:
        async with Server() as server, recording(server) as recorder:
            server.on(EVENTS, CUT, failure(409, "AlreadyExists"))
            recorder.record(an_event())
            await asyncio.sleep(30)
            assert (recorder.written, recorder.failed) == (1, 0)
            server.on(EVENTS, failure(409, "AlreadyExists"))
            recorder.record(an_event("b"))
            await asyncio.sleep(30)
            assert (recorder.written, recorder.failed) == (1, 1)

    run(main())


def test_fault_29_after_twelve_tries_an_event_is_given_up() -> None:
    async def main() -> None:
        async with Server() as server, recording(server) as recorder:
            await server.stop()
            recorder.record(an_event())
            await asyncio.sleep(109)
            assert recorder.failed == 0
            await asyncio.sleep(5)
            assert (recorder.failed, recorder.waiting) == (1, 0)
            await server.start()

    run(main())


def test_an_object_whose_name_no_event_can_bear_gets_another() -> None:
    series = Series("c", "i")
    odd = Event(ObjectReference(kind="Thing", name="Not:A:Subdomain"), "Normal", "R", "A", "n")
    writing = series.happened(odd, 0.0, 1, UNIQUE)
    assert writing is not None
    assert (writing.namespace, writing.name) == ("default", "12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("note", "kept"),
    [("x" * 1024, "x" * 1024), ("x" * 1025, "x" * 1020 + " ..."), ("\u00e4" * 600, "\u00e4" * 510 + " ...")],
    ids=["it fits", "one too many", "letters of two bytes are not cut in half"],
)
def test_a_note_has_at_most_1024_bytes(note: str, kept: str) -> None:
    assert cut(note) == kept


def test_events_of_bindings_let_others_pass_but_not_for_longer_than_five_seconds() -> None:
    async def main() -> None:
        async with Server(made) as server, recording(server) as recorder:
            urgent = True
            recorder.yields = lambda: urgent
            recorder.record(an_event(reason="Scheduled"))
            await asyncio.sleep(4.9)
            assert server.of(EVENTS) == []
            await asyncio.sleep(0.2)
            assert len(server.of(EVENTS)) == 1
            recorder.record(an_event("b", reason="Scheduled"))
            await asyncio.sleep(1)
            assert len(server.of(EVENTS)) == 1
            urgent = False
            await asyncio.sleep(0.1)
            assert len(server.of(EVENTS)) == 2

    run(main())


def test_events_that_tell_of_more_than_a_binding_overtake_those_that_wait() -> None:
    async def main() -> None:
        async with Server(made) as server, recording(server) as recorder:
            recorder.yields = lambda: True
            for number in range(50):  # some for each sender
                recorder.record(an_event(f"p{number}", reason="Scheduled"))
            await asyncio.sleep(1)
            recorder.record(an_event("victim", reason="Preempted"))
            await asyncio.sleep(0.1)
            assert [asked.body["reason"] for asked in server.of(EVENTS)] == ["Preempted"]

    run(main())


def test_events_that_let_others_pass_are_sent_at_once_when_the_process_ends() -> None:
    async def main() -> None:
        async with Server(made) as server, recording(server) as recorder:
            recorder.yields = lambda: True
            recorder.record(an_event(reason="Scheduled"))
            await asyncio.sleep(1)
            assert await recorder.drain(1)
            assert len(server.of(EVENTS)) == 1

    run(main())
