"""Size limits of bodies over HTTP: by contents, and for all requests together."""

import json
import socket
from collections.abc import Iterator

import pytest

from extender.extender_api.body_reader import WHOLE_NODES_PATTERN, WHOLE_PODS_PATTERN, BodyReader
from extender.extender_api.request_limits import RequestLimits
from extender.extender_api.routes import new_app
from tests.unit.extender_api.http_harness import TIMEOUT, make_service, send_request, serve_in_thread

NAMES, WHOLE = 2_000, 100_000


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serve_in_thread(new_app(make_service(body_reader=BodyReader(RequestLimits(NAMES, WHOLE))))) as found:
        yield found


def make_body(size: int, head: bytes) -> bytes:
    """A request of *size* bytes, blanks at its end."""
    return (head + b"}").ljust(size)


POD = b'{"Pod":{"metadata":{"name":"web"}}'
BY_NAMES = POD + b',"Nodes":null,"NodeNames":["n1"]'
BY_NODES = POD + b',"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n1"}}]},"NodeNames":null'
FROM_OLD = POD + b', "nodes" :\n{"items":[{"metadata":{"name":"n1"}}]}'
BY_PODS = POD + b',"NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"uid":"u"}}]}}'
BY_UIDS = POD + b',"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u"}]}}'
LABELLED = b'{"Pod":{"metadata":{"name":"web","annotations":{"a":"\\"nodes\\":{"}}},"NodeNames":["n1"]'
BOTH = POD + b',"Nodes":{"items":[]},"NodeNames":["n1"]'


@pytest.mark.parametrize(
    ("path", "head", "size", "status"),
    [
        ("/filter", BY_NAMES, NAMES, 200),
        ("/filter", BY_NAMES, NAMES + 1, 413),
        ("/filter", BY_NODES, NAMES + 1, 200),
        ("/prioritize", FROM_OLD, NAMES + 1, 200),
        ("/filter", BY_NODES, WHOLE, 200),
        ("/filter", BY_NODES, WHOLE + 1, 413),
        ("/filter", LABELLED, NAMES + 1, 413),
        ("/filter", BOTH, NAMES + 1, 413),
        ("/filter", b"", NAMES + 1, 413),
        ("/preempt", BY_UIDS, NAMES + 1, 413),
        ("/preempt", BY_PODS, NAMES + 1, 200),
        ("/preempt", BY_NODES, NAMES + 1, 413),
    ],
    ids=[
        "names as many as there may be",
        "a byte too much with names",
        "more with whole nodes",
        "more with whole nodes, as old callers write it",
        "whole nodes as many as there may be",
        "a byte too much with whole nodes",
        "a label's text makes no difference",
        "names beside an empty list of nodes are still names",
        "blanks",
        "victims by uid",
        "victims that are whole pods",
        "whole nodes mean nothing to preempt",
    ],
)
def test_the_size_limit_depends_on_whole_objects(port: int, path: str, head: bytes, size: int, status: int) -> None:
    body = make_body(size, head) if head else b" " * size
    assert send_request(port, "POST", path, body)[0] == status


def status(connection_: socket.socket) -> int:
    """Return the status of the next response."""
    return int(connection_.makefile("rb").readline().split()[1])


def send_raw(port: int, *chunks: bytes) -> int:
    """Send *chunks* as they are; return the response's status."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT) as connection:
        for chunk in chunks:
            connection.sendall(chunk)
        return status(connection)


def test_a_too_large_content_length_is_rejected_before_a_byte_is_sent(port: int) -> None:
    head = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 300000000\r\n\r\n"
    assert send_raw(port, head) == 413


def test_chunks_without_a_length_are_counted(port: int) -> None:
    head = b"POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert send_raw(port, head, b"7d1\r\n" + b"0" * 2001 + b"\r\n") == 413


def test_all_requests_together_have_a_limit() -> None:
    with serve_in_thread(
        new_app(make_service(body_reader=BodyReader(RequestLimits(NAMES, 3_000), max_total_bytes=3_000)))
    ) as port:
        head = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port), TIMEOUT) as slow:
            slow.sendall(head + b" " * 1_500)
            assert send_request(port, "POST", "/filter", make_body(1_999, BY_NAMES))[0] == 503
            slow.sendall(b" " * 500)
            assert status(slow) == 400
        assert send_request(port, "POST", "/filter", make_body(1_999, BY_NAMES))[0] == 200


def test_responses_that_are_not_read_count_in_the_limit_of_all_requests() -> None:
    """The clients of ten responses of 100 MB that were never read made the extender grow by 1 GB."""
    size = 24 << 20  # more than the socket's buffers
    items = [
        {
            "metadata": {"name": f"n{number}", "annotations": {"a": "x" * (2 << 20)}},
            "status": {"allocatable": {"pods": "9"}},
        }
        for number in range(12)
    ]
    nodes = {"metadata": {}, "items": items}
    body = json.dumps({"Pod": {"metadata": {"name": "web"}}, "Nodes": nodes, "NodeNames": None}, separators=(",", ":"))
    data = body.encode()
    assert size < len(data) < size + 10_000
    body_reader = BodyReader(RequestLimits(NAMES, 2 * size), max_total_bytes=2 * size - 1)
    with serve_in_thread(new_app(make_service(body_reader=body_reader))) as port:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT) as slow:
            slow.sendall(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
            assert status(slow) == 200
            assert send_request(port, "POST", "/filter", data)[0] == 503
            while slow.recv(1 << 20)[-1:] != b"}":
                pass
        assert send_request(port, "POST", "/filter", data)[0] == 200
    assert body_reader.current_total_bytes == 0


def test_whole_objects_are_detected_whatever_their_case() -> None:
    assert WHOLE_NODES_PATTERN.search(b'{"NODES" : {')
    assert WHOLE_PODS_PATTERN.search(b'{"nodeToVictims":{')
    assert not WHOLE_NODES_PATTERN.search(b'{"Nodes":null,"NodeNames":[]')
    assert not WHOLE_PODS_PATTERN.search(b'"NodeToMetaVictims":{')
