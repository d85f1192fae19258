"""Beyond the limit of connections an idle one is closed for each new one, whether or not they use TLS."""

import asyncio
import contextlib
import errno
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop

from extender.serving import connection_acceptor, http_server
from extender.serving.connection_acceptor import OpenConnection, OpenConnections
from extender.serving.rejection_log import RejectionLog
from extender.serving.serving_options import ServingOptions
from extender.serving.tls import ServingCertificate, load_serving_certificate
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


def test_a_new_connection_closes_the_oldest_one_without_a_request(
    connect: Callable[[int], socket.socket], new_event_loop: Callable[[], Any]
) -> None:
    with serve_in_thread(app, loop=new_event_loop) as port:
        served = connect(port)
        assert is_served(served)
        idle = [connect(port) for _ in range(LIMIT - 1)]
        new = [connect(port) for _ in range(LIMIT - 1)]
        assert [is_served(connection) for connection in new] == [True] * (LIMIT - 1)
        assert [is_closed(connection) for connection in idle] == [True] * (LIMIT - 1)
        assert is_served(served)


def test_a_new_connection_closes_the_one_that_is_idle_for_longest_if_all_had_requests(
    connect: Callable[[int], socket.socket], new_event_loop: Callable[[], Any]
) -> None:
    with serve_in_thread(app, loop=new_event_loop) as port:
        connections = [connect(port) for _ in range(LIMIT)]
        assert [is_served(connection) for connection in connections] == [True] * LIMIT
        assert is_served(connections[0])
        assert is_served(connect(port))
        assert is_closed(connections[1])
        assert [is_served(connections[0]), is_served(connections[2])] == [True, True]


def test_a_connection_beyond_the_limit_is_closed_if_all_others_have_a_request_in_progress(
    connect: Callable[[int], socket.socket], new_event_loop: Callable[[], Any]
) -> None:
    started, ending = threading.Semaphore(0), threading.Event()

    async def slow_app(scope: Any, receive: Any, send: Any) -> None:
        started.release()
        await asyncio.to_thread(ending.wait, TIMEOUT)
        await app(scope, receive, send)

    with serve_in_thread(slow_app, loop=new_event_loop) as port:
        connections = [connect(port) for _ in range(LIMIT)]
        for connection in connections:
            connection.sendall(GET)
            assert started.acquire(timeout=TIMEOUT)
        assert is_closed(connect(port))
        ending.set()
        assert [connection.recv(1000)[:15] for connection in connections] == [b"HTTP/1.1 200 OK"] * LIMIT
        connections[0].close()
        assert is_served(connect(port))


def test_connections_are_accepted_after_one_for_which_the_memory_did_not_suffice(
    connect: Callable[[int], socket.socket], new_event_loop: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a process whose memory is limited by `ulimit -v`. An idle connection is closed, which frees its memory."""
    add, errors = OpenConnections.add, [MemoryError]

    def fail_once(connections: OpenConnections, abort: Callable[[], object]) -> OpenConnection:
        if errors:
            raise errors.pop()
        return add(connections, abort)

    with serve_in_thread(app, loop=new_event_loop) as port:
        idle = connect(port)
        assert is_served(idle)
        monkeypatch.setattr(OpenConnections, "add", fail_once)
        assert is_closed(connect(port))
        assert is_closed(idle)
        assert is_served(connect(port))


def make_certificate(folder: Path) -> ServingCertificate:
    """Return a new certificate of a server."""
    issued = trustme.CA().issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
    issued.private_key_pem.write_to_path(str(folder / "tls.key"))
    options = ServingOptions(cert_file=str(folder / "tls.crt"), key_file=str(folder / "tls.key"))
    return load_serving_certificate(options, "")


def test_a_connection_without_a_finished_handshake_counts_and_is_closed_for_a_new_one(
    connect: Callable[[int], socket.socket], new_event_loop: Callable[[], Any], tmp_path: Path
) -> None:
    with serve_in_thread(app, make_certificate(tmp_path), new_event_loop) as port:
        half_open = [connect(port) for _ in range(LIMIT)]
        connect(port)
        assert is_closed(half_open[0])
        for connection in half_open[1:]:
            connection.sendall(b"no TLS\r\n\r\n")
            while connection.recv(1000):  # an alert, then the end
                pass
        for connection in [connect(port) for _ in range(LIMIT - 1)]:
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):  # open, and waiting for the handshake
                connection.recv(1)


def test_a_failed_tls_handshake_is_logged_with_its_reason(
    connect: Callable[[int], socket.socket],
    new_event_loop: Callable[[], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client does not trust the CA of the server. A client that only disconnects is not logged."""
    lines: queue.Queue[tuple[str, str]] = queue.Queue()
    monkeypatch.setattr(RejectionLog, "log", lambda _, fields, __: lines.put((fields["from"], fields["err"])))
    with serve_in_thread(app, make_certificate(tmp_path), new_event_loop) as port:
        connect(port).close()
        client = connect(port)
        address = ":".join(map(str, client.getsockname()))
        with pytest.raises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(client, server_hostname="localhost")
        logged_address, reason = lines.get(timeout=TIMEOUT)
    assert (logged_address, lines.qsize()) == (address, 0)
    assert "unknown ca" in reason.lower()


def test_a_tls_connection_without_a_client_certificate_is_closed_like_one_without_a_request(
    connect: Callable[[int], socket.socket], new_event_loop: Callable[[], Any], tmp_path: Path
) -> None:
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    with serve_in_thread(app, make_certificate(tmp_path), new_event_loop) as port:
        first = connect(port)
        with trust.wrap_socket(connect(port)) as served:
            assert is_served(served)
            last = connect(port)
            connect(port)
            assert is_closed(first)
            connect(port)
            assert is_closed(served)
        last.setblocking(False)
        with pytest.raises(BlockingIOError):  # open
            last.recv(1)


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


class Port:
    """Connections with the names `a`, `b`, ...

    Attributes:
        closed: the names of the closed connections.
    """

    def __init__(self, names: str) -> None:
        self.connections, self.closed = OpenConnections(), ""
        self.by_name: dict[str, OpenConnection] = {
            name: self.connections.add(partial(self.close, name)) for name in names
        }

    def close(self, name: str) -> None:
        self.closed += name

    def serve(self, name: str, *, is_authenticated: bool = True) -> None:
        """Serve a request."""
        self.by_name[name].start_request()
        self.by_name[name].end_request(is_authenticated=is_authenticated)

    def fill(self) -> str:
        """Make room as often as possible; return the names of the closed connections in order."""
        while self.connections.make_room():
            pass
        return self.closed


def test_connections_without_an_authenticated_request_are_closed_first_and_then_the_longest_idle_ones() -> None:
    port = Port("abcde")
    port.serve("b")
    port.serve("a")
    port.serve("c", is_authenticated=False)
    assert port.fill() == "decba"
    assert len(port.connections) == 0


def test_a_connection_with_a_request_in_progress_is_not_closed() -> None:
    port = Port("ab")
    port.by_name["a"].start_request()
    assert port.fill() == "b"
    assert len(port.connections) == 1
    port.by_name["a"].end_request(is_authenticated=True)
    assert port.fill() == "ba"


def test_a_removed_connection_is_not_closed() -> None:
    port = Port("abc")
    port.by_name["a"].remove()
    port.by_name["b"].start_request()
    port.by_name["b"].remove()
    port.by_name["b"].end_request(is_authenticated=True)  # the response to a client that is gone
    port.by_name["b"].remove()
    assert len(port.connections) == 1
    assert port.fill() == "c"
