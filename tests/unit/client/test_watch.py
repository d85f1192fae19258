"""The events of a watch."""

import gc
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from time import process_time
from types import SimpleNamespace
from typing import Any

import pytest

from extender.api.kinds.devices import ResourceClaim
from extender.api.kinds.pod import Pod
from extender.client import watch as watch_module
from extender.client.errors import GoneError, InvalidResponseError, UnreachableError
from extender.client.listwatch import ListWatch
from extender.client.node_heartbeats import HeartbeatDetector
from extender.client.watch import EventType, WatchEvent, _decode_event, watch
from tests.unit.client.builders import (
    POD_LIST_WATCH,
    PODS,
    added,
    bookmark,
    error_event,
    modified,
)
from tests.unit.client.scripted_server import (
    CUT,
    SILENCE,
    Reply,
    ScriptedServer,
    Stream,
    no_jitter,
    open_transport,
)
from tests.unit.client.virtual_time import current_loop, run
from tests.unit.turn_clock import TurnClock


def watch_pods(
    *steps: Any, version: str = "5"
) -> tuple[list[WatchEvent[Pod]], Exception | None, dict[str, str], float]:
    """Return the events of a watch, its error, its parameters, and the seconds it took."""

    async def main() -> tuple[list[WatchEvent[Pod]], Exception | None, dict[str, str], float]:
        events: list[WatchEvent[Pod]] = []
        fault: Exception | None = None
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, Stream(steps))
            start_time = current_loop().time()
            try:
                async for batch in watch(transport, POD_LIST_WATCH, version, no_jitter):
                    events += batch
            except Exception as caught:  # noqa: BLE001  the test looks at it
                fault = caught
            return events, fault, dict(server.requests[0].query), current_loop().time() - start_time

    return run(main())


def test_a_watch_requests_bookmarks_and_a_timeout_below_a_minute() -> None:
    events, fault, parameters, _ = watch_pods(added("a", 6), bookmark(9))
    assert fault is None
    assert [(event.type, event.resource_version, event.key) for event in events] == [
        (EventType.ADDED, "6", "ns/a"),
        (EventType.BOOKMARK, "9", ""),
    ]
    assert parameters == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "40",
    }


def test_events_may_arrive_in_parts_and_several_at_once() -> None:
    data = b"".join(json.dumps(event).encode() + b"\n" for event in (added("a", 6), modified("a", 7), added("b", 8)))
    events, fault, _, _ = watch_pods(data[:10], 1, data[10:300], 1, data[300:])
    assert fault is None
    assert [event.resource_version for event in events] == ["6", "7", "8"]


def test_events_are_yielded_in_batches_of_8_and_other_tasks_run_after_a_turn_of_4_ms(turn_clock: TurnClock) -> None:
    data = b"".join(json.dumps(added(f"p{number}", number)).encode() + b"\n" for number in range(6, 46))

    async def main() -> list[int | str]:
        events: list[int | str] = []
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, Stream((data,)))
            async for batch in watch(transport, POD_LIST_WATCH, "5", no_jitter):
                if batch:
                    events.append(len(batch))
                    turn_clock.seconds += 0.003
                    current_loop().call_soon(events.append, "another")
        return events

    assert run(main()) == [8, 8, "another", "another", 8, 8, "another", "another", 8, "another"]


def test_the_next_events_are_decoded_in_a_later_turn_if_the_current_one_has_lasted_4_ms(turn_clock: TurnClock) -> None:
    data = b"".join(json.dumps(added(f"p{number}", number)).encode() + b"\n" for number in range(6, 16))
    order: list[str] = []

    def record_decoded(pod: Pod) -> tuple[Pod, None]:
        order.append(f"decode {pod.metadata.name}")
        return pod, None

    async def main() -> None:
        list_watch = replace(POD_LIST_WATCH, deduplicate=record_decoded)
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, Stream((data,)))
            async for batch in watch(transport, list_watch, "5", no_jitter):
                if batch:
                    order.append(f"deliver {len(batch)}")
                    turn_clock.seconds += 0.004
                    current_loop().call_soon(order.append, "other task")

    run(main())
    assert order[7:] == [
        "decode p13",
        "deliver 8",
        "other task",
        "decode p14",
        "decode p15",
        "deliver 2",
        "other task",
    ]


@pytest.mark.parametrize(
    ("heartbeat_detector", "first_events", "batches"),
    [
        (None, [bookmark(6), bookmark(7)], [0, 1, 1, 1, 1]),
        (HeartbeatDetector(), [bookmark(6), bookmark(7)], [0, 1, 3]),
        (HeartbeatDetector(), [modified("a", 6), modified("a", 7)], [0, 1, 1, 1, 1]),
        (HeartbeatDetector(), [modified("a", 6), bookmark(7)], [0, 1, 1, 2]),
    ],
    ids=["each at once", "heartbeats in batches", "each change at once", "a change, then heartbeats"],
)
def test_a_watch_with_heartbeats_yields_what_follows_a_heartbeat_within_twenty_milliseconds_together(
    heartbeat_detector: HeartbeatDetector | None, first_events: list[bytes], batches: list[int]
) -> None:
    steps = [first_events[0], 0.006, first_events[1], 0.006, modified("a", 8), 0.006, modified("a", 9)]

    async def main() -> list[int]:
        list_watch = replace(POD_LIST_WATCH, heartbeat_detector=heartbeat_detector)
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, Stream(steps))
            return [len(batch) async for batch in watch(transport, list_watch, "5", no_jitter)]

    assert run(main()) == batches


