"""The server around the application: the socket it listens on, and how it stops."""

import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from extender.web.health import Health

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

KEEP_ALIVE = 120
"""Seconds an idle connection is kept. Go's client keeps its end for 90: who closes first must not be us, or a request
that is on its way meets a closed connection and kube-scheduler does not repeat it. Source: F013."""

DRAIN = 30
"""Seconds that requests have to finish when the process is told to stop."""

_BACKLOG = 2048


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one.

    Raises:
        OSError: the address cannot be used, or something else listens there.
    """
    family, _, _, _, where = socket.getaddrinfo(
        address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(where[:2], family=family, backlog=_BACKLOG)


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
