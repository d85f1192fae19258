"""Run a uvicorn server with a listening socket, a connection limit and a graceful shutdown."""

import asyncio
import logging
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn

from extender.serving.connection_acceptor import ConnectionAcceptor, OpenConnection
from extender.serving.http_protocol import BoundedHttpProtocol
from extender.serving.rejection_log import format_address
from extender.serving.tls import ServingCertificate

VERBS_KEEP_ALIVE_SECONDS = 120
"""Seconds for which an idle connection to the extender verbs stays open.

Go's client closes an idle connection after 90 seconds. The server must not close the connection first, because a
request in flight would fail, and kube-scheduler does not retry it.

Source: pkg/scheduler/extender.go, HTTPExtender.send (1.36).
"""

VERBS_SHUTDOWN_SECONDS = 25
"""Seconds that requests to the extender verbs have to finish when the process stops.

By default, Kubernetes kills the container after 30 seconds; in the chart's mode `service`, it waits for three of them
before it sends the signal.
"""

DEFAULT_SHUTDOWN_SECONDS = 5
"""Seconds that requests to a standalone scheduler have to finish when it stops.

Source: cmd/kube-scheduler/app/server.go, Run (1.36).
"""

MAX_CONNECTIONS = 4096
"""Limit of the open connections of one port. Beyond the limit, an idle connection is closed for each new one.

A slow client occupies a connection for at most `TRANSFER_TIMEOUT` seconds.
"""

_LOG = logging.getLogger(__name__)

_MAX_PORTS = 2
"""Number of ports that a process serves at most."""

_RESERVED_FILES = 256
"""Number of open files reserved for purposes other than connections."""

_REQUIRED_FILES = _MAX_PORTS * MAX_CONNECTIONS + _RESERVED_FILES

HANDSHAKE_SECONDS = 10.0
"""Seconds that a client has for the TLS handshake."""

_DEFAULT_KEEP_ALIVE_SECONDS = 5
_BACKLOG = 2048
_WILDCARDS = frozenset(("0.0.0.0", "::"))  # noqa: S104  the caller chooses the address


def listen(address: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """Return a listening socket. Port 0 selects a free port; *reuse_port* lets other processes share the port.

    A wildcard address, `0.0.0.0` or `::`, means all IPv4 and IPv6 addresses, as in Go: in a cluster with only IPv6,
    kubelets send their probes to IPv6 addresses. Without IPv6 in the system, `0.0.0.0` means all IPv4 addresses.

    Raises:
        OSError: the address cannot be used, or is in use.

    Source: Go 1.26, net/ipsock_posix.go, favoriteAddrFamily.
    """
    family, _, _, _, socket_address = socket.getaddrinfo(
        address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    is_dual_stack = socket_address[0] in _WILDCARDS and socket.has_dualstack_ipv6()
    return socket.create_server(
        ("::", port) if is_dual_stack else socket_address[:2],
        family=socket.AF_INET6 if is_dual_stack else family,
        backlog=_BACKLOG,
        reuse_port=reuse_port,
        dualstack_ipv6=is_dual_stack,
    )


def format_listener_url(listener: socket.socket, *, secure: bool = False) -> str:
    """Return the URL of *listener*."""
    return f"{'https' if secure else 'http'}://{format_address(listener.getsockname())}"


def raise_open_file_limit() -> int:
    """Raise the limit of open files to the number that all connections need, if the system allows it; return it."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit == resource.RLIM_INFINITY or soft_limit >= _REQUIRED_FILES:
        return _REQUIRED_FILES
    soft_limit = _REQUIRED_FILES if hard_limit == resource.RLIM_INFINITY else min(_REQUIRED_FILES, hard_limit)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard_limit))
    return soft_limit


def _find_max_connections() -> int:
    """Raise the limit of open files, and return the connection limit of a port that it allows."""
    soft_limit = raise_open_file_limit()
    if soft_limit >= _REQUIRED_FILES:
        return MAX_CONNECTIONS
    max_connections = max(1, (soft_limit - _RESERVED_FILES) // _MAX_PORTS)
    fields = {"openFiles": soft_limit, "connectionsPerPort": max_connections, "requiredOpenFiles": _REQUIRED_FILES}
    _LOG.warning("The limit of open files allows few connections", extra=fields)
    return max_connections


class _EmbeddedServer(uvicorn.Server):
    """A uvicorn server without signal handlers, and with a short timeout for TLS handshakes."""

    def __init__(self, config: uvicorn.Config, certificate: ServingCertificate | None) -> None:
        super().__init__(config)
        self._certificate = certificate

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not change the signal handlers."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections of *sockets*. A connection without a finished handshake is closed soon.

        uvicorn leaves the handshake timeout at 60 seconds, and such a connection takes 50 KiB.
        """
        config, self.servers = self.config, []

        def create_protocol(open_connection: OpenConnection) -> asyncio.Protocol:
            protocol = BoundedHttpProtocol(config=config, server_state=self.server_state, app_state=self.lifespan.state)
            protocol.open_connection = open_connection
            return protocol

        max_connections = _find_max_connections()
        for listener in sockets or ():
            acceptor: Any = ConnectionAcceptor(
                listener,
                create_protocol,
                self._certificate,
                max_connections=max_connections,
                handshake_timeout=HANDSHAKE_SECONDS,
            )
            acceptor.start()
            self.servers.append(acceptor)
        self.started = True


@asynccontextmanager
async def serve_http(
    app: Any,
    listener: socket.socket,
    certificate: ServingCertificate | None,
    *,
    shutdown_timeout: int = DEFAULT_SHUTDOWN_SECONDS,
    keep_alive_timeout: int = _DEFAULT_KEEP_ALIVE_SECONDS,
) -> AsyncIterator[None]:
    """Serve requests in the running event loop while the block runs.

    When the block ends, the server accepts no more requests, and waits for requests in flight.

    Args:
        app: an ASGI application, which gets client certificates in its scope (see `http_protocol`).
        listener: the listening socket.
        certificate: the server's certificate for HTTPS, which may be refreshed; None: plain HTTP.
        shutdown_timeout: seconds that requests in flight have to finish when the block ends.
        keep_alive_timeout: seconds for which an idle connection stays open.
    """
    config = uvicorn.Config(
        app,
        http=BoundedHttpProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=keep_alive_timeout,
        timeout_graceful_shutdown=shutdown_timeout,
    )
    server = _EmbeddedServer(config, certificate)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="service")
    try:
        yield
    finally:
        server.should_exit = True
        await task
