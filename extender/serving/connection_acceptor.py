"""Accept the connections of a listening socket, up to a limit that also counts unfinished TLS handshakes.

If there are too many, open connections that are idle are closed.
"""

import asyncio
import logging
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Final

from extender.serving.rejection_log import RejectionLog, format_client
from extender.serving.tls import ServingCertificate


class OpenConnection:
    """An open connection. It is idle until its first request, and after each response.

    Attributes:
        abort: the function that closes the connection at once.
    """

    __slots__ = ("_connections", "abort")

    def __init__(self, connections: "OpenConnections", abort: Callable[[], object]) -> None:
        self._connections, self.abort = connections, abort

    def start_request(self) -> None:
        """Do not close the connection to make room while it has a request in progress."""
        for idle_connections in self._connections.idle:
            idle_connections.pop(self, None)

    def end_request(self, *, is_authenticated: bool) -> None:
        """Close the connection to make room if it is idle for longer than others."""
        if self in self._connections.all:
            self.start_request()
            self._connections.idle[is_authenticated][self] = None

    def remove(self) -> None:
        """Remove the connection, which is closed. It may be removed already."""
        self.start_request()
        self._connections.all.discard(self)


class OpenConnections:
    """The open connections of a port.

    If a new one needs room, the connection is closed that has been idle for longest, among those that never completed
    an authenticated request; if there is none, among the others. A connection with a request in progress is never
    closed. So a client with thousands of connections cannot keep others from being served. All methods take constant
    time.

    Attributes:
        idle: the idle connections that never completed an authenticated request, and the other idle ones; those that
            have been idle for longest are first.
    """

    def __init__(self) -> None:
        self.all: set[OpenConnection] = set()
        self.idle: tuple[OrderedDict[OpenConnection, None], ...] = OrderedDict(), OrderedDict()

    def __len__(self) -> int:
        return len(self.all)

    def add(self, abort: Callable[[], object]) -> OpenConnection:
        """Add a new connection, which *abort* closes at once."""
        connection = OpenConnection(self, abort)
        self.idle[False][connection] = None
        self.all.add(connection)  # last: if the memory does not suffice, the connection does not count
        return connection

    def make_room(self) -> bool:
        """Close and remove one connection; return False if all have a request in progress."""
        for idle_connections in self.idle:
            if idle_connections:
                connection, _ = idle_connections.popitem(last=False)
                self.all.discard(connection)
                connection.abort()
                return True
        return False


_LOG: Final = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 1.0
"""Seconds without accepting after an error of the system, such as too many open files."""

_FULL_TEXT: Final = "Closing idle connections, because there are too many"
_LOG_SECONDS: Final = 60.0
"""Minimum seconds between two log lines about too many connections."""

ProtocolFactory = Callable[[OpenConnection], asyncio.Protocol]
"""Creates the protocol of a connection.

The protocol must replace the argument's `abort`, report its requests to it, and remove it when the connection is lost.
"""


class ConnectionAcceptor:
    """Accepts connections as `asyncio.Server` does, up to a limit.

    Beyond the limit, an idle connection is closed for each new one; see `OpenConnections`. If all connections have a
    request in progress, the new one is closed.

    asyncio has no limit. uvicorn's limit rejects requests but keeps their connections open, and does not count
    connections without a finished TLS handshake.
    """

    def __init__(
        self,
        listener: socket.socket,
        create_protocol: ProtocolFactory,
        certificate: ServingCertificate | None,
        *,
        max_connections: int,
        handshake_timeout: float,
    ) -> None:
        """Create an acceptor that does not accept connections yet.

        Args:
            listener: the listening socket, which `close` closes.
            create_protocol: the function that creates the protocol of each connection.
            certificate: the server's certificate, which may be refreshed; None: no TLS.
            max_connections: the limit of open connections.
            handshake_timeout: seconds that a client has for the TLS handshake.
        """
        self._listener, self._create_protocol, self._certificate = listener, create_protocol, certificate
        self._max_connections = max_connections
        self._handshake_timeout = None if certificate is None else handshake_timeout
        self._open_connections = OpenConnections()
        self._tasks: set[asyncio.Task[None]] = set()
        self._full_log = RejectionLog(_FULL_TEXT, max_lines=1, interval=_LOG_SECONDS)
        self._handshake_log = RejectionLog("TLS handshake error")

    def start(self) -> None:
        """Accept connections in the running event loop from now on."""
        self._listener.setblocking(False)
        self._start_task(self._accept())

    def close(self) -> None:
        """Accept no more connections, and end the unfinished TLS handshakes. Other connections stay open."""
        for task in self._tasks:
            task.cancel()
        self._listener.close()

    async def wait_closed(self) -> None:
        """Wait after `close` until the handshakes have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self) -> None:
        while True:
            try:
                await self._accept_connection()
            except ConnectionError:  # the client has closed the connection already
                continue
            except OSError as error:
                _LOG.warning("No connection can be accepted", extra={"err": str(error)})
                await asyncio.sleep(_PAUSE_SECONDS)
            except MemoryError:
                with suppress(MemoryError):
                    self._open_connections.make_room()  # the buffers of a connection may have 64 KiB
                    self._log_full()
                await asyncio.sleep(0)  # no timer, which needs memory

    def _log_full(self) -> None:
        self._full_log.log({"openConnections": len(self._open_connections)}, asyncio.get_running_loop().time())

    async def _accept_connection(self) -> None:
        """Accept one connection, and start to set it up.

        Raises:
            OSError: the connection cannot be accepted.
            MemoryError: the memory does not suffice; the connection is closed.
        """
        connection, _ = await asyncio.get_running_loop().sock_accept(self._listener)
        if len(self._open_connections) >= self._max_connections:
            self._log_full()
            await asyncio.sleep(0)  # tasks start that may be cancelled; sockets of aborted connections are closed
            if len(self._open_connections) >= self._max_connections and not self._open_connections.make_room():
                connection.close()
                return
        with ExitStack() as stack:
            stack.callback(connection.close)
            open_connection = self._open_connections.add(connection.close)
            stack.callback(open_connection.remove)
            task = self._start_task(self._set_up(connection, open_connection))
            open_connection.abort = task.cancel  # used if it is closed before it is set up
            stack.pop_all()

    async def _set_up(self, connection: socket.socket, open_connection: OpenConnection) -> None:
        """Create the transport and the protocol of *connection*; remove it if the TLS handshake fails."""
        is_set_up, loop, client = False, asyncio.get_running_loop(), ""
        try:
            with suppress(OSError):  # not supported by all kinds of sockets
                client = format_client(connection.getpeername())
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.connect_accepted_socket(
                partial(self._create_protocol, open_connection),
                connection,
                ssl=None if self._certificate is None else self._certificate.context,
                ssl_handshake_timeout=self._handshake_timeout,
            )
            is_set_up = True
        except ssl.SSLError as error:
            self._handshake_log.log({"from": client, "err": str(error)}, loop.time())
        except (OSError, RuntimeError, MemoryError):  # uvloop raises RuntimeError if the client resets the connection
            pass
        finally:
            if not is_set_up:
                open_connection.remove()

    def _start_task(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine, name="connections")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
