"""What a caller may take of a connection: time to ask, time to read, length of a head, age."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from extender.web import peer
from tests.unit.web.served import SECONDS, served

BIG = 64 << 20
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers with as many bytes as there are in the path, or with very many."""
    size = BIG if scope["path"] == "/big" else len(scope["path"])
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
    await send({"type": "http.response.body", "body": b"x" * size})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served(app) as found:
        yield found


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), SECONDS)


def rest(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    found = b""
    while piece := connection.recv(1 << 20):
        found += piece
    return found


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nHost:", b"\r\n", GET + b"\r\n" + b"GET /again", GET + b"\r\n\r\n\r\n"],
    ids=["nothing", "half a head", "an empty line", "half a second head", "empty lines behind a request"],
)
def test_who_never_ends_a_request_is_sent_away(port: int, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "PATIENCE", 0.05)
    with connected(port) as connection:
        connection.sendall(sent)
        answers = rest(connection)
        assert answers.count(b"HTTP/1.1 200 OK") == sent.count(b"\r\n\r\n") - sent.count(b"\r\n\r\n\r\n")


def test_a_short_answer_is_sent_in_one_piece(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    send = peer._Gathered.flush

    def counted(gathered: peer._Gathered) -> None:
        written.append(b"".join(gathered._pieces))
        send(gathered)

    monkeypatch.setattr(peer._Gathered, "flush", counted)
    with connected(port) as connection:
        connection.sendall(b"GET /four HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = rest(connection)
    assert answer.endswith(b"\r\n\r\nxxxxx")
    assert [piece for piece in written if piece] == [answer]


def test_who_never_reads_an_answer_is_sent_away(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "PATIENCE", 0.2)
    with connected(port) as connection:
        connection.sendall(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        probe = connected(port)
        probe.sendall(GET)  # silence that is cut off after the same time, so by then the other is too
        rest(probe)
        probe.close()
        assert len(rest(connection)) < BIG


def test_who_reads_slowly_but_in_time_gets_all_of_it(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert len(rest(connection)) > BIG


def test_a_head_without_end_is_refused(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(GET)
        for _ in range(peer.MOST_HEAD // 1_000 + 1):
            connection.sendall(b"X-More: " + b"y" * 990 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


def test_a_long_head_that_ends_is_none_of_these(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(GET + b"X-More: " + b"y" * 30_000 + b"\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_old_connection_ends_with_the_answer(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(port) as young:
        young.sendall(GET + b"\r\n")
        assert b"connection: close" not in young.recv(100)
        monkeypatch.setattr(peer, "LONGEST", -1.0)
        with connected(port) as old:
            old.sendall(GET + b"\r\n")
            answer = rest(old)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"connection: close" in answer