@pytest.mark.parametrize(
    "line",
    [
        b"{\n",
        b"null\n",
        b"garbage\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"RENAMED","object":{}}\n',
        b'{"type":"ADDED","object":[]}\n',
        b'{"type":"ADDED","object":{}}\n',
        b'{"type":"ADDED","object":null}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":7}}}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
    ],
    ids=[
        "half of it",
        "null",
        "no JSON",
        "no object",
        "an unknown type",
        "a list",
        "an empty object",
        "a null",
        "no object of ours",
        "no UTF-8",
        "too deep",
    ],
)
def test_fault_6_a_malformed_event_ends_the_watch_after_the_events_before_it(line: bytes) -> None:
    events, fault, _, _ = watch_pods(json.dumps(added("a", 6)).encode() + b"\n" + line, added("b", 7))
    assert isinstance(fault, InvalidResponseError)
    assert [event.resource_version for event in events] == ["6"]


def test_the_error_of_a_watch_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.client.transport.MAX_RESPONSE_BYTES", 100)

    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, Reply(500, body=b" " * 101))
            with pytest.raises(InvalidResponseError, match="GET /api/v1/pods: a response of more than 100 bytes"):
                await anext(watch(transport, POD_LIST_WATCH, "5", no_jitter))

    run(main())


def test_an_event_of_too_many_bytes_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watch_module.MAX_EVENT_BYTES == 64 * 2**20
    monkeypatch.setattr(watch_module, "MAX_EVENT_BYTES", 2**20)
    endless = [b'{"type":"ADDED","object":{"metadata":{"name":"', *[b"x" * 2**18] * 100]
    events, fault, _, _ = watch_pods(added("a", 6), *endless)
    assert isinstance(fault, InvalidResponseError)
    assert str(fault) == f"{PODS}: an event of more than 1048576 bytes"
    assert [event.resource_version for event in events] == ["6"]


def test_the_time_for_an_event_in_many_small_chunks_is_linear_in_its_length() -> None:
    line = json.dumps(added("a", 6)).encode() + b" " * 2**24 + b"\n"

    async def iterate_chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(line), 128):
            yield line[start : start + 128]

    class ChunkTransport:
        @asynccontextmanager
        async def stream(self, *_: Any) -> AsyncIterator[Any]:
            yield SimpleNamespace(content=SimpleNamespace(iter_any=iterate_chunks))

    async def main() -> list[WatchEvent[Pod]]:
        transport: Any = ChunkTransport()
        batches = watch(transport, POD_LIST_WATCH, "5", no_jitter)
        return [event async for batch in batches for event in batch]

    start_time = process_time()
    events = run(main())
    assert process_time() - start_time < 5
    assert [event.key for event in events] == ["ns/a"]


@pytest.mark.parametrize("end", [[], [CUT]], ids=["an orderly end", "a reset"])
def test_fault_6_a_connection_that_ends_within_an_event_is_broken_not_malformed(end: list[Any]) -> None:
    events, fault, _, _ = watch_pods(added("a", 6), b'{"type":"ADD', 1, *end)
    assert isinstance(fault, UnreachableError)
    assert [event.resource_version for event in events] == ["6"]


def test_fault_3_an_error_event_is_raised_after_the_events_before_it() -> None:
    lines = json.dumps(added("a", 6)) + "\n" + json.dumps(error_event(410, "Expired")) + "\n"
    events, fault, _, _ = watch_pods(lines.encode())
    assert isinstance(fault, GoneError)
    assert [event.resource_version for event in events] == ["6"]


def test_the_error_of_a_watch_leaves_no_garbage_with_the_read_data() -> None:
    """A watch is old when it ends, and full garbage collections are rare."""

    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(PODS, Stream([error_event(410, "Expired")]))
            with suppress(GoneError):
                async for _ in watch(transport, POD_LIST_WATCH, "5", no_jitter):
                    pass
            assert [item for item in gc.get_objects() if isinstance(item, GoneError)] == []

    gc.collect()
    gc.disable()
    try:
        run(main())
    finally:
        gc.enable()


def test_fault_16_a_silent_connection_is_found_within_a_minute() -> None:
    events, fault, _, seconds = watch_pods(10, added("a", 6), SILENCE)
    assert isinstance(fault, UnreachableError)
    assert [event.resource_version for event in events] == ["6"]
    assert seconds == pytest.approx(65.0, abs=0.5)


def test_an_object_that_cannot_be_decoded_has_only_a_key() -> None:
    bad = added("bad", 6)
    bad["object"]["spec"]["priority"] = "high"
    events, fault, _, _ = watch_pods(bad, added("a", 7))
    assert fault is None
    assert [(event.key, event.object is None) for event in events] == [("ns/bad", True), ("ns/a", False)]


def test_an_unknown_field_that_is_nested_deeply_is_ignored() -> None:
    event = added("deep", 6)
    event["object"]["metadata"]["managedFields"] = "levels"
    line = json.dumps(event).encode().replace(b'"levels"', b"[" * 5_000 + b"]" * 5_000) + b"\n"
    events, fault, _, _ = watch_pods(line, added("b", 8))
    assert fault is None
    assert [(event.resource_version, event.key, event.object is None) for event in events] == [
        ("6", "ns/deep", False),
        ("8", "ns/b", False),
    ]


def test_a_watch_goes_on_after_an_object_that_is_nested_too_deeply() -> None:
    event = added("deep", 6)
    event["object"]["spec"] = {"devices": {"config": [{"opaque": {"parameters": "levels"}}]}}
    line = json.dumps(event).encode().replace(b'"levels"', b"[" * 5_000 + b"]" * 5_000) + b"\n"
    list_watch = ListWatch(ResourceClaim, POD_LIST_WATCH.endpoint)
    assert _decode_event(line, list_watch) == WatchEvent(EventType.ADDED, "6", "ns/deep")
