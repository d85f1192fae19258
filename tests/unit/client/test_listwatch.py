"""Lists in pages, and the lines of a watch."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from extender.client.endpoints import ENDPOINTS, Endpoint
from extender.client.errors import AnswerError, GoneError, UnreachableError
from extender.client.heartbeats import Heartbeats
from extender.client.listwatch import Event, EventType, Listed, Source, list_all, watch
from extender.client.transport import Request, Transport
from extender.objects.node import Node
from extender.objects.pod import Pod
from tests.unit.client.scripted import CUT, SILENCE, Reply, Server, Stream, failure, middle, talking
from tests.unit.client.virtual_time import here, run
from tests.unit.client.worlds import PODS, SOURCE, a_list, a_pod, added, bookmark, in_stream_failure, modified


def listed(*answers: Reply, source: Source[Pod] = SOURCE) -> tuple[Listed[Pod], list[dict[str, str]]]:
    """The list, and the parameters of each request."""

    async def main() -> tuple[Listed[Pod], list[dict[str, str]]]:
        async with Server() as server, talking(server) as transport:
            server.on(PODS, *answers)
            return await list_all(transport, source), [dict(asked.query) for asked in server.asked]

    return run(main())


def test_a_list_is_read_page_by_page() -> None:
    found, asked = listed(
        a_list(5, a_pod("a", 1), a_pod("b", 2), more="t1"), a_list(5, a_pod("c", 3), more="t2"), a_list(5)
    )
    assert found.version == "5"
    assert list(found.items) == ["ns/a", "ns/b", "ns/c"]
    assert asked == [{"limit": "500"}, {"limit": "500", "continue": "t1"}, {"limit": "500", "continue": "t2"}]


def test_the_next_page_is_asked_for_before_the_last_one_is_read() -> None:
    order: list[str] = []
    pages = [a_list(5, a_pod("a", 1), more="t1"), a_list(5, a_pod("b", 2))]

    class Asked:
        async def call(self, request: Request) -> bytes:
            order.append(f"asked for {request.query.get('continue', 'the first')}")
            return json.dumps(pages.pop(0).body).encode()

    source = replace(SOURCE, heard=lambda pod, _: order.append(f"read {pod.metadata.name}"))
    run(list_all(cast("Transport", Asked()), source))
    assert order == ["asked for the first", "asked for t1", "read a", "read b"]


def test_selectors_go_with_every_page() -> None:
    source = Source(Pod, ENDPOINTS["Pod"], "", "status.phase!=Failed", "app in (a,b)")
    _, asked = listed(a_list(5, more="t"), a_list(5), source=source)
    selectors = {"fieldSelector": "status.phase!=Failed", "labelSelector": "app in (a,b)"}
    assert asked == [{**selectors, "limit": "500"}, {**selectors, "limit": "500", "continue": "t"}]


def test_fault_5_a_forgotten_page_restarts_the_whole_list() -> None:
    gone = failure(410, "Expired")
    found, asked = listed(a_list(5, a_pod("old", 1), more="t"), gone, a_list(9, a_pod("new", 8), more="u"), a_list(9))
    assert (found.version, list(found.items)) == ("9", ["ns/new"])
    assert [page.get("continue") for page in asked] == [None, "t", None, "u"]


def test_fault_5_a_list_forgotten_twice_is_asked_for_in_one_piece() -> None:
    gone = failure(410, "Expired")
    found, asked = listed(a_list(5, more="t"), gone, a_list(6, more="u"), gone, a_list(7, a_pod("a", 1)))
    assert (found.version, list(found.items)) == ("7", ["ns/a"])
    assert asked[-1] == {}


def test_whoever_wants_the_texts_of_objects_is_told_them() -> None:
    told: list[tuple[str, Any]] = []
    source = Source(Pod, ENDPOINTS["Pod"], heard=lambda item, text: told.append((item.metadata.name, json.loads(text))))
    gone = modified("b", 8) | {"type": "DELETED"}

    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on(PODS, a_list(5, a_pod("a", 1)), Stream([added("b", 6), modified("b", 7), gone]))
            await list_all(transport, source)
            async for _ in watch(transport, source, "5", middle):
                pass

    run(main())
    assert told == [("a", a_pod("a", 1)), ("b", added("b", 6)["object"]), ("b", modified("b", 7)["object"])]


def test_a_list_without_items_may_say_null() -> None:
    found, _ = listed(Reply(body={"metadata": {"resourceVersion": "3"}, "items": None}))
    assert (found.version, found.items) == ("3", {})


def test_nulls_in_an_object_are_empty_as_in_go() -> None:
    pod = a_pod("a", 1)
    pod["spec"]["nodeSelector"] = None
    found, _ = listed(a_list(5, pod))
    assert found.items["ns/a"].spec.node_selector == {}


def test_an_object_that_cannot_be_held_is_left_out_and_counted() -> None:
    bad = a_pod("bad", 1)
    bad["spec"]["priority"] = "high"
    found, _ = listed(a_list(5, a_pod("a", 1), bad, a_pod("b", 2)))
    assert (list(found.items), found.unreadable) == (["ns/a", "ns/b"], 1)


@pytest.mark.parametrize(
    "body",
    [b'{"metadata": {"resourceVersion": "1"}, "items": [', b"[]", b"<html>", b'{"kind": "Table"}', b""],
    ids=["cut short", "no object", "no JSON", "another kind of answer", "nothing"],
)
def test_what_is_not_a_list_is_an_error(body: bytes) -> None:
    with pytest.raises(AnswerError):
        listed(Reply(body=body))


def test_things_without_a_namespace_are_known_by_their_name() -> None:
    async def main() -> list[str]:
        async with Server() as server, talking(server) as transport:
            server.on("GET /api/v1/nodes", a_list(5, {"metadata": {"name": "n1", "resourceVersion": "2"}}))
            return list((await list_all(transport, Source(Node, ENDPOINTS["Node"]))).items)

    assert run(main()) == ["n1"]


@pytest.mark.parametrize(
    ("endpoint", "asked", "path"),
    [
        (ENDPOINTS["Pod"], ("ns", "a", "binding"), "/api/v1/namespaces/ns/pods/a/binding"),
        (ENDPOINTS["Pod"], (), "/api/v1/pods"),
        (ENDPOINTS["Pod"], ("ns",), "/api/v1/namespaces/ns/pods"),
        (ENDPOINTS["Node"], ("", "n/1?x"), "/api/v1/nodes/n%2F1%3Fx"),
        (ENDPOINTS["Node"], ("", ".."), "/api/v1/nodes/%2E%2E"),
        (ENDPOINTS["Lease"], ("kube-system", "x"), "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x"),
        (Endpoint("example.org/v1", "things", False), ("ns", "a"), "/apis/example.org/v1/things/a"),
    ],
    ids=["a subresource", "all", "a namespace", "odd characters", "dots", "a group", "no namespaces"],
)
def test_objects_live_at_paths(endpoint: Endpoint, asked: tuple[str, ...], path: str) -> None:
    assert endpoint.path(*asked) == path


def test_a_name_in_a_namespace_wants_one() -> None:
    with pytest.raises(ValueError, match="pods/a: a namespace is missing"):
        ENDPOINTS["Pod"].path("", "a")


def watched(*steps: Any, version: str = "5") -> tuple[list[Event[Pod]], Exception | None, dict[str, str], float]:
    """What a watch told, how it ended, what was asked, and the seconds it took."""

    async def main() -> tuple[list[Event[Pod]], Exception | None, dict[str, str], float]:
        events: list[Event[Pod]] = []
        fault: Exception | None = None
        async with Server() as server, talking(server) as transport:
            server.on(PODS, Stream(steps))
            began = here().time()
            try:
                async for batch in watch(transport, SOURCE, version, middle):
                    events += batch
            except Exception as caught:  # noqa: BLE001  the test looks at it
                fault = caught
            return events, fault, dict(server.asked[0].query), here().time() - began

    return run(main())


def test_a_watch_asks_for_bookmarks_and_an_end_within_a_minute() -> None:
    events, fault, asked, _ = watched(added("a", 6), bookmark(9))
    assert fault is None
    assert [(event.type, event.version, event.key) for event in events] == [
        (EventType.ADDED, "6", "ns/a"),
        (EventType.BOOKMARK, "9", ""),
    ]
    assert asked == {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "5", "timeoutSeconds": "40"}


def test_lines_may_arrive_in_pieces_and_several_at_once() -> None:
    data = b"".join(json.dumps(event).encode() + b"\n" for event in (added("a", 6), modified("a", 7), added("b", 8)))
    events, fault, _, _ = watched(data[:10], 1, data[10:300], 1, data[300:])
    assert fault is None
    assert [event.version for event in events] == ["6", "7", "8"]


def test_events_that_arrive_together_are_told_64_at_a_time_and_others_have_their_turn_in_between() -> None:
    data = b"".join(json.dumps(added(f"p{number}", number)).encode() + b"\n" for number in range(6, 156))

    async def main() -> list[int | str]:
        told: list[int | str] = []
        async with Server() as server, talking(server) as transport:
            server.on(PODS, Stream((data,)))
            async for batch in watch(transport, SOURCE, "5", middle):
                if batch:
                    told.append(len(batch))
                    here().call_soon(told.append, "another")
        return told

    assert run(main()) == [64, "another", 64, "another", 22, "another"]


@pytest.mark.parametrize(
    ("heartbeats", "told"),
    [(None, [0, 1, 1, 1, 1]), (Heartbeats(), [0, 1, 3])],
    ids=["each at once", "heartbeats in batches"],
)
def test_where_heartbeats_are_expected_what_comes_within_twenty_milliseconds_is_told_together(
    heartbeats: Heartbeats | None, told: list[int]
) -> None:
    pieces = [modified("a", 6), 0.006, modified("a", 7), 0.006, modified("a", 8), 0.006, modified("a", 9)]

    async def main() -> list[int]:
        source = replace(SOURCE, heartbeats=heartbeats)
        async with Server() as server, talking(server) as transport:
            server.on(PODS, Stream(pieces))
            return [len(batch) async for batch in watch(transport, source, "5", middle)]

    assert run(main()) == told


@pytest.mark.parametrize(
    "line",
    [
        b"{\n",
        b"null\n",
        b"garbage\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"RENAMED","object":{}}\n',
        b'{"type":"ADDED","object":[]}\n',
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
        "no object of ours",
        "no UTF-8",
        "too deep",
    ],
)
def test_fault_6_a_line_that_cannot_be_read_ends_the_watch_after_what_came_before(line: bytes) -> None:
    events, fault, _, _ = watched(json.dumps(added("a", 6)).encode() + b"\n" + line, added("b", 7))
    assert isinstance(fault, AnswerError)
    assert [event.version for event in events] == ["6"]


@pytest.mark.parametrize("end", [[], [CUT]], ids=["an orderly end", "a reset"])
def test_fault_6_a_connection_that_ends_within_a_line_is_broken_not_malformed(end: list[Any]) -> None:
    events, fault, _, _ = watched(added("a", 6), b'{"type":"ADD', 1, *end)
    assert isinstance(fault, UnreachableError)
    assert [event.version for event in events] == ["6"]


def test_fault_3_an_error_in_the_stream_is_raised_after_what_came_before() -> None:
    lines = json.dumps(added("a", 6)) + "\n" + json.dumps(in_stream_failure(410, "Expired")) + "\n"
    events, fault, _, _ = watched(lines.encode())
    assert isinstance(fault, GoneError)
    assert [event.version for event in events] == ["6"]


def test_fault_16_a_silent_connection_is_found_within_a_minute() -> None:
    events, fault, _, seconds = watched(10, added("a", 6), SILENCE)
    assert isinstance(fault, UnreachableError)
    assert [event.version for event in events] == ["6"]
    assert seconds == pytest.approx(65.0, abs=0.5)


def test_an_object_that_cannot_be_held_is_told_by_name_only() -> None:
    bad = added("bad", 6)
    bad["object"]["spec"]["priority"] = "high"
    events, fault, _, _ = watched(bad, added("a", 7))
    assert fault is None
    assert [(event.key, event.object is None) for event in events] == [("ns/bad", True), ("ns/a", False)]
