"""Connections beyond the limit are closed at once, whether or not they use TLS, and a closed one makes room."""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop

from extender.serving import connection_acceptor, http_server
from extender.serving.serving_options import ServingOptions
from extender.serving.tls import load_serving_certificate
from tests.unit.extender_api.http_harness import TIMEOUT, serve_in_thread

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LIMIT = 3


async def app(_scope: Any, _receive: Any, send: Any) -> None:
    """Return an empty response."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def new_event_loop(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Return the function that creates an event loop of a kind."""
    function: Callable[[], Any] = request.param
    return function


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], socket.socket]]:
    """Limit the connections; return a function that opens a connection."""
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", LIMIT)
    with ExitStack() as stack:
        yield lambda port: stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT))


def is_served(connection: socket.socket) -> bool:
    """Send a request, and return whether there is a response."""
    with contextlib.suppress(ConnectionError):
        connection.sendall(GET)
        return connection.recv(1000).startswith(b"HTTP/1.1 200 OK")
    return False


def is_closed(connection: socket.socket) -> bool:
    """Wait until the server sends data or closes the connection; return whether it is closed."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_a_connection_beyond_the_limit_is_closed_and_a_closed_connection_makes_room(
    connect: Callable[[int], socket.socket], new_event_loop: Callable[[], Any]
) -> None:
    with serve_in_thread(app, loop=new_event_loop) as port:
        connections = [connect(port) for _ in range(LIMIT)]
        assert is_closed(connect(port))
        assert [is_served(connection) for connection in connections] == [True] * LIMIT
        connections[0].close()
        while not is_served(connect(port)):  # the server learns of the end of a connection later
            pass
        assert is_closed(connect(port))


def make_tls_context(folder: Path) -> ssl.SSLContext | None:
    """Return the TLS context of a server with a new certificate."""
    issued = trustme.CA().issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
    issued.private_key_pem.write_to_path(str(folder / "tls.key"))
    options = ServingOptions(cert_file=str(folder / "tls.crt"), key_file=str(folder / "tls.key"))
    return load_serving_certificate(options, "").context


def test_a_connection_without_a_finished_handshake_counts_until_it_is_closed(
    connect: Callable[[int], socket.socket], new_event_loop: Callable[[], Any], tmp_path: Path
) -> None:
    with serve_in_thread(app, make_tls_context(tmp_path), new_event_loop) as port:
        half_open = [connect(port) for _ in range(LIMIT)]
        assert is_closed(connect(port))
        for connection in half_open:
            connection.sendall(b"no TLS\r\n\r\n")
            while connection.recv(1000):  # an alert, then the end
                pass
        for connection in [connect(port) for _ in range(LIMIT)]:
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):  # open, and waiting for the handshake
                connection.recv(1)


def test_an_error_of_the_system_is_logged_and_connections_are_accepted_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection_acceptor, "_PAUSE_SECONDS", 0.0)

    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        accept = loop.sock_accept
        errors = [OSError(errno.EMFILE, "Too many open files"), ConnectionAbortedError()]

        async def fail_first(listener: socket.socket) -> Any:
            if errors:
                raise errors.pop(0)
            return await accept(listener)

        monkeypatch.setattr(loop, "sock_accept", fail_first)
        listener = http_server.listen("127.0.0.1", 0)
        async with http_server.serve_http(app, listener, None):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(GET)
            line = await reader.readline()
            writer.close()
            await writer.wait_closed()
            return line

    assert asyncio.run(main()) == b"HTTP/1.1 200 OK\r\n"
    (record,) = [record for record in caplog.records if record.name == connection_acceptor.__name__]
    assert (record.message, record.__dict__["err"]) == (
        "No connection can be accepted",
        "[Errno 24] Too many open files",
    )
