"""Limits of a connection: time to send a request, time to read, size of the head, age."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from extender.serving import http_protocol
from extender.serving.rejection_log import RejectionLog
from tests.unit.extender_api.http_harness import TIMEOUT, serve_in_thread

BIG = 64 << 20
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Return as many bytes as the path has, or very many, or as many as there are headers after the body.

    For the path `/client`, return as many bytes as the number of the client's port has bits.
    """
    size = BIG if scope["path"] == "/big" else len(scope["path"])
    if scope["path"] == "/headers":
        while (await receive()).get("more_body"):
            pass
        size = len(scope["headers"])
    if scope["path"] == "/client":
        size = scope["client"][1].bit_length()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
    await send({"type": "http.response.body", "body": b"x" * size})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serve_in_thread(app) as data:
        yield data


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), TIMEOUT)


def rest(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    data = b""
    while piece := connection.recv(1 << 20):
        data += piece
    return data


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nHost:", b"\r\n", GET + b"\r\n" + b"GET /again", GET + b"\r\n\r\n\r\n"],
    ids=["nothing", "half a head", "an empty line", "half a second head", "empty lines behind a request"],
)
def test_a_request_that_never_ends_is_disconnected(port: int, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "TRANSFER_TIMEOUT", 0.05)
    with connected(port) as connection:
        connection.sendall(sent)
        responses = rest(connection)
        assert responses.count(b"HTTP/1.1 200 OK") == sent.count(b"\r\n\r\n") - sent.count(b"\r\n\r\n\r\n")


