"""What is sent to break a service, over real connections: each is refused at once, and the next request is answered."""

import select
import socket
from collections.abc import Iterator
from time import perf_counter

import pytest

from extender.web.app import new_app
from extender.web.wire import MAX_NAMES_BYTES
from tests.unit.web.served import SECONDS, a_site, ask, served
from tests.unit.web.test_binding import Server, a_binder

AT_ONCE = 2.0
"""Seconds within which a refusal must be there, on a machine that does other things as well; it takes milliseconds."""

VERBS = ["/filter", "/prioritize", "/preempt", "/bind"]
GOOD = b'{"Pod":{"metadata":{"name":"web"}},"NodeNames":["n1"]}'
MILLION = 1_000_000

BODIES = {
    "nothing": b"",
    "nulls": b'{"Pod":null,"Nodes":null,"NodeNames":null,"NodeNameToVictims":null,"NodeNameToMetaVictims":null,'
    b'"PodName":null,"PodNamespace":null,"PodUID":null,"Node":null}',
    "a pod of nulls and nulls": b'{"Pod":{"metadata":null,"spec":null,"status":null},"Nodes":null,"NodeNames":null,'
    b'"NodeNameToVictims":null,"NodeNameToMetaVictims":null}',
    "keys that are there twice": b'{"Pod":{},"Pod":{},"NodeNames":["n1"],"NodeNameToMetaVictims":{},"PodName":"a",'
    b'"PodNamespace":"a","PodUID":"a","Node":"n1","Node":"n2"}',
    "keys in the pod that are there twice": b'{"Pod":{"metadata":{"name":"a","name":"b"}},"NodeNames":["n1"]}',
    "200,000 arrays": b"[" * 200_000 + b"]" * 200_000,
    "200,000 arrays that do not end": b"[" * 200_000,
    "200,000 objects in the pod": b'{"Pod":' + b'{"a":' * 200_000 + b"1" + b"}" * 200_001,
    "200,000 arrays for names": b'{"Pod":{},"NodeNames":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "200,000 arrays for nodes": b'{"Pod":{},"Nodes":{"items":' + b"[" * 200_000 + b"]" * 200_000 + b"}}",
    "2 million digits": b"1" * 2 * MILLION,
    "2 million digits for a priority": b'{"Pod":{"spec":{"priority":' + b"1" * 2 * MILLION + b"}}}",
    "2 million digits for names": b'{"Pod":{},"NodeNames":' + b"1" * 2 * MILLION + b"}",
    "2 million digits of a fraction": b'{"Pod":{"spec":{"priority":0.' + b"1" * 2 * MILLION + b"}}}",
    "an exponent beyond all numbers": b'{"Pod":{"spec":{"priority":1e999999999}},"NodeNames":["n1"]}',
    "no number": b'{"Pod":{"spec":{"priority":NaN}},"NodeNames":["n1"]}',
    "bytes that are no text": b'{"Pod":{"metadata":{"name":"\xff"}},"NodeNames":["n1"]}',
    "half a character": b'{"Pod":{"metadata":{"name":"\\ud800"}},"NodeNames":["n1"]}',
    "zero bytes": bytes(MILLION),
    "an amount that is none": b'{"Pod":{"spec":{"containers":[{"resources":{"requests":{"cpu":"1e1e1"}}}]}},'
    b'"NodeNames":["n1"]}',
    "a form": b"Pod=web&NodeNames=n1",
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served(new_app(a_site(binder=a_binder(Server())[0]))) as found:
        yield found


@pytest.mark.parametrize("path", VERBS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_made_to_break_things_is_refused_at_once_in_one_line(port: int, path: str, body: bytes) -> None:
    began = perf_counter()
    status, text = ask(port, "POST", path, body)
    assert perf_counter() - began < AT_ONCE
    assert status == 400
    assert text.count("\n") == 1
    assert len(text) < 300
    assert "Traceback" not in text
    assert ask(port, "POST", "/filter", GOOD)[0] == 200


@pytest.mark.parametrize("path", VERBS)
@pytest.mark.parametrize("announced", [b"Content-Length: 300000000", b"Transfer-Encoding: chunked"])
def test_a_big_body_is_refused_while_it_is_still_being_sent(port: int, path: str, announced: bytes) -> None:
    """300 MB; most of them are never sent."""
    piece = b"10000\r\n" + bytes(1 << 16) + b"\r\n" if announced.startswith(b"T") else bytes(1 << 16)
    sent = 0
    began = perf_counter()
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        connection.sendall(b"POST " + path.encode() + b" HTTP/1.1\r\nHost: x\r\n" + announced + b"\r\n\r\n")
        while not select.select([connection], [], [], 0)[0] and sent < 300 * MILLION:
            connection.sendall(piece)
            sent += len(piece)
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
    assert perf_counter() - began < AT_ONCE
    assert sent < 4 * MAX_NAMES_BYTES  # what the sockets hold is sent too before the answer can be seen


def test_200_million_zeros_are_too_big_and_not_merely_wrong(port: int) -> None:
    assert ask(port, "POST", "/filter", bytes(200 * MILLION))[0] == 413


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, identity", "GZIP"])
def test_a_compressed_body_is_refused_unread(port: int, encoding: str) -> None:
    status, _ = ask(port, "POST", "/filter", b"", Content_Encoding=encoding, Content_Length="1000000")
    assert status == 415


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"POST /fil\x00ter HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=[
        "TLS",
        "half a line",
        "a length below zero",
        "two framings",
        "two lengths",
        "a chunk beyond all",
        "a zero byte",
    ],
)
def test_what_is_no_http_is_refused(port: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        connection.sendall(sent)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert ask(port, "POST", "/filter", GOOD)[0] == 200


def test_a_caller_that_hangs_up_half_way_leaves_nothing_behind(port: int) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
            connection.sendall(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    assert ask(port, "POST", "/filter", GOOD)[0] == 200
    until = perf_counter() + SECONDS
    while 'extender_requests_in_flight{verb="filter"} 0.0' not in ask(port, "GET", "/metrics")[1].splitlines():
        assert perf_counter() < until
