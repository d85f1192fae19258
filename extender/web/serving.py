"""The server around the application: the socket it listens on, and how it stops."""

import asyncio
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn

from extender.web.peer import PeerProtocol

if sys.platform != "win32":
    import resource

KEEP_ALIVE = 120
"""Seconds a scheduler's idle connection is kept. Go's client keeps its end for 90: who closes first must not be us, or
a request that is on its way meets a closed connection and kube-scheduler does not repeat it. Source: F013."""

DRAIN = 30
"""Seconds that verbs have to finish when the process is told to stop."""

CLOSING = 5
"""Seconds that the service of a standalone scheduler has to finish what is being answered. Source: H052."""

_MOST_CONNECTIONS = 4096
"""With so many open, each request is answered 503; slow callers hold theirs for `peer.PATIENCE` at most."""

_SPARE_FILES = 256

_IDLE = 5
_BACKLOG = 2048


def listening(address: str, port: int, *, share_port: bool = False) -> socket.socket:
    """A socket that listens there; port 0 takes a free one, *share_port* lets other processes listen there too.

    Raises:
        OSError: the address cannot be used, or something else listens there.
    """
    family, _, _, _, where = socket.getaddrinfo(
        address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(where[:2], family=family, backlog=_BACKLOG, reuse_port=share_port)


def url(listener: socket.socket, *, secure: bool = False) -> str:
    """The address of *listener* as a caller writes it."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _connections() -> int:
    """How many connections there may be: as many as the system lets us have files, which this asks for, to a bound."""
    if sys.platform == "win32":
        return _MOST_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_CONNECTIONS + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, soft - _SPARE_FILES)
    return _MOST_CONNECTIONS


class _Beside(uvicorn.Server):
    """A server that leaves signals to whoever runs the event loop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals go where they went."""
        yield


@asynccontextmanager
async def serving(
    app: Any,
    listener: socket.socket,
    context: ssl.SSLContext | None,
    *,
    closing: int = CLOSING,
    keep_alive: int = _IDLE,
) -> AsyncIterator[None]:
    """Answer requests in the running event loop for as long as the block lasts.

    At its end no more are taken, and those that are there have *closing* seconds.

    Args:
        app: an ASGI application; it finds the certificates of callers in the scope (see `peer`).
        listener: where they come in.
        context: TLS; None for plain HTTP.
        closing: see above.
        keep_alive: seconds an idle connection is kept.
    """
    config = uvicorn.Config(
        app,
        http=PeerProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_connections(),
        timeout_keep_alive=keep_alive,
        timeout_graceful_shutdown=closing,
        ssl_context_factory=None if context is None else lambda _config, _default: context,
    )
    server = _Beside(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="service")
    try:
        yield
    finally:
        server.should_exit = True
        await task