def test_a_short_response_is_one_write(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    send = http_protocol._BufferedTransport.flush

    def counted(gathered: http_protocol._BufferedTransport) -> None:
        written.append(b"".join(gathered._chunks))
        send(gathered)

    monkeypatch.setattr(http_protocol._BufferedTransport, "flush", counted)
    with connected(port) as connection:
        connection.sendall(b"GET /four HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = rest(connection)
    assert answer.endswith(b"\r\n\r\nxxxxx")
    assert [piece for piece in written if piece] == [answer]


def test_a_header_does_not_replace_the_address_of_the_client(port: int) -> None:
    with connected(port) as connection:
        head = b"GET /client HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 10.1.2.3\r\nConnection: close\r\n\r\n"
        connection.sendall(head)
        assert rest(connection).endswith(b"\r\n\r\n" + b"x" * connection.getsockname()[1].bit_length())


def test_a_client_that_never_reads_is_disconnected(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "TRANSFER_TIMEOUT", 0.2)
    with connected(port) as connection:
        connection.sendall(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        probe = connected(port)
        probe.sendall(GET)  # silence that is cut off after the same time, so by then the other is too
        rest(probe)
        probe.close()
        assert len(rest(connection)) < BIG


def test_a_slow_reader_within_the_timeout_gets_the_whole_response(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert len(rest(connection)) > BIG


def test_an_endless_head_is_rejected(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(GET)
        for _ in range(http_protocol.MAX_HEAD_BYTES // 1_000 + 1):
            connection.sendall(b"X-More: " + b"y" * 990 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


def test_a_long_head_within_the_limit_is_accepted(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(GET + b"X-More: " + b"y" * 60_000 + b"\r\n" + b"a:b\r\n" * 98 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_old_connection_is_closed_with_the_response(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(port) as young:
        young.sendall(GET + b"\r\n")
        assert b"connection: close" not in young.recv(100)
        monkeypatch.setattr(http_protocol, "MAX_CONNECTION_SECONDS", -1.0)
        with connected(port) as old:
            old.sendall(GET + b"\r\n")
            answer = rest(old)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"connection: close" in answer


CHUNKED = b"POST /four HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS_FRAMING = {
    "trailers": (CHUNKED + b"0\r\n", b"X-More: " + b"y" * 990 + b"\r\n"),
    "one endless trailer": (CHUNKED + b"0\r\nX-More: ", b"y" * 1_000),
    "an endless chunk extension": (CHUNKED + b"5;", b"y" * 1_000),
    "chunks with long extensions": (CHUNKED, b"1;" + b"y" * 994 + b"\r\nx\r\n"),
    "many small trailers": (CHUNKED + b"0\r\n", b"a:b\r\n" * 200),
}


@pytest.mark.parametrize(("head", "more"), ENDLESS_FRAMING.values(), ids=ENDLESS_FRAMING)
def test_endless_chunk_extensions_and_trailers_are_rejected(port: int, head: bytes, more: bytes) -> None:
    with connected(port) as connection:
        connection.sendall(head)
        with suppress(ConnectionError):  # the server has closed the connection
            for _ in range(10 * http_protocol.MAX_HEAD_BYTES // len(more)):
                connection.sendall(more)
        with suppress(ConnectionError):
            statuses = (b"HTTP/1.1 400 Bad Request\r\n", b"HTTP/1.1 431 ", b"HTTP/1.1 200 OK\r\n")
            assert rest(connection).startswith(statuses)


def test_trailers_are_dropped(port: int) -> None:
    head = CHUNKED.replace(b"/four", b"/headers")
    trailer = b"Authorization: Bearer late\r\n"
    with connected(port) as connection:
        connection.sendall(head + b"1\r\nx\r\n0\r\n" + trailer + b"\r\n" + GET + b"Connection: close\r\n\r\n")
        responses = rest(connection)
    assert responses.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert b"\r\n\r\nxxHTTP/1.1 200 OK\r\n" in responses


def test_a_body_in_chunks_of_one_byte_is_accepted(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(CHUNKED + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n" + GET + b"Connection: close\r\n\r\n")
        assert rest(connection).count(b"HTTP/1.1 200 OK\r\n") == 2


UNREADABLE = "not an HTTP/1.1 request: "
INVALID_REQUESTS = {
    "a transfer encoding with compression": (
        GET + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        "Transfer-Encoding: only chunked is supported",
    ),
    "two transfer encodings": (
        GET + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        UNREADABLE,
    ),
    "a transfer encoding and a length": (
        GET + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        UNREADABLE,
    ),
    "another transfer encoding": (
        GET + b"Transfer-Encoding: gzip\r\n\r\n",
        "Transfer-Encoding: only chunked is supported",
    ),
    "another protocol": (b"\x16\x03\x01\x02\x00\r\n\r\n", UNREADABLE),
    "a tunnel": (
        b"CONNECT evil.example:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        UNREADABLE + "invalid url",
    ),
    "a URL without a path": (
        b"GET http://evil.example HTTP/1.1\r\nHost: x\r\n\r\n",
        UNREADABLE,
    ),
    "a path with a line break": (b"GET /%0A?q=x HTTP/1.1\r\nHost: x\r\n\r\n", "the path has a line break"),
    "HTTP/2": (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        UNREADABLE,
    ),
    "another protocol for a request with a body": (  # curl --http2, and Java's client by default
        GET + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}",
        "the header Upgrade is not supported in a request with a body",
    ),
    "too many pipelined requests": (
        (GET + b"\r\n") * (http_protocol.MAX_PIPELINED_REQUESTS + 2),
        "more than 16 requests wait on this connection",
    ),
    "a big head in one piece": (
        GET + b"X-More: " + b"y" * http_protocol.MAX_HEAD_BYTES + b"\r\n\r\n",
        "the headers are too big",
    ),
    "too many headers": (GET + b"a:b\r\n" * http_protocol.MAX_HEADERS + b"\r\n", "more than 100 headers"),
    "too many headers and trailers": (
        CHUNKED + b"0\r\n" + b"a:b\r\n" * (http_protocol.MAX_HEADERS - 1) + b"\r\n",
        "more than 100 headers",
    ),
}


@pytest.mark.parametrize(("sent", "message"), INVALID_REQUESTS.values(), ids=INVALID_REQUESTS)
def test_an_invalid_request_is_rejected_and_logged_with_the_peer(
    port: int, sent: bytes, message: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_protocol, "_invalid_request_log", RejectionLog("Rejected an invalid HTTP request"))
    with connected(port) as connection:
        connection.sendall(sent)
        with suppress(ConnectionError):
            assert rest(connection).partition(b"\r\n\r\n")[2].startswith(message.encode())
        peer = connection.getsockname()
    (record,) = [record for record in caplog.records if record.message == "Rejected an invalid HTTP request"]
    assert record.__dict__["from"] == f"127.0.0.1:{peer[1]}"
    assert record.__dict__["err"].startswith(message)


def test_a_request_that_does_not_arrive_is_logged_with_the_peer(
    port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_protocol, "TRANSFER_TIMEOUT", 0.05)
    monkeypatch.setattr(http_protocol, "_invalid_request_log", RejectionLog("Rejected an invalid HTTP request"))
    with connected(port) as connection:
        connection.sendall(GET)
        rest(connection)
        peer = connection.getsockname()
    lines = [(record.__dict__["from"], record.__dict__["err"]) for record in caplog.records if hasattr(record, "from")]
    assert lines == [(f"127.0.0.1:{peer[1]}", "the request did not arrive within 0.05 s")]


class _RecordingTransport:
    """Records the chunks that are written together."""

    def __init__(self) -> None:
        self.writes: list[list[int]] = []

    def is_closing(self) -> bool:
        return False

    def writelines(self, chunks: list[bytes]) -> None:
        self.writes.append([len(chunk) for chunk in chunks])


def test_the_writes_of_one_iteration_are_passed_on_together_up_to_256_kib() -> None:
    async def main() -> list[list[int]]:
        transport = _RecordingTransport()
        buffered = http_protocol._BufferedTransport(transport, asyncio.get_running_loop())  # type: ignore[arg-type]
        for size in (100, 200 * 1024, 60 * 1024, 300 * 1024, 10, 20, 0):
            buffered.write(b"x" * size)
        assert transport.writes == [[100, 200 * 1024, 60 * 1024], [300 * 1024]]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return transport.writes

    assert asyncio.run(main())[2:] == [[10, 20]]
