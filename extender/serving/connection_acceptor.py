"""Accept the connections of a listening socket, up to a limit that also counts unfinished TLS handshakes."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

_LOG: Final = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 1.0
"""Seconds without accepting after an error of the system, such as too many open files."""

_LOG_SECONDS: Final = 60.0
"""Minimum seconds between two log lines about closed connections."""

ProtocolFactory = Callable[[Callable[[], None]], asyncio.Protocol]
"""Creates the protocol of a connection. The protocol must call the argument when the connection is lost."""


class ConnectionAcceptor:
    """Accepts connections as `asyncio.Server` does, but closes each connection beyond a limit at once.

    asyncio has no limit. uvicorn's limit rejects requests but keeps their connections open, and does not count
    connections without a finished TLS handshake.
    """

    def __init__(
        self,
        listener: socket.socket,
        create_protocol: ProtocolFactory,
        tls_context: ssl.SSLContext | None,
        *,
        max_connections: int,
        handshake_timeout: float,
    ) -> None:
        """Create an acceptor that does not accept connections yet.

        Args:
            listener: the listening socket, which `close` closes.
            create_protocol: the function that creates the protocol of each connection.
            tls_context: the TLS context; None: no TLS.
            max_connections: the limit of open connections.
            handshake_timeout: seconds that a client has for the TLS handshake.
        """
        self._listener, self._create_protocol, self._tls_context = listener, create_protocol, tls_context
        self._max_connections = max_connections
        self._handshake_timeout = None if tls_context is None else handshake_timeout
        self._open_connections: set[object] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_log_time = float("-inf")

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
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except ConnectionError:  # the client has closed the connection already
                continue
            except OSError as error:
                _LOG.warning("No connection can be accepted", extra={"err": str(error)})
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if len(self._open_connections) >= self._max_connections:
                connection.close()
                self._log_closed_connection(loop.time())
                continue
            token = object()
            self._open_connections.add(token)
            self._start_task(self._set_up(connection, partial(self._open_connections.discard, token)))

    async def _set_up(self, connection: socket.socket, remove: Callable[[], None]) -> None:
        """Create the transport and the protocol of *connection*; call *remove* if the TLS handshake fails."""
        is_set_up = False
        try:
            with suppress(OSError):  # not supported by all kinds of sockets
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(OSError, RuntimeError):  # uvloop raises RuntimeError if the client resets the connection
                await asyncio.get_running_loop().connect_accepted_socket(
                    partial(self._create_protocol, remove),
                    connection,
                    ssl=self._tls_context,
                    ssl_handshake_timeout=self._handshake_timeout,
                )
                is_set_up = True
        finally:
            if not is_set_up:
                remove()

    def _log_closed_connection(self, now: float) -> None:
        if now >= self._next_log_time:
            self._next_log_time = now + _LOG_SECONDS
            _LOG.warning("Closing new connections", extra={"openConnections": len(self._open_connections)})

    def _start_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine, name="connections")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
