"""Connections of all our clients: idle ones are kept for a minute, and those with unread responses are aborted.

A TLS connection that is closed waits for the peer's close_notify. If the peer is stopped or slow, the socket stays
open after its `aiohttp.ClientSession` was closed. So connections with unread data are aborted instead.

A signal tells waiting tasks that the API server answers again after an outage.
"""

import asyncio
from typing import Final

import aiohttp

KEEPALIVE_SECONDS: Final = 60.0
"""Seconds for which an idle connection is kept."""


def make_connector() -> aiohttp.TCPConnector:
    """Return a connector without a connection limit. Call it in a running event loop."""
    return aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS)


def abort_unread(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of *response* unless its body was read to the end."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


class RecoverySignal:
    """Tells tasks that the API server answers again.

    The transports of a process share one signal, so that a successful request of any task ends the back-off of others.

    Attributes:
        success_count: the number of successful requests.
    """

    def __init__(self) -> None:
        self.success_count = 0
        self._waiting_count = 0
        self._succeeded = asyncio.Event()

    def record_success(self) -> None:
        """Record that a request succeeded, and wake the waiting tasks."""
        self.success_count += 1
        if self._waiting_count:
            self._succeeded.set()
            self._succeeded = asyncio.Event()

    async def wait(self, seconds: float, success_count: int) -> bool:
        """Wait until there are more than *success_count* successes, at most *seconds*; return whether there are."""
        if self.success_count > success_count:
            return True
        self._waiting_count += 1
        try:
            async with asyncio.timeout(seconds):
                await self._succeeded.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting_count -= 1
        return True
