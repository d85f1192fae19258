"""The server around the application: the socket it listens on, and how it stops."""

import asyncio
import signal
import socket
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from extender.web.health import Health
from extender.web.peer import PeerProtocol

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

KEEP_ALIVE = 120
"""Seconds an idle connection is kept. Go's client keeps its end for 90: who closes first must not be us, or a request
that is on its way meets a closed connection and kube-scheduler does not repeat it. Source: F013."""

DRAIN = 30
"""Seconds that requests have to finish when the process is told to stop."""

_BACKLOG = 2048


CLOSING = 5
"""Seconds that the service of a standalone scheduler has to finish what is being answered. Source: H052."""

_MOST_CONNECTIONS = 1000


def listening(address: str, port: int, *, share_port: bool = False) -> socket.socket:
    """A socket that listens there; port 0 takes a free one, *share_port* lets other processes listen there too.

    Raises:
        OSError: the address cannot be used, or something else listens there.
    """
    family, _, _, _, where = socket.getaddrinfo(
        address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(where[:2], family=family, backlog=_BACKLOG, reuse_port=share_port)


def url(listener: socket.socket) -> str:
    """The address of *listener* as a caller writes it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """Ends in good order when told to: uvicorn's own would raise the signal again once it has drained."""

    def __init__(self, config: uvicorn.Config, health: Health) -> None:
        super().__init__(config)
        self._health = health

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop taking requests and answer those that are there; a second interrupt stops at once."""
        self._health.draining = True
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals stop the server, and go where they went before once it has stopped."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def serve(app: FastAPI, listener: socket.socket, health: Health) -> None:
    """Answer requests until SIGTERM or SIGINT, then finish those that are there, and return."""
    config = uvicorn.Config(
        app,
        loop="asyncio" if sys.platform == "win32" else "uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=DRAIN,
    )
    _Server(config, health).run(sockets=[listener])


class _Beside(uvicorn.Server):
    """A server that leaves signals to whoever runs the event loop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals go where they went."""
        yield


@asynccontextmanager
async def serving(app: Any, listener: socket.socket, context: ssl.SSLContext | None) -> AsyncIterator[None]:
    """Answer requests in the running event loop for as long as the block lasts.

    At its end no more are taken, and those that are there have a few seconds.

    Args:
        app: an ASGI application; it finds the certificates of callers in the scope (see `peer`).
        listener: where they come in.
        context: TLS; None for plain HTTP.
    """
    config = uvicorn.Config(
        app,
        http=PeerProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=CLOSING,
        ssl_context_factory=None if context is None else lambda _config, _default: context,
    )
    server = _Beside(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="service")
    try:
        yield
    finally:
        server.should_exit = True
        await task
